import { clockMs, wallClockMs } from '../platform/platform.js';

/** Time that a rank waits for others before it warns, and before it gives up; 0 means never. */
export interface WaitLimits {
  readonly timeoutMs: number;
  readonly warnAfterMs: number;
  /** Time by wallClockMs() shortly before the launcher ends the job: from then on, a rank warns after a second. */
  readonly reportAtMs?: number | undefined;
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
  return shorterOf(timeoutMs, warnAfterMs);
}

/** The smaller of two limits, of which 0 is none. */
export function shorterOf(oneMs: number, otherMs: number): number {
  return oneMs === 0 || otherMs === 0 ? Math.max(oneMs, otherMs) : Math.min(oneMs, otherMs);
}

/** Time from a wait of `waitedMs` to its next limit; Infinity after the last. */
export function timeToLimit({ timeoutMs, warnAfterMs, reportAtMs }: WaitLimits, waitedMs: number): number {
  const toTimeout = timeoutMs > waitedMs ? timeoutMs - waitedMs : Infinity;
  const warnsAfterMs = untilWarning({ warnAfterMs, reportAtMs }, waitedMs);
  const toWarning = warnsAfterMs > waitedMs ? warnsAfterMs - waitedMs : Infinity;
  return Math.min(toTimeout, toWarning);
}

/** Shortest wait that a rank reports before the end of the job. */
const LAST_WAIT_MS = 1000;

/** Length of a wait, which has lasted `waitedMs` so far, at which its rank warns; 0 for never. */
export function untilWarning({ warnAfterMs, reportAtMs }: Omit<WaitLimits, 'timeoutMs'>, waitedMs: number): number {
  if (reportAtMs === undefined || warnAfterMs <= LAST_WAIT_MS) return warnAfterMs;
  return Math.min(warnAfterMs, Math.max(LAST_WAIT_MS, waitedMs + reportAtMs - wallClockMs()));
}

/** Text of the warning of a waiting rank. */
export function longWait(rank: number, waitedMs: number, what: string, whom: string): string {
  return `rank ${rank} has waited ${Math.round(waitedMs / 100) / 10} s in ${what}, for ${whom}`;
}

/** Most reports of a wait within one limit: others regard a report as valid for a quarter of the limit. */
export const REPORTS_PER_LIMIT = 32;

/** Decides when a waiting rank reports its wait again: checks are much more frequent, and each report goes to many ranks. */
export class ReportPace {
  #reportedMs = -Infinity;

  /** @param limitMs see shorterLimit() */
  isDue(limitMs: number): boolean {
    const nowMs = clockMs();
    if (nowMs - this.#reportedMs < limitMs / REPORTS_PER_LIMIT) return false;
    this.#reportedMs = nowMs;
    return true;
  }
}
