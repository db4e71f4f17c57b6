import { seconds } from '../times.js';
import { nameRanks } from '../../runtime/bootstrap/rank-list.js';
import { describeActivity } from '../../runtime/algorithms/activity.js';
import { waitsOf, type Job, type JobRank, type PlacedWait } from './job.js';

export type JobState = 'moving' | 'idle' | 'waiting' | 'stuck' | 'failed';

/** A rank, or a circle of ranks, that others wait for. */
export interface Cause {
  readonly ranks: readonly number[];
  /** Ranks that wait for it. */
  readonly waiting: readonly number[];
  readonly text: string;
  readonly advice: string;
}

export interface Verdict {
  readonly state: JobState;
  /** Longest wait without progress. */
  readonly stillMs: number;
  readonly causes: readonly Cause[];
}

/** A wait, with the ranks of the job that it is for. */
interface Edge {
  readonly wait: PlacedWait;
  readonly awaited: readonly number[];
}

/** Processor time of a rank that computes, as a share of a core. */
const BUSY = 0.5;

/** Finds the ranks that hold up a job: those at the ends of the wait chains, and circles. */
export function verdictOn(job: Job, stuckAfterMs: number): Verdict {
  const edges = new Map(job.ranks.map((rank) => [rank.rank, waitsOf(rank).map((wait) => edgeOf(job, rank, wait))]));
  const stillMs = Math.max(0, ...job.ranks.map((rank) => stillOf(job, rank)));
  const hasFailed = job.ranks.some(({ communicators }) => communicators.some((communicator) => communicator.hasFailed));
  const waits = [...edges.values()].some((list) => list.length > 0);
  const hasMoved = job.ranks.some((rank) => rank.hasMoved || waitsOf(rank).some((wait) => hasProgressed(job, wait)));
  const state: JobState =
    stillMs >= stuckAfterMs ? 'stuck' : hasMoved ? 'moving' : waits ? 'waiting' : hasFailed ? 'failed' : 'idle';
  return {
    state,
    stillMs,
    causes: state === 'moving' ? slowCalls(job, edges) : [...endsOf(job, edges), ...circlesOf(job, edges)],
  };
}

/** Time for which a rank has waited without progress. */
function stillOf(job: Job, rank: JobRank): number {
  return Math.max(
    0,
    ...waitsOf(rank).map(({ sinceMs, stillMs }) => {
      const ageMs = job.atMs - sinceMs;
      // A stopped rank does not renew what it shows.
      return isStopped(rank) ? ageMs : Math.min(ageMs, stillMs);
    }),
  );
}

/** True for a wait in which data have arrived long after its beginning. */
function hasProgressed({ atMs }: Job, { sinceMs, stillMs }: PlacedWait): boolean {
  return atMs - sinceMs - stillMs > PROGRESS_MS;
}

/** A call that ends up waiting for a rank may move some data at its beginning. */
const PROGRESS_MS = 1500;

function isStopped({ process }: JobRank): boolean {
  return process === undefined || /^[TtZX]/.test(process.state);
}

// ── waits ───────────────────────────────────────────────────────────────────────────────────────────────────────────────

/** The member of a communicator with this rank there. */
function memberOf(job: Job, id: string, rank: number): JobRank | undefined {
  return job.ranks.find(({ communicators }) => communicators.some((each) => each.id === id && each.rank === rank));
}

/** The job's rank of a member of a communicator; undefined for one of a host that did not answer, if the numbers differ. */
function rankIn(job: Job, { communicator }: PlacedWait, rank: number): number | undefined {
  const member = memberOf(job, communicator.id, rank);
  return member?.rank ?? (communicator.nRanks === job.nRanks ? rank : undefined);
}

