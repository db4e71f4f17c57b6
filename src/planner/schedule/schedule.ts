/**
 * A collective as data: the moves of all ranks' thread blocks. The verifier executes a schedule on numbers, the simulator
 * in time, ranks on arrays.
 *
 *     worker (rank 1, channel 0)      receive [3] ─┐
 *                                     input 4096 ──┴─► add ─► send [7], output 4096        one move
 */
export interface Schedule {
  readonly call: ScheduledCall;
  readonly nRanks: number;
  /** Connections, by the numbers that moves use. */
  readonly connections: readonly ScheduledConnection[];
  readonly workers: readonly Worker[];
  /** True for programs: moves use {@link Move.local}. */
  readonly own?: {
    /** Scratch of each rank, beside input and output. */
    readonly scratchBytes: number;
    /** Input and output are one buffer. */
    readonly isInPlace: boolean;
    /** Bytes of a chunk of input and output, of programs. */
    readonly chunkBytes?: number;
  };
}

/** The names of the collectives that schedules are made for. */
export const scheduledCollectives = [
  'AllReduce',
  'AllGather',
  'ReduceScatter',
  'Broadcast',
  'Reduce',
  'AllToAll',
  'SendRecv',
  'Gather',
  'Scatter',
] as const;
/** One of {@link scheduledCollectives}. */
export type ScheduledCollective = (typeof scheduledCollectives)[number];

/** The same by the names of nccl-tests' programs. */
export const collectivesOfTests: Readonly<Record<string, ScheduledCollective>> = {
  all_reduce: 'AllReduce',
  all_gather: 'AllGather',
  reduce_scatter: 'ReduceScatter',
  broadcast: 'Broadcast',
  reduce: 'Reduce',
  alltoall: 'AllToAll',
  sendrecv: 'SendRecv',
  gather: 'Gather',
  scatter: 'Scatter',
};

/** The call to schedule. */
export interface ScheduledCall {
  readonly collective: ScheduledCollective;
  /**
   * Size as nccl-tests counts it: of AllGather, ReduceScatter, AllToAll, Gather and Scatter the larger buffer of a
   * rank, with the parts of all ranks; it has to be a multiple of the ranks there.
   */
  readonly bytes: number;
  /** Of Broadcast, Reduce, Gather and Scatter. */
  readonly root: number;
}

/** A call that can be verified: also a scan, which NCCL does not have. */
export type VerifiableCall =
  ScheduledCall | { readonly collective: 'Scan' | 'ExclusiveScan'; readonly bytes: number; readonly root: number };

/** A schedule of such a call. */
export type VerifiableSchedule = Omit<Schedule, 'call'> & { readonly call: VerifiableCall };

/** A FIFO from one rank to another: messages leave it in the order in which they entered. */
export interface ScheduledConnection {
  readonly from: number;
  readonly to: number;
  readonly channel: number;
  /** Carrier of the data, and the place where it is combined or copied on the way. */
  readonly via: ConnectionKind;
  /** Connections of one phase carry data at the same time, and share links. */
  readonly phase: number;
}

/**
 * `direct`: a rank writes into the buffer of the other. `to-head`, `from-head`: the same, where a worker of the rank serves all
 * heads in turn. `switch-in`: the NVSwitch reads data in a rank's memory and adds them for
 * the head. `switch-out`: the NVSwitch writes the head's result to the rank. `net-in`, `net-out`: to and from a network that
 * reduces.
 */
export type ConnectionKind = 'direct' | 'to-head' | 'from-head' | 'switch-in' | 'switch-out' | 'net-in' | 'net-out';

/** Rank number of the switches of a network that reduces. */
export const NETWORK_RANK = -1;

/** A thread block of a rank on a channel, or a part of one with one job. Its moves run in sequence. */
export interface Worker {
  readonly rank: number;
  readonly channel: number;
  readonly moves: () => Iterable<Move>;
  /** The rank that writes and reads the memory that the worker stands for; such a worker takes no time. */
  readonly serves?: number;
  /** Number of its thread block, in programs. */
  readonly block?: number;
}

