import { describe, expect, it } from 'vitest';
import { InputError, InvalidArgumentError } from '../../../../src/errors.js';
import { CrossNic, GraphId, Pattern } from '../../../../src/planner/graph/graph.js';
import { type Merged, mergeHosts } from '../../../../src/planner/graph/merge/merge.js';
import type { HostRun } from '../../../../src/planner/graph/merge/nodes.js';
import { describeMergeEvent, type MergeEvent } from '../../../../src/planner/graph/merge/trace.js';
import { defaultParameters, parametersFromEnvironment } from '../../../../src/planner/parameters.js';
import { CpuArch, CpuVendor } from '../../../../src/planner/topology/system.js';
import { PathType } from '../../../../src/planner/topology/types.js';
import { graph, host } from './made-hosts.js';

const merge = (runs: readonly HostRun[], environment: Record<string, string> = {}) =>
  mergeHosts(runs, parametersFromEnvironment(environment).parameters);

const ring = ({ rings, nodes }: Merged, number: number, from = 0) => {
  const order = [...rings.order.subarray(number * nodes.nRanks, (number + 1) * nodes.nRanks)];
  const start = order.indexOf(from);
  return [...order.slice(start), ...order.slice(0, start)];
};

describe('rings', () => {
  it('begin with rank 0 at any position in the first host', () => {
    const merged = merge([{ host: host([[2, 0, 1]]), count: 2 }]);
    expect(ring(merged, 0)).toEqual([0, 1, 5, 3, 4, 2]);
    expect([...merged.rings.order.subarray(0, 6)]).toEqual(ring(merged, 0));
    expect(merged.rings.position[4]).toBe(4);
  });

  it('swap in pairs on hosts at odd places where they cross NICs', () => {
    const crossed = host(
      [
        [0, 1],
        [1, 0],
      ],
      {
        graphs: {
          ring: graph(
            [
              [0, 1],
              [1, 0],
            ],
            { crossNic: CrossNic.PAIRED },
          ),
        },
      },
    );
    const merged = merge([{ host: crossed, count: 3 }]);
    expect(ring(merged, 0)).toEqual([0, 1, 3, 2, 4, 5]);
    expect(ring(merged, 1)).toEqual([0, 2, 3, 5, 4, 1]);
  });

  it('do not swap where all hosts have an odd number of channels', () => {
    const three = [
      [0, 1],
      [1, 0],
      [0, 1],
    ];
    const crossed = host(three, { graphs: { ring: graph(three, { crossNic: CrossNic.PAIRED }) } });
    expect(ring(merge([{ host: crossed, count: 2 }]), 0)).toEqual([0, 1, 2, 3]);
  });

  it('of each host serve as many channels as the host with the fewest', () => {
    const merged = merge([
      {
        host: host([
          [0, 1],
          [1, 0],
          [0, 1],
        ]),
        count: 1,
      },
      { host: host([[0, 1]]), count: 1 },
    ]);
    expect(merged.graphs.ring.nChannels).toBe(1);
    expect(merged.nChannels).toBe(2);
    expect([...merged.ringOfChannel]).toEqual([0, 0]);
    expect([...merged.treeOfChannel]).toEqual([0, 1]);
  });

  it('that visit a rank twice are refused with the host and the rank', () => {
    const wrong = host([[0, 1, 1]], { ranks: [0, 1, 2] });
    expect(() =>
      merge([
        { host: host([[0, 1, 2]]), count: 1 },
        { host: { ...wrong, nRanks: 3 }, count: 1 },
      ]),
    ).toThrow(/ring 0 of node 1 visits rank 4 twice/);
  });

  it('that leave out a rank are refused with the rank', () => {
    const wrong = host([[0, 1]], { ranks: [0, 1, 2] });
    expect(() => merge([{ host: { ...wrong, nRanks: 3 }, count: 1 }])).toThrow(/ring 0 does not contain rank 2/);
  });
});

describe('trees', () => {
  const links = ({ trees, nodes }: Merged, tree: number) =>
    Array.from({ length: nodes.nRanks }, (_, rank) => {
      const index = tree * nodes.nRanks + rank;
      return `${trees.down.subarray(index * 3, index * 3 + 3).join('/')}->${rank}->${trees.up[index] ?? ''}`;
    });
  const withPattern = (pattern: Pattern) =>
    host([[0, 1, 2]], { graphs: { tree: graph([[0, 1, 2]], { id: GraphId.TREE, pattern }) } });

  const below = ['-1/-1/-1->2->1', '5/-1/-1->4->3', '-1/-1/-1->5->4'];
  it.each([
    ['TREE', ['1/3/-1->0->-1', '2/-1/-1->1->0', '4/-1/-1->3->0'], ['1/-1/-1->0->3', '4/0/-1->3->-1']],
    ['BALANCED_TREE', ['1/3/-1->0->-1', '2/-1/-1->1->0', '4/-1/-1->3->0'], ['1/-1/-1->0->3', '4/0/-1->3->-1']],
    ['SPLIT_TREE', ['1/-1/-1->0->-1', '2/3/-1->1->0', '4/-1/-1->3->1'], ['1/-1/-1->0->4', '4/-1/-1->3->-1']],
  ] as const)('of two hosts with pattern %s: the only child of the root host is its second', (name, first, second) => {
    const merged = merge([{ host: withPattern(Pattern[name]), count: 2 }]);
    expect(links(merged, 0)).toEqual(expect.arrayContaining([...first, ...below]));
    expect(links(merged, 1)).toEqual(expect.arrayContaining([...second]));
  });

  it('of four hosts with BALANCED_TREE: the first child is connected to the second rank', () => {
    // First tree of hosts: 0 ─ 2 ─ (1, 3); host 1 is the first child of host 2.
    const tree = links(merge([{ host: withPattern(Pattern.BALANCED_TREE), count: 4 }]), 0);
    expect(tree[3]).toBe('4/-1/-1->3->7');
    expect(tree[7]).toBe('8/3/-1->7->6');
    expect(tree[6]).toBe('7/9/-1->6->0');
  });
});

