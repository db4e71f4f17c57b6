import { describe, expect, it } from 'vitest';
import { InputError, InvalidArgumentError, InvalidUsageError } from '../../../../src/errors.js';
import { treeLinks } from '../../../../src/planner/graph/merge/links.js';
import { parametersFromEnvironment } from '../../../../src/planner/parameters.js';
import type { Cluster } from '../../../../src/planner/plan/cluster.js';
import { plan, type PlanOptions } from '../../../../src/planner/plan/plan.js';
import { planFromJson, planToJson } from '../../../../src/planner/plan/plan-json.js';
import { applyOverrides } from '../../../../src/planner/plan/overrides.js';
import { planForRank } from '../../../../src/planner/plan/rank-plan.js';
import { buildSystem } from '../../../../src/planner/topology/build/build-system.js';
import { machine } from '../../../../src/planner/topology/catalogue/machines.js';
import { defaultParameters } from '../../../../src/planner/parameters.js';
import { parseXml } from '../../../../src/planner/topology/xml/parse.js';
import { descendants, detach, type XmlElement } from '../../../../src/planner/topology/xml/tree.js';
import { writeXml } from '../../../../src/planner/topology/xml/write.js';
import { inputError } from '../topology/input-error.js';

const planOf = (cluster: Cluster, environment: Record<string, string> = {}, options: PlanOptions = {}) =>
  plan(cluster, parametersFromEnvironment(environment).parameters, options);

/** Two hosts with four GPUs each and a smaller host. */
const mixed: Cluster = {
  hosts: [
    { machine: machine('hgx-a100-4'), count: 2, name: 'a100' },
    { machine: machine('pcie-3-l40s'), count: 1, name: 'l40s' },
  ],
};

/** Hosts whose NICs can reduce. */
const sharp = (count: number): Cluster => {
  const root = machine('hgx-a100-4');
  for (const element of descendants(root)) if (element.name === 'net') element.attributes.set('coll', '1');
  return { hosts: [{ machine: root, count }] };
};

