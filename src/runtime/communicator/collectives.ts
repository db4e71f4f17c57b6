import type { NumericArray, ReductionOperator } from '../device/types.js';
import type { CallOptions } from '../algorithms/arguments.js';
import type { CheckedCall } from './checked-call.js';
import { refused } from './group.js';
import type { Parts } from './parts.js';

/**
 * The collectives that a communicator offers. Every rank calls the same ones in the same order; each has a promise form
 * and a blocking form (…Sync), which may be mixed. Counts are elements; their type is that of the arrays' class, or
 * `options.type`.
 *
 * All throw, or reject with, ARGUMENT_TYPE, ARGUMENT_RANGE, BUFFER_SIZE, BUFFER_OVERLAP, BUFFER_DETACHED, ROOT_RANGE or
 * UNKNOWN_NAME before anything is exchanged.
 */
export abstract class Collectives {
  /** Arguments of the next call. Throws unless this communicator can be used. */
  protected abstract prepare(call: string): CheckedCall;
  /** Carries a call out as soon as those before it have ended. */
  protected abstract start(call: CheckedCall): Promise<void>;
  /** Carries a call out before it returns. */
  protected abstract runSync(call: CheckedCall): void;

  /** Combines `send` of all ranks element by element into `recv` of every rank. Without `recv`, in place. */
  allReduce(
    send: NumericArray,
    recv: NumericArray = send,
    operator: ReductionOperator = 'sum',
    options?: CallOptions,
  ): Promise<void> {
    try {
      return this.start(this.prepare('allReduce').allReduce(send, recv, operator, options));
    } catch (error) {
      return refused(error);
    }
  }

  /** The blocking form of {@link allReduce}. */
  allReduceSync(send: NumericArray, recv: NumericArray = send, operator: ReductionOperator = 'sum', options?: CallOptions): void {
    this.runSync(this.prepare('allReduce').allReduce(send, recv, operator, options));
  }

  /**
   * Combines `send` of all ranks element by element into `recv` of rank `root`; elsewhere `recv` does not matter and may be
   * null. Without `recv`, in place.
   */
  reduce(
    send: NumericArray,
    recv: NumericArray | null = send,
    operator: ReductionOperator = 'sum',
    root = 0,
    options?: CallOptions,
  ): Promise<void> {
    try {
      return this.start(this.prepare('reduce').reduce(send, recv, operator, root, options));
    } catch (error) {
      return refused(error);
    }
  }

  /** The blocking form of {@link reduce}. */
  reduceSync(
    send: NumericArray,
    recv: NumericArray | null = send,
    operator: ReductionOperator = 'sum',
    root = 0,
    options?: CallOptions,
  ): void {
    this.runSync(this.prepare('reduce').reduce(send, recv, operator, root, options));
  }

  /** Copies `send` of rank `root` into `recv` of every rank; other ranks may pass null as `send`. Without `recv`, in place. */
  broadcast(send: NumericArray | null, recv: NumericArray | null = send, root = 0, options?: CallOptions): Promise<void> {
    try {
      return this.start(this.prepare('broadcast').broadcast(send, recv, root, options));
    } catch (error) {
      return refused(error);
    }
  }

  /** The blocking form of {@link broadcast}. */
  broadcastSync(send: NumericArray | null, recv: NumericArray | null = send, root = 0, options?: CallOptions): void {
    this.runSync(this.prepare('broadcast').broadcast(send, recv, root, options));
  }

  /**
   * Puts `send` of all ranks, in their order, into `recv` of every rank, which is nRanks times as long. In place when
   * `send` is this rank's part of `recv`: `recv.subarray(rank * count, (rank + 1) * count)`.
   */
  allGather(send: NumericArray, recv: NumericArray, options?: CallOptions): Promise<void> {
    try {
      return this.start(this.prepare('allGather').allGather(send, recv, options));
    } catch (error) {
      return refused(error);
    }
  }

  /** The blocking form of {@link allGather}. */
  allGatherSync(send: NumericArray, recv: NumericArray, options?: CallOptions): void {
    this.runSync(this.prepare('allGather').allGather(send, recv, options));
  }

  /**
   * Combines `send` of all ranks, each nRanks times as long as `recv`, and leaves part r of the outcome in `recv` of rank
   * r. In place when `recv` is this rank's part of `send`.
   */
  reduceScatter(
    send: NumericArray,
    recv: NumericArray,
    operator: ReductionOperator = 'sum',
    options?: CallOptions,
  ): Promise<void> {
    try {
      return this.start(this.prepare('reduceScatter').reduceScatter(send, recv, operator, options));
    } catch (error) {
      return refused(error);
    }
  }

  /** The blocking form of {@link reduceScatter}. */
  reduceScatterSync(send: NumericArray, recv: NumericArray, operator: ReductionOperator = 'sum', options?: CallOptions): void {
    this.runSync(this.prepare('reduceScatter').reduceScatter(send, recv, operator, options));
  }