function edgeOf(job: Job, rank: JobRank, wait: PlacedWait): Edge {
  const { activity, communicator, late } = wait;
  const named = (activity.kind === 'send' || activity.kind === 'recv' || activity.kind === 'window') && late.length === 0;
  const told = (named ? [activity.peer] : late).flatMap((each) => rankIn(job, wait, each) ?? []);
  if (activity.kind !== 'collective' && activity.kind !== 'outOfBand') return { wait, awaited: told };
  const members = Array.from({ length: communicator.nRanks }, (_, each) => memberOf(job, communicator.id, each));
  const missing = members.flatMap((member, each) => {
    if (member === undefined) return absent(job, wait, each);
    if (member.rank === rank.rank) return [];
    const theirs = member.communicators.find(({ id }) => id === communicator.id);
    if (theirs === undefined) return [];
    const isIn =
      activity.kind === 'collective'
        ? theirs.begun > activity.number
        : theirs.waits.some((other) => other.activity.kind === 'outOfBand' && other.activity.call === activity.call);
    return isIn ? [] : [member.rank];
  });
  const stopped = members.flatMap((member) => (member !== undefined && isStopped(member) ? [member.rank] : []));
  if (missing.length > 0) return { wait, awaited: missing };
  if (stopped.length > 0) return { wait, awaited: stopped.filter((each) => each !== rank.rank) };
  // All are in the call: those that show no wait hold it up.
  const inside = members.flatMap((member) => (member !== undefined && waitsOf(member).length === 0 ? [member.rank] : []));
  const awaited = inside.length > 0 && activity.kind === 'collective' ? [] : told.filter((each) => each !== rank.rank);
  return { wait, awaited: awaited.length > 0 ? awaited : unseen(job, wait) };
}

/** Members on hosts that did not answer. */
function unseen(job: Job, { communicator: { nRanks } }: PlacedWait): number[] {
  if (nRanks !== job.nRanks || job.ranks.length === nRanks) return [];
  return Array.from({ length: nRanks }, (_, rank) => rank).filter((rank) => job.ranks.every((one) => one.rank !== rank));
}

/** A member that shows this communicator no longer: it has closed it, or its host did not answer and the rank is waited for. */
function absent(job: Job, wait: PlacedWait, member: number): number[] {
  const { communicator, late } = wait;
  const rank = communicator.nRanks === job.nRanks ? member : undefined;
  if (rank === undefined) return [];
  if (job.ranks.some((one) => one.rank === rank)) return [rank];
  return late.includes(member) ? [rank] : [];
}

// ── causes ──────────────────────────────────────────────────────────────────────────────────────────────────────────────

type Edges = ReadonlyMap<number, readonly Edge[]>;

const awaitedBy = (edges: Edges, rank: number): number[] => (edges.get(rank) ?? []).flatMap(({ awaited }) => awaited);

/** Ranks that a rank waits for, also indirectly. */
function reachable(edges: Edges, from: number): Set<number> {
  const found = new Set<number>();
  const next = awaitedBy(edges, from);
  for (let rank = next.pop(); rank !== undefined; rank = next.pop()) {
    if (found.has(rank)) continue;
    found.add(rank);
    next.push(...awaitedBy(edges, rank));
  }
  return found;
}

/** Ranks that are awaited and do not wait themselves, or cannot go on. */
function endsOf(job: Job, edges: Edges): Cause[] {
  const ends = new Map<number, number[]>();
  const inside: PlacedWait[] = [];
  for (const { rank } of job.ranks) {
    const own = edges.get(rank) ?? [];
    for (const found of reachable(edges, rank)) {
      const shown = job.ranks.find((one) => one.rank === found);
      const isEnd = shown === undefined || isStopped(shown) || (edges.get(found) ?? []).length === 0;
      if (isEnd && found !== rank) ends.set(found, [...(ends.get(found) ?? []), rank]);
    }
    for (const { wait, awaited } of own) if (awaited.length === 0) inside.push(wait);
  }
  const causes = [...ends].sort(([a], [b]) => a - b).map(([rank, waiting]) => causeOf(job, edges, rank, waiting));
  const [first] = inside;
  if (causes.length > 0 || first === undefined) return causes;
  const ranks = job.ranks.flatMap((rank) => (waitsOf(rank).length > 0 ? [rank.rank] : []));
  return [noneComesOut(job, ranks, first)];
}

function noneComesOut(job: Job, ranks: readonly number[], wait: PlacedWait): Cause {
  return {
    ranks,
    waiting: ranks,
    text: `${nameRanks(ranks)}: all are in ${waitText(wait)}, and none comes out`,
    advice:
      job.hosts.length > 1 || !job.shared ? NETWORK_ADVICE : 'run it again with TCCL_DEBUG=INFO, and report it with that output',
  };
}

