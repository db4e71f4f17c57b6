/** Longest time between two looks that counts in full, where time limits are long; */
const LONGEST_GAP_MS = 1000;
/** and the shortest such time: ranks that wait for news of sockets look that often. */
const SHORTEST_GAP_MS = 50;
/** Who waits in the event loop looks so many times in that time. */
const LOOKS_PER_GAP = 4;

/**
 * How long a rank has watched the others, for limits on waiting. Who does not look cannot know whether the others are late:
 * the whole job may have been stopped (Ctrl-Z, a debugger) and goes on only now, or the program computed for long before
 * it came back to its event loop, while the others' news lie there. So of the time from one look to the next only a short
 * part counts, a quarter of the limit at most. A rank that looks all the time counts all of it: one that is stopped alone
 * is late for the others, as it should be.
 */
export class WatchClock {
  /** Longest time from one look to the next that counts. */
  readonly gapMs: number;
  #lookedMs = -Infinity;
  #watchedMs = 0;

  /** @param limitMs what waits are compared with; 0 for none */
  constructor(limitMs: number) {
    this.gapMs = Math.max(SHORTEST_GAP_MS, Math.min(LONGEST_GAP_MS, limitMs / 4));
  }

  /** How often to look, so that all time counts. */
  get lookEveryMs(): number {
    return this.gapMs / LOOKS_PER_GAP;
  }

  /** Looks. Returns the milliseconds that count from some beginning on. */
  look(): number {
    const now = performance.now();
    this.#watchedMs += Math.min(now - this.#lookedMs, this.gapMs);
    this.#lookedMs = now;
    return this.#watchedMs;
  }

  /** Calls `look` often enough that all time counts, until clearInterval(). */
  every(look: () => void): NodeJS.Timeout {
    return setInterval(look, this.lookEveryMs);
  }
}

/** How an action that is to come later is waited for. */
export interface Waiting {
  /** Left out, a clock of its own. */
  readonly clock?: WatchClock;
  /** Whether the wait keeps the process alive, as it does otherwise. */
  readonly ref?: boolean;
}

/** Calls `action` when this thread has watched for so long, unless the function that it returns is called before. */
export function afterWatching(
  limitMs: number,
  action: () => void,
  { clock = new WatchClock(limitMs), ref = true }: Waiting = {},
): () => void {
  const end = clock.look() + limitMs;
  let timer: NodeJS.Timeout;
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