  /**
   * Sends part r of `send` to rank r, and puts what comes from rank r into part r of `recv`; both have nRanks equal parts.
   * Without `recv`, in place.
   */
  allToAll(send: NumericArray, recv: NumericArray = send, options?: CallOptions): Promise<void> {
    try {
      return this.start(this.prepare('allToAll').allToAll(send, recv, options));
    } catch (error) {
      return refused(error);
    }
  }

  /** The blocking form of {@link allToAll}. */
  allToAllSync(send: NumericArray, recv: NumericArray = send, options?: CallOptions): void {
    this.runSync(this.prepare('allToAll').allToAll(send, recv, options));
  }

  /**
   * Puts `send` of all ranks, in their order, into `recv` of rank `root`, which is nRanks times as long; other ranks may
   * pass null. In place when the root's `send` is its part of `recv`.
   */
  gather(send: NumericArray, recv: NumericArray | null, root = 0, options?: CallOptions): Promise<void> {
    try {
      return this.start(this.prepare('gather').gather(send, recv, root, options));
    } catch (error) {
      return refused(error);
    }
  }

  /** The blocking form of {@link gather}. */
  gatherSync(send: NumericArray, recv: NumericArray | null, root = 0, options?: CallOptions): void {
    this.runSync(this.prepare('gather').gather(send, recv, root, options));
  }

  /**
   * Copies part r of `send` of rank `root` into `recv` of rank r; `send` is nRanks times as long, and ranks other than the
   * root may pass null. In place when the root's `recv` is its part of `send`.
   */
  scatter(send: NumericArray | null, recv: NumericArray, root = 0, options?: CallOptions): Promise<void> {
    try {
      return this.start(this.prepare('scatter').scatter(send, recv, root, options));
    } catch (error) {
      return refused(error);
    }
  }

  /** The blocking form of {@link scatter}. */
  scatterSync(send: NumericArray | null, recv: NumericArray, root = 0, options?: CallOptions): void {
    this.runSync(this.prepare('scatter').scatter(send, recv, root, options));
  }

  /**
   * {@link allGather} of parts that differ in length: rank r sends `counts[r]` elements, which land in `recv` from
   * `displacements[r]` on (default: one part behind the other). All ranks pass the same counts; displacements are each
   * rank's own. `send` may be this rank's part of `recv`, or lie between the parts.
   */
  allGatherV(
    send: NumericArray,
    recv: NumericArray,
    counts: ArrayLike<number>,
    displacements?: ArrayLike<number>,
    options?: CallOptions,
  ): Promise<void> {
    try {
      return this.start(this.prepare('allGatherV').allGatherV(send, recv, counts, displacements, options));
    } catch (error) {
      return refused(error);
    }
  }

  /** The blocking form of {@link allGatherV}. */
  allGatherVSync(
    send: NumericArray,
    recv: NumericArray,
    counts: ArrayLike<number>,
    displacements?: ArrayLike<number>,
    options?: CallOptions,
  ): void {
    this.runSync(this.prepare('allGatherV').allGatherV(send, recv, counts, displacements, options));
  }

  /**
   * {@link reduceScatter} of parts that differ in length: rank r gets `counts[r]` elements. All ranks pass the same counts,
   * whose sum is the length of `send`.
   */
  reduceScatterV(
    send: NumericArray,
    recv: NumericArray,
    counts: ArrayLike<number>,
    operator: ReductionOperator = 'sum',
    options?: CallOptions,
  ): Promise<void> {
    try {
      return this.start(this.prepare('reduceScatterV').reduceScatterV(send, recv, counts, operator, options));
    } catch (error) {
      return refused(error);
    }
  }

  /** The blocking form of {@link reduceScatterV}. */
  reduceScatterVSync(
    send: NumericArray,
    recv: NumericArray,
    counts: ArrayLike<number>,
    operator: ReductionOperator = 'sum',
    options?: CallOptions,
  ): void {
    this.runSync(this.prepare('reduceScatterV').reduceScatterV(send, recv, counts, operator, options));
  }

  /**
   * {@link allToAll} of parts that differ in length, as MPI_Alltoallv: `send.counts[r]` elements go to rank r, and
   * `recv.counts[r]` come from it, which must be what rank r sends to this rank. Not in place:
   * both may be one array, but their parts lie apart.
   */
  allToAllV(send: Parts, recv: Parts, options?: CallOptions): Promise<void> {
    try {
      return this.start(this.prepare('allToAllV').allToAllV(send, recv, options));
    } catch (error) {
      return refused(error);
    }
  }

  /** The blocking form of {@link allToAllV}. */
  allToAllVSync(send: Parts, recv: Parts, options?: CallOptions): void {
    this.runSync(this.prepare('allToAllV').allToAllV(send, recv, options));
  }

  /** Resolves when all ranks have called it. */
  barrier(): Promise<void> {
    try {
      return this.start(this.prepare('barrier').barrier());
    } catch (error) {
      return refused(error);
    }
  }

  /** The blocking form of {@link barrier}. */
  barrierSync(): void {
    this.runSync(this.prepare('barrier').barrier());
  }
}
