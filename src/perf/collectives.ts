import type { Communicator } from '../runtime/communicator/communicator.js';
import type { DataTypeName, NumericArray, ReductionOperator } from '../runtime/device/types.js';
import type { ResultPart } from './data.js';

/** The part of a communicator that perf uses. */
export type MeasuredCommunicator = Pick<
  Communicator,
  | 'rank'
  | 'nRanks'
  | 'localRank'
  | 'alloc'
  | 'free'
  | 'barrier'
  | 'barrierSync'
  | 'allReduce'
  | 'allReduceSync'
  | 'reduce'
  | 'reduceSync'
  | 'broadcast'
  | 'broadcastSync'
  | 'allGather'
  | 'allGatherSync'
  | 'reduceScatter'
  | 'reduceScatterSync'
  | 'allToAll'
  | 'allToAllSync'
  | 'gather'
  | 'gatherSync'
  | 'scatter'
  | 'scatterSync'
  | 'group'
  | 'groupSync'
  | 'send'
  | 'recv'
>;

/** Lengths of a collective's buffers, and their offsets in place, all in elements (as in nccl-tests). */
export interface Shape {
  /** The `count` column of the table: the count of the call. */
  readonly count: number;
  readonly sendCount: number;
  readonly recvCount: number;
  /** In place, both lie in one buffer: rank r sends from its element `r × sendOffset` … */
  readonly sendOffset: number;
  /** … and receives from its element `r × recvOffset` on. */
  readonly recvOffset: number;
}

/** A rank's view of one call. */
interface RankView {
  readonly rank: number;
  readonly nRanks: number;
  readonly root: number;
}

/** The arrays of a call, and how it is made. */
export interface Arguments {
  readonly send: NumericArray;
  readonly recv: NumericArray;
  readonly operator: ReductionOperator;
  readonly root: number;
  /** Type of the elements; the class of the array does not determine it. */
  readonly options: { readonly type: DataTypeName };
}

/** A collective that perf measures. To add one, add it to {@link collectives}. */
export interface Collective {
  readonly name: string;
  readonly reduces: boolean;
  readonly rooted: boolean;
  /** True if input and output may share one buffer. */
  readonly inPlace: boolean;
  /** The shape for about `elements` elements of `bytes` bytes in the larger buffer. */
  shape(elements: number, nRanks: number, bytes: number): Shape;
  /**
   * Bus bandwidth over algorithm bandwidth: the least part of the size that each link carries (nccl-tests,
   * doc/PERFORMANCE.md).
   */
  busFactor(nRanks: number): number;
  /** Expected content of this rank's receive buffer. */
  expected(shape: Shape, place: RankView): ResultPart[];
  run(comm: MeasuredCommunicator, call: Arguments): Promise<void>;
  runSync(comm: MeasuredCommunicator, call: Arguments): void;
}

/** Both buffers hold the whole message. */
const whole = (elements: number): Shape => ({
  count: elements,
  sendCount: elements,
  recvCount: elements,
  sendOffset: 0,
  recvOffset: 0,
});

/** Elements of one rank's block: blocks are whole multiples of 16 bytes, as in nccl-tests. */
const block = (elements: number, nRanks: number, bytes: number): number => {
  const count = Math.floor(elements / nRanks);
  return count - (count % (16 / bytes));
};

/** Each rank sends one block and receives all, or the root does. */
const gathered = (elements: number, nRanks: number, bytes: number): Shape => {
  const count = block(elements, nRanks, bytes);
  return { count, sendCount: count, recvCount: count * nRanks, sendOffset: count, recvOffset: 0 };
};

/** Each rank, or the root, sends a block for each, and each receives one. */
const scattered = (elements: number, nRanks: number, bytes: number): Shape => {
  const count = block(elements, nRanks, bytes);
  return { count, sendCount: count * nRanks, recvCount: count, sendOffset: 0, recvOffset: count };
};

/** The share of the message that enters or leaves a rank that already has its own block. */
const allButOwn = (nRanks: number): number => (nRanks - 1) / nRanks;

/** Block r of the receive buffer is rank r's, from its element `first` on. */
const blocksOfAll = (count: number, nRanks: number, first: number): ResultPart[] =>
  Array.from({ length: nRanks }, (_, from) => ({ at: from * count, count, from, first }));

