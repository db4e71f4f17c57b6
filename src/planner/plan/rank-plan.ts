import type { CollnetDirect } from '../graph/merge/collnet.js';
import {
  chainLinks,
  type ChainLinks,
  directLinks,
  nvlsLinks,
  p2pSchedule,
  ranksOfNode,
  ringFrom,
  ringNeighbours,
  type RingNeighbours,
  treeLinks,
  type TreeLinks,
} from '../graph/merge/links.js';
import type { Merged } from '../graph/merge/merge.js';
import type { NvlsLinks } from '../graph/merge/nvls.js';
import type { P2pSchedule } from '../graph/merge/p2p-schedule.js';

/** One rank's part of the channels: its connections. */
export interface RankPlan {
  readonly rank: number;
  readonly nRanks: number;
  readonly node: number;
  readonly nNodes: number;
  /** The ranks of its node, ascending; its own is at `localRank`. */
  readonly localRanks: readonly number[];
  readonly localRank: number;
  /** Channels for collectives. */
  readonly channels: readonly RankChannel[];
  /** Depth of all trees in the model. */
  readonly treeDepth: number;
  /** The same on every channel; undefined where the network does not reduce. */
  readonly collnetDirect: CollnetDirect | undefined;
  /** Undefined without NVLink SHARP. */
  readonly nvls: RankNvls | undefined;
  readonly p2pSchedule: P2pSchedule;
}

/** One channel from one rank's point of view. */
export interface RankChannel {
  readonly ring: RingNeighbours & {
    /** All ranks in the order of the ring, from this one on. Channels with the same ring share the array. */
    readonly order: Int32Array;
  };
  readonly tree: TreeLinks;
  /** Undefined where the network does not reduce. */
  readonly collnetChain: ChainLinks | undefined;
}

/** NVLink SHARP from one rank's point of view. */
export interface RankNvls {
  readonly nChannels: number;
  /** Links on even and on odd channels. */
  readonly even: NvlsLinks;
  readonly odd: NvlsLinks;
}

/**
 * The part of a plan that concerns one rank: its neighbours in all channels, and its order of sends and receives.
 *
 * @throws InvalidArgumentError where there is no such rank
 */
export function planForRank(merged: Merged, rank: number): RankPlan {
  const { nodes, nChannels, ringOfChannel } = merged;
  const orders = new Map<number, Int32Array>();
  const channels = Array.from({ length: nChannels }, (_, channel): RankChannel => {
    const ring = ringOfChannel[channel] ?? 0;
    const order = orders.get(ring) ?? ringFrom(merged, channel, rank);
    orders.set(ring, order);
    return {
      ring: { ...ringNeighbours(merged, channel, rank), order },
      tree: treeLinks(merged, channel, rank),
      collnetChain: chainLinks(merged, channel, rank),
    };
  });
  const node = nodes.rankToNode[rank] ?? 0;
  return {
    rank,
    nRanks: nodes.nRanks,
    node,
    nNodes: nodes.nNodes,
    localRanks: ranksOfNode(nodes, node),
    localRank: nodes.rankToLocalRank[rank] ?? 0,
    channels,
    treeDepth: merged.trees.depth,
    collnetDirect: directLinks(merged, rank),
    nvls: nvlsOf(merged, rank),
    p2pSchedule: p2pSchedule(merged, rank),
  };
}

function nvlsOf(merged: Merged, rank: number): RankNvls | undefined {
  const nChannels = merged.nvls?.nChannels ?? 0;
  const even = nvlsLinks(merged, 0, rank);
  const odd = nChannels > 1 ? nvlsLinks(merged, 1, rank) : even;
  return even === undefined || odd === undefined ? undefined : { nChannels, even, odd };
}
