import { describe, expect, it } from 'vitest';
import { defaultParameters } from '../../../../src/planner/parameters.js';
import { machine } from '../../../../src/planner/topology/catalogue/machines.js';
import { ClusterCosts } from '../../../../src/planner/replay/costs.js';
import type { JobCall } from '../../../../src/planner/replay/job-call.js';
import { measureJob, type MeasuredJob, replayJob } from '../../../../src/planner/replay/replay.js';
import { type CallCosts, runPrograms } from '../../../../src/planner/replay/run.js';
import { rankCall, rankTrace } from './traces.js';

/** Every call takes as long, and calls do not slow each other down unless `speed` says so. */
const costOf = (timeUs: number, speed = 1): CallCosts => ({
  timeUs: () => timeUs,
  speeds: (running) => new Float64Array(running.length).fill(running.length > 1 ? speed : 1),
});
const endsOf = (job: MeasuredJob, costs: CallCosts) => Object.fromEntries(runPrograms(job.programs, costs).endUs);
const dgx = (count = 1) => ({
  title: 'dgx-h100',
  cluster: { hosts: [{ machine: machine('dgx-h100'), count }] },
  parameters: defaultParameters,
});

describe('a replay', () => {
  it('gives back a job whose calls take as long as measured', () => {
    // Rank 1 computes for longer before each call, so rank 0 waits.
    const job = measureJob([
      rankTrace(
        0,
        [
          [100, 250],
          [300, 450],
        ],
        [
          [0, 100],
          [250, 300],
          [450, 460],
        ],
      ),
      rankTrace(
        1,
        [
          [200, 250],
          [400, 450],
        ],
        [
          [0, 200],
          [250, 400],
          [450, 460],
        ],
      ),
    ]);
    expect(job.calls.map(({ transferUs, lastRank, waitUs }) => [transferUs, lastRank, waitUs])).toEqual([
      [50, 1, 100],
      [50, 1, 100],
    ]);
    expect(endsOf(job, costOf(50))).toEqual({ 0: 460, 1: 460 });
  });

  it('takes the predicted time from the last rank on, and keeps the work between calls', () => {
    const job = measureJob([
      rankTrace(
        0,
        [
          [100, 250],
          [300, 450],
        ],
        [
          [0, 100],
          [250, 300],
          [450, 460],
        ],
      ),
      rankTrace(
        1,
        [
          [200, 250],
          [400, 450],
        ],
        [
          [0, 200],
          [250, 400],
          [450, 460],
        ],
      ),
    ]);
    // 200 + 20, 150 + 20, 10
    expect(endsOf(job, costOf(20))).toEqual({ 0: 400, 1: 400 });
    const run = runPrograms(job.programs, costOf(20));
    const [first] = run.calls.values();
    expect({ ...first, starts: Object.fromEntries(first?.starts ?? []) }).toEqual({
      starts: { 0: 100, 1: 200 },
      beginUs: 200,
      endUs: 220,
    });
    // Rank 0 waits 100 + 20 µs for the first call and 100 + 20 for the second.
    expect(Object.fromEntries(run.exposedUs)).toEqual({ 0: 240, 1: 40 });
  });

  it('hides a call behind computing until it takes longer', () => {
    // The call runs beside computing from 50 to 150; then 30 µs are exposed.
    const trace = (rank: number) =>
      rankTrace(
        rank,
        [[50, 180]],
        [
          [0, 150],
          [180, 200],
        ],
      );
    const job = measureJob([trace(0), trace(1)]);
    expect(job.programs.map(({ exposedUs }) => exposedUs)).toEqual([30, 30]);
    expect(endsOf(job, costOf(130))).toEqual({ 0: 200, 1: 200 });
    expect(endsOf(job, costOf(100))).toEqual({ 0: 170, 1: 170 });
    expect(endsOf(job, costOf(10))).toEqual({ 0: 170, 1: 170 });
    expect(endsOf(job, costOf(230))).toEqual({ 0: 300, 1: 300 });
  });

  it('runs calls whose durations were not recorded', () => {
    const trace = (rank: number) => ({
      ...rankTrace(rank, []),
      calls: [0, 100].map((startUs, place) => rankCall({ sequence: String(place), startUs, durationUs: undefined })),
    });
    const job = measureJob([trace(0), trace(1)]);
    const run = runPrograms(job.programs, costOf(20));
    expect([...run.calls.values()].map(({ beginUs, endUs }) => [beginUs, endUs])).toEqual([
      [0, 20],
      [120, 140],
    ]);
    expect(run.forced).toBe(0);
  });

  it('starts a queued call when the one before it ends', () => {
    const trace = (rank: number) =>
      rankTrace(
        rank,
        [
          [10, 60],
          [60, 110],
        ],
        [[0, 200]],
      );
    const job = measureJob([trace(0), trace(1)]);
    const run = runPrograms(job.programs, costOf(20));
    expect([...run.calls.values()].map(({ beginUs, endUs }) => [beginUs, endUs])).toEqual([
      [10, 30],
      [30, 50],
    ]);
  });

  it('lets calls of two communicators slow each other down', () => {
    const trace = (rank: number) => ({
      ...rankTrace(rank, []),
      calls: ['tp', 'dp'].map((group) => rankCall({ group, stream: group, sequence: '0', startUs: 0, durationUs: 100 })),
      compute: [[0, 100]] as const,
    });
    const job = measureJob([trace(0), trace(1)]);
    const ends = (speed: number) => [...runPrograms(job.programs, costOf(100, speed)).calls.values()].map(({ endUs }) => endUs);
    expect(ends(1)).toEqual([100, 100]);
    expect(ends(0.5)).toEqual([200, 200]);
  });

  it('ends though ranks make calls in different orders, and says so', () => {
    const trace = (rank: number, groups: readonly string[]) => ({
      ...rankTrace(rank, []),
      calls: groups.map((group, place) =>
        rankCall({ group, stream: 'one', sequence: '0', startUs: 100 * place, durationUs: 100 }),
      ),
    });
    const job = measureJob([trace(0, ['a', 'b']), trace(1, ['b', 'a'])]);
    const { calls, forced } = runPrograms(job.programs, costOf(10));
    expect(calls.size).toBe(2);
    expect(forced).toBeGreaterThan(0);
  });
});