describe('plan', () => {
  it('of eight GeForce cards at two switches goes through the CPUs: 5 GB/s, as in NCCL’s log', () => {
    const text = writeXml(applyOverrides(machine('pcie-8-rtx4090'), { nics: 0 })).replaceAll(
      /vendor="AuthenticAMD" familyid="175" modelid="17"/g,
      'vendor="GenuineIntel" familyid="6" modelid="106"',
    );
    const { graphs } = plan({ hosts: [{ machine: parseXml(text).root, count: 1 }] });
    expect(graphs.ring).toMatchObject({ nChannels: 1, bwIntra: 5 });
  });

  it('takes a machine as XML or as the graph made of it', () => {
    const root = machine('pcie-4-l40s');
    const fromXml = plan({ hosts: [{ machine: root, count: 2 }] });
    const fromSystem = plan({ hosts: [{ machine: buildSystem(root, { parameters: defaultParameters }), count: 2 }] });
    expect(planToJson(fromSystem)).toEqual(planToJson(fromXml));
  });

  it('does not depend on the grouping of hosts', () => {
    const root = machine('hgx-a100-4');
    const together = plan({ hosts: [{ machine: root, count: 5 }] });
    const apart = plan({
      hosts: [
        { machine: root, count: 2 },
        { machine: root, count: 3 },
      ],
    });
    expect(apart.rings).toEqual(together.rings);
    expect(apart.trees).toEqual(together.trees);
    expect(apart.agreement).toEqual(together.agreement);
  });

  it('searches each machine once, however many hosts are like it', () => {
    const root = machine('gh200');
    let searches = 0;
    planOf(
      {
        hosts: [
          { machine: root, count: 7 },
          { machine: machine('pcie-2-l40s'), count: 1 },
          { machine: root, count: 2 },
        ],
      },
      {},
      {
        onSearch: (event) => {
          if (event.kind === 'search' && event.graph === 0) searches++;
        },
      },
    );
    expect(searches).toBe(2);
  });

  describe('searches equal machines from several files once', () => {
    const searchesOf = (first: XmlElement, second: XmlElement) => {
      let searches = 0;
      const made = planOf(
        {
          hosts: [
            { machine: first, count: 1 },
            { machine: second, count: 1 },
          ],
        },
        {},
        {
          onSearch: (event) => {
            if (event.kind === 'search' && event.graph === 0) searches++;
          },
        },
      );
      expect(made.nodes.kinds).toHaveLength(searches);
      return searches;
    };
    const changed = (attribute: string, change: (value: string) => string) => {
      const root = machine('hgx-a100-4');
      for (const element of descendants(root)) {
        const value = element.attributes.get(attribute);
        if (element.name === 'net' && value !== undefined) element.attributes.set(attribute, change(value));
      }
      return root;
    };

    it.each([
      ['the same machine', machine('hgx-a100-4'), 1],
      ['cards with other GUIDs', changed('guid', (guid) => `0x9${guid.slice(3)}`), 1],
      ['one card where there were two', changed('guid', () => '0x1'), 2],
      ['another speed', changed('speed', () => '100000'), 2],
    ])('%s', (_, other, searches) => {
      expect(searchesOf(machine('hgx-a100-4'), other)).toBe(searches);
    });
  });

  it('refuses contradictory parameters and describes what NCCL would do', () => {
    const environment = { NCCL_MIN_NCHANNELS: '8', NCCL_MAX_NCHANNELS: '3' };
    const cluster = { hosts: [{ machine: machine('hgx-a100-4'), count: 2 }] };
    expect(() => planOf(cluster, environment)).toThrow(InvalidUsageError);
    expect(() => planOf(cluster, environment)).toThrow(
      /NCCL_MIN_NCHANNELS=8 is above NCCL_MAX_NCHANNELS=3: NCCL would take at most 3 channels, then copy them until there are 8/,
    );
    const followed = planOf(cluster, environment, { contradictions: 'follow' });
    expect([...followed.treeOfChannel]).toEqual([0, 1, 2, 0, 1, 2, 0, 1]);
  });

  const withRanks = (change: (rank: number) => number) => {
    const root = machine('pcie-4-l40s');
    for (const element of descendants(root)) {
      if (element.name === 'gpu') element.attributes.set('rank', String(change(Number(element.attributes.get('rank')))));
    }
    return root;
  };

  it('accepts the second host of a job: its ranks only give the order of GPUs', () => {
    const second = plan({ hosts: [{ machine: withRanks((rank) => 4 + rank), count: 2 }] });
    expect(planToJson(second)).toEqual(planToJson(plan({ hosts: [{ machine: machine('pcie-4-l40s'), count: 2 }] })));
  });

  it('refuses a machine in which two GPUs have the same rank', () => {
    expect(() => plan({ hosts: [{ machine: withRanks((rank) => rank >> 1), count: 2, name: 'odd' }] })).toThrow(
      /odd: two of its GPUs have rank 0/,
    );
  });

  it('names the faulty one of several machines, and the graph file that does not match it', () => {
    const alone = machine('hgx-a100-4');
    for (const element of [...descendants(alone)]) if (element.name === 'nic') detach(element);
    const hosts = [
      { machine: machine('gh200'), count: 1 },
      { machine: alone, count: 1, name: 'cut off' },
    ];
    expect(inputError(() => plan({ hosts }))).toMatchObject({
      code: 'NO_PATH',
      ncclResult: 3,
      ranks: [0, 1, 2, 3],
      message: expect.stringMatching(/^cut off: ranks 0, 1, 2, 3 have to reach ranks on other hosts/) as string,
    });
    const root = parseXml('<graphs version="2"/>').root;
    expect(
      inputError(() =>
        planOf(
          {
            hosts: [
              { machine: machine('gh200'), count: 1, name: 'one' },
              { machine: machine('gh200-4'), count: 1 },
            ],
          },
          {},
          { graphFile: { root, fileName: 'g.xml' } },
        ),
      ),
    ).toMatchObject({
      file: 'g.xml',
      line: 1,
      message: 'one: <graphs> (line 1): version 2 is not 1, the only one that NCCL reads',
    });
  });

  it('refuses a wrong count and an empty cluster', () => {
    expect(() => plan({ hosts: [{ machine: machine('gh200'), count: 0 }] })).toThrow(InvalidArgumentError);
    expect(() => plan({ hosts: [] })).toThrow(/no ranks/);
  });
});

