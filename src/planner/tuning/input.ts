import type { GraphName } from '../graph/graph.js';
import type { AlignedGraphs } from '../graph/merge/align.js';
import { collnetDirectOf } from '../graph/merge/collnet.js';
import type { Merged } from '../graph/merge/merge.js';
import { kindOf } from '../graph/merge/nodes.js';
import type { BufferBytes } from '../graph/merge/p2p.js';
import type { Parameters } from '../parameters.js';
import { rulesOf } from '../versions/rules.js';
import type { NcclAlgorithm } from './names.js';
import { commonDivisor, type SymmetricInput, symmetricSettings } from './symmetric/input.js';

/**
 * Inputs of the tuning model: a few dozen figures for any number of ranks. Figures that may differ between ranks are rank 0's.
 */
export interface TuningInput {
  /** The version of NCCL of the model. */
  readonly ncclVersion: string;
  readonly nRanks: number;
  readonly nNodes: number;
  /** Ranks of rank 0's node. */
  readonly localRanks: number;
  /** Fewest and most ranks that a node has. */
  readonly minLocalRanks: number;
  readonly maxLocalRanks: number;
  /** Compute capability × 10. */
  readonly minCompCap: number;
  readonly maxCompCap: number;
  /** One of `CpuArch`. */
  readonly cpuArch: number;
  /** One of `CpuVendor`. */
  readonly cpuVendor: number;
  /** The slowest NIC that any rank uses, GB/s; 0 without any. */
  readonly minNetGBps: number;
  /** The greatest number of a tree pattern. */
  readonly maxTreePattern: number;
  /** True if rank 0's node has an NVSwitch. */
  readonly nvSwitch: boolean;
  readonly graphs: AlignedGraphs;
  /** Channels of rings and trees. */
  readonly nChannels: number;
  /** Maximum number of them in one call. */
  readonly callChannels: number;
  readonly buffers: BufferBytes;
  /** Ranks of the longest path from the root of a tree down, as NCCL counts it. */
  readonly treeDepth: number;
  /** NVLink SHARP; null without. */
  readonly nvls: {
    readonly nChannels: number;
    readonly nHeads: number;
    readonly chunkBytes: number;
    readonly treeMaxChunkBytes: number;
  } | null;
  /** Reduction in the network; null without. */
  readonly collnet: {
    /** Number of heads that rank 0 sets up. */
    readonly headCount: number;
    /** True if these include the heads of all chains. */
    readonly chainSupport: boolean;
    readonly chainDepth: number;
    readonly directHeads: number;
    readonly directDepth: number;
  } | null;
  /** Inputs of calls on symmetric windows. */
  readonly symmetric: SymmetricInput;
}

/** Inputs of the tuning model from a plan. */
export function tuningInput(merged: Merged, parameters: Parameters): TuningInput {
  const { ncclVersion, windows } = parameters;
  const { nodes, agreement, graphs, nChannels, collChannels, trees, buffers, nvls, collnet } = merged;
  const own = kindOf(nodes, 0);
  const direct = collnet === undefined ? undefined : collnetDirectOf(nodes, collnet, 0);
  return {
    ncclVersion,
    nRanks: agreement.nRanks,
    nNodes: agreement.nNodes,
    localRanks: own.ranks.length,
    minLocalRanks: agreement.minLocalRanks,
    maxLocalRanks: agreement.maxLocalRanks,
    minCompCap: agreement.minCompCap,
    maxCompCap: agreement.maxCompCap,
    cpuArch: agreement.cpuArch,
    cpuVendor: agreement.cpuVendor,
    minNetGBps: agreement.minNetGBps,
    maxTreePattern: agreement.maxTreePattern,
    nvSwitch: own.nvSwitch,
    graphs,
    nChannels,
    callChannels: rulesOf({ ncclVersion }).copiesServeCalls ? nChannels : collChannels,
    buffers,
    treeDepth: trees.depth,
    nvls:
      nvls === undefined
        ? null
        : {
            nChannels: nvls.nChannels,
            nHeads: nvls.nHeads,
            chunkBytes: nvls.chunkBytes,
            treeMaxChunkBytes: nvls.treeMaxChunkBytes,
          },
    collnet:
      collnet === undefined || direct === undefined
        ? null
        : {
            headCount: collnet.headCount,
            chainSupport: collnet.chainSupport,
            chainDepth: collnet.chainDepth,
            directHeads: direct.nHeads,
            directDepth: direct.depth,
          },
    symmetric: {
      windows,
      allDirectP2p: agreement.allDirectP2p,
      allDirectNvLink: agreement.allDirectNvLink,
      domainRanks: commonDivisor(nodes.kinds.map(({ ranks }) => ranks.length)),
      hasNics: agreement.minNetCount > 0,
      settings: symmetricSettings(parameters),
    },
  };
}

/** The graph whose channels an algorithm uses. */
export const graphOf: Readonly<Record<NcclAlgorithm, GraphName>> = {
  Tree: 'tree',
  Ring: 'ring',
  CollNetDirect: 'collnetDirect',
  CollNetChain: 'collnetChain',
  NVLS: 'nvls',
  NVLSTree: 'nvls',
  PAT: 'tree',
};
