import { types } from '#platform/system';
import type { Observe, Operation } from '../algorithms/operation.js';
import { arraysOf, type QueuedCall } from '../algorithms/queued-call.js';
import type { DataType, NumericArray } from '../device/types.js';
import { describeValue } from '../../describe-value.js';
import { InvalidArgumentError, namingCall, TimeoutError } from '../../errors.js';
import { addCallerFrames, settlerOf } from '../caller-stack.js';
import {
  checkLimits,
  checkMessageOptions,
  type BlockingLimits,
  type CallLimits,
  type CallOptions,
  type TagOption,
  type TimedCallOptions,
} from '../algorithms/arguments.js';
import { endingAll, isTimed, limitedInGroup, limitText, signalUnheard, startTimed } from '../messages/timed-call.js';
import type { Transfer, TransferOwner } from '../messages/p2p-transfer.js';
import { promised, refused, runBody, runningGroup } from '../messages/running-group.js';
import { fuse, type FusionMember } from './fusion.js';
import { areInOrder, checkApart } from './messages-apart.js';

/** The part of a communicator that groups use. */
export interface GroupMember extends FusionMember {
  /** Observer of groups, if the communicator is observed. */
  readonly observe: Observe | undefined;
  /** Throws `UNSUPPORTED` if a blocking group cannot wait for a message with `peer` or, without `peer`, for collectives. */
  checkBlocking(call: string, peer?: number): void;
  /** Throws the error that ended the communicator. */
  checkUsable(call: string): void;
  /** A message without an owner, which startMessages() starts. */
  prepareMessage(sends: boolean, peer: number, array: NumericArray, type: DataType, tag: number | undefined): Transfer;
  startMessages(messages: readonly Transfer[]): void;
  addCollective(call: QueuedCall, settled: (error?: Error) => void): void;
  /** Starts the operations that were added, such as messages. */
  kick(messages?: readonly Transfer[]): void;
  /** Blocks until `isDone`. Operations of other members progress meanwhile. */
  waitUntil(isDone: () => boolean): void;
  /** Blocks as above for a limited time; false if time was over before. */
  waitWithin(isDone: () => boolean, timeoutMs: number): boolean;
  /** Ends the communicator, for an error or for a reason of this rank. */
  fail(error: unknown, call?: string): unknown;
  abort(reason: string): void;
}

/**
 * Starts all operations that `body` calls together, and resolves when all are done. Sends and receives may be in any order, on
 * several communicators; small all-reduces with one type and operator become one exchange. `body` must not be asynchronous: calls
 * after an `await` are not in the group.
 *
 * All ranks must group the same collectives. Operations of a group run at the same time, so none may write an array that
 * another one uses. If an argument is wrong or `body` throws, the promise rejects with that error and nothing starts. A group
 * within a group's body joins the outer group.
 *
 * A signal or limit is that of the whole group: it ends all communicators of the group, as `abort` does.
 */
export function group(body: () => void, options?: CallLimits): Promise<void> {
  return groupAs('group', body, options);
}

/** Messages that the program calls by one name, with their type. */
export function asGroup(
  call: string,
  options: (TimedCallOptions & TagOption) | undefined,
  body: (options: (CallOptions & TagOption) | undefined) => void,
): Promise<void> {
  if (options === undefined) return groupAs(call, () => body(undefined), undefined);
  return promised(() => {
    checkMessageOptions(call, options);
    const { signal, timeoutMs, ...others } = options;
    return groupAs(call, () => body(others), { signal, timeoutMs });
  });
}

/** The blocking form of {@link asGroup}. */
export function asGroupSync(
  call: string,
  options: (TimedCallOptions & TagOption) | undefined,
  body: (options: (CallOptions & TagOption) | undefined) => void,
): void {
  if (options !== undefined) checkMessageOptions(call, options);
  const { signal, timeoutMs, ...others } = options ?? {};
  groupSyncAs(call, () => body(others), { signal, timeoutMs });
}

function groupAs(call: string, body: () => void, options: CallLimits | undefined): Promise<void> {
  try {
    checkBody(call, body);
    checkLimits(call, options);
    if (currentGroup() !== undefined && isTimed(options)) throw limitedInGroup(call);
  } catch (error) {
    return refused(error);
  }
  const current = currentGroup();
  if (current !== undefined) return current.include(body);
  if (isTimed(options)) return startTimedGroup(call, body, options);
  const collected = new Group();
  const promise = collected.promise();
  try {
    collected.collect(body);
    collected.start(call);
  } catch (error) {
    collected.giveUp(error);
  }
  return promise;
}

