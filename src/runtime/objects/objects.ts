import {
  checkLimits,
  checkPeer,
  checkRoot,
  checkTagged,
  type BlockingLimits,
  type CallLimits,
  type TagOption,
} from '../algorithms/arguments.js';
import { errorOfCall } from '../caller-stack.js';
import { isTimed, startTimedCollective, type TimedCallParts } from '../messages/timed-call.js';
import {
  allGatherValues,
  allReduceValues,
  broadcastValue,
  gatherValues,
  reduceValues,
  scatterValues,
  type Exchange,
  type Members,
} from './collective-objects.js';
import type { AnyObject, CombineValues, ObjectExchange } from './object-exchange.js';
import { ObjectChain } from './object-chain.js';
import { ObjectMessages } from './object-messages.js';

/** The parts of a communicator that objects use. */
interface ObjectsParts {
  readonly rank: number;
  readonly nRanks: number;
  readonly timed: TimedCallParts;
  /** Throws `UNSUPPORTED` if collectives cannot block. */
  readonly checkBlocking: (call: string) => void;
}

type Begin<T> = (members: Members) => Exchange<T>;

/**
 * Objects between the ranks of a communicator. V8's structured clone encodes a value as bytes (encode.ts), which are sent
 * in uninterrupted sequences of collectives (collective-objects.ts), or in messages (object-messages.ts).
 */
export class Objects implements ObjectExchange {
  readonly #parts: ObjectsParts;
  readonly #messages: ObjectMessages;

  constructor(parts: ObjectsParts) {
    this.#parts = parts;
    this.#messages = new ObjectMessages(parts.timed);
  }

  // ── collectives ─────────────────────────────────────────────────────────────────────────────────────────────────────

  broadcast(value: unknown, root: number, options?: CallLimits): Promise<unknown> {
    return this.#start('broadcastObject', this.#broadcast(value, root), options);
  }

  broadcastSync(value: unknown, root: number, options?: BlockingLimits): unknown {
    return this.#run('broadcastObjectSync', this.#broadcast(value, root), options);
  }

  allGather(value: unknown, options?: CallLimits): Promise<unknown[]> {
    return this.#start('allGatherObject', (members) => allGatherValues(members, value), options);
  }

  allGatherSync(value: unknown, options?: BlockingLimits): unknown[] {
    return this.#run('allGatherObjectSync', (members) => allGatherValues(members, value), options);
  }

  gather(value: unknown, root: number, options?: CallLimits): Promise<unknown[] | null> {
    return this.#start('gatherObject', this.#gather(value, root), options);
  }

  gatherSync(value: unknown, root: number, options?: BlockingLimits): unknown[] | null {
    return this.#run('gatherObjectSync', this.#gather(value, root), options);
  }

  scatter(values: unknown, root: number, options?: CallLimits): Promise<unknown> {
    return this.#start('scatterObjects', this.#scatter(values, root), options);
  }

  scatterSync(values: unknown, root: number, options?: BlockingLimits): unknown {
    return this.#run('scatterObjectsSync', this.#scatter(values, root), options);
  }

  reduce(value: unknown, combine: CombineValues, root: number, options?: CallLimits): Promise<unknown> {
    return this.#start('reduceObject', this.#reduce(value, combine, root), options);
  }

  reduceSync(value: unknown, combine: CombineValues, root: number, options?: BlockingLimits): unknown {
    return this.#run('reduceObjectSync', this.#reduce(value, combine, root), options);
  }

  allReduce(value: unknown, combine: CombineValues, options?: CallLimits): Promise<unknown> {
    return this.#start('allReduceObject', (members) => allReduceValues(members, value, combine), options);
  }

  allReduceSync(value: unknown, combine: CombineValues, options?: BlockingLimits): unknown {
    return this.#run('allReduceObjectSync', (members) => allReduceValues(members, value, combine), options);
  }

