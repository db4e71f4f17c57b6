import { describe, expect, it } from 'vitest';
import {
  applyOverrides,
  machine,
  parametersFromEnvironment,
  planPrepared,
  prepareCluster,
  simulatorOf,
} from '../../../../src/planner/index.js';
import { defaultEnvironment } from '../../../../src/planner/simulate/environment.js';
import type { Fabric } from '../../../../src/planner/simulate/fabric.js';
import { chosenHosts, smallerClusters, smallerTrees } from '../../../../src/planner/simulate/smaller.js';
import { runs } from '../../../runs.js';
import { randomFrom } from '../log/made-log.js';

/** A cluster of hosts by kind, and its simulator. */
function clusterOf(machines: readonly ReturnType<typeof machine>[], kinds: readonly number[], variables = {}) {
  const { parameters } = parametersFromEnvironment(variables);
  const hosts = kinds.map((kind) => ({ machine: machines[kind]!, count: 1 }));
  const prepared = prepareCluster({ hosts }, parameters);
  const plan = planPrepared(prepared, parameters);
  return { nodes: plan.nodes, simulator: simulatorOf(prepared, parameters, plan) };
}

describe('hosts that stand for more', () => {
  it('are of each kind its part, at places like those of all', () => {
    const chosen = (kinds: string, count: number) => {
      const numbers = chosenHosts(
        Int32Array.from(kinds, (kind) => kind.charCodeAt(0)),
        count,
      );
      return numbers.map((host) => kinds[host]).join('');
    };
    expect(chosen('AAAABAAAAB', 5)).toBe('AAAAB');
    expect(chosen('AAAAAAAA', 3)).toBe('AAA');
    expect(chosen('A'.repeat(40) + 'B'.repeat(16), 7)).toBe('AAAAABB');
    expect(chosen('ABABABABABAB', 4)).toBe('ABAB');
    expect(chosen('AABBAABB', 4)).toBe('ABAB');
    // A kind of one host stays.
    expect(chosen('A'.repeat(30) + 'B', 8)).toBe('AAAAAAAB');
    expect(chosen('C' + 'A'.repeat(60) + 'B', 4)).toBe('CAAB');
  });

  it('are as many as are wanted, whatever the order', () => {
    const random = randomFrom(1);
    for (let run = 0; run < 200; run++) {
      const kinds = Int32Array.from({ length: 8 + Math.floor(random() * 60) }, () => Math.floor(random() * 4));
      const count = 4 + Math.floor(random() * (kinds.length - 4));
      const chosen = chosenHosts(kinds, count);
      expect(new Set(chosen).size, `run ${run}`).toBe(count);
      for (const kind of new Set(kinds)) {
        const all = kinds.filter((each) => each === kind).length;
        const part = chosen.filter((host) => kinds[host] === kind).length;
        expect(part).toBeGreaterThanOrEqual(1);
        expect(Math.abs(part - (all * count) / kinds.length), `run ${run}, kind ${kind}`).toBeLessThan(2);
      }
    }
  });
});

