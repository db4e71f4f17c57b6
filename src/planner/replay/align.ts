import type { JobCall } from './job-call.js';
import type { Interval, RankCall, RankTrace } from './trace.js';

/** Traces on one clock. */
export interface Aligned {
  /** By rank, time to add to its clock in each period; undefined for ranks without a call in common with others. */
  readonly clocks: ReadonlyMap<number, RankClock>;
  /** One line each. */
  readonly notes: readonly string[];
}

/** Corrections of one rank's clock: each holds from its time on. */
export type RankClock = readonly { readonly fromUs: number; readonly addUs: number }[];

/**
 * A clock jumps where two collectives in sequence put it off by more than this. Ends of one collective differ by the time of a
 * few hops, clocks drift by some 10 µs a second.
 */
const JUMP_US = 1000;

/** Clocks of GPUs count nanoseconds. */
const LEAST_TIME_US = 1e-3;

/**
 * Calls that end on all ranks together: of others, such as a broadcast, the root is done first. Both ends of a message are done
 * with its last chunk.
 */
const isSymmetric = ({ collective, messages, size }: JobCall) =>
  collective === undefined
    ? messages !== undefined && size === 2
    : collective === 'AllReduce' || collective === 'AllGather' || collective === 'ReduceScatter' || collective === 'AllToAll';

/**
 * Aligns the clocks of ranks by collectives, which end on all ranks together. Beginning with the rank with most calls, each rank
 * that has calls in common with aligned ones follows.
 */
export function alignClocks(traces: readonly RankTrace[], calls: readonly JobCall[]): Aligned {
  const notes: string[] = [];
  const shared = calls.filter((call) => isSymmetric(call) && call.parts.size > 1);
  const byRank = new Map<number, JobCall[]>();
  for (const call of shared)
    for (const [rank, { durationUs }] of call.parts) {
      if (durationUs === undefined) continue;
      const own = byRank.get(rank);
      if (own === undefined) byRank.set(rank, [call]);
      else own.push(call);
    }
  const clocks = new Map<number, RankClock>();
  const waiting = new Set(byRank.keys());
  const ends = new Map<JobCall, number[]>();
  // By rank, its calls that an aligned rank has, too.
  const common = new Map<number, JobCall[]>([...byRank.keys()].map((rank) => [rank, []]));
  while (waiting.size > 0) {
    const [rank] = [...waiting].reduce<readonly [number, number]>(
      (best, each) => {
        const count = (common.get(each)?.length ?? 0) * calls.length + (byRank.get(each)?.length ?? 0);
        return count > best[1] ? [each, count] : best;
      },
      [-1, -1],
    );
    const { clock, jumps } = clockOf(rank, common.get(rank) ?? [], ends);
    clocks.set(rank, clock);
    waiting.delete(rank);
    for (const call of byRank.get(rank) ?? []) {
      const part = call.parts.get(rank);
      if (part === undefined) continue;
      const end = onClock(clock, endOf(part));
      const known = ends.get(call);
      if (known !== undefined) known.push(end);
      else {
        ends.set(call, [end]);
        for (const other of call.parts.keys()) if (waiting.has(other)) common.get(other)?.push(call);
      }
    }
    for (const { us, call } of jumps)
      notes.push(
        `the clock of rank ${rank} jumps by ${(us / 1000).toFixed(1)} ms before ${call.operation} of group ${call.groupName}: taken back`,
      );
  }
  const alone = traces
    .filter(({ rank, clock, calls: own }) => clock !== 'order' && own.length > 0 && !clocks.has(rank))
    .map(({ rank }) => rank);
  if (alone.length > 0 && traces.length > 1)
    notes.push(`${alone.length} of ${traces.length} ranks have no call in common with others: their clocks stay as they are`);
  return { clocks, notes };
}

/** A time of a rank on the common clock. */
export function onClock(clock: RankClock, timeUs: number): number {
  let add = clock[0]?.addUs ?? 0;
  for (const { fromUs, addUs } of clock) {
    if (fromUs > timeUs) break;
    add = addUs;
  }
  return timeUs + add;
}

/** A rank's calls and computing on the common clock. */
export function alignedTrace(
  trace: RankTrace,
  clock: RankClock,
): { readonly times: ReadonlyMap<RankCall, Interval>; readonly compute: readonly Interval[] | undefined } {
  const times = new Map(
    trace.calls.map((call): [RankCall, Interval] => {
      // The end is what is aligned: a clock may jump within a call.
      const end = onClock(clock, endOf(call));
      return [call, [end - (call.durationUs ?? 0), end]];
    }),
  );
  const compute = trace.compute?.map(([start, end]): Interval => {
    const moved = onClock(clock, end);
    return [moved - (end - start), moved];
  });
  return { times, compute };
}

function endOf({ startUs, durationUs = 0 }: RankCall): number {
  return startUs + durationUs;
}

function clockOf(
  rank: number,
  common: readonly JobCall[],
  ends: ReadonlyMap<JobCall, readonly number[]>,
): { readonly clock: RankClock; readonly jumps: readonly { readonly us: number; readonly call: JobCall }[] } {
  const off = common
    .flatMap((call) => {
      const part = call.parts.get(rank);
      const known = ends.get(call);
      return part === undefined || known === undefined ? [] : [{ call, at: endOf(part), us: middleOf(known) - endOf(part) }];
    })
    .sort((a, b) => a.at - b.at);
  const periods: { fromUs: number; all: number[] }[] = [];
  const jumps: { us: number; call: JobCall }[] = [];
  off.forEach(({ us, call }, place) => {
    const before = off[place - 1];
    const after = off[place + 1];
    const last = periods.at(-1);
    const step = before === undefined ? 0 : us - before.us;
    // A single call that ends elsewhere is no jump: the next one is where the last one was.
    const stays = after === undefined || Math.abs(after.us - us) < Math.abs(step) / 2;
    const usual = last?.all.at(-1);
    if (last !== undefined && usual !== undefined && (Math.abs(step) <= JUMP_US || !stays)) {
      if (Math.abs(us - usual) <= JUMP_US) last.all.push(us);
      return;
    }
    // The jump is after the end of the last call, wherever the first time after it is.
    periods.push({ fromUs: before === undefined ? -Infinity : before.at + LEAST_TIME_US, all: [us] });
    if (usual !== undefined) jumps.push({ us: usual - us, call });
  });
  const clock = periods.map(({ fromUs, all }) => ({ fromUs, addUs: middleOf(all) }));
  return { clock: clock.length === 0 ? [{ fromUs: -Infinity, addUs: 0 }] : clock, jumps };
}

function middleOf(numbers: readonly number[]): number {
  const sorted = [...numbers].sort((a, b) => a - b);
  const half = Math.floor(sorted.length / 2);
  return sorted.length % 2 === 1 ? (sorted[half] ?? 0) : ((sorted[half - 1] ?? 0) + (sorted[half] ?? 0)) / 2;
}
