import { describeValue } from '../../describe-value.js';
import { InvalidUsageError, namingCall, TimeoutError } from '../../errors.js';
import type { BlockingLimits, CallLimits } from '../algorithms/arguments.js';
import { callName } from '../algorithms/call.js';
import type { CallQueue } from '../algorithms/call-queue.js';
import type { QueuedCall } from '../algorithms/queued-call.js';
import { addCallerFrames, settlerOf } from '../caller-stack.js';
import { afterWatching } from '../progress/watch-clock.js';
import type { Messenger } from './messenger.js';
import type { AnyReceive, TransferOwner } from './p2p-transfer.js';
import { onAbort } from '../abort-signals.js';

/*
 * The rule of cancellation:
 *     before the call                            refused alone; nothing was started
 *     recv, recvObject, probe, waitSignal        withdrawn, unless their data have begun to arrive: then they complete
 *     all other calls                            as abort(): other ranks may have done their part, and count on this one
 */

export function isTimed(options: CallLimits | undefined): options is CallLimits {
  return options !== undefined && (options.signal !== undefined || options.timeoutMs !== undefined);
}

/** The parts of a communicator that calls with limits use. */
export interface TimedCallParts {
  readonly rank: number;
  readonly queue: CallQueue;
  readonly messenger: Messenger;
  /** Ends the communicator for an error, of a call if one is given; returns the error. */
  readonly fail: (error: unknown, call?: string) => unknown;
  readonly abort: (reason: string) => void;
}

/** A started call. */
interface StartedCall {
  /** Progresses the call once more. */
  readonly look: () => void;
  /** Ends the call for the reason of its signal, unless it goes on; calls `ended` first if it does not. */
  readonly cancel: (reason: unknown, ended: () => void) => void;
  /** Ends the call that has taken too long; returns the error, or undefined if the call goes on or gets its error by itself. */
  readonly timeOut: (timeoutMs: number) => Error | undefined;
}

/** A call that ends its communicators when it ends before its time. */
export function endingAll(
  name: string,
  members: readonly Pick<TimedCallParts, 'fail' | 'abort'>[],
  look: () => void,
  late: (timeoutMs: number) => unknown,
): StartedCall {
  return {
    look,
    cancel: (reason, ended) => {
      ended();
      for (const { abort } of members) abort(`its ${name} was cancelled (${reasonText(reason)})`);
    },
    timeOut: (timeoutMs) => {
      const error = late(timeoutMs);
      for (const { fail } of members) fail(error, name);
      return undefined;
    },
  };
}

/**
 * A call that only waits for data of other ranks.
 * @param withdraw withdraws the call; false where it goes on
 */
function withdrawn(look: () => void, withdraw: (error: Error) => boolean, late: (timeoutMs: number) => Error): StartedCall {
  return {
    look,
    cancel: (reason, ended) => {
      if (withdraw(new Error(reasonText(reason)))) ended();
    },
    timeOut: (timeoutMs) => {
      const error = late(timeoutMs);
      return withdraw(error) ? error : undefined;
    },
  };
}

/** Starts a collective with a signal or a limit of time. */
export function startTimedCollective(parts: TimedCallParts, call: QueuedCall, options: CallLimits): Promise<void> {
  const { queue } = parts;
  const name = callName(call.code, call.root);
  const { timeoutMs: limitMs } = options;
  const limited = limitMs === undefined ? call : { ...call, details: { ...call.details, limitMs } };
  return startTimed(options, (settled) => {
    queue.add(limited, settled);
    queue.kick();
    return endingAll(
      name,
      [parts],
      () => queue.kick(),
      (timeoutMs) => errorOf(() => queue.timeOut(timeoutMs, `timeoutMs of its ${name}`)),
    );
  });
}

/** A wait for other ranks outside collectives: for a message, its taking, or a signal. */
export interface TimedWait {
  /** The call, for errors. */
  readonly name: string;
  /** Text of the missing event, for errors: `no signal from rank 1 came to rank 0`. */
  readonly missing: string;
  readonly ranks: () => readonly number[];
  /**
   * Starts it without a poll. Returns the function that withdraws it, which returns false if it goes on or has ended; undefined
   * where nothing can be withdrawn.
   */
  readonly begin: (settled: (error?: Error) => void) => ((error: Error) => boolean) | undefined;
}

/** Waits, perhaps with a signal or a limit of time. */
export function startWait(parts: TimedCallParts, wait: TimedWait, options: CallLimits | undefined): Promise<void> {
  const look = (): void => lookAt(parts.messenger);
  if (!isTimed(options)) {
    return new Promise<void>((resolve) => {
      wait.begin(settlerOf(resolve));
      look();
    });
  }
  return startTimed(options, (settled) => {
    const withdraw = wait.begin(settled);
    const late = (timeoutMs: number): TimeoutError => lateWait(wait, timeoutMs);
    return withdraw === undefined ? endingAll(wait.name, [parts], look, late) : withdrawn(look, withdraw, late);
  });
}

/** The blocking form of {@link startWait}. */
export function runWait({ messenger, fail }: TimedCallParts, wait: TimedWait, { timeoutMs }: BlockingLimits = {}): void {
  let outcome: { readonly error: Error | undefined } | undefined;
  const withdraw = wait.begin((error) => (outcome = { error }));
  const isDone = (): boolean => outcome !== undefined;
  if (timeoutMs === undefined) messenger.waitUntil(isDone);
  else if (!messenger.waitWithin(isDone, timeoutMs)) {
    const error = lateWait(wait, timeoutMs);
    if (withdraw === undefined) throw addCallerFrames(fail(error, wait.name));
    if (withdraw(error)) throw addCallerFrames(error);
    messenger.waitUntil(isDone);
  }
  const { error } = outcome ?? { error: undefined };
  if (error !== undefined) throw addCallerFrames(error);
}