/** One step of a worker. Ranges are in bytes; -1 stands for none. */
export interface Move {
  /** Connections from which it takes one message each, and adds them up. */
  readonly receive: readonly number[];
  /** Offset of the range of the rank's input that is added, too. */
  readonly input: number;
  /** Connections into which it puts the sum. */
  readonly send: readonly number[];
  /** Offset in the rank's output where it writes the sum. */
  readonly output: number;
  readonly bytes: number;
  /**
   * Number of the batch of its thread block: it begins when all workers of this rank and channel are done with the batches
   * before. 0 by default.
   */
  readonly batch?: number;
  /** Further ranges, and other workers that it waits for; NCCL's own algorithms have none. */
  readonly local?: LocalWork;
  /** True if the output gets what is received, without the input: an exclusive scan. */
  readonly exclusive?: boolean;
  /** Messages of several ranges of the data, one after the other; `input`, `output` and `local` of the move are unused. */
  readonly ranges?: readonly MoveRange[];
  /** Step of a program that it belongs to, for messages. */
  readonly at?: string;
}

/** One of several ranges of a move's messages. */
export type MoveRange = Pick<Move, 'input' | 'output' | 'bytes' | 'local'>;

/** The ranges of a move's messages; of most moves one. */
export function rangesOf(move: Move): readonly MoveRange[] {
  return move.ranges ?? [move];
}

/** Work of a move within its rank, in programs. */
interface LocalWork {
  /** Ranges that are added to the received data. */
  readonly adds: readonly Local[];
  /** Ranges that the sum overwrites. */
  readonly writes: readonly Local[];
  readonly after: readonly Wait[];
}

/** The beginning of a range in a rank's memory. */
export interface Local {
  readonly buffer: 'input' | 'output' | 'scratch';
  readonly offset: number;
}

/** A worker, by its place in the schedule, and a number of completed moves. */
export interface Wait {
  readonly worker: number;
  readonly moves: number;
  /** The step that is waited for, in messages. */
  readonly at?: string;
}

/** Place in a program, for messages. */
export function placeOf(rank: number, block: number, step?: string): string {
  return `rank ${rank}, thread block ${block}${step === undefined ? '' : `, ${step}`}`;
}

/** Numbers connections while a schedule is made. */
export class ConnectionTable {
  readonly all: ScheduledConnection[] = [];

  add(from: number, to: number, channel: number, via: ConnectionKind = 'direct', phase = 0): number {
    return this.all.push({ from, to, channel, via, phase }) - 1;
  }
}

/** Part of the data. */
export interface Range {
  readonly offset: number;
  readonly bytes: number;
}

/** Parts of channels are multiples of this. */
const GRAIN_BYTES = 16;

/** The part of a channel: equal parts in whole grains, the last channel takes less. */
export function channelRange(bytes: number, nChannels: number, channel: number, grainBytes = GRAIN_BYTES): Range {
  const part = Math.ceil(bytes / nChannels / grainBytes) * grainBytes;
  const offset = Math.min(bytes, channel * part);
  return { offset, bytes: Math.min(part, bytes - offset) };
}

/** Splits a range into chunks. */
export function* chunksOf({ offset, bytes }: Range, chunkBytes: number): Generator<Range> {
  for (let done = 0; done < bytes; done += chunkBytes) yield { offset: offset + done, bytes: Math.min(chunkBytes, bytes - done) };
}

/**
 * Splits a range into rounds of `parts` chunks. The chunks of the last round are smaller, so that all parts have work.
 *
 * @returns for each round where it begins, and the size of its chunks
 */
export function* roundsOf({ offset, bytes }: Range, parts: number, chunkBytes: number): Generator<Round> {
  for (let done = 0; done < bytes; done += parts * chunkBytes) {
    const left = bytes - done;
    const chunk = Math.min(chunkBytes, Math.ceil(left / parts / GRAIN_BYTES) * GRAIN_BYTES);
    yield { offset: offset + done, end: offset + bytes, chunkBytes: chunk };
  }
}

interface Round {
  readonly offset: number;
  readonly end: number;
  readonly chunkBytes: number;
}

/** Chunk `part` of a round; empty where the data ends before it. */
export function chunkOf({ offset, end, chunkBytes }: Round, part: number): Range {
  const start = Math.min(end, offset + part * chunkBytes);
  return { offset: start, bytes: Math.min(chunkBytes, end - start) };
}
