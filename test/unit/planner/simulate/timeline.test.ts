import { describe, expect, it } from 'vitest';
import { defaultParameters, machine, prepareCluster, simulatorOf } from '../../../../src/planner/index.js';
import { timeShares } from '../../../../src/planner/simulate/shares.js';
import { timelineOf } from '../../../../src/planner/simulate/timeline.js';

const simulatorFor = (name: string, count: number) =>
  simulatorOf(prepareCluster({ hosts: [{ machine: machine(name), count }] }, defaultParameters), defaultParameters);
const h100 = simulatorFor('dgx-h100', 1);
const pair = simulatorFor('dgx-h100', 2);

describe('a timeline', () => {
  it('has the slices of every worker one after the other, from the launch to the end of the call', () => {
    const timeline = timelineOf(h100, 'AllGather', 2 ** 20);
    const { slices = [], simulated } = timeline ?? {};
    expect(new Set(slices.map(({ rank }) => rank)).size).toBe(8);
    expect(Math.min(...slices.map(({ startUs }) => startUs))).toBeGreaterThanOrEqual(simulated?.launchUs ?? Infinity);
    expect(Math.max(...slices.map(({ endUs }) => endUs))).toBeCloseTo(simulated?.timeUs ?? 0, 6);
    const last = new Map<string, number>();
    for (const { rank, worker, startUs, endUs } of slices) {
      const key = `${rank} ${worker}`;
      expect(startUs).toBeGreaterThanOrEqual(last.get(key) ?? 0);
      expect(endUs).toBeGreaterThanOrEqual(startUs);
      last.set(key, endUs);
    }
    // Every rank writes what the others have, and its own.
    const written = slices.filter(({ rank, what }) => rank === 3 && what !== 'send').reduce((sum, { bytes }) => sum + bytes, 0);
    expect(written).toBe((2 ** 20 / 8) * 7);
  });

  it('keeps the slices of the requested ranks, and no link exceeds its bandwidth', () => {
    const { slices = [], links = [] } = timelineOf(pair, 'AllToAll', 2 ** 26, {}, new Set([1, 9])) ?? {};
    expect(new Set(slices.map(({ rank }) => rank))).toEqual(new Set([1, 9]));
    expect(links.length).toBeGreaterThan(30);
    for (const { load, name } of links) expect([name, Math.max(...load) <= 1.02]).toEqual([name, true]);
    expect(links[0]?.name).toMatch(/NIC|PCI/);
    expect(links[0]?.meanLoad).toBeGreaterThan(0.8);
  });

  it('is undefined for one rank, which exchanges nothing', () => {
    expect(timelineOf(simulatorFor('gh200', 1), 'AllReduce', 1024)).toBeUndefined();
  });
});

describe('where the time goes', () => {
  const partsOf = (...call: Parameters<typeof timeShares>) =>
    Object.fromEntries(timeShares(...call).map(({ what, part }) => [what, part]));

  it.each([
    ['AllReduce', 8192],
    ['AllGather', 2 ** 22],
    ['AllReduce', 2 ** 28],
    ['AllToAll', 2 ** 24],
  ] as const)('%s of %i: the parts add up', (collective, bytes) => {
    for (const simulator of [h100, pair]) {
      const sum = timeShares(simulator, collective, bytes).reduce((total, { part }) => total + part, 0);
      expect(sum).toBeGreaterThan(0.95);
      expect(sum).toBeLessThan(1.0001);
    }
  });

  it('is latency in small calls, and the links in large ones', () => {
    const small = partsOf(h100, 'AllReduce', 1024);
    expect((small['launch'] ?? 0) + (small['latency of hops within hosts'] ?? 0)).toBeGreaterThan(0.9);
    expect(partsOf(h100, 'AllGather', 2 ** 32)['bandwidth of NVLinks']).toBeGreaterThan(0.8);
    expect(partsOf(pair, 'AllToAll', 2 ** 32)['bandwidth of NICs']).toBeGreaterThan(0.5);
  });
});
