import { graphNames } from '../../src/planner/graph/graph.js';
import { collnetDirectOf } from '../../src/planner/graph/merge/collnet.js';
import type { Merged } from '../../src/planner/graph/merge/merge.js';
import { kindOf } from '../../src/planner/graph/merge/nodes.js';
import { nvlsLinksOf } from '../../src/planner/graph/merge/nvls.js';
import { p2pScheduleOf } from '../../src/planner/graph/merge/p2p-schedule.js';
import { rowOf } from '../../src/planner/graph/merge/rings.js';
import { TREE_ARITY } from '../../src/planner/graph/merge/trees.js';
import { pathTypeNames } from '../../src/planner/topology/types.js';
import { type Difference, firstDifference } from './difference.js';
import { isRecord } from './oracle-case.js';

/** Comparison of the merge, in the oracle's own form: aligned `graphs`, `comm`, `channels` and `nvls`. */

/** Headers of the graphs after all ranks agreed on them. */
export function alignedGraphsDifference(expected: Expected, merged: Merged): Difference | undefined {
  const actual = Object.fromEntries(
    graphNames.map((name) => {
      const { typeIntra, typeInter, sameChannels, collNet, ...numbers } = merged.graphs[name];
      return [
        name,
        {
          ...numbers,
          typeIntra: pathTypeNames[typeIntra],
          typeInter: pathTypeNames[typeInter],
          sameChannels: sameChannels ? 1 : 0,
          collNet: collNet ? 1 : 0,
        },
      ];
    }),
  );
  return firstDifference(withoutUnset(expected['graphs']), actual, 'graphs');
}

/** Old versions leave headers of graphs unset that they do not compute. */
function withoutUnset(headers: unknown): unknown {
  if (!isRecord(headers)) return headers;
  return Object.fromEntries(Object.entries(headers).map(([name, header]) => [name, header ?? { nChannels: 0 }]));
}

/** Numbers and tables of the communicator, as rank 0 holds them, and its schedule of send and receive. */
export function commDifference(expected: Expected, merged: Merged): Difference | undefined {
  const comm = firstDifference(expected['comm'], describeComm(merged), 'comm');
  if (comm !== undefined) return comm;
  const { send, receive } = p2pScheduleOf(merged.nodes, merged.p2p, 0);
  return firstDifference(expected['p2pSchedule0'], { send: [...send], recv: [...receive] }, 'p2pSchedule0');
}

function describeComm({ nodes, agreement, nChannels, collChannels, nvls, collnet, buffers, p2p }: Merged): object {
  const number = (flag: boolean) => (flag ? 1 : 0);
  return {
    nRanks: nodes.nRanks,
    nNodes: nodes.nNodes,
    nodesFirstRank: Array.from(
      { length: nodes.nNodes },
      (_, node) => (nodes.rankBase[node] ?? 0) + (rowOf(kindOf(nodes, node).graphs.ring, 0)[0] ?? 0),
    ),
    rankToNode: [...nodes.rankToNode],
    rankToLocalRank: [...nodes.rankToLocalRank],
    minLocalRanks: agreement.minLocalRanks,
    maxLocalRanks: agreement.maxLocalRanks,
    minCompCap: agreement.minCompCap,
    maxCompCap: agreement.maxCompCap,
    cpuArch: agreement.cpuArch,
    cpuVendor: agreement.cpuVendor,
    nChannels,
    collChannels,
    nvlsSupport: number(nvls !== undefined),
    nvlsChannels: nvls?.nChannels ?? 0,
    nvlsChunkSize: nvls?.chunkBytes ?? 0,
    nvlsTreeMaxChunkSize: nvls?.treeMaxChunkBytes ?? 0,
    collnetEnable: number(collnet !== undefined),
    collNetHeadsNum: collnet?.headCount ?? 0,
    collNetChainSupport: number(collnet?.chainSupport ?? false),
    p2pnChannels: p2p.nChannels,
    p2pnChannelsPerPeer: p2p.channelsPerPeer,
    p2pMaxPeers: p2p.maxPeers,
    p2pChunkSize: p2p.chunkBytes,
    p2pSchedGroupSize: p2p.scheduleGroupSize,
    buffSizes: [buffers.ll, buffers.ll128, buffers.simple],
    minNetBw: agreement.minNetGBps,
    minNetCount: agreement.minNetCount,
    maxTreePattern: agreement.maxTreePattern,
    isAllNvlink: number(agreement.allNvLink),
    isAllDirectP2p: number(agreement.allDirectP2p),
    isAllDirectNvlink: number(agreement.allDirectNvLink),
    isOneRPN: number(agreement.maxLocalRanks === 1),
  };
}

