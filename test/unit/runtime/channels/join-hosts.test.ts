import { expect, test } from 'vitest';
import { ringFrom, treeLinks } from '../../../../src/planner/graph/merge/links.js';
import { defaultParameters } from '../../../../src/planner/parameters.js';
import { plan } from '../../../../src/planner/plan/plan.js';
import { parseXml } from '../../../../src/planner/topology/xml/parse.js';
import { joinHosts } from '../../../../src/runtime/channels/join-hosts.js';
import { searchMachine } from '../../../../src/runtime/channels/host-graphs.js';
import { madeTopology } from './made-topology.js';

const twoRails = madeTopology([
  { devs: [0, 2], nics: { eth0: 25_000 } },
  { devs: [1, 3], nics: { eth1: 25_000 } },
]);
const uneven = madeTopology([{ devs: [0, 1, 3], nics: { eth0: 25_000, eth1: 25_000 } }, { devs: [2] }]);
const oneRank = madeTopology([{ devs: [] }, { devs: [0], nics: { eth7: 10_000 } }]);

test.each([
  ['one rank on each host', [oneRank, oneRank], [[0], [1]]],
  [
    'ranks in blocks',
    [twoRails, uneven],
    [
      [0, 1, 2, 3],
      [4, 5, 6, 7],
    ],
  ],
  [
    'ranks dealt in turn',
    [uneven, twoRails],
    [
      [0, 2, 4, 6],
      [1, 3, 5, 7],
    ],
  ],
  ['hosts of different sizes', [oneRank, twoRails, oneRank], [[0], [1, 2, 3, 4], [5]]],
] as const)('rings are those of the planner: %s', (_, texts, ranks) => {
  const nRanks = ranks.flat().length;
  const machines = texts.map((text) => parseXml(text).root);
  const channels = joinHosts(
    machines.map((machine, host) => ({ ranks: ranks[host]!, ...searchMachine(machine, nRanks, undefined) })),
  );
  const planned = plan({ hosts: machines.map((machine) => ({ machine, count: 1 })) });
  const rankOf = ranks.flat();
  expect(channels.ringOfChannel).toEqual([...planned.ringOfChannel]);
  for (const [channel, ring] of channels.ringOfChannel.entries())
    expect(channels.rings[ring]!.order).toEqual([...ringFrom(planned, channel, rankOf.indexOf(0))].map((rank) => rankOf[rank]));
  const named = (planned: number): number => rankOf[planned] ?? -1;
  for (const [channel, tree] of channels.treeOfChannel.entries()) {
    for (const [place, rank] of rankOf.entries()) {
      const { up, down } = treeLinks(planned, channel, place);
      expect(channels.trees[tree]!.up[rank]).toBe(named(up));
      expect(channels.trees[tree]!.down[rank]).toEqual(down.filter((child) => child >= 0).map(named));
    }
  }
  for (const { order, nics } of channels.rings) for (const rank of order) expect(nics[rank]?.name).toMatch(/^eth/);
});

test('rings of two NICs use both', () => {
  const ranks = [[0, 1, 2, 3], [4, 5, 6, 7]]; // prettier-ignore
  const { rings } = joinHosts(ranks.map((own) => ({ ranks: own, ...searchMachine(parseXml(twoRails).root, 8, undefined) })));
  expect(new Set(rings.flatMap(({ nics }) => nics.map(({ name }) => name)))).toEqual(new Set(['eth0', 'eth1']));
});

test('heads and chains of CollNet are those of the planner, in the numbers of the communicator', () => {
  const ranks = [[0, 2, 4, 6], [1, 3, 5, 7]]; // prettier-ignore
  const parameters = { ...defaultParameters, collnetEnable: 1 };
  const { collnet } = joinHosts(
    ranks.map((own) => ({ ranks: own, ...searchMachine(parseXml(twoRails).root, 8, undefined, { parameters }) })),
    parameters,
  );
  // A head near each NIC: ranks 0 and 2 of a host are near eth0, 1 and 3 near eth1.
  const rails = collnet!.heads.map((heads) => heads.map((rank) => Math.floor(rank / 2) % 2).sort());
  expect(rails).toEqual([[0, 1], [0, 1]]); // prettier-ignore
  for (const [host, chains] of collnet!.chains.entries()) {
    expect(chains.length).toBeGreaterThan(0);
    for (const chain of chains) {
      expect([...chain].sort((a, b) => a - b)).toEqual(ranks[host]);
      expect(collnet!.heads[host]).toContain(chain[0]);
    }
  }
  const plain = joinHosts(ranks.map((own) => ({ ranks: own, ...searchMachine(parseXml(twoRails).root, 8, undefined) })));
  expect(plain.collnet).toBeUndefined();
});
