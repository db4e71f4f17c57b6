/** Time that a rank waits for others before it warns, and before it gives up; 0 means never. */
export interface WaitLimits {
  readonly timeoutMs: number;
  readonly warnAfterMs: number;
  /** True if the program gave `timeoutMs` to init(); otherwise it is from the environment. */
  readonly isOfProgram?: boolean | undefined;
}

/** The option or variable that sets the time limit of a call, for the error. */
export function limitSource({ isOfProgram }: WaitLimits): string {
  return isOfProgram === true ? 'timeoutMs of init()' : 'TCCL_TIMEOUT sets the seconds, 0 means no limit';
}

export const noLimits: WaitLimits = { timeoutMs: 0, warnAfterMs: 0 };

/** The smaller of the two limits, which decides how often waits are checked; 0 without any. */
export function shorterLimit({ timeoutMs, warnAfterMs }: WaitLimits): number {
  return timeoutMs === 0 || warnAfterMs === 0 ? Math.max(timeoutMs, warnAfterMs) : Math.min(timeoutMs, warnAfterMs);
}

/** Time from a wait of `waitedMs` to its next limit; Infinity after the last. */
export function timeToLimit({ timeoutMs, warnAfterMs }: WaitLimits, waitedMs: number): number {
  const toTimeout = timeoutMs > waitedMs ? timeoutMs - waitedMs : Infinity;
  const toWarning = warnAfterMs > waitedMs ? warnAfterMs - waitedMs : Infinity;
  return Math.min(toTimeout, toWarning);
}

/** Text of the warning of a waiting rank. */
export function longWait(rank: number, waitedMs: number, what: string, whom: string): string {
  return `rank ${rank} has waited ${waitedMs / 1000} s in ${what}, for ${whom}`;
}

/** Most reports of a wait within one limit: others regard a report as valid for a quarter of the limit. */
const REPORTS_PER_LIMIT = 32;

/** Decides when a waiting rank reports its wait again: checks are much more frequent, and each report goes to many ranks. */
export class ReportPace {
  #reportedMs = -Infinity;

  /** @param limitMs see shorterLimit() */
  isDue(limitMs: number): boolean {
    const nowMs = performance.now();
    if (nowMs - this.#reportedMs < limitMs / REPORTS_PER_LIMIT) return false;
    this.#reportedMs = nowMs;
    return true;
  }
}