function startTimedGroup(call: string, body: () => void, options: CallLimits): Promise<void> {
  return startTimed(options, (settled) => {
    const collected = new Group();
    collected.promise().then(() => settled(), settled);
    let members: readonly GroupMember[] = [];
    try {
      collected.collect(body);
      collected.start(call);
      members = collected.members;
    } catch (error) {
      collected.giveUp(error);
    }
    const look = (): void => {
      for (const member of members) member.kick();
    };
    return endingAll(call, members, look, (timeoutMs) => collected.late(call, timeoutMs));
  });
}

/** The blocking form of {@link group}, for messages between ranks that share memory and collectives that may block. */
export function groupSync(body: () => void, options?: BlockingLimits): void {
  groupSyncAs('groupSync', body, options);
}

function groupSyncAs(call: string, body: () => void, options: CallLimits | undefined): void {
  checkBody(call, body);
  checkLimits(call, options);
  if (options?.signal !== undefined) throw signalUnheard(call);
  const current = currentGroup();
  if (current !== undefined) {
    if (isTimed(options)) throw limitedInGroup(call);
    current.includeSync(body);
    return;
  }
  const collected = new Group();
  try {
    collected.collect(body);
    collected.runSync(call, options?.timeoutMs);
  } catch (error) {
    // The body may have kept promises of its operations.
    collected.giveUp(error);
    throw error;
  }
}

/**
 * Refuses asynchronous bodies and generators: an asynchronous body would start the calls after its first `await` outside the
 * group and often deadlock; a generator's body would not run.
 */
export function checkBody(call: string, body: unknown): void {
  if (typeof body === 'function' && !types.isAsyncFunction(body) && !types.isGeneratorFunction(body)) return;
  throw new InvalidArgumentError(
    'ARGUMENT_TYPE',
    `${call}: pass a function that is neither async nor a generator and calls the operations without awaiting them, not ${whatIs(body)}`,
  );
}

function whatIs(body: unknown): string {
  if (typeof body !== 'function') return describeValue(body);
  return types.isAsyncFunction(body) ? 'an async one' : 'a generator';
}

/** The group that collects the operations called now, if any. */
export function currentGroup(): Group | undefined {
  return runningGroup() as Group | undefined;
}

/** The operations of a group on one communicator. */
interface Part {
  readonly member: GroupMember;
  readonly messages: Transfer[];
  readonly collectives: QueuedCall[];
  /** Of its messages that have no call of their own. */
  readonly owner: TransferOwner;
}

/** A group: collects operations and starts them together. */
export class Group {
  readonly #parts: Part[] = [];
  /** Settle the group's promise, and that of its operations, once there are such. */
  #settle: ((error?: Error) => void) | undefined;
  #settleOperations: ((error?: Error) => void) | undefined;
  #operations: Promise<void> | undefined;
  /** The first error. */
  #error: { readonly error: unknown } | undefined;
  #outstanding = 0;
  #hasEnded = false;
  /** Called at the end of an observed group. */
  #ended: ((error?: Error) => void)[] = [];

  /** The communicators with operations in this group. */
  get members(): readonly GroupMember[] {
    return this.#parts.map(({ member }) => member);
  }

