import {
  channelRange,
  chunkOf,
  chunksOf,
  ConnectionTable,
  type Move,
  NETWORK_RANK,
  type Range,
  roundsOf,
  type Schedule,
  type ScheduledCall,
  type Worker,
} from './schedule.js';

/** A chain through the ranks of each node; its first rank reaches a network that reduces. */
interface ChainInput {
  readonly nRanks: number;
  /** By channel and node: the ranks of the chain, head first. */
  readonly chains: readonly (readonly (readonly number[])[])[];
  readonly chunkBytes: number;
}

/** An all-reduce: sums go up the chains and into the network, the result comes back down. */
export function collnetChainSchedule(call: ScheduledCall, { nRanks, chains, chunkBytes }: ChainInput): Schedule {
  const table = new ConnectionTable();
  const workers = chains.flatMap((nodes, channel) => {
    const own = channelRange(call.bytes, chains.length, channel);
    const made: Worker[] = [];
    const into: number[] = [];
    const out: number[] = [];
    for (const chain of nodes) {
      const rising = chain.map((rank, depth) =>
        depth === 0 ? table.add(rank, NETWORK_RANK, channel, 'net-in') : table.add(rank, chain[depth - 1] ?? 0, channel),
      );
      const falling = chain.map((rank, depth) =>
        depth === 0 ? table.add(NETWORK_RANK, rank, channel, 'net-out') : table.add(chain[depth - 1] ?? 0, rank, channel),
      );
      into.push(rising[0] ?? 0);
      out.push(falling[0] ?? 0);
      chain.forEach((rank, depth) => {
        const isLast = depth === chain.length - 1;
        const up = { receive: isLast ? [] : [rising[depth + 1] ?? 0], send: [rising[depth] ?? 0] };
        const down = { receive: [falling[depth] ?? 0], send: isLast ? [] : [falling[depth + 1] ?? 0] };
        made.push({
          rank,
          channel,
          moves: () => each(own, chunkBytes, ({ offset, bytes }) => ({ ...up, input: offset, output: -1, bytes })),
        });
        made.push({
          rank,
          channel,
          moves: () => each(own, chunkBytes, ({ offset, bytes }) => ({ ...down, input: -1, output: offset, bytes })),
        });
      });
    }
    made.push({
      rank: NETWORK_RANK,
      channel,
      moves: () => each(own, chunkBytes, ({ bytes }) => ({ receive: into, input: -1, send: out, output: -1, bytes })),
    });
    return made;
  });
  return { call, nRanks, connections: table.all, workers };
}

/** Heads that all ranks of their node reach directly, and that reach a network that reduces. */
interface DirectInput {
  readonly nRanks: number;
  /** By node: its ranks, and those of them that are heads. */
  readonly nodes: readonly { readonly ranks: readonly number[]; readonly heads: readonly number[] }[];
  readonly nChannels: number;
  readonly chunkBytes: number;
}

/**
 * An all-reduce: each head adds up its share of its node, the network that of all nodes; each rank collects the shares
 * from the heads.
 */
export function collnetDirectSchedule(call: ScheduledCall, { nRanks, nodes, nChannels, chunkBytes }: DirectInput): Schedule {
  const table = new ConnectionTable();
  const nHeads = nodes[0]?.heads.length ?? 0;
  const workers: Worker[] = [];
  for (let channel = 0; channel < nChannels; channel++) {
    const own = channelRange(call.bytes, nChannels, channel);
    const add = (rank: number, moves: Worker['moves']) => void workers.push({ rank, channel, moves });
    const ofOthers = (heads: readonly number[], rank: number, move: (share: number, chunk: Range) => Move) =>
      add(rank, () => eachShare(own, heads, rank, chunkBytes, move));
    const ofOne = (share: number, rank: number, move: (chunk: Range) => Move) =>
      add(rank, () => ofShare(own, nHeads, share, chunkBytes, move));
    const into: number[][] = Array.from({ length: nHeads }, () => []);
    const out: number[][] = Array.from({ length: nHeads }, () => []);
    for (const { ranks, heads } of nodes) {
      const scatter = heads.map((head) => ranks.map((rank) => (rank === head ? -1 : table.add(rank, head, channel))));
      const gather = heads.map((head) => ranks.map((rank) => (rank === head ? -1 : table.add(head, rank, channel))));
      ranks.forEach((rank, local) => {
        const towards = (share: number) => [scatter[share]?.[local] ?? 0];
        const back = (share: number) => [gather[share]?.[local] ?? 0];
        ofOthers(heads, rank, (share, { offset, bytes }) => ({
          receive: [],
          input: offset,
          send: towards(share),
          output: -1,
          bytes,
        }));
        ofOthers(heads, rank, (share, { offset, bytes }) => ({
          receive: back(share),
          input: -1,
          send: [],
          output: offset,
          bytes,
        }));
      });
      heads.forEach((rank, share) => {
        const up = table.add(rank, NETWORK_RANK, channel, 'net-in');
        const down = table.add(NETWORK_RANK, rank, channel, 'net-out');
        into[share]?.push(up);
        out[share]?.push(down);
        const receive = (scatter[share] ?? []).filter((number) => number >= 0);
        const send = (gather[share] ?? []).filter((number) => number >= 0);
        ofOne(share, rank, ({ offset, bytes }) => ({ receive, input: offset, send: [up], output: -1, bytes }));
        ofOne(share, rank, ({ offset, bytes }) => ({ receive: [down], input: -1, send, output: offset, bytes }));
      });
    }
    for (let share = 0; share < nHeads; share++) {
      const [receive, send] = [into[share] ?? [], out[share] ?? []];
      ofOne(share, NETWORK_RANK, ({ bytes }) => ({ receive, input: -1, send, output: -1, bytes }));
    }
  }
  return { call, nRanks, connections: table.all, workers };
}

function* each(own: Range, chunkBytes: number, move: (chunk: Range) => Move): Generator<Move> {
  for (const chunk of chunksOf(own, chunkBytes)) yield move(chunk);
}

/** The shares of all heads except the rank itself. */
function* eachShare(
  own: Range,
  heads: readonly number[],
  rank: number,
  chunkBytes: number,
  move: (share: number, chunk: Range) => Move,
): Generator<Move> {
  for (const round of roundsOf(own, heads.length, chunkBytes)) {
    for (let share = 0; share < heads.length; share++) if (heads[share] !== rank) yield move(share, chunkOf(round, share));
  }
}

function* ofShare(own: Range, nHeads: number, share: number, chunkBytes: number, move: (chunk: Range) => Move): Generator<Move> {
  for (const round of roundsOf(own, nHeads, chunkBytes)) yield move(chunkOf(round, share));
}
