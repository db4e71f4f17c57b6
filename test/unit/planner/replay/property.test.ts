import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { JobCall } from '../../../../src/planner/replay/job-call.js';
import type { Action, RankProgram } from '../../../../src/planner/replay/program.js';
import { TraceReader } from '../../../../src/planner/replay/read-traces.js';
import { measureJob } from '../../../../src/planner/replay/replay.js';
import { type CallCosts, runPrograms } from '../../../../src/planner/replay/run.js';
import { runs } from '../../../runs.js';

const RANKS = 4;
const groups = [
  [0, 1, 2, 3],
  [0, 1],
  [2, 3],
  [0, 2],
  [1, 3],
];

/** A step of all ranks: each works, then those of a group make a call, and wait for it now or after their next work. */
interface Step {
  readonly group: number;
  readonly works: readonly number[];
  readonly timeUs: number;
  readonly isAsync: boolean;
}

const steps = fc.array(
  fc.record({
    group: fc.nat(groups.length - 1),
    works: fc.array(fc.integer({ min: 10, max: 500 }), { minLength: RANKS, maxLength: RANKS }),
    timeUs: fc.integer({ min: 20, max: 400 }),
    isAsync: fc.boolean(),
  }),
  { minLength: 2, maxLength: 12 },
);

/** Calls at the same time take twice as long. */
const costs: CallCosts = {
  timeUs: ({ bytes }) => bytes / 4,
  speeds: (running) => new Float64Array(running.length).fill(running.length > 1 ? 0.5 : 1),
};

function programsOf(all: readonly Step[]): RankProgram[] {
  const calls = all.map(({ group, timeUs }, index): JobCall => {
    const members = groups[group] ?? [];
    const parts = new Map(members.map((rank) => [rank, {} as never]));
    return {
      index,
      group: String(group),
      groupName: '',
      members,
      size: members.length,
      operation: 'allreduce',
      collective: 'AllReduce',
      bytes: 4 * timeUs,
      type: 'float32',
      parts,
    };
  });
  return Array.from({ length: RANKS }, (_, rank) => {
    const actions: Action[] = [];
    let pending: JobCall | undefined;
    let workUs = 0;
    all.forEach(({ group, works, isAsync }, index) => {
      workUs += works[rank] ?? 0;
      if (pending !== undefined) actions.push({ kind: 'wait', call: pending, atUs: workUs });
      pending = undefined;
      const call = calls[index];
      if (call === undefined || groups[group]?.includes(rank) !== true) return;
      actions.push({ kind: 'issue', call, atUs: workUs, stream: String(group), lagUs: 0 });
      if (isAsync) pending = call;
      else actions.push({ kind: 'wait', call, atUs: workUs });
    });
    workUs += 10;
    if (pending !== undefined) actions.push({ kind: 'wait', call: pending, atUs: workUs });
    return { rank, startUs: 0, endUs: 0, actions, workUs, exposedUs: 0 };
  });
}

/** The profile that PyTorch would write of a rank. */
function profileOf({ rank, actions, workUs }: RankProgram, run: ReturnType<typeof runPrograms>, clockUs: number): string {
  const event = (name: string, from: number, to: number, stream: string, args: object = {}) => ({
    ...{ ph: 'X', cat: 'kernel', name, ts: clockUs + from, dur: to - from, args: { stream, ...args } },
  });
  const events: object[] = [];
  let [nowUs, doneUs] = [0, 0];
  const work = (until: number) => {
    if (until > doneUs) events.push(event('gemm', nowUs, nowUs + until - doneUs, 'compute'));
    nowUs += until - doneUs;
    doneUs = until;
  };
  for (const { kind, call, atUs } of actions) {
    work(atUs);
    const replayed = run.calls.get(call);
    if (replayed === undefined) throw new Error('a call did not end');
    if (kind === 'wait') nowUs = Math.max(nowUs, replayed.endUs);
    else
      events.push(
        event('ncclDevKernel_AllReduce', replayed.starts.get(rank) ?? 0, replayed.endUs, call.group, {
          ...{
            'Collective name': 'allreduce',
            'In msg nelems': call.bytes / 4,
            'Out msg nelems': call.bytes / 4,
            dtype: 'Float',
          },
          ...{ 'Group size': call.size, 'Process Group Name': call.group, 'Process Group Ranks': JSON.stringify(call.members) },
        }),
      );
  }
  work(workUs);
  return JSON.stringify({ distributedInfo: { rank, world_size: RANKS }, traceEvents: events });
}

/** A call that begins 4 µs after the one before it on its stream, while another call runs. */
const late: Step[] = [
  { group: 2, works: [10, 242, 10, 13], timeUs: 246, isAsync: true },
  { group: 2, works: [10, 10, 10, 250], timeUs: 20, isAsync: false },
  { group: 1, works: [10, 10, 10, 10], timeUs: 20, isAsync: false },
];

const clockTimes = fc.array(fc.integer({ min: 0, max: 10_000_000 }), { minLength: RANKS, maxLength: RANKS });

function measured(programs: readonly RankProgram[], run: ReturnType<typeof runPrograms>, clocks: readonly number[]) {
  const reader = new TraceReader();
  for (const program of programs) {
    const bytes = new TextEncoder().encode(profileOf(program, run, clocks[program.rank] ?? 0));
    reader.read(bytes, `rank${program.rank}`);
  }
  return measureJob(reader.finish());
}

/** Clocks are aligned by collectives, so every rank needs one with others. */
const first: Step = { group: 0, works: [10, 20, 30, 40], timeUs: 50, isAsync: false };

function expectSameTimes(again: ReturnType<typeof runPrograms>, run: ReturnType<typeof runPrograms>) {
  for (const [rank, endUs] of run.endUs) expect(again.endUs.get(rank)).toBeCloseTo(endUs, 3);
  const ends = (of: typeof run) => [...of.calls.values()].map(({ endUs }) => endUs).sort((a, b) => a - b);
  expect(again.calls.size).toBe(run.calls.size);
  ends(again).forEach((endUs, place) => {
    expect(endUs).toBeCloseTo(ends(run)[place] ?? 0, 3);
  });
}

describe('a replay of a trace that was made from a run', () => {
  it('gives back the times of the run', () => {
    fc.assert(
      fc.property(steps, clockTimes, (all, clocks) => {
        const programs = programsOf([first, ...all]);
        const run = runPrograms(programs, costs);
        expectSameTimes(runPrograms(measured(programs, run, clocks).programs, costs), run);
      }),
      { numRuns: runs(100, 2000), examples: [[late, [0, 0, 0, 0]]] },
    );
  });

  it('gives the times of a run with other costs, where ranks wait for their calls', () => {
    fc.assert(
      fc.property(steps, clockTimes, fc.constantFrom(0.1, 0.5, 3), (all, clocks, factor) => {
        const programs = programsOf([first, ...all.map((step) => ({ ...step, isAsync: false }))]);
        const others: CallCosts = { ...costs, timeUs: (call) => factor * costs.timeUs(call) };
        const { programs: traced } = measured(programs, runPrograms(programs, costs), clocks);
        expectSameTimes(runPrograms(traced, others), runPrograms(programs, others));
      }),
      { numRuns: runs(100, 2000) },
    );
  });
});
