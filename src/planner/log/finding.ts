import type { Place } from './line.js';

/** Stable names of what is found in logs. */
export type LogFindingCode =
  // the log itself
  | 'log-cut' // lines, or its end, are missing
  | 'log-too-large' // more than is kept
  | 'rank-not-logged' // init finished, but some ranks have no lines here
  // what NCCL or the program says
  | 'nccl-error' // a warning that ends a communicator
  | 'nccl-warning'
  | 'result-wrong' // nccl-tests counted wrong elements
  // init
  | 'init-unfinished'
  | 'version-mixed'
  | 'environment-differs'
  // channels
  | 'ring-contradiction' // two ranks tell different things about one ring
  | 'ring-open'
  | 'tree-contradiction'
  | 'channels-differ'
  // transports
  | 'shm-despite-nvlink'
  | 'network-inside-host'
  | 'socket-despite-ib'
  | 'no-rdma' // hosts with NVLink talk over sockets
  | 'network-mixed'
  | 'gdr-off'
  | 'gdr-mixed'
  | 'nvls-mixed'
  | 'nic-uneven'
  | 'nic-unused'
  | 'p2p-refused'
  // speed
  | 'bandwidth-low'
  // against a plan
  | 'plan-differs';

/** `error`: it fails, hangs, gives wrong results or loses most of the bandwidth; `warning`: some of it; `info`: good to know. */
export type LogSeverity = 'error' | 'warning' | 'info';

/** Something that is wrong, or good to know, in a log: what, where, why and what to do. */
export interface LogFinding {
  readonly code: LogFindingCode;
  readonly severity: LogSeverity;
  /** Id of the communicator that it is about, where it is about one. */
  readonly communicator?: string;
  /** Ranks that it is about, ascending. */
  readonly ranks?: readonly number[];
  /** What is wrong, with numbers. */
  readonly problem: string;
  /** Why, as far as the log shows, or what usually is the reason. */
  readonly cause: string;
  readonly remedy: string;
  /** Some of the lines that show it, the first one first. */
  readonly places: readonly Place[];
}

const severities: readonly LogSeverity[] = ['error', 'warning', 'info'];

/** The worst first; among equals in the order given. */
export function sortFindings(findings: readonly LogFinding[]): LogFinding[] {
  return [...findings].sort((a, b) => severities.indexOf(a.severity) - severities.indexOf(b.severity));
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
  const shown = ranges.slice(0, 12).map(([from, to]) => (from === to ? String(from) : `${from}-${to}`)).join(', ');
  return ranges.length > 12 ? `${shown}, …` : shown;
}

/** `rank 3`, `ranks 0-7, 9`. */
export function namedRanks(ranks: Iterable<number>): string {
  const list = [...new Set(ranks)];
  return `${list.length === 1 ? 'rank' : 'ranks'} ${rankRanges(list)}`;
}
