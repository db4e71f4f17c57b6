import type { GivenArray, MovableArray, NumericArray, ReductionOperator } from '../device/types.js';
import type { BlockingCallOptions, BlockingLimits, CallLimits, TimedCallOptions } from '../algorithms/arguments.js';
import type { OwnOperator } from '../operators/operator.js';
import type { AnyOperator, CheckedCall } from './checked-call.js';
import { promised, refused } from '../messages/running-group.js';
import type { Parts } from './parts.js';
import { isScalar, scalarCall, type Scalar, type ScalarOf, type ScalarOperator } from './scalars.js';

/**
 * The collectives of a communicator. Every rank calls the same ones in the same order. Each has a promise form and a blocking
 * form (…Sync), which may be mixed. Counts are in elements; the type is that of the array class, or `options.type`. An operator
 * may be the program's own: a function of two numbers, or `{ combine }` of two arrays.
 *
 * All throw, or reject with, ARGUMENT_TYPE, ARGUMENT_RANGE, BUFFER_SIZE, BUFFER_OVERLAP, BUFFER_DETACHED, ROOT_RANGE or
 * UNKNOWN_NAME before data are exchanged.
 */
export abstract class Collectives {
  /** Returns the object for the arguments of the next call, by its name. Throws unless this communicator is usable. */
  protected abstract prepare(call: string): CheckedCall;
  /** Carries out a call after those before it. */
  protected abstract start(call: CheckedCall, options?: TimedCallOptions): Promise<void>;
  /** Carries out a call before it returns. */
  protected abstract runSync(call: CheckedCall, options?: TimedCallOptions): void;

  /**
   * Combines `send` of all ranks element by element into `recv` of every rank. Without `recv`, in place. Of a number,
   * `allReduce(value, operator)` gives the result.
   */
  allReduce<V extends Scalar>(value: V, operator?: ScalarOperator<V>, options?: TimedCallOptions): Promise<ScalarOf<V>>;
  allReduce<T extends NumericArray>(
    send: GivenArray<T>,
    recv?: GivenArray<T>,
    operator?: ReductionOperator | OwnOperator<T>,
    options?: TimedCallOptions,
  ): Promise<void>;
  allReduce(send: NumericArray | Scalar, recv?: unknown, operator?: unknown, options?: TimedCallOptions): Promise<unknown> {
    try {
      if (isScalar(send)) return this.#startScalar('allReduce', send, recv, operator as TimedCallOptions);
      return this.start(
        this.prepare('allReduce').allReduce(send, recv as NumericArray, operator as AnyOperator, options),
        options,
      );
    } catch (error) {
      return refused(error);
    }
  }

  /** The blocking form of {@link allReduce}. */
  allReduceSync<V extends Scalar>(value: V, operator?: ScalarOperator<V>, options?: BlockingCallOptions): ScalarOf<V>;
  allReduceSync<T extends NumericArray>(
    send: GivenArray<T>,
    recv?: GivenArray<T>,
    operator?: ReductionOperator | OwnOperator<T>,
    options?: BlockingCallOptions,
  ): void;
  allReduceSync(send: NumericArray | Scalar, recv?: unknown, operator?: unknown, options?: TimedCallOptions): unknown {
    if (isScalar(send)) return this.#runScalar('allReduceSync', send, recv, operator as TimedCallOptions);
    this.runSync(this.prepare('allReduceSync').allReduce(send, recv as NumericArray, operator as AnyOperator, options), options);
    return undefined;
  }

