import { counted } from '../../counted.js';
import { InputError } from '../../errors.js';
import type { PredictedRow } from '../plan/prediction.js';
import { coveredVersions } from '../versions/version.js';
import { alignClocks, alignedTrace, onClock } from './align.js';
import { ClusterCosts, MOST_UNEVEN_RANKS, type ReplayCluster } from './costs.js';
import type { JobCall } from './job-call.js';
import { joinCalls, listed } from './join.js';
import { programOf, programOfOrder, type RankProgram, type TimedPart } from './program.js';
import { type ReplayedCall, runPrograms } from './run.js';
import { type Interval, NO_NAME, type RankTrace } from './trace.js';

/** A job as it was measured: its calls, and what each rank did between them. Times in µs from the first one on. */
export interface MeasuredJob {
  readonly nRanks: number;
  readonly traces: readonly RankTrace[];
  readonly calls: readonly MeasuredCall[];
  readonly programs: readonly RankProgram[];
  /** By rank, times in which it computed; none where its trace lacks them. */
  readonly compute: ReadonlyMap<number, readonly Interval[]>;
  /** Parts that were missing or did not fit, and what was done with the rest; one line each. */
  readonly notes: readonly string[];
}

/** A call as it was measured. */
export interface MeasuredCall {
  readonly call: JobCall;
  /** By rank, its kernel on the common clock. */
  readonly times: ReadonlyMap<number, Interval>;
  /** Shortest time of a rank: that of the rank that came last, while all others were there. Undefined where none was recorded. */
  readonly transferUs: number | undefined;
  /** The rank that came last. */
  readonly lastRank: number | undefined;
  /** Time that all other ranks waited for it, together. */
  readonly waitUs: number;
}

/** A job replayed on a cluster, beside what was measured. */
export interface Replay {
  readonly title: string;
  readonly calls: readonly ComparedCall[];
  readonly ranks: readonly ComparedRank[];
  /** Time from the first event of any rank to the last one, µs. */
  readonly measuredUs: number;
  readonly replayedUs: number;
  readonly notes: readonly string[];
}

/** A call, measured and replayed. */
export interface ComparedCall {
  readonly measured: MeasuredCall;
  /** Undefined where there is none: then the replay takes the measured time. */
  readonly predicted: PredictedRow | undefined;
  readonly replayed: ReplayedCall | undefined;
}

/** One rank's time, µs. */
export interface ComparedRank {
  readonly rank: number;
  readonly measuredUs: number;
  readonly replayedUs: number;
  /** Time of its calls in which all ranks were there. */
  readonly transferUs: number;
  /** Time that it waited in calls for other ranks. */
  readonly waitUs: number;
  /** Time in which a call ran and it computed nothing. */
  readonly exposedUs: number;
  readonly replayedExposedUs: number;
  /** Time that other ranks waited for it. */
  readonly heldUpUs: number;
}

/**
 * Joins traces of ranks to one job on one clock.
 *
 * @throws InputError where there is no call
 */
export function measureJob(given: readonly RankTrace[]): MeasuredJob {
  const traces = onePerRank(given);
  if (traces.every(({ calls }) => calls.length === 0))
    throw new InputError('CONTENT', 'no call of NCCL with a time is in the traces');
  const nRanks = ranksOf(traces);
  const { calls, notes: joinNotes } = joinCalls(traces, nRanks);
  const { clocks, notes: clockNotes } = alignClocks(traces, calls);
  const callOf = new Map(calls.flatMap((call) => [...call.parts.values()].map((part) => [part, call] as const)));
  const timesOf = new Map<JobCall, Map<number, Interval>>();
  const computed = new Map<number, readonly Interval[]>();
  const programs = traces.map((trace) => {
    const { rank } = trace;
    const { times, compute } = alignedTrace(trace, clocks.get(rank) ?? []);
    const parts = [...times].flatMap(([part, time]): TimedPart[] => {
      const call = callOf.get(part);
      if (call === undefined) return [];
      const known = timesOf.get(call) ?? new Map<number, Interval>();
      timesOf.set(call, known.set(rank, time));
      return [{ call, stream: part.stream, time }];
    });
    if (compute !== undefined) computed.set(rank, compute);
    return trace.order === undefined
      ? programOf(rank, parts, compute)
      : programOfOrder(rank, trace.order, onClock(clocks.get(rank) ?? [], 0), (call) => callOf.get(call));
  });
  const firstUs = Math.min(...programs.map(({ startUs }) => startUs));
  const moved = ([start, end]: Interval): Interval => [start - firstUs, end - firstUs];
  return {
    nRanks,
    traces,
    calls: calls.map((call) =>
      measuredCall(call, new Map([...(timesOf.get(call) ?? [])].map(([rank, time]) => [rank, moved(time)]))),
    ),
    programs: programs.map((program) => ({ ...program, startUs: program.startUs - firstUs, endUs: program.endUs - firstUs })),
    compute: new Map([...computed].map(([rank, intervals]) => [rank, intervals.map(moved)])),
    notes: [...joinNotes, ...clockNotes, ...traceNotes(traces)],
  };
}

