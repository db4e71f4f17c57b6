import { types } from 'node:util';
import type { Observe, Operation } from '../algorithms/operation.js';
import type { QueuedCall } from '../algorithms/queued-call.js';
import type { DataType, NumericArray } from '../device/types.js';
import { describeValue } from '../../describe-value.js';
import { InvalidArgumentError } from '../../errors.js';
import { leadToCaller, settlerOf } from '../caller-stack.js';
import type { CheckedCall } from './checked-call.js';
import { fuse, type FusionMember } from './fusion.js';

/** A send or receive that waits for its start. */
interface QueuedMessage {
  readonly sends: boolean;
  readonly peer: number;
  readonly array: NumericArray;
  readonly type: DataType;
}

/** What a group needs of a communicator. */
export interface GroupMember extends FusionMember {
  /** Told of the group, where somebody wants to know. */
  readonly observe: Observe | undefined;
  /** Throws `UNSUPPORTED` where a blocking group cannot wait for a message with `peer` or, without, for collectives. */
  checkBlocking(peer?: number): void;
  /** Throws what ended the communicator. */
  checkUsable(call: string): void;
  addMessage(message: QueuedMessage, settled: (error?: Error) => void): void;
  addCollective(call: QueuedCall, settled: (error?: Error) => void): void;
  /** Starts what was added. */
  kick(): void;
  /** Blocks until `isDone`. What other members were given goes on, too. */
  waitUntil(isDone: () => boolean): void;
}

/** The group whose body is running. Bodies are not asynchronous, so there is at most one. */
let current: Group | undefined;

/**
 * Starts all operations that `body` calls at once and resolves when all are done. Sends and receives may come in any
 * order, on several communicators; small all-reduces of one type and operator become one exchange. `body` must not be
 * asynchronous: what it calls after an `await` is not in the group.
 *
 * All ranks group the same collectives. Operations of a group are under way together, so none may write what another
 * one uses. When arguments of one are wrong, or `body` throws, the promise rejects with that error and nothing starts.
 * A group in a group's body is part of that group.
 */
export function group(body: () => void): Promise<void> {
  try {
    checkBody(body);
  } catch (error) {
    return refused(error);
  }
  if (current !== undefined) return current.include(body);
  const collected = new Group();
  try {
    collected.collect(body);
    collected.start();
  } catch (error) {
    collected.giveUp(error);
  }
  return collected.promise;
}

/** The blocking form of {@link group}, for messages between ranks that share memory and collectives that may block. */
export function groupSync(body: () => void): void {
  checkBody(body);
  if (current !== undefined) {
    current.includeSync(body);
    return;
  }
  const collected = new Group();
  collected.collect(body);
  collected.runSync();
}

/**
 * An asynchronous body would start what comes after its first `await` on its own, and often wait for itself; a
 * generator's would not run.
 */
function checkBody(body: unknown): void {
  if (typeof body === 'function' && !types.isAsyncFunction(body) && !types.isGeneratorFunction(body)) return;
  throw new InvalidArgumentError(
    'ARGUMENT_TYPE',
    `group takes a function that is neither async nor a generator and calls the operations without awaiting them, not ${whatIs(body)}`,
  );
}

function whatIs(body: unknown): string {
  if (typeof body !== 'function') return describeValue(body);
  return types.isAsyncFunction(body) ? 'an async one' : 'a generator';
}

/** The group that operations called now belong to, if any. */
export function currentGroup(): Group | undefined {
  return current;
}

/** What an operation of the promise form gives that fails where it is called. */
export function refused(error: unknown): Promise<void> {
  leadToCaller(error);
  return current === undefined ? Promise.reject(error) : current.refuse(error);
}

/** Operations that are collected, and then under way together. */
export class Group {
  /** Resolves when all operations are done. */
  readonly promise: Promise<void>;
  #settle: (error?: Error) => void = () => undefined;
  /** The same, for the operations: they may leave it alone, since whoever called group() has the other. */
  readonly #part: Promise<void>;
  #settlePart: (error?: Error) => void = () => undefined;
  readonly #messages: (QueuedMessage & { readonly member: GroupMember })[] = [];
  readonly #collectives = new Map<GroupMember, QueuedCall[]>();
  /** What went wrong first. */
  #error: { readonly error: unknown } | undefined;
  #outstanding = 0;
  #hasEnded = false;
  /** Told of the end, where the group is observed. */
  #ended: ((error?: Error) => void)[] = [];