const NETWORK_ADVICE =
  "the program is not at fault: look at the network between the hosts (`ss -ti`, `ip -s link`, a firewall's log, packet loss)";

function causeOf(job: Job, edges: Edges, rank: number, waiting: readonly number[]): Cause {
  const shown = job.ranks.find((one) => one.rank === rank);
  const wait = waiting
    .flatMap((each) => edges.get(each) ?? [])
    .filter(({ awaited }) => awaited.includes(rank))
    .map((edge) => edge.wait)
    .sort((a, b) => a.sinceMs - b.sinceMs)[0];
  const { is, advice } = conditionOf(job, rank, shown);
  const theirs =
    wait === undefined ? '' : `; ${nameRanks(waiting)} ${waiting.length === 1 ? 'waits' : 'wait'} for it in ${waitText(wait)}`;
  return { ranks: [rank], waiting, text: `${titleOf(job, rank, shown)} ${is}${lastText(shown)}${theirs}`, advice };
}

/** `rank 2 (process 812 on host7)`. */
function titleOf(job: Job, rank: number, shown: JobRank | undefined): string {
  if (shown !== undefined) return `rank ${rank} (process ${shown.process?.pid ?? shown.pid} on ${shown.host})`;
  const host = job.hostOf(rank);
  return host === undefined ? `rank ${rank}` : `rank ${rank} (on ${host})`;
}

/** Condition of a rank that others wait for, and what to do. */
function conditionOf(job: Job, rank: number, shown: JobRank | undefined): { readonly is: string; readonly advice: string } {
  if (shown === undefined)
    return {
      is: 'is on a host that did not answer',
      advice: `look whether ${job.hostOf(rank) ?? 'its host'} lives and can be reached, or run tccl inspect there`,
    };
  const { process } = shown;
  const pid = process?.pid ?? shown.pid;
  if (process === undefined)
    return { is: 'is gone: its process has ended', advice: "look at the job's output and the kernel's log" };
  if (/^[Tt]/.test(process.state))
    return {
      is: 'is stopped by a signal (SIGSTOP, Ctrl-Z) or a debugger',
      advice: `kill -CONT ${pid} lets it go on; a debugger must be detached`,
    };
  if (/^[ZX]/.test(process.state)) return { is: 'has ended', advice: "look at the job's output" };
  if (shown.hasClosed || shown.communicators.length === 0)
    return { is: 'has closed its communicators', advice: 'the ranks make different numbers of calls: compare their loops' };
  if (shown.communicators.some(({ hasFailed }) => hasFailed))
    return { is: 'has a communicator that failed, and goes on elsewhere', advice: "look at its errors in the job's output" };
  if (process.state === 'D')
    return { is: 'waits in the kernel, for a disk or a network file system', advice: `cat /proc/${pid}/stack shows where` };
  if (process.state === 'R' || (shown.cpu ?? 0) >= BUSY)
    return {
      is: `computes outside tccl${shown.cpu === undefined ? '' : ` (${Math.round(shown.cpu * 100)} % of a core)`}`,
      advice: `node inspect -p ${pid} shows where; comm.poll() in a long computation lets calls go on`,
    };
  return {
    is: 'is elsewhere in its program and idle: it waits for something else than tccl, such as a timer, a file or another service',
    advice: `node inspect -p ${pid} shows where; compare its branches with those of the ranks that wait`,
  };
}

/** `, after allReduce of 4 float32 (sum), call 16`. */
function lastText(shown: JobRank | undefined): string {
  if (shown === undefined || shown.process === undefined) return '';
  if (shown.lastCall === undefined) return ', and has made no collective yet';
  const open = shown.communicators.some(({ begun, ended }) => ended < begun);
  return `, ${open ? 'in' : 'after'} ${shown.lastCall}`;
}

/** `recv of 4 int32 from rank 1 (communicator pipe), for 12 s`. */
export function waitText({ activity, communicator, sinceMs }: PlacedWait, nowMs = Date.now()): string {
  const of = communicator.name === undefined ? '' : ` of ${JSON.stringify(communicator.name)}`;
  return `${describeActivity(activity)}${of}, for ${waitTime(nowMs - sinceMs)}`;
}