  #broadcast(value: unknown, root: number): Begin<unknown> {
    return (members) => {
      checkRoot(members.call, root, members.nRanks);
      return broadcastValue(members, value, root);
    };
  }

  #gather(value: unknown, root: number): Begin<unknown[] | null> {
    return (members) => {
      checkRoot(members.call, root, members.nRanks);
      return gatherValues(members, value, root);
    };
  }

  #scatter(values: unknown, root: number): Begin<unknown> {
    return (members) => {
      checkRoot(members.call, root, members.nRanks);
      return scatterValues(members, values, root);
    };
  }

  #reduce(value: unknown, combine: CombineValues, root: number): Begin<unknown> {
    return (members) => {
      checkRoot(members.call, root, members.nRanks);
      return reduceValues(members, value, combine, root);
    };
  }

  #start<T>(call: string, begin: Begin<T>, options: CallLimits | undefined): Promise<T> {
    this.#checked(() => checkLimits(call, options));
    const {
      timed: { queue },
    } = this.#parts;
    const chain = this.#chain(call, begin);
    const ended = isTimed(options)
      ? startTimedCollective(this.#parts.timed, chain.first, options)
      : queue.startChain(chain.first);
    return ended.then(() => this.#checked(() => chain.result()));
  }

  #run<T>(call: string, begin: Begin<T>, options: BlockingLimits | undefined): T {
    this.#checked(() => checkLimits(call, options));
    const {
      timed: { queue },
      checkBlocking,
    } = this.#parts;
    const chain = this.#chain(call, begin);
    checkBlocking(call);
    const { timeoutMs } = options ?? {};
    if (timeoutMs === undefined) queue.runChain(chain.first);
    else queue.within(timeoutMs, call, () => queue.runChain(chain.first));
    return this.#checked(() => chain.result());
  }

  #chain<T>(call: string, begin: Begin<T>): ObjectChain<T> {
    const { rank, nRanks } = this.#parts;
    return this.#checked(() => new ObjectChain(call, rank, nRanks, begin));
  }

  // ── messages ────────────────────────────────────────────────────────────────────────────────────────────────────────

  send(value: unknown, peer: number, options?: CallLimits & TagOption): Promise<void> {
    const tag = this.#check('sendObject', peer, options);
    return this.#checked(() => this.#messages.send(value, peer, tag, options));
  }

  sendSync(value: unknown, peer: number, options?: BlockingLimits & TagOption): void {
    const tag = this.#check('sendObjectSync', peer, options);
    this.#checked(() => this.#messages.sendSync(value, peer, tag, options));
  }

  recv(peer: number, options?: CallLimits & TagOption): Promise<unknown> {
    const tag = this.#check('recvObject', peer, options);
    return this.#messages.recv(peer, tag, options);
  }

  recvSync(peer: number, options?: BlockingLimits & TagOption): unknown {
    const tag = this.#check('recvObjectSync', peer, options);
    return this.#checked(() => this.#messages.recvSync(peer, tag, options));
  }

  recvAny(options?: CallLimits & TagOption): Promise<AnyObject<unknown>> {
    const tag = this.#checked(() => checkTagged('recvAnyObject', options));
    return this.#messages.recvAny(tag, options);
  }

  recvAnySync(options?: BlockingLimits & TagOption): AnyObject<unknown> {
    const tag = this.#checked(() => checkTagged('recvAnyObjectSync', options));
    return this.#checked(() => this.#messages.recvAnySync(tag, options));
  }

  sendRecv(value: unknown, to: number, from: number, options?: CallLimits): Promise<unknown> {
    this.#checked(() => checkLimits('sendRecvObject', options));
    for (const peer of [to, from]) this.#check('sendRecvObject', peer, options);
    return this.#checked(() => this.#messages.sendRecv(value, to, from, options));
  }

  sendRecvSync(value: unknown, to: number, from: number, options?: BlockingLimits): unknown {
    this.#checked(() => checkLimits('sendRecvObjectSync', options));
    for (const peer of [to, from]) this.#check('sendRecvObjectSync', peer, options);
    return this.#checked(() => this.#messages.sendRecvSync(value, to, from, options));
  }

  /** Checks the arguments of a message; returns its tag. */
  #check(call: string, peer: number, options: (CallLimits & TagOption) | undefined): number | undefined {
    return this.#checked(() => {
      checkPeer(call, peer, this.#parts.nRanks);
      return checkTagged(call, options);
    });
  }

  /** Runs `check`; adds this rank's number to its errors. */
  #checked<T>(check: () => T): T {
    try {
      return check();
    } catch (error) {
      throw errorOfCall(error, this.#parts.rank);
    }
  }
}
