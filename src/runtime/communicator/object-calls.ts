import { ofRank } from '../caller-stack.js';
import {
  checkLimits,
  checkPeer,
  checkTagged,
  type BlockingLimits,
  type CallLimits,
  type TagOption,
} from '../algorithms/arguments.js';
import { signalUnheard } from '../messages/timed-call.js';
import {
  allGatherValues,
  allReduceValues,
  broadcastValue,
  gatherValues,
  reduceValues,
  scatterValues,
} from '../objects/collective-objects.js';
import type { AnyObject, CombineValues } from '../objects/object-exchange.js';
import type { ObjectMessage } from '../objects/object-messages.js';
import type { Begin, Objects } from '../objects/objects.js';
import { checkFunction } from '../operators/operator.js';
import { Collectives } from './collectives.js';
import { checkAlone, promised } from '../messages/running-group.js';

/**
 * The calls of a communicator with objects: all values that structuredClone takes, without functions and handles. Class
 * instances arrive as plain objects. A value is copied when the call begins, except for typed arrays in it from 64 KiB on,
 * which are sent without a copy and belong to the call until it ends. Without these it may take 1 GiB.
 *
 * All throw, or reject with, ARGUMENT_TYPE, ARGUMENT_RANGE, BUFFER_SIZE or ROOT_RANGE before anything is exchanged.
 */
export abstract class ObjectCalls extends Collectives {
  abstract readonly rank: number;
  abstract readonly nRanks: number;
  /** @internal Carries out the calls. */
  protected abstract readonly objects: Objects;

  /** Gives every rank the `value` of rank `root`; other values are ignored. The root gets its own value back. */
  broadcastObject<T>(value: T | undefined, root = 0, options?: CallLimits): Promise<T> {
    return this.#start('broadcastObject', options, (members) => broadcastValue(members, value, root)) as Promise<T>;
  }

  /** The blocking form of {@link broadcastObject}. */
  broadcastObjectSync<T>(value: T | undefined, root = 0, options?: BlockingLimits): T {
    return this.#run('broadcastObjectSync', options, (members) => broadcastValue(members, value, root)) as T;
  }

  /** Gives every rank the values of all ranks, in their order. This rank's is `value` itself. */
  allGatherObject<T>(value: T, options?: CallLimits): Promise<T[]> {
    return this.#start('allGatherObject', options, (members) => allGatherValues(members, value)) as Promise<T[]>;
  }

  /** The blocking form of {@link allGatherObject}. */
  allGatherObjectSync<T>(value: T, options?: BlockingLimits): T[] {
    return this.#run('allGatherObjectSync', options, (members) => allGatherValues(members, value)) as T[];
  }

  /** Gives rank `root` the values of all ranks, in their order; other ranks get null. The root's is `value` itself. */
  gatherObject<T>(value: T, root = 0, options?: CallLimits): Promise<T[] | null> {
    return this.#start('gatherObject', options, (members) => gatherValues(members, value, root)) as Promise<T[] | null>;
  }

  /** The blocking form of {@link gatherObject}. */
  gatherObjectSync<T>(value: T, root = 0, options?: BlockingLimits): T[] | null {
    return this.#run('gatherObjectSync', options, (members) => gatherValues(members, value, root)) as T[] | null;
  }

  /**
   * Gives rank r the r-th of the `values` of rank `root`, an array with one for each rank; other ranks may pass null. The root's
   * is not copied.
   */
  scatterObjects<T>(values: readonly T[] | null, root = 0, options?: CallLimits): Promise<T> {
    return this.#start('scatterObjects', options, (members) => scatterValues(members, values, root)) as Promise<T>;
  }

  /** The blocking form of {@link scatterObjects}. */
  scatterObjectsSync<T>(values: readonly T[] | null, root = 0, options?: BlockingLimits): T {
    return this.#run('scatterObjectsSync', options, (members) => scatterValues(members, values, root)) as T;
  }

