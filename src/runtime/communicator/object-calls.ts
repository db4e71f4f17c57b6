import { errorOfCall } from '../caller-stack.js';
import type { BlockingLimits, CallLimits, TagOption } from '../algorithms/arguments.js';
import { signalUnheard } from '../messages/timed-call.js';
import type { AnyObject, CombineValues, ObjectExchange } from '../objects/object-exchange.js';
import { checkFunction } from '../operators/operator.js';
import { Collectives } from './collectives.js';
import { checkAlone, refused } from '../messages/running-group.js';

/**
 * The calls of a communicator with objects: all values that structuredClone takes, without functions and handles. Class
 * instances arrive as plain objects. A value is copied when the call begins, except for typed arrays in it from 64 KiB on,
 * which are sent without a copy and belong to the call until it ends. Without these it may take 1 GiB.
 *
 * All throw, or reject with, ARGUMENT_TYPE, ARGUMENT_RANGE, BUFFER_SIZE or ROOT_RANGE before anything is exchanged.
 */
export abstract class ObjectCalls extends Collectives {
  abstract readonly rank: number;
  /** @internal Carries out the calls. */
  protected abstract readonly objects: ObjectExchange;

  /** Gives every rank the `value` of rank `root`; other values are ignored. The root gets its own value back. */
  broadcastObject<T>(value: T | undefined, root = 0, options?: CallLimits): Promise<T> {
    return this.#start('broadcastObject', () => this.objects.broadcast(value, root, options)) as Promise<T>;
  }

  /** The blocking form of {@link broadcastObject}. */
  broadcastObjectSync<T>(value: T | undefined, root = 0, options?: BlockingLimits): T {
    return this.#runSync(options, 'broadcastObjectSync', () => this.objects.broadcastSync(value, root, options)) as T;
  }

  /** Gives every rank the values of all ranks, in their order. This rank's is `value` itself. */
  allGatherObject<T>(value: T, options?: CallLimits): Promise<T[]> {
    return this.#start('allGatherObject', () => this.objects.allGather(value, options)) as Promise<T[]>;
  }

  /** The blocking form of {@link allGatherObject}. */
  allGatherObjectSync<T>(value: T, options?: BlockingLimits): T[] {
    return this.#runSync(options, 'allGatherObjectSync', () => this.objects.allGatherSync(value, options)) as T[];
  }

  /** Gives rank `root` the values of all ranks, in their order; other ranks get null. The root's is `value` itself. */
  gatherObject<T>(value: T, root = 0, options?: CallLimits): Promise<T[] | null> {
    return this.#start('gatherObject', () => this.objects.gather(value, root, options)) as Promise<T[] | null>;
  }

  /** The blocking form of {@link gatherObject}. */
  gatherObjectSync<T>(value: T, root = 0, options?: BlockingLimits): T[] | null {
    return this.#runSync(options, 'gatherObjectSync', () => this.objects.gatherSync(value, root, options)) as T[] | null;
  }

  /**
   * Gives rank r the r-th of the `values` of rank `root`, an array with one for each rank; other ranks may pass null. The root's
   * is not copied.
   */
  scatterObjects<T>(values: readonly T[] | null, root = 0, options?: CallLimits): Promise<T> {
    return this.#start('scatterObjects', () => this.objects.scatter(values, root, options)) as Promise<T>;
  }

  /** The blocking form of {@link scatterObjects}. */
  scatterObjectsSync<T>(values: readonly T[] | null, root = 0, options?: BlockingLimits): T {
    return this.#runSync(options, 'scatterObjectsSync', () => this.objects.scatterSync(values, root, options)) as T;
  }

  /**
   * Combines the values of all ranks and gives the result to all. `combine` gets the combination of lower ranks' values and
   * the value of the next rank: the result is `combine(combine(v0, v1), v2)` and so on, so it need be neither commutative nor
   * associative. Each rank calls it for itself, and may change its first argument, which on rank 0 is `value` itself.
   *
   * @throws InvalidUsageError `OPERATOR_FAILED` on a rank on which `combine` throws; the communicator stays usable
   */
  allReduceObject<T>(value: T, combine: (lower: T, higher: T) => T, options?: CallLimits): Promise<T> {
    return this.#start('allReduceObject', () =>
      this.objects.allReduce(value, this.#checkCombine('allReduceObject', combine), options),
    ) as Promise<T>;
  }

  /** The blocking form of {@link allReduceObject}. */
  allReduceObjectSync<T>(value: T, combine: (lower: T, higher: T) => T, options?: BlockingLimits): T {
    return this.#runSync(options, 'allReduceObjectSync', () =>
      this.objects.allReduceSync(value, this.#checkCombine('allReduceObjectSync', combine), options),
    ) as T;
  }

