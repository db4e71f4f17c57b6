import { checkPeer, checkRoot } from '../algorithms/arguments.js';
import type { CallQueue } from '../algorithms/call-queue.js';
import type { QueuedCall } from '../algorithms/queued-call.js';
import { errorOfCall, addCallerFrames, settlerOf } from '../caller-stack.js';
import type { Messenger } from '../messages/messenger.js';
import {
  allGatherValues,
  broadcastValue,
  gatherValues,
  scatterValues,
  type Exchange,
  type Members,
} from './collective-objects.js';
import type { ObjectExchange } from './object-exchange.js';
import { ObjectChain } from './object-chain.js';
import { ObjectMessages } from './object-messages.js';

/** The parts of a communicator that objects use. */
export interface ObjectsParts {
  readonly rank: number;
  readonly nRanks: number;
  readonly queue: CallQueue;
  readonly messenger: Messenger;
  /** Throws `UNSUPPORTED` if collectives cannot block. */
  readonly checkBlocking: () => void;
  /** Ends the communicator for an error; returns the error to throw. */
  readonly fail: (error: unknown) => unknown;
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
    this.#messages = new ObjectMessages(parts.messenger);
  }

  // ── collectives ─────────────────────────────────────────────────────────────────────────────────────────────────────

  broadcast(value: unknown, root: number): Promise<unknown> {
    return this.#start('broadcastObject', this.#broadcast(value, root));
  }

  broadcastSync(value: unknown, root: number): unknown {
    return this.#run('broadcastObject', this.#broadcast(value, root));
  }

  allGather(value: unknown): Promise<unknown[]> {
    return this.#start('allGatherObject', (members) => allGatherValues(members, value));
  }

  allGatherSync(value: unknown): unknown[] {
    return this.#run('allGatherObject', (members) => allGatherValues(members, value));
  }

  gather(value: unknown, root: number): Promise<unknown[] | null> {
    return this.#start('gatherObject', this.#gather(value, root));
  }

  gatherSync(value: unknown, root: number): unknown[] | null {
    return this.#run('gatherObject', this.#gather(value, root));
  }

  scatter(values: unknown, root: number): Promise<unknown> {
    return this.#start('scatterObjects', this.#scatter(values, root));
  }

  scatterSync(values: unknown, root: number): unknown {
    return this.#run('scatterObjects', this.#scatter(values, root));
  }

  #broadcast(value: unknown, root: number): Begin<unknown> {
    this.#checked(() => checkRoot('broadcastObject', root, this.#parts.nRanks));
    return (members) => broadcastValue(members, value, root);
  }

  #gather(value: unknown, root: number): Begin<unknown[] | null> {
    this.#checked(() => checkRoot('gatherObject', root, this.#parts.nRanks));
    return (members) => gatherValues(members, value, root);
  }

  #scatter(values: unknown, root: number): Begin<unknown> {
    this.#checked(() => checkRoot('scatterObjects', root, this.#parts.nRanks));
    return (members) => scatterValues(members, values, root);
  }

  #start<T>(call: string, begin: Begin<T>): Promise<T> {
    const { queue } = this.#parts;
    const chain = this.#chain(call, begin);
    const ended = new Promise<void>((resolve) => queue.add(chain.first, settlerOf(resolve)));
    queue.kick();
    return ended.then(() => this.#checked(() => chain.result()));
  }

  #run<T>(call: string, begin: Begin<T>): T {
    const { queue, checkBlocking } = this.#parts;
    const chain = this.#chain(call, begin);
    checkBlocking();
    for (let next: QueuedCall | undefined = chain.first; next !== undefined; next = this.#next(chain)) queue.run(next);
    return this.#checked(() => chain.result());
  }

  #chain<T>(call: string, begin: Begin<T>): ObjectChain<T> {
    const { rank, nRanks } = this.#parts;
    return this.#checked(() => new ObjectChain(call, rank, nRanks, begin));
  }

  #next(chain: ObjectChain<unknown>): QueuedCall | undefined {
    try {
      return chain.next();
    } catch (error) {
      throw addCallerFrames(this.#parts.fail(error));
    }
  }

  // ── messages ────────────────────────────────────────────────────────────────────────────────────────────────────────

  send(value: unknown, peer: number): Promise<void> {
    this.#checkPeer('sendObject', peer);
    return this.#checked(() => this.#messages.send(value, peer));
  }

  sendSync(value: unknown, peer: number): void {
    this.#checkPeer('sendObjectSync', peer);
    this.#checked(() => this.#messages.sendSync(value, peer));
  }

  recv(peer: number): Promise<unknown> {
    this.#checkPeer('recvObject', peer);
    return this.#messages.recv(peer);
  }

  recvSync(peer: number): unknown {
    this.#checkPeer('recvObjectSync', peer);
    return this.#checked(() => this.#messages.recvSync(peer));
  }

  #checkPeer(call: string, peer: number): void {
    this.#checked(() => checkPeer(call, peer, this.#parts.nRanks));
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
