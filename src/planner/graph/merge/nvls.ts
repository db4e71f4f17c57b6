import type { Parameters } from '../../parameters.js';
import { isRubin } from '../../topology/bandwidths.js';
import { PathType } from '../../topology/types.js';
import { rulesOf } from '../../versions/rules.js';
import type { AlignedGraphs } from './align.js';
import { ctaLimits } from './channel-count.js';
import { headOfEachChannel, headsOf } from './collnet.js';
import { doubleTree } from './double-tree.js';
import { kindOf, type NodeTable } from './nodes.js';
import { bufferSizes, STEPS_PER_BUFFER } from './p2p.js';

/** NVLink SHARP: the NVSwitch reduces. Its channels are independent of those of rings and trees. */
export interface Nvls {
  /** Channels as rank 0 counts them. */
  readonly nChannels: number;
  /** Channels counted by ranks whose GPU is older than Blackwell: each rank uses its own generation, so these may be fewer. */
  readonly nChannelsBeforeBlackwell: number;
  readonly chunkBytes: number;
  /** Largest chunk with trees between nodes. */
  readonly treeMaxChunkBytes: number;
  /** Number of heads of every node. */
  readonly nHeads: number;
  /** Number of heads that have trees to other nodes. */
  readonly treeHeads: number;
  /** By kind of node: the ranks that reduce a share each, as many as every node has. */
  readonly heads: readonly (readonly number[])[];
}

/** A rank's links on the even or on the odd channels of NVLink SHARP. Peer `nRanks` + 1 + h is head h of the switch. */
export interface NvlsLinks {
  /** Number of the head that the rank is, or -1. */
  readonly headRank: number;
  readonly up: readonly number[];
  readonly down: number;
  /** The network (`nRanks`) for a head where it reduces, else -1. */
  readonly out: number;
  /** The same head on the parent node, or -1. */
  readonly treeUp: number;
  /** The switch, then the same head on the child nodes; all -1 on one node. */
  readonly treeDown: readonly [number, number, number];
}

const KIB = 1024;

/** Compute capability × 10 of the first GPUs of Blackwell. */
const BLACKWELL = 100;
const CHANNELS_BEFORE_BLACKWELL = 16;

/** Inputs of the figures of NVLink SHARP. */
interface NvlsFacts {
  readonly nNodes: number;
  /** True if ranks are on several hosts, which may count as more nodes. */
  readonly severalHosts: boolean;
  readonly minLocalRanks: number;
  /** Compute capability × 10 of rank 0. */
  readonly ownCompCap: number;
  readonly minCompCap: number;
  /** One of `CpuArch`. */
  readonly cpuArch: number;
  readonly minNetGBps: number;
}

/** @returns undefined where some node has no channel for it */
export function joinNvls(
  table: NodeTable,
  graphs: AlignedGraphs,
  facts: Omit<NvlsFacts, 'severalHosts'>,
  parameters: Parameters,
  parent?: { readonly nvls: Nvls | undefined },
): Nvls | undefined {
  if (graphs.nvls.nChannels === 0) return undefined;
  const { nvlsHeadsOnce, nvlsTreesOfAllHeads } = rulesOf(parameters);
  const heads = table.kinds.map(({ graphs: { nvls } }) =>
    nvlsHeadsOnce ? headsOf(nvls, nvls?.nChannels ?? 0) : headOfEachChannel(nvls, graphs.nvls.nChannels),
  );
  const nHeads = Math.min(...heads.map(({ length }) => length));
  const own = sizes({ ...facts, severalHosts: table.rankBase.some((base) => base !== 0) }, graphs.nvls.typeInter, parameters);
  return {
    ...own,
    ...(parent?.nvls === undefined ? {} : sharedSizes(own, parent.nvls, parameters)),
    nHeads,
    treeHeads: nvlsTreesOfAllHeads ? nHeads : Math.min(nHeads, graphs.ring.nChannels),
    heads: heads.map((all) => all.slice(0, nHeads)),
  };
}

type Sizes = Omit<Nvls, 'nHeads' | 'treeHeads' | 'heads'>;

/** Channels and chunks by architecture, tuned for Blackwell across nodes; parameters take precedence. */
function sizes(facts: NvlsFacts, typeInter: PathType, parameters: Parameters): Sizes {
  const rules = rulesOf(parameters);
  const severalNodes = rules.nvlsTunedForBlackwell ? facts.nNodes > 1 : facts.severalHosts;
  const tuned =
    rules.nvlsTunedForBlackwell && facts.minCompCap >= BLACKWELL && severalNodes ? blackwellAcrossNodes(facts, typeInter) : {};
  const chunkBytes = parameters.nvlsChunkBytes ?? tuned.chunkBytes ?? 128 * KIB;
  const { fewest, most } = ctaLimits(parameters);
  const asked = parameters.nvlsChannels !== undefined && parameters.nvlsChannels > 0 ? parameters.nvlsChannels : undefined;
  const channelsFrom = (usual: number) => Math.max(fewest, Math.min(most, asked ?? tuned.nChannels ?? usual));
  const treeChunkBytes =
    rules.nvlsTreeChunk === 'nvls' ? chunkBytes : Math.floor(bufferSizes(parameters, facts.cpuArch).simple / STEPS_PER_BUFFER);
  const isLarge = facts.nNodes >= 4 && rules.nvlsTreeChunk !== 'buffer, any nodes';
  return {
    nChannels: channelsFrom(nvlsChannelsOf(facts.ownCompCap, parameters)[severalNodes ? 'between' : 'within']),
    nChannelsBeforeBlackwell: channelsFrom(CHANNELS_BEFORE_BLACKWELL),
    chunkBytes,
    treeMaxChunkBytes: parameters.nvlsTreeMaxChunkBytes ?? tuned.treeMaxChunkBytes ?? (isLarge ? 64 * KIB : treeChunkBytes),
  };
}