/** Ring, tree and CollNet links of every channel. */
export function channelsDifference(expected: Expected, merged: Merged): Difference | undefined {
  const ranks = comparedRanks(expected, merged);
  const actual = Array.from({ length: merged.nChannels }, (_, channel) => describeChannel(merged, channel, ranks));
  return firstDifference(withoutReferences(expected['channels']), actual, 'channels');
}

function describeChannel(
  { nodes, ringOfChannel, treeOfChannel, rings, trees, collnet }: Merged,
  channel: number,
  ranks: readonly number[],
): object {
  const { nRanks } = nodes;
  const ring = (ringOfChannel[channel] ?? 0) * nRanks;
  const tree = (treeOfChannel[channel] ?? 0) * nRanks;
  const described = {
    ring: [...rings.order.subarray(ring, ring + nRanks)],
    treeUp: ranks.map((rank) => trees.up[tree + rank]),
    treeDown: ranks.map((rank) => [...trees.down.subarray((tree + rank) * TREE_ARITY, (tree + rank + 1) * TREE_ARITY)]),
    treeDepth: trees.depth,
  };
  if (collnet === undefined) return described;
  return {
    ...described,
    collnetChainUp: ranks.map((rank) => collnet.chainUp[ring + rank]),
    collnetChainDown: ranks.map((rank) => [collnet.chainDown[ring + rank], -1, -1]),
    collnetChainDepth: collnet.chainDepth,
    collnetDirect: ranks.map((rank) => {
      const direct = collnetDirectOf(nodes, collnet, rank);
      return { ...direct, up: padded(direct.up, 7), down: padded(direct.down, 7) };
    }),
  };
}

function padded(peers: readonly number[], length: number): number[] {
  return Array.from({ length }, (_, index) => peers[index] ?? -1);
}

/** NVLink SHARP links of every channel for it. */
export function nvlsDifference(expected: Expected, merged: Merged): Difference | undefined {
  const { nvls, nodes, collnet } = merged;
  const ranks = comparedRanks(expected, merged);
  const actual =
    nvls === undefined
      ? []
      : Array.from({ length: nvls.nChannels }, (_, channel) => {
          const links = ranks.map((rank) => nvlsLinksOf(nodes, nvls, collnet !== undefined, rank, channel));
          return {
            nHeads: nvls.nHeads,
            headRank: links.map(({ headRank }) => headRank),
            down: links.map(({ down }) => down),
            out: links.map(({ out }) => out),
            treeUp: links.map(({ treeUp }) => treeUp),
            treeDown: links.map(({ treeDown }) => treeDown),
          };
        });
  return firstDifference(withoutReferences(expected['nvls']), actual, 'nvls');
}

type Expected = Readonly<Record<string, unknown>>;

function comparedRanks(expected: Expected, merged: Merged): readonly number[] {
  const { ranks } = expected;
  return Array.isArray(ranks) ? ranks.map(Number) : Array.from({ length: merged.nodes.nRanks }, (_, rank) => rank);
}

/** Channels that say `sameAs` become what that channel is; their own number goes. */
function withoutReferences(channels: unknown): unknown {
  if (!Array.isArray(channels)) return channels;
  const contents = channels.map((channel: unknown): Expected =>
    Object.fromEntries(Object.entries(isRecord(channel) ? channel : {}).filter(([key]) => key !== 'c')),
  );
  return contents.map((content) => (typeof content['sameAs'] === 'number' ? contents[content['sameAs']] : content));
}
