import type { HostReport, InspectedRank } from './host-report.js';
import type { ShownCommunicator, ShownWait } from '../../runtime/observe/read-boards.js';

/** A rank with the host that shows it, and what changed since the sample before. */
export interface JobRank extends InspectedRank {
  readonly host: string;
  /** Share of a core that its process used between the samples; undefined with a single one. */
  readonly cpu: number | undefined;
  /** Collectives a second between the samples. */
  readonly rate: number | undefined;
  /** True if it began or ended a call, or a wait progressed. */
  readonly hasMoved: boolean;
}

/** The ranks of one job, of all hosts that answered. */
export interface Job {
  readonly id: string;
  readonly nRanks: number;
  readonly version: string;
  readonly shared: boolean;
  readonly hosts: readonly string[];
  /** Hosts of the job that did not answer. */
  readonly silentHosts: readonly string[];
  readonly ranks: readonly JobRank[];
  /** Name of the host of a rank, if the job shows it. */
  readonly hostOf: (rank: number) => string | undefined;
  readonly atMs: number;
}

/** Joins reports of hosts to jobs, and compares them with earlier ones. */
export function jobsOf(reports: readonly HostReport[], before: readonly HostReport[] = []): Job[] {
  const byJob = new Map<string, JobRank[]>();
  for (const report of reports) {
    const earlier = before.find(({ host }) => host === report.host);
    for (const rank of report.ranks) {
      const { job } = rank.facts;
      byJob.set(job, [...(byJob.get(job) ?? []), compared(rank, report, earlier)]);
    }
  }
  return [...byJob].flatMap(([id, all]) => {
    const ranks = all.sort((a, b) => a.rank - b.rank);
    const [first] = ranks;
    if (first === undefined || ranks.every((rank) => rank.process === undefined)) return [];
    const ranges = ranks.flatMap(({ facts }) => facts.hosts);
    const hosts = [...new Set(ranges.map(({ host }) => host))];
    return [
      {
        id,
        nRanks: Math.max(...ranks.map(({ nRanks }) => nRanks)),
        version: first.facts.version,
        shared: first.facts.shared,
        hosts,
        silentHosts: hosts.filter((host) => !ranges.every((range) => range.host !== host || has(ranks, range.from))),
        ranks,
        hostOf: (rank) => ranges.find(({ from, to }) => from <= rank && rank <= to)?.host,
        atMs: Math.max(...reports.map(({ atMs }) => atMs)),
      },
    ];
  });
}

function has(ranks: readonly JobRank[], rank: number): boolean {
  return ranks.some((one) => one.rank === rank);
}

function compared(rank: InspectedRank, report: HostReport, before: HostReport | undefined): JobRank {
  const earlier = before?.ranks.find((one) => one.pid === rank.pid && one.facts.job === rank.facts.job && one.rank === rank.rank);
  const seconds = before === undefined ? 0 : (report.atMs - before.atMs) / 1000;
  const hasBoth = earlier !== undefined && seconds > 0;
  return {
    ...rank,
    host: report.host,
    cpu:
      hasBoth && rank.process !== undefined && earlier.process !== undefined
        ? (rank.process.cpuMs - earlier.process.cpuMs) / 1000 / seconds
        : undefined,
    rate: hasBoth ? (rank.nCalls - earlier.nCalls) / seconds : undefined,
    hasMoved: hasBoth && stateOf(rank) !== stateOf(earlier),
  };
}

/** Changes when a rank begins or ends a call, or another wait begins. */
function stateOf({ nCalls, communicators }: InspectedRank): string {
  return JSON.stringify([nCalls, communicators.map(({ id, ended, waits }) => [id, ended, waits.map(({ sinceMs }) => sinceMs)])]);
}

/** A wait with its rank and communicator. */
export interface PlacedWait extends ShownWait {
  readonly communicator: ShownCommunicator;
}

/** The waits of a rank, the longest first. */
export function waitsOf({ communicators }: InspectedRank): PlacedWait[] {
  return communicators
    .flatMap((communicator) => (communicator.hasFailed ? [] : communicator.waits.map((wait) => ({ ...wait, communicator }))))
    .sort((a, b) => a.sinceMs - b.sinceMs);
}