  /**
   * Combines the values of all ranks and gives the result to all. `combine` gets the combination of lower ranks' values and
   * the value of the next rank: the result is `combine(combine(v0, v1), v2)` and so on, so it need be neither commutative nor
   * associative. Each rank calls it for itself, and may change its first argument, which on rank 0 is `value` itself.
   *
   * @throws InvalidUsageError `OPERATOR_FAILED` on a rank on which `combine` throws; the communicator stays usable
   */
  allReduceObject<T>(value: T, combine: (lower: T, higher: T) => T, options?: CallLimits): Promise<T> {
    return this.#start('allReduceObject', options, (members) =>
      allReduceValues(members, value, checked(members, combine)),
    ) as Promise<T>;
  }

  /** The blocking form of {@link allReduceObject}. */
  allReduceObjectSync<T>(value: T, combine: (lower: T, higher: T) => T, options?: BlockingLimits): T {
    return this.#run('allReduceObjectSync', options, (members) =>
      allReduceValues(members, value, checked(members, combine)),
    ) as T;
  }

  /** {@link allReduceObject}, for rank `root` only; other ranks get null, and do not call `combine`. */
  reduceObject<T>(value: T, combine: (lower: T, higher: T) => T, root = 0, options?: CallLimits): Promise<T | null> {
    return this.#start('reduceObject', options, (members) =>
      reduceValues(members, value, checked(members, combine), root),
    ) as Promise<T | null>;
  }

  /** The blocking form of {@link reduceObject}. */
  reduceObjectSync<T>(value: T, combine: (lower: T, higher: T) => T, root = 0, options?: BlockingLimits): T | null {
    return this.#run('reduceObjectSync', options, (members) =>
      reduceValues(members, value, checked(members, combine), root),
    ) as T | null;
  }

  /** Sends a value to rank `peer`, which receives it with {@link recvObject}. It takes a place among the sends to that rank. */
  sendObject(value: unknown, peer: number, options?: CallLimits & TagOption): Promise<void> {
    return this.#startMessage('sendObject', options, [peer], (call, tag) => this.objects.messages.send(call, value, peer, tag));
  }

  /** The blocking form of {@link sendObject}. */
  sendObjectSync(value: unknown, peer: number, options?: BlockingLimits & TagOption): void {
    this.#runMessage('sendObjectSync', options, [peer], (call, tag) => this.objects.messages.send(call, value, peer, tag));
  }

  /** Resolves with the value that rank `peer` sends with {@link sendObject}: its type is yours to know. */
  recvObject<T = unknown>(peer: number, options?: CallLimits & TagOption): Promise<T> {
    const begin: BeginMessage = (call, tag) => this.objects.messages.recv(call, peer, tag);
    return this.#startMessage('recvObject', options, [peer], begin) as Promise<T>;
  }

  /** The blocking form of {@link recvObject}. */
  // eslint-disable-next-line @typescript-eslint/no-unnecessary-type-parameters -- only the program knows the type
  recvObjectSync<T = unknown>(peer: number, options?: BlockingLimits & TagOption): T {
    const begin: BeginMessage = (call, tag) => this.objects.messages.recv(call, peer, tag);
    return this.#runMessage('recvObjectSync', options, [peer], begin) as T;
  }

  /**
   * Receives the next value that any rank sends to this one with {@link sendObject}, or the next with `tag`, with its source and
   * tag. Use it in place of several {@link recvObject}s of which all but one are aborted.
   *
   * @throws RemoteError `RANK_DIED` as all calls after a death; `CLOSED` when all other ranks have closed the communicator
   */
  recvAnyObject<T = unknown>(options?: CallLimits & TagOption): Promise<AnyObject<T>> {
    const begin: BeginMessage = (call, tag) => this.objects.messages.recvAny(call, tag);
    return this.#startMessage('recvAnyObject', options, [], begin) as Promise<AnyObject<T>>;
  }

  /** The blocking form of {@link recvAnyObject}. */
  recvAnyObjectSync<T = unknown>(options?: BlockingLimits & TagOption): AnyObject<T> {
    const begin: BeginMessage = (call, tag) => this.objects.messages.recvAny(call, tag);
    return this.#runMessage('recvAnyObjectSync', options, [], begin) as AnyObject<T>;
  }

  /**
   * Sends a value to rank `to` and resolves with the one that rank `from` sends, by {@link sendObject} or this call; both are in
   * flight at the same time.
   */
  sendRecvObject<T = unknown>(value: unknown, to: number, from: number, options?: CallLimits): Promise<T> {
    return this.#startMessage('sendRecvObject', options, [to, from], (call) => {
      checkLimits(call, options);
      return this.objects.messages.sendRecv(call, value, to, from);
    }) as Promise<T>;
  }

  /** The blocking form of {@link sendRecvObject}. */
  // eslint-disable-next-line @typescript-eslint/no-unnecessary-type-parameters -- only the program knows the type
  sendRecvObjectSync<T = unknown>(value: unknown, to: number, from: number, options?: BlockingLimits): T {
    return this.#runMessage('sendRecvObjectSync', options, [to, from], (call) => {
      checkLimits(call, options);
      return this.objects.messages.sendRecv(call, value, to, from);
    }) as T;
  }

  #start<T>(call: string, options: CallLimits | undefined, begin: Begin<T>): Promise<T> {
    return promised(() => {
      this.#check(call);
      return this.objects.start(call, begin, options);
    });
  }

  #run<T>(call: string, options: BlockingLimits | undefined, begin: Begin<T>): T {
    this.#checkSync(call, options);
    return this.objects.run(call, begin, options);
  }

  #startMessage<T>(call: string, options: Tagged, peers: readonly number[], begin: BeginMessage<T>): Promise<T> {
    return promised(() => {
      this.#check(call);
      return this.#message(call, options, peers, (tag) => this.objects.messages.start(begin(call, tag), options));
    });
  }

  #runMessage<T>(call: string, options: Tagged, peers: readonly number[], begin: BeginMessage<T>): T {
    this.#checkSync(call, options);
    return this.#message(call, options, peers, (tag) => this.objects.messages.run(begin(call, tag), options));
  }

  /** Checks the arguments of a message and carries it out, with its tag. */
  #message<T>(call: string, options: Tagged, peers: readonly number[], work: (tag: number | undefined) => T): T {
    return ofRank(this.rank, () => {
      for (const peer of peers) checkPeer(call, peer, this.nRanks);
      return work(checkTagged(call, options));
    });
  }

  #checkSync(call: string, options: BlockingLimits | undefined): void {
    if ((options as CallLimits | undefined)?.signal !== undefined) throw signalUnheard(call, this.rank);
    this.#check(call);
  }

  #check(call: string): void {
    this.prepare(call);
    checkAlone(call, this.rank, 'objects cannot be part of a group; call it before the group or after it');
  }
}

type Tagged = (BlockingLimits & TagOption) | undefined;
/** Makes the messages of a call, whose arguments were checked. */
type BeginMessage<T = unknown> = (call: string, tag: number | undefined) => ObjectMessage<T>;

function checked<T>({ call }: { readonly call: string }, combine: (lower: T, higher: T) => T): CombineValues {
  checkFunction(call, combine);
  return combine as CombineValues;
}