describe('times of large clusters from smaller ones', () => {
  const names = ['dgx-h100', 'dgx-a100', 'dgx-h200', 'dgx-b200'];
  // Four channels, so that a turn of messages is 32 ranks, and whole simulations stay small.
  const variables = { NCCL_ALGO: 'Ring', NCCL_MAX_NCHANNELS: '4', NCCL_MAX_P2P_NCHANNELS: '4' };
  const orders = [
    (host: number, hosts: number, kinds: number) => Math.floor((host * kinds) / hosts),
    (host: number, _: number, kinds: number) => host % kinds,
    (_: number, __: number, kinds: number, random: () => number) => Math.floor(random() * kinds),
  ];

  it.each(Array.from({ length: runs(3, 18) }, (_, seed) => ({ seed, isFolded: false })).concat({ seed: 3, isFolded: true }))(
    'are those of whole simulations: seed $seed, alike $isFolded',
    ({ seed, isFolded }) => {
      const random = randomFrom(seed);
      const kinds = isFolded ? 1 : 2 + Math.floor(random() * 2);
      const first = Math.floor(random() * names.length);
      const machines = Array.from({ length: kinds }, (_, kind) => machine(names[(first + kind) % names.length]!));
      const nHosts = 17 + Math.floor(random() * 8);
      const order = orders[seed % orders.length]!;
      const hosts = Array.from({ length: nHosts }, (_, host) => order(host, nHosts, kinds, random));
      const { nodes, simulator } = clusterOf(machines, hosts, variables);
      expect(smallerClusters(nodes, 4, undefined)?.more.length).toBeLessThan(nHosts);
      for (const collective of ['AllReduce', 'AllGather', 'ReduceScatter', 'AllToAll', 'SendRecv'] as const)
        for (const bytes of [2 ** 19, 2 ** 27]) {
          const whole = simulator.simulate(collective, bytes, { unfolded: true })!.timeUs;
          const time = simulator.simulate(collective, bytes)!.timeUs;
          // Where three kinds alternate, a turn of all channels has other kinds in the smaller clusters than in the large one.
          const most = collective === 'AllToAll' && kinds === 3 && seed % orders.length === 1 ? 0.12 : 0.005;
          expect(Math.abs(time / whole - 1), `${collective} of ${bytes} on ${hosts.join('')}`).toBeLessThan(most);
        }
    },
  );

  it('of hosts with different numbers of GPUs, and below leaves, are within 5 percent', () => {
    const [half, other] = [applyOverrides(machine('dgx-h100'), { gpus: 4 }), machine('dgx-h200')];
    const fabric: Fabric = { rails: 'none', tiers: [{ hosts: 2, oversubscription: 3 }] };
    for (const [machines, hosts, of] of [
      [[half, other], 40, undefined],
      [[machine('dgx-a100'), other], 24, fabric],
    ] as const) {
      const kinds = Array.from({ length: hosts }, (_, host) => (of === undefined ? host % 2 : host < 9 ? 0 : 1));
      const { nodes, simulator } = clusterOf(machines, kinds, variables);
      expect(smallerClusters(nodes, 4, of)).toBeDefined();
      const environment = { ...defaultEnvironment, ...(of && { fabric: of }) };
      for (const collective of ['AllGather', 'AllToAll', 'SendRecv'] as const) {
        const whole = simulator.simulate(collective, 2 ** 26, { unfolded: true, environment })!.timeUs;
        expect(Math.abs(simulator.simulate(collective, 2 ** 26, { environment })!.timeUs / whole - 1), collective).toBeLessThan(
          0.05,
        );
      }
    }
  });

  it('of trees over two kinds of hosts are those of whole simulations', () => {
    const kinds = Array.from({ length: 96 }, (_, host) => (host < 72 ? 0 : 1));
    const { nodes, simulator } = clusterOf([machine('dgx-h100'), machine('dgx-a100')], kinds, { NCCL_ALGO: 'Tree' });
    expect(smallerTrees(nodes, undefined)?.more.length).toBe(48);
    for (const bytes of [2 ** 16, 2 ** 26]) {
      const whole = simulator.simulate('AllReduce', bytes, { unfolded: true })!.timeUs;
      expect(Math.abs(simulator.simulate('AllReduce', bytes)!.timeUs / whole - 1)).toBeLessThan(0.02);
    }
  });

  it('are not taken of few ranks, of hosts that no smaller cluster resembles, and where switches are too few', () => {
    const alike = (count: number) => clusterOf([machine('dgx-h100')], Array<number>(count).fill(0)).nodes;
    expect(smallerClusters(alike(16), 4, undefined)).toBeUndefined();
    expect(smallerClusters(alike(40), 16, undefined)).toMatchObject({ steps: 1 });
    const pods: Fabric = { rails: 'none', tiers: [{ hosts: 20, oversubscription: 2 }] };
    expect(smallerClusters(alike(40), 16, pods)).toBeUndefined();
    // An odd number of hosts does not fold, so its time comes from the two even numbers below it.
    expect(smallerClusters(alike(125), 32, undefined)).toMatchObject({ steps: 0.5 });
  });
});
