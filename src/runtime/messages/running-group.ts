import { InvalidUsageError, namingCall } from '../../errors.js';
import { addCallerFrames, errorOfCall } from '../caller-stack.js';

/** A group whose body is running. */
interface RunningGroup {
  /** Ends the group with the error of a call in it, before anything starts. */
  refuse(error: unknown): Promise<void>;
}

/** Bodies are not asynchronous, so there is at most one. */
let running: RunningGroup | undefined;

export function runningGroup(): RunningGroup | undefined {
  return running;
}

/** Runs the body of a group, whose calls look it up. */
export function runBody(group: RunningGroup, body: () => void): void {
  running = group;
  try {
    body();
  } finally {
    running = undefined;
  }
}

/** Result of an operation of the promise form whose arguments are wrong. */
export function refused(error: unknown): Promise<void> {
  addCallerFrames(error);
  return running === undefined ? Promise.reject(error) : running.refuse(error);
}

/**
 * Starts a call of the promise form, whose promise rejects with what `start` throws. Collectives that may be short catch by
 * themselves, because a closure costs them a fifth more at 8 bytes.
 */
export function promised<T>(start: () => Promise<T>): Promise<T> {
  try {
    return start();
  } catch (error) {
    return refused(error) as Promise<never>;
  }
}

/**
 * Throws `UNSUPPORTED` in the body of a group, for a call that cannot be part of it.
 * @param why reason, and what to do instead
 */
export function checkAlone(
  call: string,
  rank: number,
  why = 'it cannot be part of a group; call it before the group or after it',
): void {
  if (running === undefined) return;
  throw errorOfCall(namingCall(new InvalidUsageError('UNSUPPORTED', `${call}: ${why}`)), rank);
}

/** Starts a call that cannot be part of a group; the body of a group ends it with the refusal. */
export function alone<T>(call: string, rank: number, start: () => Promise<T>): Promise<T> {
  return promised(() => {
    checkAlone(call, rank);
    return start();
  });
}