  /** {@link allReduceObject}, for rank `root` only; other ranks get null, and do not call `combine`. */
  reduceObject<T>(value: T, combine: (lower: T, higher: T) => T, root = 0, options?: CallLimits): Promise<T | null> {
    return this.#start('reduceObject', () =>
      this.objects.reduce(value, this.#checkCombine('reduceObject', combine), root, options),
    ) as Promise<T | null>;
  }

  /** The blocking form of {@link reduceObject}. */
  reduceObjectSync<T>(value: T, combine: (lower: T, higher: T) => T, root = 0, options?: BlockingLimits): T | null {
    return this.#runSync(options, 'reduceObjectSync', () =>
      this.objects.reduceSync(value, this.#checkCombine('reduceObjectSync', combine), root, options),
    ) as T | null;
  }

  /** Sends a value to rank `peer`, which receives it with {@link recvObject}. It takes a place among the sends to that rank. */
  sendObject(value: unknown, peer: number, options?: CallLimits & TagOption): Promise<void> {
    return this.#start('sendObject', () => this.objects.send(value, peer, options)) as Promise<void>;
  }

  /** The blocking form of {@link sendObject}. */
  sendObjectSync(value: unknown, peer: number, options?: BlockingLimits & TagOption): void {
    this.#runSync(options, 'sendObjectSync', () => this.objects.sendSync(value, peer, options));
  }

  /** Resolves with the value that rank `peer` sends with {@link sendObject}: its type is yours to know. */
  recvObject<T = unknown>(peer: number, options?: CallLimits & TagOption): Promise<T> {
    return this.#start('recvObject', () => this.objects.recv(peer, options)) as Promise<T>;
  }

  /** The blocking form of {@link recvObject}. */
  // eslint-disable-next-line @typescript-eslint/no-unnecessary-type-parameters -- only the program knows the type
  recvObjectSync<T = unknown>(peer: number, options?: BlockingLimits & TagOption): T {
    return this.#runSync(options, 'recvObjectSync', () => this.objects.recvSync(peer, options)) as T;
  }

  /**
   * Receives the next value that any rank sends to this one with {@link sendObject}, or the next with `tag`, with its source and
   * tag. Use it in place of several {@link recvObject}s of which all but one are aborted.
   *
   * @throws RemoteError `RANK_DIED` as all calls after a death; `CLOSED` when all other ranks have closed the communicator
   */
  recvAnyObject<T = unknown>(options?: CallLimits & TagOption): Promise<AnyObject<T>> {
    return this.#start('recvAnyObject', () => this.objects.recvAny(options)) as Promise<AnyObject<T>>;
  }

  /** The blocking form of {@link recvAnyObject}. */
  recvAnyObjectSync<T = unknown>(options?: BlockingLimits & TagOption): AnyObject<T> {
    return this.#runSync(options, 'recvAnyObjectSync', () => this.objects.recvAnySync(options)) as AnyObject<T>;
  }

  /**
   * Sends a value to rank `to` and resolves with the one that rank `from` sends, by {@link sendObject} or this call; both are in
   * flight at the same time.
   */
  sendRecvObject<T = unknown>(value: unknown, to: number, from: number, options?: CallLimits): Promise<T> {
    return this.#start('sendRecvObject', () => this.objects.sendRecv(value, to, from, options)) as Promise<T>;
  }

  /** The blocking form of {@link sendRecvObject}. */
  // eslint-disable-next-line @typescript-eslint/no-unnecessary-type-parameters -- only the program knows the type
  sendRecvObjectSync<T = unknown>(value: unknown, to: number, from: number, options?: BlockingLimits): T {
    return this.#runSync(options, 'sendRecvObjectSync', () => this.objects.sendRecvSync(value, to, from, options)) as T;
  }

  #checkCombine<T>(call: string, combine: (lower: T, higher: T) => T): CombineValues {
    try {
      checkFunction(call, combine);
      return combine as CombineValues;
    } catch (error) {
      throw errorOfCall(error, this.rank);
    }
  }

  #start(call: string, work: () => Promise<unknown>): Promise<unknown> {
    try {
      return this.#run(call, work);
    } catch (error) {
      return refused(error);
    }
  }

  #runSync<T>(options: BlockingLimits | undefined, call: string, work: () => T): T {
    if ((options as CallLimits | undefined)?.signal !== undefined) throw signalUnheard(call, this.rank);
    return this.#run(call, work);
  }

  #run<T>(call: string, work: () => T): T {
    this.prepare(call);
    checkAlone(call, this.rank, 'objects cannot be part of a group; call it before the group or after it');
    return work();
  }
}