describe('a measured job', () => {
  it('aligns clocks by the ends of collectives', () => {
    const job = measureJob([
      rankTrace(0, [
        [0, 50],
        [100, 150],
      ]),
      rankTrace(1, [
        [1_000_020, 1_000_050],
        [1_000_120, 1_000_150],
      ]),
    ]);
    expect(job.calls[0]?.times).toEqual(
      new Map([
        [0, [0, 50]],
        [1, [20, 50]],
      ]),
    );
    expect(job.notes).toEqual([]);
  });

  it('takes back a jump of a clock', () => {
    const times = [0, 1, 2, 3, 4, 5].map((place): [number, number] => [1000 * place, 1000 * place + 50]);
    const jumped = times.map(([start, end], place): [number, number] => (place < 3 ? [start, end] : [start + 7000, end + 7000]));
    const job = measureJob([rankTrace(0, times), rankTrace(1, jumped), rankTrace(2, times)]);
    expect(job.notes).toEqual(['the clock of rank 1 jumps by 7.0 ms before allreduce of group world: taken back']);
    expect(job.programs.map(({ endUs }) => endUs)).toEqual([5050, 5050, 5050]);
    expect(endsOf(job, costOf(50))).toEqual({ 0: 5050, 1: 5050, 2: 5050 });
  });

  it('joins calls without sequence numbers by their place, also where one rank begins later', () => {
    const sizes = [1, 2, 3, 4, 5, 6];
    const trace = (rank: number, from: number) => ({
      ...rankTrace(rank, []),
      calls: sizes.slice(from).map((size) => rankCall({ bytes: size * 1024, startUs: 100 * size, durationUs: 10 })),
    });
    const job = measureJob([trace(0, 0), trace(1, 2)]);
    expect(job.calls.map(({ call: { bytes, parts } }) => [bytes / 1024, parts.size])).toEqual([
      [1, 1],
      [2, 1],
      [3, 2],
      [4, 2],
      [5, 2],
      [6, 2],
    ]);
    expect(job.notes[0]).toBe(
      '1 communicator without sequence numbers: calls are joined by their place; 1 list of a rank that begin elsewhere were moved to fit',
    );
  });

  it('names missing ranks, and calls that differ', () => {
    const other = { ...rankTrace(2, [[0, 10]], undefined, { bytes: 4096 }), nRanks: 4 };
    const job = measureJob([rankTrace(0, [[0, 10]]), other]);
    expect(job.notes).toEqual([
      '1 call with another name or size on some ranks: those of the rank with the most data count',
      'no trace of 2 ranks: 1, 3: calls begin when the other ranks come, and measured times contain the waits for the missing ones',
    ]);
  });

  it('refuses traces without a call', () => {
    expect(() => measureJob([rankTrace(0, [])])).toThrow('no call of NCCL with a time is in the traces');
  });
});

describe('costs on a cluster', () => {
  const jobCall = (members: readonly number[], given: Partial<JobCall> = {}): JobCall => ({
    ...{ index: 0, group: members.join(), groupName: 'g', members, size: members.length, operation: 'allreduce' },
    ...{ collective: 'AllReduce', bytes: 64 << 20, type: 'float32', parts: new Map() },
    ...given,
  });

  it('are those of a communicator of its ranks alone', () => {
    const costs = new ClusterCosts(dgx(2), () => 0);
    const [host, pair, across] = [
      [0, 1, 2, 3, 4, 5, 6, 7],
      [8, 9],
      [3, 11],
    ].map((members) => costs.timeUs(jobCall(members)));
    expect(costs.nRanks).toBe(16);
    expect(pair).toBeLessThan(across ?? 0);
    expect(host).toBeLessThan(across ?? 0);
    expect(costs.timeUs(jobCall([3, 11]))).toBe(costs.timeUs(jobCall([5, 13])));
  });

  it('slow calls down that share NICs, not calls on other hosts', () => {
    const costs = new ClusterCosts(dgx(4), () => 0);
    // Two communicators over the same NICs of the same hosts: each GPU of a rail.
    const same = costs.speeds([jobCall([0, 8]), jobCall([0, 8], { group: 'again' })]);
    expect(same[0]).toBeLessThan(0.8);
    expect([...costs.speeds([jobCall([0, 8]), jobCall([16, 24])])]).toEqual([1, 1]);
  });

  it('are the measured ones of calls that are not simulated', () => {
    const costs = new ClusterCosts(dgx(), () => 123);
    expect(costs.timeUs(jobCall([0, 1], { collective: undefined }))).toBe(123);
    expect(costs.timeUs(jobCall([0, 1], { bytes: 0 }))).toBe(123);
    expect(costs.timeUs(jobCall([0], {}))).toBe(123);
  });

  it('refuse a job with more ranks than the cluster', () => {
    const job = measureJob([{ ...rankTrace(0, [[0, 10]]), nRanks: 16 }]);
    expect(() => replayJob(job, dgx())).toThrow('the traces are of 16 ranks; dgx-h100 has 8: name as many hosts as the job had');
  });
});