  /**
   * Combines `send` of all ranks element by element into `recv` of rank `root`; on other ranks `recv` is ignored and may be
   * null. Without `recv`, in place. Of a number, `reduce(value, operator, root)` gives the result to rank `root`, null to others.
   */
  reduce<V extends Scalar>(
    value: V,
    operator?: ScalarOperator<V>,
    root?: number,
    options?: TimedCallOptions,
  ): Promise<ScalarOf<V> | null>;
  reduce<T extends NumericArray>(
    send: GivenArray<T>,
    recv?: GivenArray<T> | null,
    operator?: ReductionOperator | OwnOperator<T>,
    root?: number,
    options?: TimedCallOptions,
  ): Promise<void>;
  reduce(
    send: NumericArray | Scalar,
    recv?: unknown,
    operator?: unknown,
    root?: unknown,
    options?: TimedCallOptions,
  ): Promise<unknown> {
    try {
      if (isScalar(send)) return this.#startScalar('reduce', send, recv, root as TimedCallOptions, operator as number);
      return this.start(
        this.prepare('reduce').reduce(send, recv as NumericArray, operator as AnyOperator, root as number, options),
        options,
      );
    } catch (error) {
      return refused(error);
    }
  }

  /** The blocking form of {@link reduce}. */
  reduceSync<V extends Scalar>(
    value: V,
    operator?: ScalarOperator<V>,
    root?: number,
    options?: BlockingCallOptions,
  ): ScalarOf<V> | null;
  reduceSync<T extends NumericArray>(
    send: GivenArray<T>,
    recv?: GivenArray<T> | null,
    operator?: ReductionOperator | OwnOperator<T>,
    root?: number,
    options?: BlockingCallOptions,
  ): void;
  reduceSync(
    send: NumericArray | Scalar,
    recv?: unknown,
    operator?: unknown,
    root?: unknown,
    options?: TimedCallOptions,
  ): unknown {
    if (isScalar(send)) return this.#runScalar('reduceSync', send, recv, root as TimedCallOptions, operator as number);
    this.runSync(
      this.prepare('reduceSync').reduce(send, recv as NumericArray, operator as AnyOperator, root as number, options),
      options,
    );
    return undefined;
  }

  /** Copies `send` of rank `root` into `recv` of every rank; other ranks may pass null as `send`. Without `recv`, in place. */
  broadcast<T extends MovableArray>(
    send: GivenArray<T> | null,
    recv: GivenArray<T> | null = send,
    root = 0,
    options?: TimedCallOptions,
  ): Promise<void> {
    try {
      return this.start(this.prepare('broadcast').broadcast(send, recv, root, options), options);
    } catch (error) {
      return refused(error);
    }
  }

  /** The blocking form of {@link broadcast}. */
  broadcastSync<T extends MovableArray>(
    send: GivenArray<T> | null,
    recv: GivenArray<T> | null = send,
    root = 0,
    options?: BlockingCallOptions,
  ): void {
    this.runSync(this.prepare('broadcastSync').broadcast(send, recv, root, options), options);
  }

  /**
   * Concatenates `send` of all ranks, in rank order, into `recv` of every rank, which is nRanks times as long. In place if
   * `send` is this rank's part of `recv`: `recv.subarray(rank * count, (rank + 1) * count)`.
   */
  allGather<T extends MovableArray>(send: GivenArray<T>, recv: GivenArray<T>, options?: TimedCallOptions): Promise<void> {
    try {
      return this.start(this.prepare('allGather').allGather(send, recv, options), options);
    } catch (error) {
      return refused(error);
    }
  }

  /** The blocking form of {@link allGather}. */
  allGatherSync<T extends MovableArray>(send: GivenArray<T>, recv: GivenArray<T>, options?: BlockingCallOptions): void {
    this.runSync(this.prepare('allGatherSync').allGather(send, recv, options), options);
  }

  /**
   * Combines `send` of all ranks, each nRanks times as long as `recv`, and writes part r of the result to `recv` of rank r.
   * In place if `recv` is this rank's part of `send`.
   */
  reduceScatter<T extends NumericArray>(
    send: GivenArray<T>,
    recv: GivenArray<T>,
    operator: ReductionOperator | OwnOperator<T> = 'sum',
    options?: TimedCallOptions,
  ): Promise<void> {
    try {
      return this.start(this.prepare('reduceScatter').reduceScatter(send, recv, operator, options), options);
    } catch (error) {
      return refused(error);
    }
  }