/**
 * Replays a job on a cluster.
 *
 * @throws InputError where the job has more ranks than the cluster, and as planning does
 */
export function replayJob(job: MeasuredJob, on: ReplayCluster): Replay {
  const measured = new Map(job.calls.map((each) => [each.call, each]));
  const costs = new ClusterCosts(on, (call) => measured.get(call)?.transferUs ?? 0);
  if (job.nRanks > costs.nRanks)
    throw new InputError(
      'CONTENT',
      `the traces are of ${job.nRanks} ranks; ${on.title} has ${costs.nRanks}: name as many hosts as the job had`,
    );
  const run = runPrograms(job.programs, costs);
  const calls = job.calls.map((each): ComparedCall => ({
    measured: each,
    predicted: costs.predicted(each.call),
    replayed: run.calls.get(each.call),
  }));
  const ranks = comparedRanks(job, run.endUs, run.exposedUs);
  return {
    title: on.title,
    calls,
    ranks,
    measuredUs: latest(job.programs.map(({ endUs }) => endUs)),
    replayedUs: latest([...run.endUs.values()]),
    notes: replayNotes(job, costs.nRanks, calls, run.forced),
  };
}

/** The version of NCCL of the traces; undefined where they lack it or it is not planned for, which a note says. */
export function tracedVersion({ traces }: MeasuredJob): {
  readonly version: string | undefined;
  readonly notes: readonly string[];
} {
  const traced = traces.find((trace) => trace.nccl !== undefined)?.nccl;
  if (traced === undefined || coveredVersions.includes(traced)) return { version: traced, notes: [] };
  return { version: undefined, notes: [`the traces are of NCCL ${traced}, which tccl does not plan for`] };
}

function latest(times: readonly number[]): number {
  return times.reduce((last, time) => Math.max(last, time), 0);
}

function replayNotes(job: MeasuredJob, nRanks: number, calls: readonly ComparedCall[], forced: number): string[] {
  const kept = new Map<string, number>();
  for (const { measured, predicted } of calls) {
    const { operation, collective, bytes, members, size } = measured.call;
    if (predicted !== undefined || size === 1) continue;
    const why =
      collective === undefined
        ? `${operation}, which is no collective that is simulated`
        : bytes === 0
          ? `${operation} of unknown size`
          : members === undefined
            ? `${operation} of a communicator whose ranks are unknown`
            : `${operation} that NCCL has no way for here`;
    kept.set(why, (kept.get(why) ?? 0) + 1);
  }
  const taken = calls.filter(
    ({ measured: { call } }) => call.messages !== undefined && call.collective !== undefined && call.size > MOST_UNEVEN_RANKS,
  );
  return [
    ...(taken.length === 0
      ? []
      : [
          `${counted(taken.length, 'all-to-all')} of more than ${MOST_UNEVEN_RANKS} ranks whose parts differ: taken as equally large`,
        ]),
    ...[...kept].map(([why, count]) => `${counted(count, 'call')} of ${why}: replayed with the measured time`),
    ...(job.nRanks < nRanks ? [`the job has ${job.nRanks} of the cluster's ${nRanks} ranks: its first ones`] : []),
    ...(forced > 0 ? [`${counted(forced, 'call')} that ranks made in different orders: each began when no other could`] : []),
  ];
}

