import type { SystemNode } from '../topology/system.js';
import type { PathType } from '../topology/types.js';

/** Shapes of a channel within a host, with NCCL's numbers. */
export const Pattern = {
  /** Chain of GPUs; the tree's parent and one child are reached from the first GPU, the other child from the second. */
  BALANCED_TREE: 1,
  /** Chain of GPUs; the parent at the first GPU, the children at the second. */
  SPLIT_TREE: 2,
  /** Chain of GPUs; all traffic of the network at the first GPU. */
  TREE: 3,
  /** Network to first GPU, through all GPUs, last GPU to network; without a network the last GPU closes the ring. */
  RING: 4,
  /** One GPU, the head, to which and from which the NVSwitch reduces and copies for all. */
  NVLS: 5,
  /** One GPU, the head, which all others reach directly. */
  COLLNET_DIRECT: 6,
} as const;
export type Pattern = (typeof Pattern)[keyof typeof Pattern];

/** The five graphs, with NCCL's ids: the numbers that graph XML files hold. */
export const GraphId = { RING: 0, TREE: 1, COLLNET_CHAIN: 2, NVLS: 3, COLLNET_DIRECT: 4 } as const;
export type GraphId = (typeof GraphId)[keyof typeof GraphId];

/** Ways to use several NICs per channel. */
export const CrossNic = {
  /** A channel leaves by the NIC (the rail) by which it entered. */
  NEVER: 0,
  /** A channel may leave by another. */
  ALLOWED: 1,
  /** Channels form pairs: the second enters where the first left and leaves where it entered. */
  PAIRED: 2,
} as const;
export type CrossNic = (typeof CrossNic)[keyof typeof CrossNic];

/** The most channels a communicator can have. */
export const MAX_CHANNELS = 64;

/** GB/s that NCCL counts for the one channel that it takes where no search found any; a C float. */
export const LAST_RESORT_GBPS = Math.fround(0.1);

/**
 * Channels through the GPUs of one host, all alike in speed and pattern: the result of one search. Between hosts the
 * merge joins them end to end.
 *
 *     channel 0    inter[0] ─► intra[0] ─► intra[1] ─► … ─► intra[gpuCount-1] ─► inter[1]        (a ring)
 *     channel 1    inter[2] ─► intra[gpuCount] ─► …                           ─► inter[3]
 */
export interface ChannelGraph {
  readonly id: GraphId;
  readonly pattern: Pattern;
  readonly crossNic: CrossNic;
  /** True if the network reduces for this graph: only NICs that can are used. */
  readonly collNet: boolean;
  /** Number of channels that were asked for. */
  readonly minChannels: number;
  readonly maxChannels: number;
  /** Number of channels; 0 when the search found none. */
  readonly nChannels: number;
  /** GB/s of each channel between the GPUs of the host, a C float. */
  readonly bwIntra: number;
  /** GB/s of each channel between GPU and NIC, a C float. */
  readonly bwInter: number;
  /** Latency of the NIC in µs, a C float. */
  readonly latencyInter: number;
  /** The farthest path type allowed between GPUs. */
  readonly typeIntra: PathType;
  /** The farthest path type allowed between GPU and NIC. */
  readonly typeInter: PathType;
  /** True if all channels visit the GPUs in the same order. */
  readonly sameChannels: boolean;
  /** Sum of the hops of all paths. */
  readonly nHops: number;
  /** Number of GPUs of the host: the length of a row of `intra`. */
  readonly gpuCount: number;
  /** Ranks in the order in which a channel visits them, `gpuCount` a channel. With NVLS only the first, the head, counts. */
  readonly intra: Int32Array;
  /**
   * Two NETs a channel, by {@link nodeId}: where it enters the host and where it leaves. Without a network they mean
   * nothing; -1 is a NIC that was not found.
   */
  readonly inter: BigInt64Array;
}

/** The graphs of one host; undefined is a graph that was not requested, because the host or the network cannot do it. */
export interface HostGraphs {
  readonly ring: ChannelGraph;
  readonly tree: ChannelGraph;
  readonly collnetChain: ChannelGraph | undefined;
  readonly collnetDirect: ChannelGraph | undefined;
  readonly nvls: ChannelGraph | undefined;
}

/** Name of a graph of a host. */
export type GraphName = keyof HostGraphs;

/** The figures of a graph, without its channels. */
export type GraphHeader = Omit<ChannelGraph, 'intra' | 'inter' | 'gpuCount'>;

/** NCCL's number of a node: its host's position in the system above the 56 bits of its local id. */
export function nodeId(node: Pick<SystemNode, 'systemId' | 'localId'>): bigint {
  return BigInt.asIntN(64, (BigInt(node.systemId) << 56n) | node.localId);
}

/** The graphs of a host by name, in the order in which they are searched. */
export const graphNames = [
  'ring',
  'tree',
  'collnetChain',
  'collnetDirect',
  'nvls',
] as const satisfies readonly (keyof HostGraphs)[];
