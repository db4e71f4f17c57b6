import { describe, expect, it } from 'vitest';
import {
  defaultParameters,
  machine,
  parametersFromEnvironment,
  planPrepared,
  prepareCluster,
  simulatorOf,
} from '../../../../src/planner/index.js';
import { parseClusterFile } from '../../../../src/planner/plan/cluster-file.js';
import { mergeNics } from '../../../../src/planner/topology/combine/merge-nics.js';
import { defaultEnvironment } from '../../../../src/planner/simulate/environment.js';
import { type Fabric, fabricFault, fabricUses, separatedShares } from '../../../../src/planner/simulate/fabric.js';
import { smallerTrees } from '../../../../src/planner/simulate/smaller.js';

const GiB = 2 ** 30;
const leaves = (rails: Fabric['rails'], oversubscription: number, hosts = 2): Fabric => ({
  rails,
  tiers: [{ hosts, oversubscription }],
});
const four = simulatorOf(
  prepareCluster({ hosts: [{ machine: machine('dgx-h100'), count: 4 }] }, defaultParameters),
  defaultParameters,
);
const timeOf = (fabric: Fabric | undefined, collective: 'AllReduce' | 'AllToAll' = 'AllToAll') =>
  four.simulate(collective, GiB, {
    unfolded: true,
    environment: { ...defaultEnvironment, ...(fabric === undefined ? {} : { fabric }) },
  })?.timeUs ?? 0;

describe('a fabric', () => {
  it('without a bottleneck costs nothing', () => {
    for (const rails of ['none', 'optimised', 'only'] as const)
      expect(timeOf(leaves(rails, 1)) / timeOf(undefined)).toBeCloseTo(1, 2);
  });

  it('whose leaves are oversubscribed slows traffic between them: two thirds of an all-to-all', () => {
    // Of the bytes that leave a host, two of three leave its leaf, which carries a quarter.
    expect(Math.abs(timeOf(leaves('none', 4)) / timeOf(undefined) / ((4 * 2) / 3) - 1)).toBeLessThan(0.05);
  });

  it('that is oversubscribed above pods slows only traffic between them', () => {
    const pods: Fabric = {
      rails: 'none',
      tiers: [
        { hosts: 1, oversubscription: 1 },
        { hosts: 2, oversubscription: 4 },
      ],
    };
    expect(timeOf(pods) / timeOf(leaves('none', 4))).toBeCloseTo(1, 2);
  });

  it('of rails has a rail for each port of a card, and one for ports that are merged', () => {
    const nics = (merged: boolean) => {
      const root = machine('oci-h100');
      if (merged) mergeNics(root, defaultParameters);
      const [{ systems } = { systems: [] }] = prepareCluster({ hosts: [{ machine: root, count: 2 }] }, defaultParameters);
      return systems[0]?.system.nets.length ?? 0;
    };
    const rails = (count: number) =>
      new Set(
        Array.from(
          { length: count },
          (_, nic) => fabricUses(leaves('optimised', 1, 1), { node: 0, nic }, { node: 1, nic })[0]?.key,
        ),
      ).size;
    expect([nics(false), nics(true)].map((count) => [count, rails(count)])).toEqual([
      [16, 16],
      [8, 8],
    ]);
  });

  it('of rails keeps a rail below its leaf, and routes traffic between rails over the spine', () => {
    const fabric = leaves('optimised', 2, 4);
    expect(fabricUses(fabric, { node: 0, nic: 3 }, { node: 3, nic: 3 })).toEqual([]);
    expect(fabricUses(fabric, { node: 0, nic: 3 }, { node: 1, nic: 4 }).map(({ key }) => key)).toEqual([
      'up 0 0 3',
      'down 0 0 4',
    ]);
    expect(fabricUses(fabric, { node: 0, nic: 3 }, { node: 4, nic: 3 }).map(({ key }) => key)).toEqual([
      'up 0 0 3',
      'down 0 1 3',
    ]);
  });

  it('of rails only refuses traffic between rails', () => {
    expect(() => fabricUses(leaves('only', 1), { node: 0, nic: 3 }, { node: 1, nic: 4 })).toThrow(
      /does not connect NIC 3 of node 0 with NIC 4 of node 1/,
    );
    // With PXN a message leaves by the NIC of the receiver's rail.
    const pairOf = (environment: Record<string, string>) => {
      const { parameters } = parametersFromEnvironment(environment);
      const pair = simulatorOf(prepareCluster({ hosts: [{ machine: machine('dgx-h100'), count: 2 }] }, parameters), parameters);
      return () => pair.simulate('AllToAll', GiB, { environment: { ...defaultEnvironment, fabric: leaves('only', 1) } });
    };
    expect(pairOf({ NCCL_PXN_DISABLE: '1' })).toThrow(/fabric of rails only/);
    expect(pairOf({})).not.toThrow();
  });
});

