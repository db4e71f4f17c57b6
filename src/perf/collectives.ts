import type { Communicator } from '../communicator/communicator.js';
import type { NamedOperator } from '../device/types.js';
import type { ElementArray } from './types.js';
import type { Segment } from './data.js';

/** What perf calls of a communicator. */
export type MeasuredCommunicator = Pick<
  Communicator,
  | 'rank' | 'nRanks' | 'localRank' | 'alloc' | 'free'
  | 'allReduce' | 'allReduceSync' | 'broadcast' | 'broadcastSync' | 'barrier' | 'barrierSync'
>;

/** Lengths of a collective's buffers and where they lie in each other in place, all in elements (as nccl-tests has them). */
export interface Shape {
  /** What the table's `count` column says: the count that the call is given. */
  readonly count: number;
  readonly sendCount: number;
  readonly recvCount: number;
  /** In place, both lie in one buffer: rank r sends from its element `r × sendOffset` … */
  readonly sendOffset: number;
  /** … and receives from its element `r × recvOffset` on. */
  readonly recvOffset: number;
}

/** A rank's view of one call. */
export interface Place {
  readonly rank: number;
  readonly nRanks: number;
  readonly root: number;
}

/** What one collective is to perf. A new one is one more of these in {@link collectives}. */
export interface Collective {
  readonly name: string;
  readonly reduces: boolean;
  readonly rooted: boolean;
  /** The shape for a size of about `elements`, that of the larger buffer. */
  shape(elements: number, nRanks: number): Shape;
  /** Bus bandwidth over algorithm bandwidth: what of the size each link must carry at least (nccl-tests, doc/PERFORMANCE.md). */
  busFactor(nRanks: number): number;
  /** What the receive buffer of this rank must hold afterwards. */
  expected(shape: Shape, place: Place): Segment[];
  run(comm: MeasuredCommunicator, send: ElementArray, recv: ElementArray, operator: NamedOperator, root: number): Promise<void>;
  runSync(comm: MeasuredCommunicator, send: ElementArray, recv: ElementArray, operator: NamedOperator, root: number): void;
}

/** Both buffers hold the whole message. */
const whole = (elements: number): Shape => ({ count: elements, sendCount: elements, recvCount: elements, sendOffset: 0, recvOffset: 0 });

export const collectives: readonly Collective[] = [
  {
    name: 'all_reduce',
    reduces: true,
    rooted: false,
    shape: whole,
    busFactor: (nRanks) => (2 * (nRanks - 1)) / nRanks,
    expected: ({ recvCount }) => [{ at: 0, count: recvCount, from: 'all', first: 0 }],
    run: (comm, send, recv, operator) => comm.allReduce(send, recv, operator),
    runSync: (comm, send, recv, operator) => comm.allReduceSync(send, recv, operator),
  },
  {
    name: 'broadcast',
    reduces: false,
    rooted: true,
    shape: whole,
    busFactor: () => 1,
    expected: ({ recvCount }, { root }) => [{ at: 0, count: recvCount, from: root, first: 0 }],
    run: (comm, send, recv, _operator, root) => comm.broadcast(send, recv, root),
    runSync: (comm, send, recv, _operator, root) => comm.broadcastSync(send, recv, root),
  },
];

/** GB/s (10^9) of a call that took `timeUs`: `algbw` is the size over the time, `busbw` is comparable with a link's speed. */
export function bandwidths(collective: Collective, bytes: number, timeUs: number, nRanks: number): { algbwGBps: number; busbwGBps: number } {
  const algbwGBps = timeUs > 0 ? bytes / timeUs / 1e3 : 0;
  return { algbwGBps, busbwGBps: algbwGBps * collective.busFactor(nRanks) };
}
