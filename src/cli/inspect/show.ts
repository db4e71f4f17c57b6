import { setTimeout as sleep } from 'node:timers/promises';
import { counted } from '../../counted.js';
import { formatBytes } from '../../planner/plan/overview/format.js';
import { nameRanks } from '../../runtime/bootstrap/rank-list.js';
import { quoted } from '../shell-command.js';
import { colorsFor, complain, print, printJson, type Colors } from '../output.js';
import { folded, LiveBlock, screenWidth, tableLines } from '../screen.js';
import { readHost, type HostReport } from './host-report.js';
import { jobsOf, waitsOf, type Job, type JobRank } from './job.js';
import { JobMetrics } from './metrics.js';
import { askHosts, reportsIn } from './other-hosts.js';
import { writeRecordings } from './recordings.js';
import { verdictOn, waitTime, waitText, type JobState, type Verdict } from './verdict.js';

export interface InspectOptions {
  readonly here?: boolean;
  readonly command?: string;
  readonly watch?: boolean;
  readonly every: number;
  readonly stuckAfter: number;
  readonly prometheus?: string;
  readonly json?: boolean;
  /** Files with reports of other hosts. */
  readonly report?: readonly string[];
  /** Folder for the last calls of each rank. */
  readonly record?: string;
  /** True if a report of this host has them. */
  readonly calls?: boolean;
}

/** Time between the two samples of a single look. */
const APART_MS = 500;

/** Prints the jobs of this user, once or again and again. Returns the exit code: 1 for a job that is stuck, 2 for none. */
export async function inspectJobs(wanted: string | undefined, options: InspectOptions): Promise<number> {
  if (options.here === true) {
    printJson(readHost(options.calls));
    return 0;
  }
  if (options.record !== undefined) return record(options.record, wanted, options);
  const metrics = options.prometheus === undefined ? undefined : await JobMetrics.listen(options.prometheus);
  if (metrics !== undefined) print(`metrics at http://${metrics.address}/metrics`);
  try {
    const isRepeated = options.watch === true || metrics !== undefined;
    const block = isRepeated && process.stdout.isTTY && options.json !== true ? new LiveBlock() : undefined;
    let before = await sample(wanted, options);
    let shown = '';
    for (;;) {
      await sleep(isRepeated && shown !== '' ? options.every : APART_MS);
      const now = await sample(wanted, options);
      const jobs = selected(jobsOf(now.reports, before.reports), wanted);
      before = now;
      const judged = jobs.map((job) => ({ job, verdict: verdictOn(job, options.stuckAfter) }));
      metrics?.update(judged);
      if (jobs.length === 0) {
        block?.end();
        if (shown !== '') print('the job has ended');
        else complain('tccl inspect', noJob(wanted));
        return shown === '' ? 2 : 0;
      }
      const lines = (width: number | undefined) =>
        judged.flatMap(({ job, verdict }) => jobLines(job, verdict, now.problems, colorsFor(process.stdout), width));
      const summary = judged
        .map(({ job, verdict }) => `${job.id} ${verdict.state} ${verdict.causes.map(({ ranks }) => ranks.join()).join(' ')}`)
        .join();
      if (options.json === true) printJson({ jobs: judged.map(asJson), problems: now.problems });
      else if (block !== undefined) block.draw(lines);
      else if (summary !== shown) print(...lines(screenWidth()));
      shown = summary;
      if (!isRepeated) return judged.some(({ verdict }) => verdict.state === 'stuck') ? 1 : 0;
    }
  } finally {
    metrics?.close();
  }
}

interface Sample {
  readonly reports: readonly HostReport[];
  readonly problems: readonly string[];
}

/** The reports of this host, and of the other hosts of the jobs that are looked for. */
async function sample(wanted: string | undefined, { command, calls, report: files = [] }: InspectOptions): Promise<Sample> {
  const known = [readHost(calls), ...reportsIn(files)];
  const jobs = selected(jobsOf(known), wanted);
  const others = [...new Set(jobs.flatMap(({ hosts }) => hosts))].filter((host) => known.every((report) => report.host !== host));
  if (others.length === 0) return { reports: known, problems: [] };
  const { reports, problems } = await askHosts(others, { template: command, calls });
  return { reports: [...known, ...reports], problems };
}

/** Writes the last calls of all ranks of a job. Returns the exit code: 2 if there is no job, or more than one. */
async function record(folder: string, wanted: string | undefined, options: InspectOptions): Promise<number> {
  const { reports, problems } = await sample(wanted, { ...options, calls: true });
  const [job, ...more] = selected(jobsOf(reports), wanted);
  if (job === undefined || more.length > 0) {
    const ids = [job, ...more].flatMap((each) => each?.id ?? []).join(', ');
    complain(
      'tccl inspect',
      job === undefined ? noJob(wanted) : `${counted(more.length + 1, 'job')} run here: name one of ${ids}`,
    );
    return 2;
  }
  const written = writeRecordings(folder, job.ranks);
  if (options.json === true) printJson({ job: job.id, written, problems });
  else {
    print(
      `the last calls of ${counted(written.length, 'rank')} of ${job.nRanks} are in ${folder}; tccl diagnose ${quoted(folder)} compares them`,
    );
    print(...problems.map((problem) => `note: ${problem}`));
  }
  return 0;
}