/** Number of channels by compute capability × 10, within a node and between several. */
export function nvlsChannelsOf(compCap: number, parameters: Parameters): { readonly within: number; readonly between: number } {
  const { nvlsChannelsBlackwell, nvlsChannelsRubin } = rulesOf(parameters);
  if (compCap < BLACKWELL) return { within: CHANNELS_BEFORE_BLACKWELL, between: CHANNELS_BEFORE_BLACKWELL };
  return isRubin(compCap) && nvlsChannelsRubin !== 'as blackwell' ? nvlsChannelsRubin : nvlsChannelsBlackwell;
}

/** The sizes where the resources are those of another communicator. */
function sharedSizes(own: Sizes, parent: Nvls, parameters: Parameters): Partial<Sizes> {
  const { chunkBytes, treeMaxChunkBytes } = parent;
  return {
    nChannels: Math.min(own.nChannels, parent.nChannels),
    nChannelsBeforeBlackwell: Math.min(own.nChannelsBeforeBlackwell, parent.nChannelsBeforeBlackwell),
    ...(rulesOf(parameters).nvlsChunksOfParent ? { chunkBytes, treeMaxChunkBytes } : {}),
  };
}

interface Tuned {
  readonly nChannels?: number;
  readonly chunkBytes?: number;
  readonly treeMaxChunkBytes?: number;
}

/** NCCL's figures by speed of the NICs (48 GB/s: 400 Gb/s; 96: 800), ranks of a node and distance between GPU and NIC. */
function blackwellAcrossNodes({ nNodes, minLocalRanks, minNetGBps }: NvlsFacts, typeInter: PathType): Tuned {
  const nicIsNear = typeInter <= PathType.PXB;
  if (nNodes === 2 && minNetGBps >= 48) {
    if (minLocalRanks <= 4) return { nChannels: 32, chunkBytes: 256 * KIB, treeMaxChunkBytes: 256 * KIB };
    const small = minLocalRanks >= 16 || (minLocalRanks <= 8 && nicIsNear && minNetGBps < 96);
    return { nChannels: 32, chunkBytes: 128 * KIB, treeMaxChunkBytes: (small ? 64 : 128) * KIB };
  }
  if (minNetGBps >= 96) {
    if (minLocalRanks <= 8) return { nChannels: 24, chunkBytes: 256 * KIB, treeMaxChunkBytes: 256 * KIB };
    return { nChannels: 32, chunkBytes: 128 * KIB, treeMaxChunkBytes: (minLocalRanks < 32 ? 128 : 64) * KIB };
  }
  if (minNetGBps >= 48) return { nChannels: 24, chunkBytes: 128 * KIB, treeMaxChunkBytes: (nicIsNear ? 64 : 128) * KIB };
  return { chunkBytes: 128 * KIB };
}

/**
 * The links of one rank: to the switch, and for a head to the same head of other nodes, in the first tree on even channels and in
 * the second on odd ones. NCCL leaves channels that the rank does not count all zero.
 */
export function nvlsLinksOf(table: NodeTable, nvls: Nvls, collnet: boolean, rank: number, channel: number): NvlsLinks {
  const { nRanks, nNodes } = table;
  const node = table.rankToNode[rank] ?? 0;
  const { ranks, byRank } = kindOf(table, node);
  const local = rank - (table.rankBase[node] ?? 0);
  const isOlder = (byRank[ranks.indexOf(local)]?.compCap ?? 0) < BLACKWELL;
  if (isOlder && channel >= nvls.nChannelsBeforeBlackwell) {
    return { headRank: 0, up: Array.from({ length: nvls.nHeads }, () => 0), down: 0, out: 0, treeUp: 0, treeDown: [0, 0, 0] };
  }
  const heads = nvls.heads[table.kindOfNode[node] ?? 0] ?? [];
  const headRank = heads.lastIndexOf(local);
  const down = nRanks + 1 + headRank;
  const links = {
    headRank,
    up: Array.from({ length: nvls.nHeads }, (_, number) => nRanks + 1 + number),
    down,
    out: collnet && headRank >= 0 ? nRanks : -1,
  };
  if (nNodes === 1) return { ...links, treeUp: -1, treeDown: [-1, -1, -1] };
  if (headRank < 0) return { ...links, treeUp: -1, treeDown: [down, -1, -1] };

  const { parent, children } = doubleTree(nNodes, node)[channel % 2 === 0 ? 0 : 1];
  // A GPU can be the head of several channels: its trees are those of the first.
  const treeHead = heads.slice(0, nvls.treeHeads).indexOf(local);
  if (treeHead < 0) return { ...links, treeUp: -1, treeDown: [down, -1, -1] };
  const below = children.filter((child) => child >= 0).map((child) => headRankOn(table, nvls, treeHead, child));
  return {
    ...links,
    treeUp: parent < 0 ? -1 : headRankOn(table, nvls, treeHead, parent),
    treeDown: [down, below[0] ?? -1, below[1] ?? -1],
  };
}

/** The ranks of one head on the first `nodes` nodes. */
export function nvlsHeadRanks(table: NodeTable, nvls: Nvls, head: number, nodes: number): number[] {
  return Array.from({ length: Math.min(nodes, table.nNodes) }, (_, node) => headRankOn(table, nvls, head, node));
}

function headRankOn(table: NodeTable, nvls: Nvls, head: number, node: number): number {
  return (table.rankBase[node] ?? 0) + (nvls.heads[table.kindOfNode[node] ?? 0]?.[head] ?? 0);
}