  /** The blocking form of {@link reduceScatter}. */
  reduceScatterSync<T extends NumericArray>(
    send: GivenArray<T>,
    recv: GivenArray<T>,
    operator: ReductionOperator | OwnOperator<T> = 'sum',
    options?: BlockingCallOptions,
  ): void {
    this.runSync(this.prepare('reduceScatterSync').reduceScatter(send, recv, operator, options), options);
  }

  /**
   * Sends part r of `send` to rank r and receives rank r's part into part r of `recv`; both have nRanks equal parts. Without
   * `recv`, in place.
   */
  allToAll<T extends MovableArray>(send: GivenArray<T>, recv: GivenArray<T> = send, options?: TimedCallOptions): Promise<void> {
    try {
      return this.start(this.prepare('allToAll').allToAll(send, recv, options), options);
    } catch (error) {
      return refused(error);
    }
  }

  /** The blocking form of {@link allToAll}. */
  allToAllSync<T extends MovableArray>(send: GivenArray<T>, recv: GivenArray<T> = send, options?: BlockingCallOptions): void {
    this.runSync(this.prepare('allToAllSync').allToAll(send, recv, options), options);
  }

  /**
   * Concatenates `send` of all ranks, in rank order, into `recv` of rank `root`, which is nRanks times as long; other ranks
   * may pass null. In place if the root's `send` is its part of `recv`.
   */
  gather<T extends MovableArray>(
    send: GivenArray<T>,
    recv: GivenArray<T> | null,
    root = 0,
    options?: TimedCallOptions,
  ): Promise<void> {
    try {
      return this.start(this.prepare('gather').gather(send, recv, root, options), options);
    } catch (error) {
      return refused(error);
    }
  }

  /** The blocking form of {@link gather}. */
  gatherSync<T extends MovableArray>(
    send: GivenArray<T>,
    recv: GivenArray<T> | null,
    root = 0,
    options?: BlockingCallOptions,
  ): void {
    this.runSync(this.prepare('gatherSync').gather(send, recv, root, options), options);
  }

  /**
   * Copies part r of `send` of rank `root` into `recv` of rank r; `send` is nRanks times as long, and other ranks may pass
   * null. In place if the root's `recv` is its part of `send`.
   */
  scatter<T extends MovableArray>(
    send: GivenArray<T> | null,
    recv: GivenArray<T>,
    root = 0,
    options?: TimedCallOptions,
  ): Promise<void> {
    try {
      return this.start(this.prepare('scatter').scatter(send, recv, root, options), options);
    } catch (error) {
      return refused(error);
    }
  }

  /** The blocking form of {@link scatter}. */
  scatterSync<T extends MovableArray>(
    send: GivenArray<T> | null,
    recv: GivenArray<T>,
    root = 0,
    options?: BlockingCallOptions,
  ): void {
    this.runSync(this.prepare('scatterSync').scatter(send, recv, root, options), options);
  }

  /**
   * {@link allGather} with parts of different lengths: rank r sends `counts[r]` elements, which are written to `recv` from
   * `displacements[r]` on (default: one part after the other). All ranks pass the same counts; displacements are each rank's
   * own. `send` may be this rank's part of `recv`, or lie between the parts.
   */
  allGatherV<T extends MovableArray>(
    send: GivenArray<T>,
    recv: GivenArray<T>,
    counts: ArrayLike<number>,
    displacements?: ArrayLike<number>,
    options?: TimedCallOptions,
  ): Promise<void> {
    return promised(() => this.start(this.prepare('allGatherV').allGatherV(send, recv, counts, displacements, options), options));
  }

  /** The blocking form of {@link allGatherV}. */
  allGatherVSync<T extends MovableArray>(
    send: GivenArray<T>,
    recv: GivenArray<T>,
    counts: ArrayLike<number>,
    displacements?: ArrayLike<number>,
    options?: BlockingCallOptions,
  ): void {
    this.runSync(this.prepare('allGatherVSync').allGatherV(send, recv, counts, displacements, options), options);
  }