  constructor() {
    this.promise = new Promise<void>((resolve) => (this.#settle = settlerOf(resolve)));
    this.#part = new Promise<void>((resolve) => (this.#settlePart = settlerOf(resolve)));
    this.#part.catch(() => undefined);
  }

  /** Runs `body`. Throws what it throws, or what was wrong with an operation. */
  collect(body: () => void): void {
    // eslint-disable-next-line @typescript-eslint/no-this-alias -- operations find the group they are called in
    current = this;
    try {
      body();
    } finally {
      current = undefined;
    }
    if (this.#error !== undefined) throw this.#error.error;
  }

  /** Runs the body of a group within this one. What it throws ends the whole of it, as a wrong operation does. */
  include(body: () => void): Promise<void> {
    try {
      body();
      return this.#part;
    } catch (error) {
      return this.refuse(error);
    }
  }

  includeSync(body: () => void): void {
    try {
      body();
    } catch (error) {
      void this.refuse(error);
      throw error;
    }
  }

  addMessage(member: GroupMember, sends: boolean, peer: number, array: NumericArray, type: DataType): Promise<void> {
    this.#messages.push({ member, sends, peer, array, type });
    return this.#part;
  }

  addCollective(member: GroupMember, { code, type, root, send, recv, count, details }: CheckedCall): Promise<void> {
    const calls = this.#collectives.get(member) ?? [];
    calls.push({ code, type, root, send, recv, count, details });
    this.#collectives.set(member, calls);
    return this.#part;
  }

  refuse(error: unknown): Promise<void> {
    this.#error ??= { error };
    return this.#part;
  }

  /** Starts all. Throws, before anything starts, when operations of the group get in each other's way. */
  start(): readonly GroupMember[] {
    const members = new Set([...this.#messages.map(({ member }) => member), ...this.#collectives.keys()]);
    for (const member of members) member.checkUsable('group');
    const fused = [...this.#collectives].map(([member, calls]) => ({ member, calls: fuse(calls, member) }));
    this.#ended = [...members].flatMap((member) => member.observe?.(this.#operationOf(member)) ?? []);
    this.#outstanding = 1;
    for (const message of this.#messages) {
      this.#outstanding++;
      message.member.addMessage(message, this.#settled);
    }
    for (const { member, calls } of fused) {
      for (const call of calls) {
        this.#outstanding++;
        member.addCollective(call, this.#settled);
      }
    }
    for (const member of members) member.kick();
    this.#settled();
    return [...members];
  }

  /** Ends with an error that kept it from starting, or that a start met: the one promise says so. */
  giveUp(error: unknown): void {
    this.#error ??= { error };
    for (const tell of this.#ended.splice(0)) tell(error as Error);
    this.#end(error as Error);
  }

  /** Starts all and blocks until all are done. */
  runSync(): void {
    this.promise.catch(() => undefined); // nobody has it
    for (const { member, peer } of this.#messages) member.checkBlocking(peer);
    for (const member of this.#collectives.keys()) member.checkBlocking();
    const [first] = this.start();
    first?.waitUntil(() => this.#outstanding === 0 || this.#error !== undefined);
    if (this.#error !== undefined) throw this.#error.error;
  }

  #operationOf(member: GroupMember): Operation {
    const messages = this.#messages.filter((message) => message.member === member).length;
    const collectives = this.#collectives.get(member)?.length ?? 0;
    return {
      name: 'group',
      text: `group of ${messages} messages and ${collectives} collectives`,
      args: { messages, collectives },
    };
  }

  readonly #settled = (error?: Error): void => {
    this.#outstanding--;
    if (error !== undefined || this.#outstanding === 0) for (const tell of this.#ended.splice(0)) tell(error);
    if (error !== undefined) {
      // Others may fail, too, but a promise rejects once, and nobody would handle what it was given then.
      if (this.#error !== undefined) return;
      this.#error = { error };
    } else if (this.#outstanding > 0) return;
    this.#end(error);
  };

  /** Settles both promises once: what a settled one is given again would be rejected with nobody to handle it. */
  #end(error?: Error): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.#settle(error);
    this.#settlePart(error);
  }
}
