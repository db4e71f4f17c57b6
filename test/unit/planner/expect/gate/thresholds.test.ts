import { describe, expect, it } from 'vitest';
import { healthChecks } from '../../../../../src/planner/expect/gate/health-checks.js';
import { isMeasured } from '../../../../../src/planner/expect/gate/measured.js';
import { thresholdsOf } from '../../../../../src/planner/expect/gate/thresholds.js';
import { judge } from '../../../../../src/planner/expect/gate/verdict.js';
import { expectTable } from '../../../../../src/planner/expect/expect.js';
import { defaultParameters } from '../../../../../src/planner/parameters.js';
import { prepareCluster } from '../../../../../src/planner/plan/cluster.js';
import { simulatorOf } from '../../../../../src/planner/plan/prediction.js';
import { machine } from '../../../../../src/planner/topology/catalogue/machines.js';

const simulator = simulatorOf(
  prepareCluster({ hosts: [{ machine: machine('dgx-h100'), count: 1 }] }, defaultParameters),
  defaultParameters,
);
const h100 = { sms: new Set([90]), nHosts: 1 };

describe('thresholds', () => {
  it('are the slow ends of the intervals of predictions', () => {
    const [threshold] = thresholdsOf(simulator, h100, { collectives: ['AllReduce'], sizes: [2 ** 34] });
    expect(threshold).toMatchObject({ test: 'all_reduce', bytes: 2 ** 34, isMeasured: true });
    expect((threshold?.leastGBps ?? 0) / (threshold?.expectedGBps ?? 1)).toBeCloseTo(1 / 1.1, 5);
  });

  it('of calls without measurements are estimates', () => {
    expect(isMeasured('AllReduce', 2 ** 30, h100)).toBe(true);
    expect(isMeasured('AllReduce', 2 ** 16, { ...h100, nHosts: 2 })).toBe(false);
    expect(isMeasured('AllReduce', 2 ** 30, { ...h100, nHosts: 64 })).toBe(false);
    expect(isMeasured('AllReduce', 2 ** 30, { sms: new Set([103]), nHosts: 1 })).toBe(false);
  });

  it('nccl-tests fails below nine tenths of its variable, so that gets more', () => {
    const check = healthChecks.find(({ name }) => name === 'nccl-tests');
    const [threshold] = thresholdsOf(simulator, h100, { collectives: ['AllReduce'], sizes: [2 ** 34] });
    if (check === undefined || threshold === undefined) throw new Error('no threshold');
    const lines = check.lines(threshold, { nHosts: 1, gpusPerHost: 8, nicsPerHost: 8, netGbps: 400 });
    const least = Number(/^NCCL_TESTS_MIN_BW=(.*)$/m.exec(lines.join('\n'))?.[1]);
    expect(0.9 * least).toBeLessThanOrEqual(threshold.leastGBps);
    expect(0.9 * least).toBeGreaterThan(threshold.leastGBps - 0.2);
  });
});

describe('a table', () => {
  const judged = (factors: readonly number[], cluster = h100) => {
    const sizes = [2 ** 28, 2 ** 30, 2 ** 34];
    const rows = sizes.map((bytes, index) => ({
      bytes,
      type: 'float32' as const,
      timeUs: (factors[index] ?? 1) * (simulator.simulate('AllReduce', bytes)?.timeUs ?? 0),
      place: '',
    }));
    const run = { nccl: undefined, nProcesses: 1, gpusPerThread: 1, gpus: [], isGraph: false, isCpuTime: false };
    return judge(expectTable({ collective: 'AllReduce', nRanks: 8, hosts: [], run, variables: {}, rows }, simulator), cluster);
  };
  it('is slow if most judged rows are, not for one outlier', () => {
    expect(judged([1, 1, 1.5]).isSlow).toBe(false);
    expect(judged([1, 1.5, 1.5]).isSlow).toBe(true);
  });
  it('is not judged without measurements that support thresholds', () => {
    expect(judged([3, 3, 3], { sms: new Set([103]), nHosts: 1 })).toMatchObject({ judged: [], isSlow: false });
  });
});
