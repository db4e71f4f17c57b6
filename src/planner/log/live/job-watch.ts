import { counted } from '../../../counted.js';
import { checkRas, type LateRanks, lateRanks } from '../checks/ras.js';
import { type LogFinding, namedRanks } from '../checks/finding.js';
import { formatBytes, formatTime } from '../../plan/overview/format.js';
import type { FinishedCalls, Unfinished } from './finished.js';
import type { RasCommunicator, RasProcess, RasReport } from '../../readers/ras.js';

/** A report of RAS, and when it was asked for. */
export interface WatchSample {
  readonly report: RasReport;
  /** Milliseconds of a clock that does not jump. */
  readonly atMs: number;
  /** Operations that have finished, where NCCL Inspector writes them. */
  readonly finished?: FinishedCalls;
  /** Time that an operation of so many ranks should take, microseconds; undefined where it is not known. */
  readonly expected?: ((operation: string, bytes: number, nRanks: number) => number | undefined) | undefined;
}

/**
 * State of a job by two or more reports. `unknown`: too few reports, or none with numbers. `suspect`: nothing has moved, or ranks
 * of a communicator have stayed behind, for less than the limit. `stuck`: nothing has moved for longer. `dead`: a process is
 * dead, or reports an error.
 */
export type JobState = 'unknown' | 'healthy' | 'suspect' | 'stuck' | 'dead';

/** A rank that has not launched what others of its communicator wait for. */
export interface LateRank {
  readonly communicator: string;
  readonly rank: number;
  readonly host: string | undefined;
  readonly pid: number | undefined;
  readonly gpu: number | undefined;
  readonly operation: string;
  /** Operations that it has launched. */
  readonly launched: number;
  /** Operations by which others are ahead. */
  readonly behind: number;
}

/** A rank and its process; no rank where the report leaves it open. */
export interface PlacedRank {
  readonly rank: number | undefined;
  readonly process: RasProcess;
}

/** A communicator as the last report shows it. */
export interface WatchedCommunicator {
  readonly name: string;
  readonly size: number | undefined;
  /** Least and most operations of all kinds that a rank has launched; undefined where the report has no numbers. */
  readonly launched: { readonly least: number; readonly most: number } | undefined;
  /** Milliseconds for which its numbers have stood still. */
  readonly stillMs: number;
  readonly isUneven: boolean;
}

export interface JobStatus {
  readonly state: JobState;
  /** Milliseconds for which the job has been in this state. */
  readonly stateMs: number;
  /** Milliseconds for which no communicator has launched anything. */
  readonly stillMs: number;
  /** NCCL's version, where the reports have it. */
  readonly version: string | undefined;
  readonly ranks: number | undefined;
  readonly communicators: readonly WatchedCommunicator[];
  readonly late: readonly LateRank[];
  /** Processes that may show the cause: of late ranks, of ranks with an unfinished operation, or of one where all stand still. */
  readonly look: readonly PlacedRank[];
  /** Hosts of all processes that the report names. */
  readonly hosts: readonly string[];
  /** One sentence about the numbers. */
  readonly why: string;
  /** A command that would decide or mend it; undefined for a healthy job. */
  readonly advice: string | undefined;
  /** Evidence, as in `tccl diagnose`. */
  readonly findings: readonly LogFinding[];
}

interface Seen {
  readonly text: string;
  readonly movedMs: number;
}

const MOST_LATE = 64;

/** Follows one job over its reports. */
export class JobWatch {
  readonly #stuckMs: number;
  /** By communicator: its numbers, and when they changed last. */
  #seen = new Map<string, Seen>();
  #previous: WatchSample | undefined;
  #state: JobState = 'unknown';
  #stateSinceMs = 0;

  /** @param stuckMs milliseconds without a launch after which a job is stuck */
  constructor(stuckMs: number) {
    this.#stuckMs = stuckMs;
  }