  /**
   * {@link reduceScatter} with parts of different lengths: rank r receives `counts[r]` elements. All ranks pass the same
   * counts, whose sum is the length of `send`.
   */
  reduceScatterV<T extends NumericArray>(
    send: GivenArray<T>,
    recv: GivenArray<T>,
    counts: ArrayLike<number>,
    operator: ReductionOperator = 'sum',
    options?: TimedCallOptions,
  ): Promise<void> {
    return promised(() =>
      this.start(this.prepare('reduceScatterV').reduceScatterV(send, recv, counts, operator, options), options),
    );
  }

  /** The blocking form of {@link reduceScatterV}. */
  reduceScatterVSync<T extends NumericArray>(
    send: GivenArray<T>,
    recv: GivenArray<T>,
    counts: ArrayLike<number>,
    operator: ReductionOperator = 'sum',
    options?: BlockingCallOptions,
  ): void {
    this.runSync(this.prepare('reduceScatterVSync').reduceScatterV(send, recv, counts, operator, options), options);
  }

  /**
   * {@link allToAll} with parts of different lengths, like MPI_Alltoallv: `send.counts[r]` elements go to rank r, and
   * `recv.counts[r]` elements come from it, which must equal the count that rank r sends to this rank. Not in place: both may
   * be one array, but their parts must not overlap.
   */
  allToAllV<T extends MovableArray>(send: Parts<T>, recv: Parts<T>, options?: TimedCallOptions): Promise<void> {
    return promised(() => this.start(this.prepare('allToAllV').allToAllV(send, recv, options), options));
  }

  /** The blocking form of {@link allToAllV}. */
  allToAllVSync<T extends MovableArray>(send: Parts<T>, recv: Parts<T>, options?: BlockingCallOptions): void {
    this.runSync(this.prepare('allToAllVSync').allToAllV(send, recv, options), options);
  }

  /**
   * {@link gather} of parts that differ in length: `recv.counts[r]` elements of rank r land in part r of `recv.array` of
   * rank `root`; other ranks pass null. In place when the root's `send` is its part.
   */
  gatherV<T extends MovableArray>(
    send: GivenArray<T>,
    recv: Parts<T> | null,
    root = 0,
    options?: TimedCallOptions,
  ): Promise<void> {
    return promised(() => this.start(this.prepare('gatherV').gatherV(send, recv, root, options), options));
  }

  /** The blocking form of {@link gatherV}. */
  gatherVSync<T extends MovableArray>(send: GivenArray<T>, recv: Parts<T> | null, root = 0, options?: BlockingCallOptions): void {
    this.runSync(this.prepare('gatherVSync').gatherV(send, recv, root, options), options);
  }

  /**
   * {@link scatter} of parts that differ in length: part r of rank `root`'s `send.array` goes to `recv` of rank r, which has
   * `send.counts[r]` elements; other ranks pass null as `send`. In place when the root's `recv` is its part.
   */
  scatterV<T extends MovableArray>(
    send: Parts<T> | null,
    recv: GivenArray<T>,
    root = 0,
    options?: TimedCallOptions,
  ): Promise<void> {
    return promised(() => this.start(this.prepare('scatterV').scatterV(send, recv, root, options), options));
  }

  /** The blocking form of {@link scatterV}. */
  scatterVSync<T extends MovableArray>(
    send: Parts<T> | null,
    recv: GivenArray<T>,
    root = 0,
    options?: BlockingCallOptions,
  ): void {
    this.runSync(this.prepare('scatterVSync').scatterV(send, recv, root, options), options);
  }

  /**
   * Combines `send` of ranks 0 to r element by element into `recv` of rank r: `sum` gives running totals. Without `recv`, in
   * place. No operator is `avg`. Of a number, `scan(value, operator)` gives the result.
   */
  scan<V extends Scalar>(value: V, operator?: ScalarOperator<V>, options?: TimedCallOptions): Promise<ScalarOf<V>>;
  scan<T extends NumericArray>(
    send: GivenArray<T>,
    recv?: GivenArray<T>,
    operator?: ReductionOperator | OwnOperator<T>,
    options?: TimedCallOptions,
  ): Promise<void>;
  scan(send: NumericArray | Scalar, recv?: unknown, operator?: unknown, options?: TimedCallOptions): Promise<unknown> {
    try {
      if (isScalar(send)) return this.#startScalar('scan', send, recv, operator as TimedCallOptions);
      return this.start(this.prepare('scan').scan(send, recv as NumericArray, operator as AnyOperator, options), options);
    } catch (error) {
      return refused(error);
    }
  }