/** The jobs that a word of the command line means: the start of an id, or the process of a rank or of its launcher. */
function selected(jobs: readonly Job[], wanted: string | undefined): Job[] {
  if (wanted === undefined) return [...jobs];
  return jobs.filter(
    ({ id, ranks }) =>
      id.startsWith(wanted) || ranks.some(({ pid, process }) => [pid, process?.pid, process?.parent].includes(Number(wanted))),
  );
}

function noJob(wanted: string | undefined): string {
  const which = wanted === undefined ? 'no job' : `no job ${wanted}`;
  return `${which} of this user runs on this host; jobs of others cannot be seen, nor ranks without koffi, or of another version of tccl`;
}

const stateColors: Readonly<Record<JobState, keyof Colors>> = {
  moving: 'green',
  idle: 'dim',
  waiting: 'yellow',
  stuck: 'red',
  failed: 'red',
};

function jobLines(
  job: Job,
  { state, stillMs, causes }: Verdict,
  problems: readonly string[],
  colors: Colors,
  width: number | undefined,
): string[] {
  const still = state === 'stuck' || state === 'waiting' ? ` for ${waitTime(stillMs)}` : '';
  const size = `${counted(job.nRanks, 'rank')} on ${job.hosts.length === 1 ? (job.hosts[0] ?? '') : counted(job.hosts.length, 'host')}`;
  const sentences = [
    `job ${job.id}: ${colors[stateColors[state]](state)}${still}; ${size}, ${networkText(job)}, tccl ${job.version}`,
    ...causes.flatMap(({ text, advice }) => [`  ${text}`, `  ${colors.dim('→')} ${advice}`]),
    ...problems.map((problem) => `  ${colors.yellow('note:')} ${problem}`),
  ].flatMap((line) => folded(line, width));
  return [...sentences, ...table(job, width)];
}

const MOST_ROWS = 32;
const heading = ['rank', 'process', 'state', 'calls', 'calls/s', 'memory', 'in'];

function table(job: Job, width: number | undefined): string[] {
  // Ranks that wait or cannot go on say more than others.
  const chosen = [...job.ranks].sort((a, b) => b.communicators.length - a.communicators.length || a.rank - b.rank);
  const rows = chosen.slice(0, MOST_ROWS).map((rank) => row(job, rank));
  const lines = tableLines({ heading, rows, texts: [0, 1, 2], spare: [5, 4, 3], enough: 40 }, width);
  const hidden = job.ranks.length - rows.length;
  const missing = job.nRanks - job.ranks.length;
  if (hidden > 0) lines.push(`  … and ${counted(hidden, 'rank')} more (--json has all)`);
  if (missing > 0) lines.push(`  ${counted(missing, 'rank')} on hosts that did not answer`);
  return lines;
}

function row(job: Job, rank: JobRank): string[] {
  const waits = waitsOf(rank);
  const last = rank.lastCall === undefined ? 'no call yet' : `after ${rank.lastCall}`;
  const doing = waits.length === 0 ? last : waits.map((wait) => `${waitText(wait, job.atMs)}${forText(wait.late)}`).join('; ');
  return [
    `${rank.rank}`,
    `${rank.process?.pid ?? rank.pid}${job.hosts.length > 1 ? ` on ${rank.host}` : ''}`,
    processState(rank),
    `${rank.nCalls}`,
    rank.rate === undefined ? '' : rank.rate.toFixed(rank.rate < 10 ? 1 : 0),
    formatBytes(rank.usedBytes),
    doing,
  ];
}

function forText(late: readonly number[]): string {
  return late.length === 0 ? '' : `, for ${nameRanks(late)}`;
}

const stateNames: Readonly<Record<string, string>> = {
  R: 'runs',
  S: 'sleeps',
  D: 'in the kernel',
  T: 'stopped',
  t: 'debugged',
  Z: 'ended',
  X: 'ended',
};

function processState({ process, cpu }: JobRank): string {
  if (process === undefined) return 'gone';
  const name = stateNames[process.state] ?? process.state;
  return cpu === undefined ? name : `${name} ${Math.round(cpu * 100)} %`;
}

/** The way between the ranks of a job. */
function networkText({ shared, hosts, nRanks }: Job): string {
  if (nRanks === 1) return 'one rank';
  if (hosts.length === 1) return shared ? 'shared memory' : 'no shared memory';
  return shared ? 'shared memory within hosts, a network between them' : 'a network';
}

function asJson({ job, verdict }: { readonly job: Job; readonly verdict: Verdict }): object {
  const { id, nRanks, version, hosts, silentHosts, ranks } = job;
  return {
    job: id,
    state: verdict.state,
    stillMs: Math.round(verdict.stillMs),
    causes: verdict.causes,
    version,
    nRanks,
    hosts,
    silentHosts,
    transport: networkText(job),
    ranks: ranks.map((rank) => ({
      rank: rank.rank,
      host: rank.host,
      pid: rank.process?.pid ?? rank.pid,
      process: rank.process === undefined ? 'gone' : (stateNames[rank.process.state] ?? rank.process.state),
      cpu: rank.cpu,
      calls: rank.nCalls,
      callsPerSecond: rank.rate,
      memoryBytes: rank.usedBytes,
      lastCall: rank.lastCall,
      communicators: rank.communicators.map(({ waits, ...communicator }) => ({ ...communicator, nWaits: waits.length })),
      waits: waitsOf(rank).map((wait) => ({
        communicator: wait.communicator.id,
        text: waitText(wait, job.atMs),
        sinceMs: Math.round(job.atMs - wait.sinceMs),
        late: wait.late,
      })),
    })),
  };
}
