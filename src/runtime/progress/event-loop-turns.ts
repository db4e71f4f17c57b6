import { clockMs, setImmediate } from '../platform/platform.js';

/** Longest time without a turn of the event loop while promise calls finish where they are made. */
const LONGEST_MS = 10;
/** Reading the clock costs a tenth of a small call, so it is read once in so many calls. */
const CALLS_PER_CLOCK = 64;

let calls = 0;
let turnedMs = 0;

/**
 * True if the event loop should turn before a finished promise call resolves. Awaiting a resolved promise does not return to the
 * event loop, so a loop of such calls would run no timer and notice no failure.
 */
export function isTurnDue(): boolean {
  if (++calls % CALLS_PER_CLOCK !== 0) return false;
  const nowMs = clockMs();
  if (nowMs - turnedMs < LONGEST_MS) return false;
  turnedMs = nowMs;
  return true;
}

/** Lets the next promise call that finishes where it was made return to the event loop. */
export function turnSoon(): void {
  calls = CALLS_PER_CLOCK - 1;
  turnedMs = -LONGEST_MS;
}

/** Resolves in the next turn of the event loop. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}