describe('hosts that differ', () => {
  it('use the worst value of each property', () => {
    const fast = host(
      [
        [0, 1],
        [1, 0],
      ],
      {
        graphs: {
          ring: graph(
            [
              [0, 1],
              [1, 0],
            ],
            { bwIntra: 40, bwInter: 24, sameChannels: true },
          ),
        },
      },
    );
    const slow = host([[0]], {
      graphs: { ring: graph([[0]], { bwIntra: 60, bwInter: 3, typeInter: PathType.SYS, crossNic: CrossNic.ALLOWED }) },
    });
    const { ring: agreed } = merge([
      { host: fast, count: 1 },
      { host: slow, count: 1 },
    ]).graphs;
    expect(agreed).toMatchObject({
      nChannels: 1,
      bwIntra: 40,
      bwInter: 3,
      typeInter: PathType.SYS,
      crossNic: CrossNic.ALLOWED,
      sameChannels: false,
    });
  });

  it('have mixed CPUs, the fewest and the most local ranks, and the tables of all', () => {
    const other = host([[1, 0]], { cpuArch: CpuArch.ARM, cpuVendor: CpuVendor.AMD, rank: { compCap: 100, minNetGBps: 3 } });
    const { agreement, nodes } = merge([
      { host: host([[0, 1, 2]]), count: 1 },
      { host: other, count: 2 },
    ]);
    expect(agreement).toMatchObject({
      nRanks: 7,
      nNodes: 3,
      minLocalRanks: 2,
      maxLocalRanks: 3,
      minCompCap: 80,
      maxCompCap: 100,
      minNetGBps: 3,
      cpuArch: CpuArch.MIXED,
      cpuVendor: CpuVendor.MIXED,
    });
    expect([...nodes.rankToNode]).toEqual([0, 0, 0, 1, 1, 2, 2]);
    expect([...nodes.rankToLocalRank]).toEqual([0, 1, 2, 0, 1, 0, 1]);
  });

  it('in network devices are refused where the parameters ask for it', () => {
    const runs = [
      { host: host([[0]]), count: 1 },
      { host: host([[0]], { netDevices: 8 }), count: 1 },
    ];
    expect(merge(runs).nChannels).toBe(2);
    expect(() => merge(runs, { NCCL_IGNORE_NET_MISMATCH: '0' })).toThrow(/rank 0 has 1 network devices, others have 8/);
  });

  it('of which one has no channel are refused with the host', () => {
    const none = host([[0]], { graphs: { ring: graph([]) } });
    try {
      merge([
        { host: host([[0]]), count: 2 },
        { host: none, count: 1 },
      ]);
      expect.unreachable();
    } catch (error) {
      expect(error).toBeInstanceOf(InputError);
      expect(error).toMatchObject({ code: 'NO_CHANNEL', ncclResult: 3, rank: 2 });
    }
  });
});

describe('a cluster', () => {
  it('without ranks or with a wrong count is refused', () => {
    expect(() => merge([])).toThrow(InvalidArgumentError);
    expect(() => merge([{ host: host([[0]]), count: 0.5 }])).toThrow(/whole number/);
  });

  it('reports its decisions to a listener', () => {
    const events: MergeEvent[] = [];
    const wide = host(
      [
        [0, 1],
        [1, 0],
      ],
      {
        graphs: {
          ring: graph(
            [
              [0, 1],
              [1, 0],
            ],
            { crossNic: CrossNic.PAIRED },
          ),
        },
      },
    );
    mergeHosts([{ host: wide, count: 2 }], { ...defaultParameters, minChannels: 6, collnetEnable: 1 }, (event) =>
      events.push(event),
    );
    expect(events.map(describeMergeEvent)).toEqual([
      'No reduction in the network: some node has no channel for it.',
      '2 channels become 4: each is used twice, once for each half of the double binary tree.',
      '4 channels become 6: NCCL_MIN_NCHANNELS or NCCL_MIN_CTAS asks for more, so the first are copied.',
      'On 1 node at an odd place each pair of rings changes places, so that a ring that leaves by one rail enters by the same.',
    ]);
  });
});
