import { eachMove, evenBlocks } from './moves.js';
import { RingMoves, type RingCut } from './ring-moves.js';
import { channelRange, ConnectionTable, type Range, type Schedule, type ScheduledCall, type Worker } from './schedule.js';

/** Rings, and the sizes of pieces. */
interface RingInput {
  /** By channel: all ranks in the order of the ring. */
  readonly rings: readonly ArrayLike<number>[];
  readonly cut: RingCut;
}

/** The cut of the data by NCCL's kernels. */
export function ncclRingCut(chunkBytes: number): RingCut {
  return { sliceBytes: chunkBytes, slicesPerChunk: 1, grainBytes: 16, meets: false };
}

/** Sets of connections of {@link RingMoves} besides the one of the ring. */
const none: readonly number[] = [];

/**
 * Each rank passes data on to the next one. In an all-reduce every chunk goes around twice: first it is summed, then the result
 * is copied. See RingMoves.
 *
 * @throws RangeError for a collective that rings do not support
 */
export function ringSchedule(call: ScheduledCall, { rings, cut }: RingInput): Schedule {
  const nRanks = rings[0]?.length ?? 0;
  const table = new ConnectionTable();
  const workers = rings.flatMap((order, channel) => {
    const own = dataOfChannel(call, nRanks, rings.length, channel, cut);
    const start = starterOf(call, order, own);
    const connections = Array.from(order, (rank, position) => [table.add(rank, order[(position + 1) % nRanks] ?? 0, channel)]);
    return Array.from(order, (rank, position): Worker => {
      const receives = [none, connections[(position - 1 + nRanks) % nRanks] ?? none];
      const sends = [none, connections[position] ?? none];
      const moves = () => {
        const machine = new RingMoves(order, position, cut);
        start(machine);
        return eachMove(machine, receives, sends);
      };
      return { rank, channel, moves };
    });
  });
  return { call, nRanks, connections: table.all, workers };
}

function dataOfChannel(
  { collective, bytes }: ScheduledCall,
  nRanks: number,
  nChannels: number,
  channel: number,
  { grainBytes }: RingCut,
): Range {
  const isShared = collective === 'AllGather' || collective === 'ReduceScatter';
  return channelRange(isShared ? bytes / nRanks : bytes, nChannels, channel, grainBytes);
}

/** Begins a channel's part of a call. */
function starterOf({ collective, bytes, root }: ScheduledCall, order: ArrayLike<number>, own: Range): (moves: RingMoves) => void {
  const blocks = () => evenBlocks(order.length, bytes / order.length, own);
  switch (collective) {
    case 'AllReduce':
      return (moves) => moves.startAllReduce(own.bytes, own.offset);
    case 'AllGather': {
      const outputs = blocks();
      return (moves) => moves.startAllGather(outputs, true);
    }
    case 'ReduceScatter': {
      const inputs = blocks();
      return (moves) => moves.startReduceScatter(inputs);
    }
    case 'Broadcast':
    case 'Reduce': {
      const place = Array.from(order).indexOf(root);
      if (collective === 'Broadcast') return (moves) => moves.startBroadcast(own.bytes, place, true, own.offset);
      return (moves) => moves.startReduce(own.bytes, place, own.offset);
    }
    default:
      throw new RangeError(`rings do no ${collective}`);
  }
}
