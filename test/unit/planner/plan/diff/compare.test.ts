import { describe, expect, it } from 'vitest';
import { parametersFromEnvironment } from '../../../../../src/planner/parameters.js';
import {
  type Comparison,
  comparePlans,
  type Section,
  sections,
  type Side,
} from '../../../../../src/planner/plan/diff/compare.js';
import { predictedCosts } from '../../../../../src/planner/plan/diff/predicted-cost.js';
import { situationOf } from '../../../../../src/planner/explain/situation.js';
import { planFromJson, planToJson } from '../../../../../src/planner/plan/plan-json.js';
import { machine } from '../../../../../src/planner/topology/catalogue/machines.js';
import { choose } from '../../../../../src/planner/tuning/choose.js';
import { collectives } from '../../../../../src/planner/tuning/names.js';
import { tune } from '../../../../../src/planner/tuning/tune.js';

const sizes = [1024, 4 * 2 ** 20, 2 ** 30];

function side(name: string, count: number, environment: Readonly<Record<string, string>> = {}): Side {
  const { plan, systems } = situationOf(
    { hosts: [{ machine: machine(name), count, name }] },
    parametersFromEnvironment(environment).parameters,
  );
  return { title: `${count} x ${name}`, plan, systems };
}

const kept = ({ title, plan }: Side): Side => ({
  title,
  plan: planFromJson(JSON.parse(JSON.stringify(planToJson(plan)))),
  systems: undefined,
});
const named = ({ differences }: Comparison) => new Set<Section>(differences.map(({ section }) => section));

const h100 = side('dgx-h100', 2);
const a100 = side('dgx-a100', 2);

describe('predicted costs', () => {
  it('list the calls whose simulated times differ, pairs too', () => {
    const costs = predictedCosts(side('dgx-h100', 1), side('dgx-h100', 1, { NCCL_P2P_DISABLE: '1' }), [2 ** 26]) ?? [];
    expect(new Set(costs.map(({ collective }) => collective))).toEqual(
      new Set(['AllReduce', 'AllGather', 'ReduceScatter', 'AllToAll', 'SendRecv']),
    );
    for (const { a, b, ratio } of costs) {
      expect(ratio).toBeGreaterThan(1.5);
      expect(b.timeUs / a.timeUs).toBe(ratio);
      expect(a.leastUs).toBeLessThan(a.timeUs);
    }
  });

  it('are empty for a cluster and itself, and undefined for a plan without its machines', () => {
    expect(predictedCosts(h100, h100, sizes)).toEqual([]);
    expect(predictedCosts(h100, kept(h100), sizes)).toBeUndefined();
  });
});

describe('two plans', () => {
  it('equal themselves, also after a round trip through JSON', () => {
    expect(comparePlans(h100, side('dgx-h100', 2), sizes)).toEqual({
      titles: ['2 x dgx-h100', '2 x dgx-h100'],
      differences: [],
      costs: [],
      leftOut: [],
    });
    const withKept = comparePlans(h100, kept(h100), sizes);
    expect([withKept.differences, withKept.costs]).toEqual([[], []]);
    expect(withKept.leftOut).toHaveLength(1);
  });

  it("differ in the order of NCCL's decisions", () => {
    const { differences } = comparePlans(h100, a100, sizes);
    const order = differences.map(({ section }) => sections.indexOf(section));
    expect(order).toEqual([...order].sort((a, b) => a - b));
    expect(named(comparePlans(h100, a100, sizes))).toEqual(new Set(['hosts', 'system', 'graphs', 'channels', 'nvls', 'tuning']));
    expect(differences).toContainEqual({ section: 'hosts', what: 'compute capability', a: '9', b: '8' });
    expect(differences).toContainEqual({ section: 'nvls', what: 'NVLS channels', a: '16', b: '0' });
  });

  it('give mirrored differences when swapped', () => {
    const there = comparePlans(h100, a100, sizes);
    const back = comparePlans(a100, h100, sizes);
    const key = (rows: Comparison['differences'], from: 'a' | 'b', to: 'a' | 'b') =>
      rows.map((row) => `${row.section} ${row.what}: ${row[from]} ${row[to]}`).sort();
    expect(key(there.differences, 'a', 'b')).toEqual(key(back.differences, 'b', 'a'));
    there.costs.forEach((row, index) => {
      expect((row.ratio ?? 0) * (back.costs[index]?.ratio ?? 0)).toBeCloseTo(1, 12);
    });
  });

  it('have the times of the tuning model', () => {
    const rows = comparePlans(h100, a100, sizes).costs;
    const [a, b] = [h100, a100].map(({ plan }) => tune(plan, plan.parameters));
    for (const collective of collectives) {
      for (const bytes of sizes) {
        const row = rows.find((each) => each.collective === collective && each.bytes === bytes);
        const times = [a, b].map((tuning) => (tuning === undefined ? undefined : choose(tuning, collective, bytes)?.timeUs));
        if (row === undefined) expect(times[0]).toBe(times[1]);
        else expect([row.a?.timeUs, row.b?.timeUs]).toEqual(times);
      }
    }
  });

  it('name the variable and its consequences', () => {
    const comparison = comparePlans(h100, side('dgx-h100', 2, { NCCL_NVLS_ENABLE: '0' }), sizes);
    expect(comparison.differences[0]).toEqual({ section: 'parameters', what: 'NCCL_NVLS_ENABLE', a: '-', b: '0' });
    expect(named(comparison)).toEqual(new Set(['parameters', 'graphs', 'nvls', 'tuning']));
    expect(comparison.costs.every(({ collective, ratio }) => collective === 'AllReduce' && (ratio ?? 0) >= 1)).toBe(true);
  });

  it('show a difference in GPU Direct RDMA, which does not change the times', () => {
    const { differences } = comparePlans(side('hgx-a100-4', 2), side('hgx-a100-4', 2, { NCCL_NET_GDR_LEVEL: 'PHB' }), sizes);
    expect(differences).toContainEqual({ section: 'transports', what: 'of these with GPU Direct RDMA', a: '0 %', b: '100 %' });
  });

  it('have no time where NCCL has no candidate', () => {
    const { costs } = comparePlans(a100, side('dgx-a100', 2, { NCCL_ALGO: 'nvls' }), sizes);
    expect(costs.find(({ collective }) => collective === 'AllReduce')).toMatchObject({ b: null, ratio: null });
  });
});
