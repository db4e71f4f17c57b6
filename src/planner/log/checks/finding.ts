import type { LogFindingCode } from '../rules/codes.js';
import type { LogPlace } from '../lines/line.js';
import type { Kind } from '../rules/rule.js';

export type { LogFindingCode } from '../rules/codes.js';

/** `error`: it fails, hangs, gives wrong results or loses most of the bandwidth; `warning`: some of it; `info`: good to know. */
export type LogSeverity = 'error' | 'warning' | 'info';

/** A fault or a remark about a log: problem, place, cause and remedy. */
export interface LogFinding {
  readonly code: LogFindingCode;
  readonly severity: LogSeverity;
  /** Its role in the incident; default: by severity. */
  readonly kind?: Kind;
  /** Id of its communicator, if it is about one. */
  readonly communicator?: string;
  /** Its ranks, ascending. */
  readonly ranks?: readonly number[];
  /** Ranks that wait for them, where the files show it. */
  readonly waiting?: readonly number[];
  /** The problem, with numbers. */
  readonly problem: string;
  /** The cause, as far as the log shows, or the usual one. */
  readonly cause: string;
  readonly remedy: string;
  /** Some of the lines that show it, the first one first. */
  readonly places: readonly LogPlace[];
  /** The first line that shows it. */
  readonly quote?: string;
  /** Messages of that line's thread around it. */
  readonly context?: readonly string[];
  /** Codes of findings that follow from this one. */
  readonly explains?: readonly LogFindingCode[];
  /** Thread where such a case is explained. */
  readonly source?: string;
}

/** `0-7, 9, 12-15`. */
export function rankRanges(ranks: Iterable<number>): string {
  const sorted = [...new Set(ranks)].sort((a, b) => a - b);
  const ranges: [number, number][] = [];
  for (const rank of sorted) {
    const last = ranges.at(-1);
    if (last !== undefined && rank === last[1] + 1) last[1] = rank;
    else ranges.push([rank, rank]);
  }
  const shown = ranges
    .slice(0, 12)
    .map(([from, to]) => (from === to ? String(from) : `${from}-${to}`))
    .join(', ');
  return ranges.length > 12 ? `${shown}, …` : shown;
}

/** `rank 3`, `ranks 0-7, 9`. */
export function namedRanks(ranks: Iterable<number>): string {
  const list = [...new Set(ranks)];
  return `${list.length === 1 ? 'rank' : 'ranks'} ${rankRanges(list)}`;
}