describe('planForRank', () => {
  it.each([
    ['hosts that differ', mixed, {}],
    ['a network that reduces', sharp(4), { NCCL_COLLNET_ENABLE: '1' }],
  ] as const)('neighbours name each other: %s', (_, cluster, environment) => {
    const made = planOf(cluster, environment);
    const ranks = Array.from({ length: made.nodes.nRanks }, (__, rank) => planForRank(made, rank));
    expect(made.collnet !== undefined).toBe('NCCL_COLLNET_ENABLE' in environment);
    for (const { rank, channels, collnetDirect } of ranks) {
      for (const head of collnetDirect?.up ?? []) expect(ranks[head]?.collnetDirect?.down).toContain(rank);
      channels.forEach(({ ring, tree, collnetChain }, channel) => {
        const below = collnetChain?.down ?? -1;
        if (below >= 0) expect(ranks[below]?.channels[channel]?.collnetChain?.up).toBe(rank);
        expect(ranks[ring.next]?.channels[channel]?.ring.prev).toBe(rank);
        expect(ring.order[0]).toBe(rank);
        expect(ring.order[1]).toBe(ring.next);
        expect([...ring.order].sort((a, b) => a - b)).toEqual(ranks.map((other) => other.rank));
        for (const child of tree.down) if (child >= 0) expect(ranks[child]?.channels[channel]?.tree.up).toBe(rank);
        if (tree.up >= 0) expect(ranks[tree.up]?.channels[channel]?.tree.down).toContain(rank);
      });
      expect(channels.length).toBe(made.nChannels);
    }
    for (let channel = 0; channel < made.nChannels; channel++) {
      expect(ranks.filter(({ channels }) => channels[channel]?.tree.up === -1)).toHaveLength(1);
    }
  });

  it('in every round each rank sends to the one that receives from it', () => {
    const made = plan(mixed);
    const schedules = Array.from({ length: made.nodes.nRanks }, (_, rank) => planForRank(made, rank).p2pSchedule);
    schedules.forEach(({ send, receive }, rank) => {
      expect([...send].sort((a, b) => a - b)).toEqual(schedules.map((__, other) => other));
      send.forEach((peer, round) => expect(schedules[peer]?.receive[round]).toBe(rank));
      receive.forEach((peer, round) => expect(schedules[peer]?.send[round]).toBe(rank));
    });
  });

  it('refuses a rank or a channel that does not exist', () => {
    const made = plan(mixed);
    expect(() => planForRank(made, 11)).toThrow(/no rank 11: ranks are 0 to 10/);
    expect(() => treeLinks(made, made.nChannels, 0)).toThrow(InvalidArgumentError);
  });
});

describe('plan as JSON', () => {
  const roundTrip = (json: object): unknown => JSON.parse(JSON.stringify(json));

  it.each([
    ['hosts that differ', mixed, {}],
    [
      'one host',
      { hosts: [{ machine: machine('dgx-h200'), count: 1 }] },
      { NCCL_NVLS_CHUNKSIZE: '65536', NCCL_NETDEVS_POLICY: 'MAX:1' },
    ],
    [
      'a host that is several nodes',
      { hosts: [{ machine: machine('pcie-3-l40s'), count: 2 }] },
      { NCCL_P2P_DISABLE: '1', NCCL_SHM_DISABLE: '1' },
    ],
    ['a network that reduces', sharp(3), { NCCL_COLLNET_ENABLE: '1' }],
  ] as const)('comes back as it was: %s', (_, cluster, environment) => {
    const made = planOf(cluster, environment);
    const back = planFromJson(roundTrip(planToJson(made)));
    expect(back).toEqual(made);
    expect(planForRank(back, 1)).toEqual(planForRank(made, 1));
  });

  it.each([
    ['another format', { format: 'log' }, /plan\.format is "log"/],
    ['no ring', { rings: undefined }, /plan\.rings is missing/],
    [
      'a rank that is not there',
      { rings: [[0, 1, 2, 9]] },
      /plan\.rings\[0\]\[3\] is 9; it has to be a whole number from 0 to 3/,
    ],
    ['a ring with a rank twice', { rings: [[0, 1, 2, 2]] }, /plan\.rings\[0\] is \[0,1,2,2\].*rank 2 is there twice/],
    ['a ring too short', { rings: [[0, 1, 2]] }, /plan\.rings\[0\] has 3 entries; it has to have 4/],
    ['a channel without tree', { treeOfChannel: [0, 7] }, /plan\.treeOfChannel\[1\] is 7/],
    ['an unknown parameter', { parameters: { speed: 9 } }, /plan\.parameters\.speed/],
    [
      'a parameter of another type',
      { parameters: { crossNic: 'yes' } },
      /plan\.parameters\.crossNic is "yes"; it has to be a number/,
    ],
    [
      'a host of an unknown kind',
      { hosts: [{ name: '', count: 1, nRanks: 4, nodes: [3] }] },
      /plan\.hosts\[0\]\.nodes\[0\] is 3/,
    ],
  ])('with %s is refused with the place', (_, change, message) => {
    const json = planToJson(planOf({ hosts: [{ machine: machine('pcie-4-l40s'), count: 1 }] }, { NCCL_MAX_NCHANNELS: '2' }));
    const wrong = roundTrip({ ...json, ...change });
    expect(() => planFromJson(wrong)).toThrow(InputError);
    expect(() => planFromJson(wrong)).toThrow(message);
  });
});