  /** Makes the promise that resolves when all operations are done. */
  promise(): Promise<void> {
    return new Promise<void>((resolve) => (this.#settle = settlerOf(resolve)));
  }

  /** The same result for each operation. It may be ignored, because the caller of group() handles the other promise. */
  #ofOperations(): Promise<void> {
    return (this.#operations ??= new Promise<void>((resolve) => (this.#settleOperations = settlerOf(resolve))));
  }

  /** Runs `body`. Throws its error, or that of a wrong operation. */
  collect(body: () => void): void {
    runBody(this, body);
    if (this.#error !== undefined) throw this.#error.error;
  }

  /** Runs the body of a group within this one. An error ends the whole group, like a wrong operation. */
  include(body: () => void): Promise<void> {
    try {
      body();
      return this.#ofOperations();
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

  /**
   * @param message of prepareMessage()
   * @param call that it is a part of, unless the program called send or recv
   */
  addMessage(member: GroupMember, message: Transfer, call?: string): Promise<void> {
    const { messages, owner } = this.#partOf(member);
    message.owner = call === undefined ? owner : { ...owner, call };
    messages.push(message);
    return this.#ofOperations();
  }

  addCollective(member: GroupMember, { code, type, root, send, recv, count, details, chain }: QueuedCall): Promise<void> {
    this.#partOf(member).collectives.push({ code, type, root, send, recv, count, details, chain });
    return this.#ofOperations();
  }

  /** Arrays of the operations of a communicator. */
  arraysOf(member: GroupMember): NumericArray[] {
    const { messages = [], collectives = [] } = this.#parts.find((part) => part.member === member) ?? {};
    return [...messages.map(({ array }) => array), ...collectives.flatMap(arraysOf)];
  }

  #partOf(member: GroupMember): Part {
    for (const part of this.#parts) if (part.member === member) return part;
    const part = { member, messages: [], collectives: [], owner: { settled: this.#settled } };
    this.#parts.push(part);
    return part;
  }

  refuse(error: unknown): Promise<void> {
    this.#error ??= { error };
    return this.#ofOperations();
  }

  /** Starts all operations. Throws before anything starts if operations conflict with each other. */
  start(call: string): void {
    const parts = this.#parts;
    for (const { member } of parts) member.checkUsable(call);
    this.#checkApart(call);
    const fused = parts.map(({ member, collectives }) => (collectives.length === 0 ? [] : fuse(collectives, member)));
    for (const part of parts) {
      const end = part.member.observe?.(operationOf(part));
      if (end !== undefined) this.#ended.push(end);
    }
    this.#outstanding = 1;
    for (const { member, messages } of parts) {
      this.#outstanding += messages.length;
      if (messages.length > 0) member.startMessages(messages);
    }
    for (const [i, calls] of fused.entries()) {
      for (const each of calls) {
        this.#outstanding++;
        parts[i]?.member.addCollective(each, this.#settled);
      }
    }
    for (const { member, messages } of parts) member.kick(messages);
    this.#settled();
  }

  #checkApart(call: string): void {
    const [first, ...others] = this.#parts;
    if (first === undefined || (others.length === 0 && areInOrder(first.messages))) return;
    checkApart(
      call,
      this.#parts.flatMap(({ member, messages }) => messages.map(({ sends, peer, array }) => ({ member, sends, peer, array }))),
    );
  }

  /** Ends the group with an error from before or during the start. */
  giveUp(error: unknown): void {
    this.#error ??= { error };
    for (const end of this.#ended.splice(0)) end(error as Error);
    this.#end(error as Error);
  }

  /** The error of a group that took too long. */
  late(call: string, timeoutMs: number): TimeoutError {
    const left = `${this.#outstanding} of its operations had not ended`;
    return namingCall(new TimeoutError('TIMEOUT', `${call}: ${left} within ${limitText(timeoutMs)}`));
  }

  /** Starts all operations and blocks until all are done. */
  runSync(call: string, timeoutMs: number | undefined): void {
    for (const { member, messages, collectives } of this.#parts) {
      let checked = -1;
      for (const { peer } of messages) if (peer !== checked) member.checkBlocking(call, (checked = peer));
      if (collectives.length > 0) member.checkBlocking(call);
    }
    this.start(call);
    const first = this.#parts[0]?.member;
    const isDone = (): boolean => this.#outstanding === 0 || this.#error !== undefined;
    if (timeoutMs === undefined) first?.waitUntil(isDone);
    else if (first?.waitWithin(isDone, timeoutMs) === false) {
      const error = this.late(call, timeoutMs);
      for (const member of this.members) member.fail(error, call);
    }
    if (this.#error !== undefined) throw addCallerFrames(this.#error.error);
  }

  readonly #settled = (error?: Error): void => {
    this.#outstanding--;
    if (error !== undefined || this.#outstanding === 0) for (const end of this.#ended.splice(0)) end(error);
    if (error !== undefined) {
      // Further operations may fail too, but a promise rejects only once.
      if (this.#error !== undefined) return;
      this.#error = { error };
    } else if (this.#outstanding > 0) return;
    this.#end(error);
  };

  /** Settles both promises once. */
  #end(error?: Error): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.#settle?.(error);
    // Only then: a loop of blocking groups would leave a microtask of each behind.
    if (error !== undefined) this.#operations?.catch(() => undefined);
    this.#settleOperations?.(error);
  }
}

function operationOf({ messages: { length: messages }, collectives: { length: collectives } }: Part): Operation {
  return { name: 'group', text: `group of ${messages} messages and ${collectives} collectives`, args: { messages, collectives } };
}

/** The limit of a blocking call, which a group or a signal cannot have. */
export function blockingLimit(call: string, { signal, timeoutMs = 0 }: CallLimits, rank: number): number {
  if (runningGroup() !== undefined) throw limitedInGroup(call, rank);
  if (signal !== undefined) throw signalUnheard(call, rank);
  return timeoutMs;
}