function lateWait({ name, missing, ranks }: TimedWait, timeoutMs: number): TimeoutError {
  return namingCall(new TimeoutError('TIMEOUT', `${name}: ${missing} within ${limitText(timeoutMs)}`, { ranks: ranks() }));
}

/** A send or receive. */
interface AwaitedMessage {
  readonly name: string;
  readonly sends: boolean;
  readonly peer: number;
  /** Queues it; returns its owner, by which a receive can be withdrawn. */
  readonly add: (settled: (error?: Error) => void) => TransferOwner;
  /** True if the message of a receive has not begun to arrive. */
  readonly mayWithdraw?: () => boolean;
}

export function waitForMessage(
  { rank, messenger }: TimedCallParts,
  { name, sends, peer, add, mayWithdraw = () => true }: AwaitedMessage,
): TimedWait {
  return {
    name,
    missing: sends
      ? `rank ${peer} did not take the message of rank ${rank}`
      : `no message from rank ${peer} came to rank ${rank}`,
    ranks: () => [peer],
    begin: (settled) => {
      const owner = add(settled);
      return sends ? undefined : (error) => mayWithdraw() && messenger.withdraw(peer, owner, error);
    },
  };
}

/** A receive from any rank. @param add queues it */
export function waitForAny(
  { rank, messenger }: TimedCallParts,
  name: string,
  add: (settled: (error?: Error) => void) => AnyReceive,
): TimedWait {
  return {
    name,
    missing: `no message from any rank came to rank ${rank}`,
    ranks: () => messenger.pointToPoint.otherRanks,
    begin: (settled) => {
      const any = add(settled);
      return (error) => messenger.withdrawAny(any, error);
    },
  };
}

/** Limits a call that has a promise already; it ends the communicator when it ends before its time. */
export function limited(
  parts: TimedCallParts,
  name: string,
  begin: () => Promise<void>,
  options: CallLimits | undefined,
): Promise<void> {
  if (!isTimed(options)) return begin();
  return startTimed(options, (settled) => {
    begin().then(() => settled(), settled);
    return endingAll(
      name,
      [parts],
      () => lookAt(parts.messenger),
      (timeoutMs) =>
        namingCall(new TimeoutError('TIMEOUT', `${name}: rank ${parts.rank} did not end it within ${limitText(timeoutMs)}`)),
    );
  });
}

/** Text of a limit that is over. */
export function limitText(timeoutMs: number): string {
  return `${timeoutMs / 1000} s (its timeoutMs)`;
}

/** Polls messages. An error has ended the communicator, and the call with it. */
export function lookAt(messenger: Messenger): void {
  try {
    messenger.kick();
  } catch {
    return;
  }
}

/** The error that `action` throws. */
function errorOf(action: () => never): unknown {
  try {
    return action();
  } catch (error) {
    return error;
  }
}

/** Text of a signal's reason. */
export function reasonText(reason: unknown): string {
  return reason instanceof Error ? reason.message : typeof reason === 'string' ? reason : describeValue(reason);
}

/** The rejection of a call whose signal was aborted before; undefined if it was not. */
export function abortedBefore({ signal }: CallLimits): Promise<never> | undefined {
  // eslint-disable-next-line @typescript-eslint/prefer-promise-reject-errors -- the signal's reason is its owner's choice
  return signal?.aborted === true ? Promise.reject(signal.reason) : undefined;
}

/**
 * Starts a call with a signal or a limit of time.
 *
 * @param start starts it; its argument is called at the end
 */
export function startTimed(options: CallLimits, start: (settled: (error?: Error) => void) => StartedCall): Promise<void> {
  const refused = abortedBefore(options);
  if (refused !== undefined) return refused;
  const { signal, timeoutMs } = options;
  return new Promise<void>((resolve, reject) => {
    const settle = settlerOf(resolve);
    let isOver = false;
    let stopWaiting = (): void => undefined;
    let stopListening = (): void => undefined;
    const end = (error?: Error): void => {
      if (isOver) return;
      isOver = true;
      stopWaiting();
      stopListening();
      settle(error);
    };
    const call = start(end);
    const isDone = (): boolean => {
      if (!isOver) call.look();
      return isOver;
    };
    const cancel = (): void => {
      if (isDone()) return;
      const reason: unknown = signal?.reason;
      call.cancel(reason, () => {
        isOver = true;
        stopWaiting();
        reject(reason);
      });
    };
    if (isDone()) return;
    stopListening = onAbort(signal, cancel);
    if (timeoutMs === undefined) return;
    stopWaiting = afterWatching(timeoutMs, () => {
      if (isDone()) return;
      const error = call.timeOut(timeoutMs);
      if (error !== undefined) end(error);
    });
  });
}

/** The error for a limit of a call in a group. */
export function limitedInGroup(call: string, rank?: number): InvalidUsageError {
  return addCallerFrames(
    namingCall(
      new InvalidUsageError(
        'UNSUPPORTED',
        `${call}: a call in a group has no signal or timeoutMs of its own; pass them to the group`,
        detailsOf(rank),
      ),
    ),
  );
}

/** The error for a signal whose abort could not be noticed. */
export function signalUnheard(call: string, rank?: number): InvalidUsageError {
  return addCallerFrames(
    namingCall(
      new InvalidUsageError(
        'UNSUPPORTED',
        `${call}: a blocking call takes no signal; use the promise form, or pass timeoutMs`,
        detailsOf(rank),
      ),
    ),
  );
}

function detailsOf(rank: number | undefined): { readonly rank?: number } {
  return rank === undefined ? {} : { rank };
}
