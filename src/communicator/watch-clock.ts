/** Longest time between two looks that counts in full, where time limits are long; */
const LONGEST_GAP_MS = 1000;
/** and the shortest such time: ranks that wait for news of sockets look that often. */
const SHORTEST_GAP_MS = 50;
/** Watches look so many times in that time. */
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

  /** Looks. Returns the milliseconds that count from some beginning on. */
  look(): number {
    const now = performance.now();
    this.#watchedMs += Math.min(now - this.#lookedMs, this.gapMs);
    this.#lookedMs = now;
    return this.#watchedMs;
  }

  /** Calls `look` often enough that all time counts, until clearInterval(). */
  every(look: () => void): NodeJS.Timeout {
    return setInterval(look, this.gapMs / LOOKS_PER_GAP);
  }
}

/** Calls `action` when this thread has watched for so long, until clearInterval(). */
export function afterWatching(limitMs: number, action: () => void): NodeJS.Timeout {
  const clock = new WatchClock(limitMs);
  const begun = clock.look();
  const timer = clock.every(() => {
    if (clock.look() - begun < limitMs) return;
    clearInterval(timer);
    action();
  });
  return timer;
}
