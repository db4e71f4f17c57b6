import { describeValue } from '../../describe-value.js';
import { InvalidUsageError, TimeoutError } from '../../errors.js';
import type { TimedCallOptions } from '../algorithms/arguments.js';
import { nameOf, readCall } from '../algorithms/call.js';
import type { CallQueue } from '../algorithms/call-queue.js';
import { addCallerFrames, settlerOf } from '../caller-stack.js';
import type { DataType, NumericArray } from '../device/types.js';
import type { Messenger } from '../messages/messenger.js';
import type { TransferOwner } from '../messages/p2p-transfer.js';
import { afterWatching } from '../progress/watch-clock.js';
import type { CheckedCall } from './checked-call.js';

/*
 * The rule of cancellation:
 *     before the call      refused alone; nothing was started
 *     recv                 withdrawn, unless its message has begun to arrive: then it goes on to its end
 *     all other calls      as abort(): other ranks may have done their part, and count on this one
 */

export function isTimed(options: TimedCallOptions): boolean {
  return options.signal !== undefined || options.timeoutMs !== undefined;
}

/** The parts of a communicator that calls with limits use. */
export interface TimedCallParts {
  readonly rank: number;
  readonly queue: CallQueue;
  readonly messenger: Messenger;
  /** Ends the communicator for an error; returns the error. */
  readonly fail: (error: unknown) => unknown;
  readonly abort: (reason: string) => void;
}

/** Starts a collective with a signal or a limit of time. */
export function startTimedCollective(
  { queue, fail, abort }: TimedCallParts,
  { code, type, root, send, recv, count, details }: CheckedCall,
  options: TimedCallOptions,
): Promise<void> {
  const name = callName(code);
  return startTimed(options, (settled) => {
    queue.add({ code, type, root, send, recv, count, details }, settled);
    queue.kick();
    return {
      look: () => queue.kick(),
      cancel: (reason, ended) => {
        ended();
        abort(`its ${name} was cancelled (${textOf(reason)})`);
      },
      timeOut: (timeoutMs) => {
        try {
          queue.timeOut(timeoutMs, `timeoutMs of its ${name}`);
        } catch (error) {
          fail(error);
        }
        return undefined;
      },
    };
  });
}

/** Starts a send or receive with a signal or a limit of time. */
export function startTimedMessage(
  { rank, messenger, fail, abort }: TimedCallParts,
  { sends, peer, array, type }: { sends: boolean; peer: number; array: NumericArray; type: DataType },
  options: TimedCallOptions,
): Promise<void> {
  return startTimed(options, (settled) => {
    const owner: TransferOwner = { settled };
    messenger.add(sends, peer, array, type, owner);
    // An error has ended the communicator, and this call with it.
    const look = (): void => {
      try {
        messenger.kick();
      } catch {
        return;
      }
    };
    look();
    const late = (text: string, timeoutMs: number): TimeoutError =>
      new TimeoutError('TIMEOUT', `${text} within ${timeoutMs / 1000} s (its timeoutMs)`, { ranks: [peer] });
    if (sends) {
      return {
        look,
        cancel: (reason, ended) => {
          ended();
          abort(`its send was cancelled (${textOf(reason)})`);
        },
        timeOut: (timeoutMs) => {
          fail(late(`send: rank ${peer} did not take the message of rank ${rank}`, timeoutMs));
          return undefined;
        },
      };
    }
    return {
      look,
      cancel: (reason, ended) => {
        if (messenger.withdraw(peer, owner, new Error(textOf(reason)))) ended();
      },
      timeOut: (timeoutMs) => {
        const error = late(`recv: no message from rank ${peer} came to rank ${rank}`, timeoutMs);
        return messenger.withdraw(peer, owner, error) ? error : undefined;
      },
    };
  });
}

/** Name of the public call, by its code. */
export function callName(code: number): string {
  const call = readCall(code, 0, 0);
  return call === undefined ? 'call' : nameOf(call);
}

function textOf(reason: unknown): string {
  return reason instanceof Error ? reason.message : typeof reason === 'string' ? reason : describeValue(reason);
}

/** A started call. */
interface StartedCall {
  /** Progresses the call once more. */
  readonly look: () => void;
  /** Ends the call for the reason of its signal, unless it goes on; calls `ended` first if it does not. */
  readonly cancel: (reason: unknown, ended: () => void) => void;
  /** Ends the call that has taken too long; gives the error, or undefined if the call goes on or gets its error by itself. */
  readonly timeOut: (timeoutMs: number) => Error | undefined;
}

/**
 * Starts a call with a signal or a limit of time.
 *
 * @param start starts it; its argument is called at the end
 */
function startTimed(
  { signal, timeoutMs }: TimedCallOptions,
  start: (settled: (error?: Error) => void) => StartedCall,
): Promise<void> {
  // eslint-disable-next-line @typescript-eslint/prefer-promise-reject-errors -- the signal's reason is what its owner says
  if (signal?.aborted === true) return Promise.reject(signal.reason);
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
    signal?.addEventListener('abort', cancel, { once: true });
    stopListening = () => signal?.removeEventListener('abort', cancel);
    if (timeoutMs === undefined) return;
    stopWaiting = afterWatching(timeoutMs, () => {
      if (isDone()) return;
      const error = call.timeOut(timeoutMs);
      if (error !== undefined) end(error);
    });
  });
}

/** The error for a signal or a limit in a call that does not support them. */
export function timedUnsupported(call: string, rank: number): InvalidUsageError {
  return addCallerFrames(
    new InvalidUsageError(
      'UNSUPPORTED',
      `${call}: signal and timeoutMs are for the promise form outside groups; leave them out, TCCL_TIMEOUT limits all calls`,
      { rank },
    ),
  );
}