function comparedRanks(
  { calls, programs }: MeasuredJob,
  endUs: ReadonlyMap<number, number>,
  exposedUs: ReadonlyMap<number, number>,
): ComparedRank[] {
  const sums = new Map(programs.map(({ rank }) => [rank, { transferUs: 0, waitUs: 0, heldUpUs: 0 }]));
  for (const { times, transferUs = 0, lastRank = -1, waitUs } of calls) {
    const last = sums.get(lastRank);
    if (last !== undefined) last.heldUpUs += waitUs;
    for (const [rank, [start, end]] of times) {
      const own = sums.get(rank);
      if (own === undefined) continue;
      own.transferUs += transferUs;
      own.waitUs += Math.max(0, end - start - transferUs);
    }
  }
  return programs
    .map(({ rank, startUs, endUs: measuredEnd, exposedUs: exposed }): ComparedRank => ({
      rank,
      measuredUs: measuredEnd - startUs,
      replayedUs: (endUs.get(rank) ?? startUs) - startUs,
      ...(sums.get(rank) ?? { transferUs: 0, waitUs: 0, heldUpUs: 0 }),
      exposedUs: exposed,
      replayedExposedUs: exposedUs.get(rank) ?? 0,
    }))
    .sort((a, b) => a.rank - b.rank);
}

function measuredCall(call: JobCall, times: ReadonlyMap<number, Interval>): MeasuredCall {
  const durations = [...call.parts].flatMap(([rank, { durationUs }]) => (durationUs === undefined ? [] : [{ rank, durationUs }]));
  const [first] = durations;
  if (first === undefined) return { call, times, transferUs: undefined, lastRank: undefined, waitUs: 0 };
  const last = durations.reduce((a, b) => (b.durationUs < a.durationUs ? b : a), first);
  const waitUs = durations.reduce((sum, { durationUs }) => sum + durationUs - last.durationUs, 0);
  const isKnown = durations.length > 1;
  return { call, times, transferUs: last.durationUs, lastRank: isKnown ? last.rank : undefined, waitUs };
}

/** Ranks of the job: of those that a trace says, that have one, or that belong to a communicator, the most. */
function ranksOf(traces: readonly RankTrace[]): number {
  const seen = new Set<string>();
  let most = 0;
  for (const { rank, nRanks = 0, calls } of traces) {
    most = Math.max(most, rank + 1, nRanks);
    for (const { group, members = [] } of calls) {
      if (seen.has(group)) continue;
      seen.add(group);
      for (const member of members) most = Math.max(most, member + 1);
    }
  }
  return most;
}

/** One trace for each rank: those of several files are put together. */
function onePerRank(traces: readonly RankTrace[]): RankTrace[] {
  const byRank = new Map<number, RankTrace>();
  for (const trace of traces) {
    const known = byRank.get(trace.rank);
    byRank.set(
      trace.rank,
      known === undefined
        ? trace
        : {
            ...known,
            calls: [...known.calls, ...trace.calls].sort((a, b) => a.startUs - b.startUs),
            compute: known.compute ?? trace.compute,
          },
    );
  }
  return [...byRank.values()].sort((a, b) => a.rank - b.rank);
}

function traceNotes(traces: readonly RankTrace[]): string[] {
  const ranksWith = (test: (trace: RankTrace) => boolean) => traces.filter(test).map(({ rank }) => rank);
  const named = (ranks: readonly number[]) => `${ranks.length === 1 ? 'rank' : 'ranks'} ${listed(ranks)}`;
  const [cpu, none] = [ranksWith(({ clock }) => clock === 'cpu'), ranksWith(({ clock }) => clock === 'none')];
  const ordered = ranksWith(({ clock }) => clock === 'order');
  const untimed = ranksWith(({ calls, clock }) => clock !== 'order' && calls.some(({ durationUs }) => durationUs === undefined));
  const ungrouped = ranksWith(({ calls }) => calls.some(({ groupName }) => groupName === NO_NAME));
  const lacking = [...new Set(traces.flatMap(({ lacks }) => lacks ?? []))];
  return [
    ...lacking.map((text) => `${named(ranksWith(({ lacks }) => lacks === text))}: ${text}`),
    ...(ungrouped.length > 0
      ? [`${named(ungrouped)}: the trace names no communicator: calls are taken as those of all ranks`]
      : []),
    ...(cpu.length > 0
      ? [
          `${named(cpu)}: the recording has the times at which the CPU made the calls; the GPU begins them later, so gaps between calls are too short where the CPU is ahead`,
        ]
      : []),
    ...(none.length > 0
      ? [
          `${named(none)}: the records have no times, only durations: calls follow each other without gaps (NCCL_INSPECTOR_DUMP_VERBOSE=1 records times)`,
        ]
      : []),
    ...(ordered.length > 0
      ? [
          `${named(ordered)}: the trace has dependencies in place of times: the measured step is that of its nodes alone, one after the other`,
        ]
      : []),
    ...(untimed.length > 0
      ? [`${named(untimed)}: calls without a duration count as work (TORCH_NCCL_ENABLE_TIMING=1 records durations)`]
      : []),
  ];
}