  /** The blocking form of {@link scan}. */
  scanSync<V extends Scalar>(value: V, operator?: ScalarOperator<V>, options?: BlockingCallOptions): ScalarOf<V>;
  scanSync<T extends NumericArray>(
    send: GivenArray<T>,
    recv?: GivenArray<T>,
    operator?: ReductionOperator | OwnOperator<T>,
    options?: BlockingCallOptions,
  ): void;
  scanSync(send: NumericArray | Scalar, recv?: unknown, operator?: unknown, options?: TimedCallOptions): unknown {
    if (isScalar(send)) return this.#runScalar('scanSync', send, recv, operator as TimedCallOptions);
    this.runSync(this.prepare('scanSync').scan(send, recv as NumericArray, operator as AnyOperator, options), options);
    return undefined;
  }

  /**
   * {@link scan} without the rank's own input: ranks 0 to r - 1 into `recv` of rank r. `recv` of rank 0 keeps what it has. Of a
   * number, it gives the result, and null to rank 0.
   */
  exscan<V extends Scalar>(value: V, operator?: ScalarOperator<V>, options?: TimedCallOptions): Promise<ScalarOf<V> | null>;
  exscan<T extends NumericArray>(
    send: GivenArray<T>,
    recv?: GivenArray<T>,
    operator?: ReductionOperator | OwnOperator<T>,
    options?: TimedCallOptions,
  ): Promise<void>;
  exscan(send: NumericArray | Scalar, recv?: unknown, operator?: unknown, options?: TimedCallOptions): Promise<unknown> {
    try {
      if (isScalar(send)) return this.#startScalar('exscan', send, recv, operator as TimedCallOptions);
      return this.start(this.prepare('exscan').exscan(send, recv as NumericArray, operator as AnyOperator, options), options);
    } catch (error) {
      return refused(error);
    }
  }

  /** The blocking form of {@link exscan}. */
  exscanSync<V extends Scalar>(value: V, operator?: ScalarOperator<V>, options?: BlockingCallOptions): ScalarOf<V> | null;
  exscanSync<T extends NumericArray>(
    send: GivenArray<T>,
    recv?: GivenArray<T>,
    operator?: ReductionOperator | OwnOperator<T>,
    options?: BlockingCallOptions,
  ): void;
  exscanSync(send: NumericArray | Scalar, recv?: unknown, operator?: unknown, options?: TimedCallOptions): unknown {
    if (isScalar(send)) return this.#runScalar('exscanSync', send, recv, operator as TimedCallOptions);
    this.runSync(this.prepare('exscanSync').exscan(send, recv as NumericArray, operator as AnyOperator, options), options);
    return undefined;
  }

  /** Resolves when all ranks have called it. */
  barrier(options?: CallLimits): Promise<void> {
    try {
      return this.start(this.prepare('barrier').barrier(options), options);
    } catch (error) {
      return refused(error);
    }
  }

  /** The blocking form of {@link barrier}. */
  barrierSync(options?: BlockingLimits): void {
    this.runSync(this.prepare('barrierSync').barrier(options), options);
  }

  // ── numbers ─────────────────────────────────────────────────────────────────────────────────────────────────────────

  /** A reduction of a number, as one of an array of one element. */
  #startScalar(name: string, value: Scalar, operator: unknown, options?: TimedCallOptions, root?: number): Promise<unknown> {
    const { call, result } = scalarCall(this.prepare(name), value, operator, root, options);
    return this.start(call, options).then(result);
  }

  #runScalar(name: string, value: Scalar, operator: unknown, options?: TimedCallOptions, root?: number): Scalar | null {
    const { call, result } = scalarCall(this.prepare(name), value, operator, root, options);
    this.runSync(call, options);
    return result();
  }
}