export const collectives: readonly Collective[] = [
  {
    name: 'all_reduce',
    reduces: true,
    rooted: false,
    inPlace: true,
    shape: whole,
    busFactor: (nRanks) => 2 * allButOwn(nRanks),
    expected: ({ recvCount }) => [{ at: 0, count: recvCount, from: 'all', first: 0 }],
    run: (comm, { send, recv, operator, options }) => comm.allReduce(send, recv, operator, options),
    runSync: (comm, { send, recv, operator, options }) => comm.allReduceSync(send, recv, operator, options),
  },
  {
    name: 'reduce',
    reduces: true,
    rooted: true,
    inPlace: true,
    shape: whole,
    busFactor: () => 1,
    expected: ({ recvCount }, { rank, root }) => (rank === root ? [{ at: 0, count: recvCount, from: 'all', first: 0 }] : []),
    run: (comm, { send, recv, operator, root, options }) => comm.reduce(send, recv, operator, root, options),
    runSync: (comm, { send, recv, operator, root, options }) => comm.reduceSync(send, recv, operator, root, options),
  },
  {
    name: 'broadcast',
    reduces: false,
    rooted: true,
    inPlace: true,
    shape: whole,
    busFactor: () => 1,
    expected: ({ recvCount }, { root }) => [{ at: 0, count: recvCount, from: root, first: 0 }],
    run: (comm, { send, recv, root, options }) => comm.broadcast(send, recv, root, options),
    runSync: (comm, { send, recv, root, options }) => comm.broadcastSync(send, recv, root, options),
  },
  {
    name: 'all_gather',
    reduces: false,
    rooted: false,
    inPlace: true,
    shape: gathered,
    busFactor: allButOwn,
    expected: ({ count }, { nRanks }) => blocksOfAll(count, nRanks, 0),
    run: (comm, { send, recv, options }) => comm.allGather(send, recv, options),
    runSync: (comm, { send, recv, options }) => comm.allGatherSync(send, recv, options),
  },
  {
    name: 'reduce_scatter',
    reduces: true,
    rooted: false,
    inPlace: true,
    shape: scattered,
    busFactor: allButOwn,
    expected: ({ count }, { rank }) => [{ at: 0, count, from: 'all', first: rank * count }],
    run: (comm, { send, recv, operator, options }) => comm.reduceScatter(send, recv, operator, options),
    runSync: (comm, { send, recv, operator, options }) => comm.reduceScatterSync(send, recv, operator, options),
  },
  {
    name: 'alltoall',
    reduces: false,
    rooted: false,
    inPlace: true,
    shape: (elements, nRanks, bytes) => {
      const count = block(elements, nRanks, bytes);
      return { count, sendCount: count * nRanks, recvCount: count * nRanks, sendOffset: 0, recvOffset: 0 };
    },
    busFactor: allButOwn,
    expected: ({ count }, { rank, nRanks }) => blocksOfAll(count, nRanks, rank * count),
    run: (comm, { send, recv, options }) => comm.allToAll(send, recv, options),
    runSync: (comm, { send, recv, options }) => comm.allToAllSync(send, recv, options),
  },
  {
    name: 'gather',
    reduces: false,
    rooted: true,
    inPlace: true,
    shape: gathered,
    busFactor: allButOwn,
    expected: ({ count }, { rank, root, nRanks }) => (rank === root ? blocksOfAll(count, nRanks, 0) : []),
    run: (comm, { send, recv, root, options }) => comm.gather(send, recv, root, options),
    runSync: (comm, { send, recv, root, options }) => comm.gatherSync(send, recv, root, options),
  },
  {
    name: 'scatter',
    reduces: false,
    rooted: true,
    inPlace: true,
    shape: scattered,
    busFactor: allButOwn,
    expected: ({ count }, { rank, root }) => [{ at: 0, count, from: root, first: rank * count }],
    run: (comm, { send, recv, root, options }) => comm.scatter(send, recv, root, options),
    runSync: (comm, { send, recv, root, options }) => comm.scatterSync(send, recv, root, options),
  },
  {
    name: 'sendrecv',
    reduces: false,
    rooted: false,
    inPlace: false,
    shape: whole,
    busFactor: () => 1,
    expected: ({ recvCount }, { rank, nRanks }) => [{ at: 0, count: recvCount, from: (rank - 1 + nRanks) % nRanks, first: 0 }],
    run: (comm, call) => comm.group(() => exchange(comm, call)),
    runSync: (comm, call) => comm.groupSync(() => exchange(comm, call)),
  },
];

/** To the next rank, from the previous one. */
function exchange(comm: MeasuredCommunicator, { send, recv, options }: Arguments): void {
  const { rank, nRanks } = comm;
  void comm.send(send, (rank + 1) % nRanks, options);
  void comm.recv(recv, (rank - 1 + nRanks) % nRanks, options);
}

/** GB/s (10^9) of a call that took `timeUs`: `algbw` is the size over the time, `busbw` is comparable with a link's speed. */
export function bandwidths(
  collective: Collective,
  bytes: number,
  timeUs: number,
  nRanks: number,
): { algbwGBps: number; busbwGBps: number } {
  const algbwGBps = timeUs > 0 ? bytes / timeUs / 1e3 : 0;
  return { algbwGBps, busbwGBps: algbwGBps * collective.busFactor(nRanks) };
}
