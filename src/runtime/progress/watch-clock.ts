import { clearTimeout, clockMs, setInterval, setTimeout, type Timer } from '../platform/platform.js';

/** Longest time between two looks that counts in full, if time limits are long: each look costs some 0.5 ms of processor. */
const LONGEST_GAP_MS = 4000;
/** The same if they are some seconds. */
const USUAL_GAP_MS = 1000;
/** The same if they are short: ranks that wait for news of sockets look this often. */
const SHORTEST_GAP_MS = 50;
/** Number of looks in that time while waiting in the event loop. */
const LOOKS_PER_GAP = 4;

/**
 * Measures the time in which a rank has watched the others, for limits on waiting. Of the time between two looks only a short
 * part counts, at most a quarter of the limit: the whole job may have been stopped (Ctrl-Z, a debugger), or the program may have
 * computed.
 */
export class WatchClock {
  /** Longest time from one look to the next that counts. */
  readonly gapMs: number;
  #lookedMs = -Infinity;
  #watchedMs = 0;

  /** @param limitMs limit that waits are compared with; 0 for none */
  constructor(limitMs: number) {
    const longestMs = Math.min(LONGEST_GAP_MS, Math.max(USUAL_GAP_MS, limitMs / 8));
    this.gapMs = Math.max(SHORTEST_GAP_MS, Math.min(longestMs, limitMs / 4));
  }

  /** Interval of looks at which all time counts. */
  get lookEveryMs(): number {
    return this.gapMs / LOOKS_PER_GAP;
  }

  /** Looks. Returns the milliseconds counted so far. */
  look(): number {
    const now = clockMs();
    this.#watchedMs += Math.min(now - this.#lookedMs, this.gapMs);
    this.#lookedMs = now;
    return this.#watchedMs;
  }

  /** Calls `look` often enough that all time counts, until clearInterval(). */
  every(look: () => void): Timer {
    return setInterval(look, this.lookEveryMs);
  }
}

/** Options of a delayed action. */
interface Waiting {
  /** Clock to use; default: a new one. */
  readonly clock?: WatchClock;
  /** True if the wait keeps the process alive. Default true. */
  readonly ref?: boolean;
}

/** Calls `action` when this thread has watched for `ms`, unless the returned function is called before. */
export function afterWatching(
  limitMs: number,
  action: () => void,
  { clock = new WatchClock(limitMs), ref = true }: Waiting = {},
): () => void {
  const end = clock.look() + limitMs;
  let timer: Timer;
  const wait = (ms: number): void => {
    timer = setTimeout(look, Math.min(ms, clock.lookEveryMs));
    if (!ref) timer.unref();
  };
  const look = (): void => {
    const leftMs = end - clock.look();
    if (leftMs > 0) wait(leftMs);
    else action();
  };
  wait(limitMs);
  return () => clearTimeout(timer);
}