  /** True if a report is about this job: it shares a communicator. */
  has({ communicators }: RasReport): boolean {
    return communicators.some(({ id }) => this.#seen.has(id));
  }

  add(sample: WatchSample): JobStatus {
    const { report, atMs, finished } = sample;
    const before = this.#seen;
    this.#seen = new Map(
      report.communicators.map((communicator) => {
        const text = `${numbersOf(communicator)} ${finished?.numbersOf(communicator) ?? ''}`;
        const old = before.get(communicator.id);
        return [communicator.id, { text, movedMs: old?.text === text ? old.movedMs : atMs }];
      }),
    );
    const judged = this.#judge(sample, before);
    if (judged.state !== this.#state || this.#previous === undefined) {
      this.#state = judged.state;
      this.#stateSinceMs = atMs;
    }
    const findings =
      judged.state === 'healthy' || judged.state === 'unknown'
        ? []
        : checkRas(this.#previous === undefined ? [report] : [this.#previous.report, report]);
    this.#previous = sample;
    return {
      ...judged,
      why: `${judged.why}${this.#expectation(sample, judged)}`,
      stateMs: atMs - this.#stateSinceMs,
      stillMs: this.#stillMs(atMs),
      version: report.version,
      ranks: report.communicators.reduce<number | undefined>(
        (most, { size }) => Math.max(most ?? 0, size ?? 0) || undefined,
        undefined,
      ),
      communicators: report.communicators.map((communicator) => this.#watched(communicator, atMs)),
      look: lookAt(sample, judged),
      hosts: [...new Set(report.communicators.flatMap(({ processes }) => [...processes.values()].map(({ host }) => host)))],
      findings,
    };
  }

  /** Expected time of the operation that ranks wait in, and for how long they have: `; AllReduce of …: expected 0.3 ms, …`. */
  #expectation({ report, atMs, finished, expected }: WatchSample, { state, late }: Pick<JobStatus, 'state' | 'late'>): string {
    if (expected === undefined || (state !== 'suspect' && state !== 'stuck')) return '';
    const [first] = late;
    const unfinished = finished?.unfinished(report.communicators);
    const name = first?.communicator ?? (unfinished === 'all' ? undefined : unfinished?.communicator.name);
    const operation = first?.operation ?? (unfinished === 'all' ? undefined : unfinished?.operation);
    const communicator = report.communicators.find((each) => each.name === name);
    if (communicator?.size === undefined || operation === undefined) return '';
    const { bytes } = finished?.lastOf(communicator.name, operation) ?? {};
    const timeUs = bytes === undefined ? undefined : expected(operation, bytes, communicator.size);
    if (bytes === undefined || timeUs === undefined) return '';
    const forMs = atMs - (this.#seen.get(communicator.id)?.movedMs ?? atMs);
    return `; ${operation} of ${formatBytes(bytes)}, as the last one that finished: expected ${formatTime(timeUs)}, running for ${formatTime(1000 * forMs)}`;
  }

  #stillMs(atMs: number): number {
    return this.#seen.size === 0 ? 0 : atMs - Math.max(...[...this.#seen.values()].map(({ movedMs }) => movedMs));
  }

  #watched(communicator: RasCommunicator, atMs: number): WatchedCommunicator {
    const { name, size, id } = communicator;
    return {
      name,
      size,
      launched: launchedOf(communicator),
      stillMs: atMs - (this.#seen.get(id)?.movedMs ?? atMs),
      isUneven: isUneven(communicator),
    };
  }

  #judge(
    { report, atMs, finished }: WatchSample,
    before: ReadonlyMap<string, Seen>,
  ): Pick<JobStatus, 'state' | 'why' | 'advice' | 'late'> {
    const { communicators } = report;
    const broken = checkRas([report]).find(({ code }) => code === 'process-dead' || code === 'async-error') ?? deadRanks(report);
    if (broken !== undefined) return { state: 'dead', why: broken.problem, advice: broken.remedy, late: [] };
    const first = !communicators.some(({ id }) => before.has(id));
    if (first && this.#previous === undefined)
      return { state: 'unknown', why: 'the first report; the next one shows what moves', advice: undefined, late: [] };
    const uneven = communicators.filter((communicator) => isUneven(communicator) && this.#isStill(communicator, atMs));
    const late = uneven.flatMap(lateOf);
    const stillMs = this.#stillMs(atMs);
    if (!report.isComplete && communicators.length === 0) return textIsSilent(report);
    if (communicators.length === 0) return { state: 'unknown', why: 'the job has no communicator', advice: undefined, late: [] };
    if (stillMs === 0)
      return uneven.length === 0
        ? { state: 'healthy', why: 'its ranks launch and finish operations', advice: undefined, late: [] }
        : { state: 'suspect', ...behind(late, uneven, 'other communicators move') };
    const state = stillMs >= this.#stuckMs ? 'stuck' : 'suspect';
    if (uneven.length > 0) return { state, ...behind(late, uneven, undefined) };
    const unfinished = finished?.unfinished(communicators);
    if (unfinished === 'all') return { state: 'suspect', ...inTheProgram(communicators), late: [] };
    return { state, ...(unfinished === undefined ? standing(communicators) : unended(unfinished)), late: [] };
  }

  #isStill({ id }: RasCommunicator, atMs: number): boolean {
    return (this.#seen.get(id)?.movedMs ?? atMs) < atMs;
  }
}

function lookAt({ report, finished }: WatchSample, { state, late }: Pick<JobStatus, 'state' | 'late'>): PlacedRank[] {
  const { communicators, dead } = report;
  if (state === 'healthy' || state === 'unknown') return [];
  if (state === 'dead') return dead.slice(0, MOST_LATE);
  const placed = (communicator: RasCommunicator | undefined, rank: number): PlacedRank[] => {
    const process = communicator?.processes.get(rank);
    return process === undefined ? [] : [{ rank, process }];
  };
  if (late.length > 0) {
    const all = late.flatMap(({ communicator, rank }) =>
      placed(
        communicators.find(({ name }) => name === communicator),
        rank,
      ),
    );
    return all.filter(
      ({ process }, i) => all.findIndex((each) => each.process.pid === process.pid && each.process.host === process.host) === i,
    );
  }
  const unfinished = finished?.unfinished(communicators);
  if (unfinished !== undefined && unfinished !== 'all' && unfinished.done.length > 0)
    return unfinished.waiting.slice(0, MOST_LATE).flatMap((rank) => placed(unfinished.communicator, rank));
  const [largest] = [...communicators].sort((a, b) => (b.size ?? 0) - (a.size ?? 0));
  const [rank = 0] = largest?.processes.keys() ?? [];
  return placed(largest, rank);
}

/** Text of all numbers and states of a communicator: it changes where anything moves. */
function numbersOf({ counts, statuses, missing }: RasCommunicator): string {
  return JSON.stringify([[...counts], statuses, missing]);
}

function isUneven({ counts, statuses, missing }: RasCommunicator): boolean {
  return [...counts.values()].some(({ length }) => length > 1) || statuses.length > 1 || missing.length > 0;
}

/** Launched operations of all kinds, by rank where the ranks are listed. */
function launchedOf({ counts }: RasCommunicator): { least: number; most: number } | undefined {
  if (counts.size === 0) return undefined;
  const bounds = [...counts.values()].map((groups) => groups.map(({ value }) => value));
  const sum = (of: (...values: number[]) => number) => bounds.reduce((total, values) => total + of(...values), 0);
  const byRank = new Map<number, number>();
  for (const groups of counts.values())
    for (const { value, ranks } of groups) for (const rank of ranks) byRank.set(rank, (byRank.get(rank) ?? 0) + value);
  const sums = [...byRank.values()];
  if (sums.length === 0) return { least: sum(Math.min), most: sum(Math.max) };
  let [least, most] = [Infinity, 0];
  for (const each of sums) [least, most] = [Math.min(least, each), Math.max(most, each)];
  return { least, most };
}

function deadRanks(report: RasReport): LogFinding | undefined {
  if (!report.communicators.some(({ missing }) => missing.some(({ isDead }) => isDead))) return undefined;
  return checkRas([report]).find(({ code }) => code === 'rank-missing');
}

function lateOf(communicator: RasCommunicator): LateRank[] {
  const { name, counts, processes } = communicator;
  const worst = [...counts.keys()]
    .map((operation) => lateRanks(communicator, operation))
    .reduce<LateRanks | undefined>(
      (most, each) =>
        each !== undefined && (most === undefined || each.most - each.least > most.most - most.least) ? each : most,
      undefined,
    );
  if (worst === undefined) return [];
  const { operation, least, most, ranks } = worst;
  return ranks.slice(0, MOST_LATE).map((rank) => {
    const { host, pid, gpu } = processes.get(rank) ?? {};
    return { communicator: name, rank, host, pid, gpu, operation, launched: least, behind: most - least };
  });
}

/** `rank 5 (node3, pid 812, GPU 1)`. */
export function lateRankName({ rank, host, pid, gpu }: LateRank): string {
  const where = [host, pid === undefined ? undefined : `pid ${pid}`, gpu === undefined ? undefined : `GPU ${gpu}`].filter(
    (each) => each !== undefined,
  );
  return `rank ${rank}${where.length === 0 ? '' : ` (${where.join(', ')})`}`;
}

function behind(
  late: readonly LateRank[],
  uneven: readonly RasCommunicator[],
  meanwhile: string | undefined,
): Pick<JobStatus, 'why' | 'advice' | 'late'> {
  const [first] = late;
  const [communicator] = uneven;
  const also = meanwhile === undefined ? '' : `; ${meanwhile}`;
  if (first === undefined)
    return {
      why: `ranks of communicator ${communicator?.name ?? ''} differ (state, or no answer from some)${also}`,
      advice: 'look at the logs of these ranks',
      late,
    };
  // The same ranks may lag in several communicators.
  const here = late.filter((each) => each.communicator === first.communicator);
  const named = here.length <= 3 ? here.map(lateRankName).join(', ') : namedRanks(here.map(({ rank }) => rank));
  const plural = here.length === 1 ? 'has' : 'have';
  const more = new Set(late.map((each) => each.communicator)).size - 1;
  const elsewhere = more === 0 ? '' : `; ranks of ${counted(more, 'other communicator')} differ, too`;
  return {
    why: `${named} ${plural} launched ${counted(first.launched, first.operation)} of communicator ${first.communicator}, others ${first.launched + first.behind}${elsewhere}${also}`,
    advice:
      first.host === undefined
        ? `\`py-spy dump\` of ${namedRanks(here.map(({ rank }) => rank))} shows where ${here.length === 1 ? 'it is' : 'they are'}`
        : `on ${first.host}: \`py-spy dump --pid ${first.pid ?? ''}\` shows where rank ${first.rank} is`,
    late,
  };
}

/** All ranks have launched the same, and nothing new. */
function standing(communicators: readonly RasCommunicator[]): Pick<JobStatus, 'why' | 'advice'> {
  const [largest] = [...communicators].sort((a, b) => (b.size ?? 0) - (a.size ?? 0));
  const [rank, process] = [...(largest?.processes ?? [])][0] ?? [];
  const inInit = communicators.every(({ statuses }) => statuses.every(({ value }) => value === 'INIT'));
  if (inInit)
    return {
      why: 'all ranks still make their communicator',
      advice: 'look at the log of rank 0, and whether all hosts reach each other',
    };
  return {
    why: 'all ranks have launched the same operations, and none launches another: the last one does not complete (a GPU, NVLink or the network), or the program does something else for long (data, checkpoint)',
    advice: `${process === undefined ? '`py-spy dump` of a rank' : `on ${process.host}: \`py-spy dump --pid ${process.pid}\` (rank ${rank ?? 0})`} tells these apart: in a wait for the GPU it is the former; then \`nvidia-smi\`, \`dmesg -T\` (Xid) and NIC counters of all hosts`,
  };
}

/** All that was launched has finished: NCCL waits for the program. */
function inTheProgram(communicators: readonly RasCommunicator[]): Pick<JobStatus, 'why' | 'advice'> {
  const [first] = communicators.flatMap(({ processes }) => [...processes.values()]);
  return {
    why: 'all launched operations have finished (NCCL Inspector), so the ranks are in the program, not in NCCL: data, checkpoint, or a wait for something else',
    advice: `${first === undefined ? '`py-spy dump` of the ranks' : `on ${first.host}: \`py-spy dump --pid ${first.pid}\``} shows where`,
  };
}

/** The last operation was launched by all, and some have not finished it. */
function unended({ communicator, operation, number, done, waiting, last }: Unfinished): Pick<JobStatus, 'why' | 'advice'> {
  const { name, processes } = communicator;
  const what = `${operation} ${number} of communicator ${name}`;
  const before = `the last one of its kind that was finished${last.bytes === undefined ? '' : ` (${last.bytes} bytes)`} took ${Math.round(last.durationUs)} µs`;
  const [rank = 0] = waiting;
  const process = processes.get(rank);
  const where = process === undefined ? `rank ${rank}` : `${process.host} (rank ${rank}, GPU ${process.gpu ?? '?'})`;
  return done.length === 0
    ? {
        why: `all ranks have launched ${what}, and none has finished it (NCCL Inspector); ${before}`,
        advice:
          'the network, an NVLink or a GPU stands still, unless the operation is smaller than Inspector records (8 KiB): `nvidia-smi`, `dmesg -T` (Xid) and NIC counters of all hosts',
      }
    : {
        why: `${namedRanks(waiting)} ${waiting.length === 1 ? 'has' : 'have'} not finished ${what}, which ${namedRanks(done)} ${done.length === 1 ? 'has' : 'have'} (NCCL Inspector); ${before}`,
        advice: `look at ${where} first: \`nvidia-smi\`, \`dmesg -T\` (Xid), NIC counters`,
      };
}

/** Text names only communicators in trouble. */
function textIsSilent({ version }: RasReport): Pick<JobStatus, 'state' | 'why' | 'advice' | 'late'> {
  return {
    state: 'unknown',
    why: `all ranks have launched the same; NCCL ${version ?? 'before 2.28.7'} gives no numbers then, so the report does not show whether they grow`,
    advice: '`py-spy dump` of one rank, twice: the same place in a wait is a hang. NCCL 2.28.7 and newer give numbers (JSON)',
    late: [],
  };
}
