import {
  type ChannelGraph,
  CrossNic,
  GraphId,
  type HostGraphs,
  MAX_CHANNELS,
  Pattern,
} from '../../../../src/planner/graph/graph.js';
import type { HostContribution, NodeContribution, RankContribution } from '../../../../src/planner/graph/merge/contribution.js';
import { CpuArch, CpuVendor } from '../../../../src/planner/topology/system.js';
import { PathType } from '../../../../src/planner/topology/types.js';

/** A graph with these channels, each a list of ranks. */
export function graph(channels: readonly (readonly number[])[], values: Partial<ChannelGraph> = {}): ChannelGraph {
  return {
    id: GraphId.RING,
    pattern: Pattern.RING,
    crossNic: CrossNic.NEVER,
    collNet: false,
    minChannels: 1,
    maxChannels: MAX_CHANNELS / 2,
    nChannels: channels.length,
    bwIntra: 12,
    bwInter: 12,
    latencyInter: 0,
    typeIntra: PathType.NVL,
    typeInter: PathType.PIX,
    sameChannels: false,
    nHops: 0,
    gpuCount: channels[0]?.length ?? 0,
    intra: Int32Array.from(channels.flat()),
    inter: new BigInt64Array(2 * channels.length),
    ...values,
  };
}

/** A host of one node whose rings and trees have these paths; other graphs and figures as given. */
export function host(
  channels: readonly (readonly number[])[],
  {
    graphs,
    rank,
    ...values
  }: Partial<Omit<NodeContribution, 'graphs'>> & { graphs?: Partial<HostGraphs>; rank?: Partial<RankContribution> } = {},
): HostContribution {
  const ranks = [...(channels[0] ?? [])].sort((a, b) => a - b);
  const node: NodeContribution = {
    ranks,
    cpuArch: CpuArch.X86,
    cpuVendor: CpuVendor.INTEL,
    nvls: false,
    nvSwitch: false,
    allNvLink: true,
    allDirectNvLink: true,
    allDirectP2p: true,
    netDevices: 1,
    collnetDevices: 0,
    byRank: ranks.map(() => ({ compCap: 80, minNetGBps: 12, netCount: 1, p2pChannelsPerPeer: 2, ...rank })),
    ...values,
    graphs: {
      ring: graph(channels),
      tree: graph(channels, { id: GraphId.TREE, pattern: Pattern.BALANCED_TREE }),
      collnetChain: undefined,
      collnetDirect: undefined,
      nvls: undefined,
      ...graphs,
    },
  };
  return { nRanks: ranks.length, nodes: [node] };
}
