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

/** The last line of `tccl inspect --json`; undefined for another text. */
export function inspectionIn(text: string): Inspection | undefined {
  if (!/^\s*\{"jobs":\[/.test(text)) return undefined;
  try {
    return JSON.parse(text.trimEnd().split('\n').at(-1) ?? '') as Inspection;
  } catch {
    return undefined; // another program's, or cut
  }
}

/** Jobs of tccl's own ranks as an incident: the ranks that hold them up first, then each rank's position. */
export function shownInspection({ jobs, problems }: Inspection, width: number | undefined): ShownLog {
  const held = jobs.filter(({ state }) => state === 'stuck' || state === 'failed');
  const waits = jobs.some(({ state }) => state === 'waiting');
  const [first] = [...held, ...jobs];
  return {
    outcome: held.length > 0 ? 'fault' : waits || jobs.length === 0 ? 'undecided' : 'healthy',
    byFile: [],
    verdict: first === undefined ? 'no job runs' : (first.causes[0]?.text ?? jobText(first)),
    open: first?.causes[0] === undefined ? [] : [first.causes[0].advice],
    facts: [...jobs.map(jobText), ...problems],
    ranks: jobs.flatMap((job) => picturesOf(job, width)),
    pairs: [],
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
    ...(waits.length === 0 ? [] : [lanesPicture(standingsOfCalls(`Calls of the ranks of job ${job}`, positions, roles))]),
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
