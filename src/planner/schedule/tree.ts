import {
  channelRange,
  chunksOf,
  ConnectionTable,
  type Move,
  type Range,
  type Schedule,
  type ScheduledCall,
  type Worker,
} from './schedule.js';

/** Trees through all ranks, and the sizes of pieces. */
interface TreeInput {
  readonly nRanks: number;
  /** By channel. */
  readonly trees: readonly Tree[];
  readonly chunkBytes: number;
}

/** One tree, by rank: parent and children. */
export interface Tree {
  /** Parent, -1 for the root. */
  readonly up: (rank: number) => number;
  /** Children; those below 0 are none. */
  readonly down: (rank: number) => readonly number[];
}

/**
 * An all-reduce over trees: sums go up to the root, the result down again. NCCL splits the threads of a block, so that a rank
 * does both at the same time; the root has one worker for both.
 */
export function treeSchedule(call: ScheduledCall, { nRanks, trees, chunkBytes }: TreeInput): Schedule {
  const table = new ConnectionTable();
  const workers = trees.flatMap(({ up, down }, channel) => {
    const own = channelRange(call.bytes, trees.length, channel);
    const ranks = Array.from({ length: nRanks }, (_, rank) => rank);
    const rising = ranks.map((rank) => (up(rank) < 0 ? -1 : table.add(rank, up(rank), channel)));
    const falling = ranks.map((rank) => (up(rank) < 0 ? -1 : table.add(up(rank), rank, channel)));
    return ranks.flatMap((rank): Worker[] => {
      const children = down(rank).filter((child) => child >= 0);
      const ends: Ends = {
        fromBelow: children.map((child) => rising[child] ?? 0),
        toAbove: [rising[rank] ?? -1],
        fromAbove: [falling[rank] ?? -1],
        toBelow: children.map((child) => falling[child] ?? 0),
      };
      if (up(rank) < 0) return [{ rank, channel, moves: () => turn(ends, own, chunkBytes) }];
      return [
        { rank, channel, moves: () => rise(ends, own, chunkBytes) },
        { rank, channel, moves: () => fall(ends, own, chunkBytes) },
      ];
    });
  });
  return { call, nRanks, connections: table.all, workers };
}

/** Connections of a rank in a tree. */
interface Ends {
  readonly fromBelow: readonly number[];
  readonly toAbove: readonly number[];
  readonly fromAbove: readonly number[];
  readonly toBelow: readonly number[];
}

function* turn({ fromBelow, toBelow }: Ends, own: Range, chunkBytes: number): Generator<Move> {
  for (const { offset, bytes } of chunksOf(own, chunkBytes))
    yield { receive: fromBelow, input: offset, send: toBelow, output: offset, bytes };
}

function* rise({ fromBelow, toAbove }: Ends, own: Range, chunkBytes: number): Generator<Move> {
  for (const { offset, bytes } of chunksOf(own, chunkBytes))
    yield { receive: fromBelow, input: offset, send: toAbove, output: -1, bytes };
}

function* fall({ fromAbove, toBelow }: Ends, own: Range, chunkBytes: number): Generator<Move> {
  for (const { offset, bytes } of chunksOf(own, chunkBytes))
    yield { receive: fromAbove, input: -1, send: toBelow, output: offset, bytes };
}
