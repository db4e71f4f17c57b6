import { describe, expect, it } from 'vitest';
import { healthChecks } from '../../../../../src/planner/expect/gate/health-checks.js';
import { thresholdsOf } from '../../../../../src/planner/expect/gate/thresholds.js';
import { judge } from '../../../../../src/planner/expect/gate/verdict.js';
import { expectTable } from '../../../../../src/planner/expect/expect.js';
import { defaultParameters } from '../../../../../src/planner/parameters.js';
import { prepareCluster } from '../../../../../src/planner/plan/cluster.js';
import { simulatorOf } from '../../../../../src/planner/plan/prediction.js';
import { machine } from '../../../../../src/planner/topology/catalogue/machines.js';
import type { ScheduledCollective } from '../../../../../src/planner/schedule/schedule.js';

const simulatorFor = (name: string, count: number) =>
  simulatorOf(prepareCluster({ hosts: [{ machine: machine(name), count }] }, defaultParameters), defaultParameters);
const simulator = simulatorFor('dgx-h100', 1);

describe('thresholds', () => {
  it('are the slow ends of the intervals of predictions', () => {
    const [threshold] = thresholdsOf(simulator, { collectives: ['AllReduce'], sizes: [2 ** 34] });
    expect(threshold).toMatchObject({ test: 'all_reduce', bytes: 2 ** 34, isMeasured: true });
    expect((threshold?.leastGBps ?? 0) / (threshold?.expectedGBps ?? 1)).toBeCloseTo(1 / 1.08, 5);
  });

  it('of calls without measurements are estimates', () => {
    const isMeasured = (name: string, count: number, bytes: number, collective: ScheduledCollective = 'ReduceScatter') =>
      thresholdsOf(simulatorFor(name, count), { collectives: [collective], sizes: [bytes] }).map((each) => each.isMeasured);
    expect(isMeasured('dgx-h100', 1, 2 ** 30)).toEqual([true]);
    expect(isMeasured('dgx-h100', 2, 2 ** 30)).toEqual([true]);
    expect(isMeasured('dgx-h100', 2, 2 ** 16)).toEqual([true]);
    expect(isMeasured('dgx-h100', 2, 2 ** 16, 'AllToAll')).toEqual([false]);
    expect(isMeasured('dgx-h100', 64, 2 ** 30)).toEqual([false]);
    expect(isMeasured('dgx-b200', 2, 2 ** 30)).toEqual([false]);
  });

  it('nccl-tests fails below nine tenths of its variable, so that gets more', () => {
    const check = healthChecks.find(({ name }) => name === 'nccl-tests');
    const [threshold] = thresholdsOf(simulator, { collectives: ['AllReduce'], sizes: [2 ** 34] });
    if (check === undefined || threshold === undefined) throw new Error('no threshold');
    const lines = check.lines(threshold, { nHosts: 1, gpusPerHost: 8, nicsPerHost: 8, netGbps: 400 });
    const least = Number(/^NCCL_TESTS_MIN_BW=(.*)$/m.exec(lines.join('\n'))?.[1]);
    expect(0.9 * least).toBeLessThanOrEqual(threshold.leastGBps);
    expect(0.9 * least).toBeGreaterThan(threshold.leastGBps - 0.2);
  });
});

describe('a table', () => {
  const judged = (factors: readonly number[], by = simulator) => {
    const sizes = [2 ** 28, 2 ** 30, 2 ** 34];
    const rows = sizes.map((bytes, index) => ({
      bytes,
      type: 'float32' as const,
      timeUs: (factors[index] ?? 1) * (by.simulate('AllReduce', bytes)?.timeUs ?? 0),
      place: '',
    }));
    const run = { nccl: undefined, nProcesses: 1, gpusPerThread: 1, gpus: [], isGraph: false, isCpuTime: false };
    return judge(expectTable({ collective: 'AllReduce', nRanks: by.nRanks, hosts: [], run, variables: {}, rows }, by));
  };
  it('is slow if most judged rows are, not for one outlier', () => {
    expect(judged([1, 1, 1.5]).isSlow).toBe(false);
    expect(judged([1, 1.5, 1.5]).isSlow).toBe(true);
  });
  it('is not judged without measurements that support thresholds', () => {
    expect(judged([3, 3, 3], simulatorFor('dgx-b200', 2))).toMatchObject({ judged: [], isSlow: false });
  });
});
