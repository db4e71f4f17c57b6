import { describe, expect, it } from 'vitest';
import { GraphId, Pattern } from '../../../../src/planner/graph/graph.js';
import { mergeHosts } from '../../../../src/planner/graph/merge/merge.js';
import { channelCountLine, nvlsHeadLines, ringLines, treesLine } from '../../../../src/planner/graph/merge/print.js';
import { defaultParameters } from '../../../../src/planner/parameters.js';
import { PathType } from '../../../../src/planner/topology/types.js';
import { graph, host } from './made-hosts.js';
import { collnetChainsLine, collnetDirectLine, nvlsTreesLine } from './nccl-lines.js';

describe('lines of NVLink SHARP', () => {
  const heads = [0, 2, 4, 6].map((head) => [head, 0, 0, 0, 0, 0, 0, 0]);
  const nvls = graph(heads, { id: GraphId.NVLS, pattern: Pattern.NVLS, typeInter: PathType.PIX });
  const h100 = host([[0, 1, 2, 3, 4, 5, 6, 7]], { nvls: true, graphs: { nvls }, rank: { compCap: 90 } });

  it('name heads by host, and the links of a rank on even and on odd channels', () => {
    const merged = mergeHosts([{ host: h100, count: 2 }], defaultParameters);
    expect(nvlsHeadLines(merged)).toEqual([
      'NVLS Head  0:  0  8',
      'NVLS Head  1:  2 10',
      'NVLS Head  2:  4 12',
      'NVLS Head  3:  6 14',
    ]);
    expect(nvlsTreesLine(merged, 0)).toBe('NVLS Trees : 17/8/-1->0->-1 17/-1/-1->0->8');
    expect(nvlsTreesLine(merged, 1)).toBe('NVLS Trees : 16/-1/-1->1->-1 16/-1/-1->1->-1');
  });

  it('are not printed on one host', () => {
    const merged = mergeHosts([{ host: h100, count: 1 }], defaultParameters);
    expect([nvlsHeadLines(merged), nvlsTreesLine(merged, 0)]).toEqual([[], '']);
  });
});

it('the line of counts is that of NVIDIA/nccl#2397, which NCCL 2.30.4 wrote on two hosts of two GPUs', () => {
  const merged = mergeHosts([{ host: host([[0, 1]], { rank: { p2pChannelsPerPeer: 1 } }), count: 2 }], defaultParameters);
  expect(channelCountLine(merged)).toBe(
    '2 coll channels, 2 collnet channels, 0 nvls channels, 2 p2p channels, 1 p2p channels per peer',
  );
});

describe('long lines', () => {
  const merged = mergeHosts(
    [{ host: host(Array.from({ length: 32 }, () => [0, 1, 2, 3, 4, 5, 6, 7])), count: 100 }],
    defaultParameters,
  );

  it('of rings end with dots after 127 characters, as NCCL cuts them', () => {
    expect(ringLines(merged)[3]).toMatch(/^Channel 03\/64 : {3}0 {3}1 .*\.\.\.$/);
    expect(ringLines(merged).map((line) => line.length)).toEqual(new Array(64).fill(127));
  });

  it('of trees are cut at the end of the buffer', () => {
    expect(treesLine(merged, 799)).toHaveLength('Trees'.length + 1022);
  });

  it('are complete on request', () => {
    expect(ringLines(merged, { whole: true })[0]).toMatch(/ 799$/);
    expect(treesLine(merged, 799, { whole: true })).toContain('[63]');
  });
});

it('lines of CollNet name the network as the rank after the last', () => {
  const ways = [
    [0, 1, 2],
    [2, 1, 0],
  ];
  const graphs = {
    collnetChain: graph(ways, { id: GraphId.COLLNET_CHAIN, pattern: Pattern.TREE, collNet: true }),
    collnetDirect: graph(ways, { id: GraphId.COLLNET_DIRECT, pattern: Pattern.COLLNET_DIRECT, collNet: true }),
  };
  const merged = mergeHosts([{ host: host(ways, { graphs, collnetDevices: 2 }), count: 2 }], {
    ...defaultParameters,
    collnetEnable: 1,
  });
  expect(collnetChainsLine(merged, 5)).toBe('Connected Collnet Chains  [0] -1->5->4 [1] 4->5->6 [2] -1->5->4 [3] 4->5->6');
  expect(collnetDirectLine(merged, 0, 3)).toBe(
    'CollNetDirect channel 0 rank 3 down  4  5 nDown 2 up  5 heads  3  5 nUp 1 nHeads 2 headRank 0 out 6 shift 0',
  );
  expect(collnetDirectLine(merged, 1, 4)).toBe(
    'CollNetDirect channel 1 rank 4 up  3  5 heads  3  5 nUp 2 nHeads 2 headRank -1 out -1 shift 1',
  );
});