/** `0.4 s`, `40 s`, `3 min 20 s`. */
export function waitTime(ms: number): string {
  return ms < 10_000 ? `${(Math.max(0, ms) / 1000).toFixed(1)} s` : seconds(ms);
}

/** Circles of ranks that wait for each other, from which no rank outside is reached. */
function circlesOf(job: Job, edges: Edges): Cause[] {
  const circles = new Map<string, number[]>();
  for (const { rank } of job.ranks) {
    const found = reachable(edges, rank);
    if (!found.has(rank)) continue;
    const circle = [...found].filter((other) => reachable(edges, other).has(rank)).sort((a, b) => a - b);
    const leaves = [...found].some((other) => (edges.get(other) ?? []).length === 0 || isStoppedRank(job, other));
    if (!leaves) circles.set(circle.join(), circle);
  }
  return [...circles.values()].map((ranks) => {
    const common = commonWait(ranks, edges);
    return common === undefined ? circleOf(job, edges, ranks) : noneComesOut(job, ranks, common);
  });
}

/** The wait of ranks that are all in the same collective: then each waits for data of another, and their order is right. */
function commonWait(ranks: readonly number[], edges: Edges): PlacedWait | undefined {
  const waits = ranks.flatMap((rank) => (edges.get(rank) ?? []).map(({ wait }) => wait));
  const calls = new Set(
    waits.map(({ activity, communicator }) =>
      activity.kind === 'collective' ? `${communicator.id} ${activity.number}` : activity.kind,
    ),
  );
  return calls.size === 1 && waits[0]?.activity.kind === 'collective' ? waits[0] : undefined;
}

function circleOf(job: Job, edges: Edges, ranks: readonly number[]): Cause {
  return {
    ranks,
    waiting: job.ranks.map(({ rank }) => rank).filter((rank) => ranks.some((each) => reachable(edges, rank).has(each))),
    text: `${nameRanks(ranks)} wait for each other in a circle: ${ranks
      .flatMap((rank) => (edges.get(rank) ?? []).slice(0, 1).map(({ wait }) => `rank ${rank} in ${waitText(wait, job.atMs)}`))
      .slice(0, MOST_IN_CIRCLE)
      .join('; ')}${oddText(job, ranks)}`,
    advice: 'these ranks make their calls in different orders: use one order on all ranks, a group, or promises',
  };
}

const MOST_IN_CIRCLE = 4;

/** Names the ranks of a circle that are in another call than most ranks of the job. */
function oddText(job: Job, circle: readonly number[]): string {
  const byCall = new Map<string, number[]>();
  for (const rank of job.ranks) {
    const [wait] = waitsOf(rank);
    if (wait === undefined) continue;
    const { activity, communicator } = wait;
    const call = activity.kind === 'collective' ? `${communicator.id} ${activity.number}` : `${rank.rank}`;
    byCall.set(call, [...(byCall.get(call) ?? []), rank.rank]);
  }
  const most = [...byCall.values()].find((ranks) => ranks.length > job.ranks.length / 2);
  const odd = most === undefined ? [] : circle.filter((rank) => !most.includes(rank));
  return odd.length === 0 ? '' : `; ${nameRanks(odd)} ${odd.length === 1 ? 'is' : 'are'} in another call than most`;
}

function isStoppedRank(job: Job, rank: number): boolean {
  const shown = job.ranks.find((one) => one.rank === rank);
  return shown === undefined || isStopped(shown);
}

/** A job that moves: calls that take long although data arrive. */
function slowCalls(job: Job, edges: Edges): Cause[] {
  const long = job.ranks.flatMap((rank) =>
    (edges.get(rank.rank) ?? []).filter(({ wait }) => job.atMs - wait.sinceMs > SLOW_MS).map(({ wait }) => ({ rank, wait })),
  );
  const [first] = long;
  if (first === undefined) return [];
  const ranks = long.map(({ rank }) => rank.rank);
  return [
    {
      ranks,
      waiting: ranks,
      text: `data move, but slowly: ${nameRanks(ranks)} ${ranks.length === 1 ? 'is' : 'are'} in ${waitText(first.wait, job.atMs)}`,
      advice: job.hosts.length > 1 || !job.shared ? NETWORK_ADVICE : 'compare with tccl perf on these hosts',
    },
  ];
}

/** A call of this age is worth a line. */
const SLOW_MS = 2000;