describe('hosts below switches that stand for all', () => {
  const twelve = simulatorOf(
    prepareCluster({ hosts: [{ machine: machine('dgx-h100'), count: 12 }] }, defaultParameters),
    defaultParameters,
  );
  it.each<[string, Fabric]>([
    ['leaves', leaves('none', 4, 4)],
    ['rails', leaves('optimised', 4, 3)],
    ['a last leaf with fewer hosts', leaves('none', 3, 5)],
    ['pods of leaves', { rails: 'none', tiers: [...leaves('none', 1, 2).tiers, ...leaves('none', 4, 4).tiers] }],
    ['leaves with less than one host sends', leaves('none', 8, 4)],
  ])('take the time of whole simulations: %s', (_, fabric) => {
    const environment = { ...defaultEnvironment, fabric };
    for (const collective of ['AllGather', 'AllToAll', 'SendRecv'] as const) {
      const time = (options: { readonly unfolded?: boolean; readonly environment?: typeof environment }) =>
        twelve.simulate(collective, 2 ** 24, options)?.timeUs ?? 0;
      expect(time({ environment }) / time({ environment, unfolded: true })).toBeCloseTo(1, 3);
      if (collective === 'AllToAll') expect(time({ environment }) / time({})).toBeGreaterThan(1.1);
    }
  });

  it('count pairs of hosts that switches separate, of whole switches', () => {
    expect([...separatedShares(8, 4)]).toEqual([0, 0.25, 0.5, 0.75, 1, 0.75, 0.5, 0.25]);
    expect([...separatedShares(3, 2)]).toEqual([0, 0.5, 0.5]);
    expect([...separatedShares(2, 4)]).toEqual([0, 0]);
  });

  it('make no large trees whose branches fill the links up from leaves that small ones do not have', () => {
    const nodesOf = (count: number) =>
      planPrepared(prepareCluster({ hosts: [{ machine: machine('dgx-h100'), count }] }, defaultParameters), defaultParameters)
        .nodes;
    const many = nodesOf(64);
    const deep = (fabric: Fabric | undefined) => smallerTrees(many, fabric) !== undefined;
    const fabrics = [undefined, leaves('none', 8, 24), leaves('none', 16, 24), leaves('none', 8, 8), leaves('none', 8, 4)];
    expect(fabrics.map(deep)).toEqual([true, true, false, false, true]);
    expect(smallerTrees(nodesOf(32), undefined)).toBeUndefined();
  });
});

describe('a fabric that contradicts itself', () => {
  const hosts = [{ name: 'big', count: 4, nNics: 8 }];
  it.each<[string, Fabric, typeof hosts, RegExp | undefined]>([
    ['fits', leaves('optimised', 2), hosts, undefined],
    [
      'tiers that are no whole number of switches',
      {
        rails: 'none',
        tiers: [
          { hosts: 2, oversubscription: 1 },
          { hosts: 3, oversubscription: 1 },
        ],
      },
      hosts,
      /no whole number of switches with 2/,
    ],
    ['nothing above an oversubscribed tier', leaves('none', 2, 4), hosts, /nothing goes up from a switch above all 4 hosts/],
    [
      'rails of hosts with other NICs',
      leaves('only', 1),
      [...hosts, { name: 'half', count: 1, nNics: 4 }],
      /big has 8 and half 4/,
    ],
    ['rails without NICs', leaves('only', 1), [{ name: 'big', count: 4, nNics: 0 }], /big has none/],
  ])('%s', (_, fabric, all, message) => {
    const fault = fabricFault(fabric, all);
    if (message === undefined) expect(fault).toBeUndefined();
    else expect(fault).toMatch(message);
  });

  const file = (fabric: string) => parseClusterFile(`machines: dgx-h100:4\nfabric: ${fabric}\n`);
  it('is read from a cluster file', () => {
    expect(file('{ rails: only, tiers: [{ hosts: 2, oversubscription: 1.5 }, { hosts: 4 }] }').fabric?.fabric).toEqual({
      rails: 'only',
      tiers: [
        { hosts: 2, oversubscription: 1.5 },
        { hosts: 4, oversubscription: 1 },
      ],
    });
    expect(parseClusterFile('machines: dgx-h100:4').fabric).toBeUndefined();
  });

  it.each([
    ['{ rails: crossed }', /rails is "crossed"; it has to be one of none, optimised, only/],
    ['{ tiers: [{ oversubscription: 2 }] }', /has no field hosts/],
    ['{ tiers: [{ hosts: 2, oversubscription: 0.5 }] }', /oversubscription is 0.5; it has to be a number from 1 on/],
    ['{ spines: 2 }', /fabric has no field spines/],
  ])('%s is refused with its line', (fabric, message) => {
    expect(() => file(fabric)).toThrow(message);
    expect(() => file(fabric)).toThrow(expect.objectContaining({ line: 2 }) as Error);
  });
});
