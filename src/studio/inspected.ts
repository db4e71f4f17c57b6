import { counted } from '../counted.js';
import { namedRanks } from '../planner/log/checks/finding.js';
import { hostsPicture } from '../view/incident/hosts.js';
import { lanesPicture } from '../view/incident/lanes.js';
import { Roles, standingsOfCalls } from '../view/incident/standing.js';
import type { ShownFinding, ShownLog } from './messages.js';

/** A line of `tccl inspect --json`, as far as it is shown. */
interface Inspection {
  readonly jobs: readonly InspectedJob[];
  readonly problems: readonly string[];
}

interface InspectedJob {
  readonly job: string;
  readonly state: 'moving' | 'idle' | 'waiting' | 'stuck' | 'failed';
  readonly stillMs: number;
  readonly causes: readonly {
    readonly ranks: readonly number[];
    readonly waiting: readonly number[];
    readonly text: string;
    readonly advice: string;
  }[];
  readonly version: string;
  readonly nRanks: number;
  readonly transport: string;
  readonly ranks: readonly InspectedRank[];
}

interface InspectedRank {
  readonly rank: number;
  readonly host: string;
  readonly pid: number;
  readonly process: string;
  readonly calls: number;
  readonly lastCall?: string;
  readonly waits: readonly { readonly text: string }[];
}

/** An output of `tccl inspect --json`: one value, or the last of its lines; undefined for another text. */
export function inspectionIn(text: string): Inspection | undefined {
  if (!/^\s*\{\s*"jobs"\s*:\s*\[/.test(text)) return undefined;
  const value = valueOf(text) ?? valueOf(text.trimEnd().split('\n').at(-1) ?? '');
  return isInspection(value) ? value : undefined;
}

function valueOf(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined; // several values, or cut
  }
}

/** True for all that is read here: another program can have jobs, too. */
function isInspection(value: unknown): value is Inspection {
  const { jobs, problems } = (value ?? {}) as { readonly jobs?: unknown; readonly problems?: unknown };
  return Array.isArray(problems) && Array.isArray(jobs) && jobs.every(isJob);
}

function isJob(value: unknown): boolean {
  const { job, causes, ranks } = (value ?? {}) as Readonly<Record<string, unknown>>;
  return (
    typeof job === 'string' &&
    hasLists(causes, 'ranks', 'waiting') &&
    hasLists(ranks, 'waits') &&
    ranks.every(({ rank, host }) => typeof rank === 'number' && typeof host === 'string')
  );
}

function hasLists(value: unknown, ...names: readonly string[]): value is readonly Readonly<Record<string, unknown>>[] {
  const isOne = (each: unknown) =>
    names.every((name) => Array.isArray((each as Readonly<Record<string, unknown>> | null)?.[name]));
  return Array.isArray(value) && value.every(isOne);
}

/** Jobs of tccl's own ranks as an incident: the ranks that hold them up first, then each rank's position. */
export function shownInspection({ jobs, problems }: Inspection, width: number | undefined): ShownLog {
  const held = jobs.filter(({ state }) => state === 'stuck' || state === 'failed');
  const waits = jobs.some(({ state }) => state === 'waiting');
  const named = held.length > 0 ? held : jobs.slice(0, 1);
  const [first, ...others] = named.flatMap((job) => {
    const texts = job.causes.length === 0 ? [jobText(job)] : job.causes.map(({ text }) => text);
    return texts.map((text) => [jobs.length > 1 && job.causes.length > 0 ? `job ${job.job}` : '', text] as const);
  });
  const advice = named[0]?.causes[0]?.advice;
  return {
    outcome: held.length > 0 ? 'fault' : waits || jobs.length === 0 ? 'undecided' : 'healthy',
    where: first?.[0] ?? '',
    verdict: first?.[1] ?? 'no job runs',
    also: others,
    open: advice === undefined ? [] : [advice],
    facts: [...jobs.map(jobText), ...problems],
    ranks: jobs.flatMap((job) => picturesOf(job, width)),
    pairs: [],
    replay: undefined,
    findings: jobs.flatMap(findingsOf),
  };
}

function jobText({ job, state, stillMs, nRanks, transport, version }: InspectedJob): string {
  const still = state === 'stuck' || state === 'waiting' ? ` for ${Math.round(stillMs / 1000)} s` : '';
  return `job ${job}: ${state}${still}, ${counted(nRanks, 'rank')}, ${transport}, tccl ${version}`;
}

function picturesOf({ job, causes, ranks }: InspectedJob, width: number | undefined): ShownLog['ranks'] {
  const gone = ranks.flatMap(({ rank, process }) => (process === 'gone' || process === 'ended' ? [rank] : []));
  const waits = causes.map(({ ranks: late, waiting, text }) => ({ late, waiting, why: text }));
  const roles = new Roles(waits, gone);
  const hosts = hostsPicture(
    ranks.map(({ rank, host }) => ({ rank, host, subject: `rank/${rank}` })),
    roles,
    width,
  );
  const positions = ranks.map(({ rank, calls, lastCall, waits: [wait] }) => ({
    ranks: [rank],
    last: wait === undefined ? calls : Math.max(0, calls - 1),
    isInside: wait !== undefined,
    text: wait === undefined ? (lastCall === undefined ? 'no call yet' : `after ${lastCall}`) : `in ${wait.text}`,
  }));
  return [
    ...(hosts === undefined ? [] : [hosts]),
    ...(waits.length === 0 ? [] : [lanesPicture(standingsOfCalls(`Calls of the ranks of job ${job}`, positions, roles), width)]),
  ];
}

function findingsOf({ job, state, causes, ranks }: InspectedJob): ShownFinding[] {
  return causes.map(({ ranks: late, waiting, text, advice }) => ({
    severity: state === 'stuck' || state === 'failed' ? 'error' : 'warning',
    problem: text,
    why: `${namedRanks(waiting)} of job ${job} ${waiting.length === 1 ? 'waits' : 'wait'} for ${namedRanks(late)}`,
    remedy: advice,
    lines: ranks
      .filter(({ rank }) => late.includes(rank))
      .map(
        ({ rank, host, pid, process, calls }) => `rank ${rank}: process ${pid} on ${host}, ${process}, ${counted(calls, 'call')}`,
      ),
  }));
}
