/** How long a rank waits for others before it says so, and before it gives up; 0: never. */
export interface WaitLimits {
  readonly timeoutMs: number;
  readonly warnAfterMs: number;
}

export const noLimits: WaitLimits = { timeoutMs: 0, warnAfterMs: 0 };

/** The one that is reached first, for which waits are looked at often enough; 0 where there is none. */
export function shorterLimit({ timeoutMs, warnAfterMs }: WaitLimits): number {
  return timeoutMs === 0 || warnAfterMs === 0 ? Math.max(timeoutMs, warnAfterMs) : Math.min(timeoutMs, warnAfterMs);
}

/** How long it is from a wait of `waitedMs` to the next limit; Infinity after all of them. */
export function timeToLimit({ timeoutMs, warnAfterMs }: WaitLimits, waitedMs: number): number {
  const toTimeout = timeoutMs > waitedMs ? timeoutMs - waitedMs : Infinity;
  const toWarning = warnAfterMs > waitedMs ? warnAfterMs - waitedMs : Infinity;
  return Math.min(toTimeout, toWarning);
}

/** The warning of a rank that waits. */
export function longWait(rank: number, waitedMs: number, what: string, whom: string): string {
  return `rank ${rank} has waited ${waitedMs / 1000} s in ${what}, for ${whom}`;
}

/** In the time that it waits for others, a rank says so many times at most that it waits: what they hear counts for a quarter. */
const SAYS_PER_LIMIT = 32;

/** Tells when it is time to say again that this rank waits: looks are much more frequent, and all who may wait hear it. */
export class SayPace {
  #saidMs = -Infinity;

  /** @param limitMs see shorterLimit() */
  isDue(limitMs: number): boolean {
    const nowMs = performance.now();
    if (nowMs - this.#saidMs < limitMs / SAYS_PER_LIMIT) return false;
    this.#saidMs = nowMs;
    return true;
  }
}
