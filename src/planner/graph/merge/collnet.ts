import type { ChannelGraph } from '../graph.js';
import type { AlignedGraphs } from './align.js';
import type { Rules } from '../../versions/rules.js';
import { kindOf, type NodeTable } from './nodes.js';
import { rowOf } from './rings.js';

/** Most ranks of a node that CollNet direct serves. */
export const DIRECT_RANKS = 8;

/**
 * Connections of ranks to a network that reduces (SHARP). Peer `nRanks` stands for the network.
 *
 *     chain    network ◄─► head ◄─► rank ◄─► rank …           one head a channel
 *     direct   network ◄─► head ◄─► all others of its node    all heads at once, each for its share of the data
 */
export interface Collnet {
  /** By graph channel × rank: the rank above in the chain; `nRanks` for the head. */
  readonly chainUp: Int32Array;
  /** By graph channel × rank: the rank below in the chain, or -1. */
  readonly chainDown: Int32Array;
  readonly chainDepth: number;
  /** By kind of node: ranks that reach the network, each once, in the order of the channels of collnetDirect. */
  readonly heads: readonly (readonly number[])[];
  /** False where a node has too many ranks for CollNet direct. */
  readonly direct: boolean;
  /** Number of heads that rank 0 sets up on its node. */
  readonly headCount: number;
  /** True if these heads include all heads of the chains. */
  readonly chainSupport: boolean;
}

/** A rank's links for CollNet direct; they are the same on every channel. */
export interface CollnetDirect {
  /** Number of the head that the rank is, or -1. */
  readonly headRank: number;
  /** The network (`nRanks`) for a head, else -1. */
  readonly out: number;
  readonly nHeads: number;
  /** First head that the rank sends to; ranks begin at different heads to spread the load. */
  readonly shift: number;
  readonly depth: number;
  /** All heads of the node, for a head from itself on. */
  readonly heads: readonly number[];
  /** Heads it sends to. */
  readonly up: readonly number[];
  /** Ranks it reduces for. */
  readonly down: readonly number[];
}

/** True if CollNet direct has links on nodes of that number of ranks. */
export function servesDirect(maxLocalRanks: number, { collnetDirectMostRanks }: Rules): boolean {
  return !collnetDirectMostRanks || maxLocalRanks <= DIRECT_RANKS;
}

/** @param nvlsHeads by kind of node, where NVLink SHARP is used: its heads then serve the network too */
export function joinCollnet(
  table: NodeTable,
  graphs: AlignedGraphs,
  graphChannels: number,
  direct: boolean,
  nvlsHeads: readonly (readonly number[])[] | undefined,
): Collnet {
  const heads = table.kinds.map((kind) => headsOf(kind.graphs.collnetDirect, graphs.collnetDirect.nChannels));
  const ownHeads = (nvlsHeads ?? heads)[table.kindOfNode[0] ?? 0] ?? [];
  const chainHeads = headsOf(kindOf(table, 0).graphs.collnetChain, graphs.collnetChain.nChannels);
  return {
    ...chains(table, graphChannels),
    chainDepth: Math.trunc(table.nRanks / table.nNodes),
    heads,
    direct,
    headCount: ownHeads.length,
    chainSupport: chainHeads.every((head) => ownHeads.includes(head)),
  };
}

/** The first rank of each of the first channels, each rank once. */
export function headsOf(graph: ChannelGraph | undefined, nChannels: number): number[] {
  return [...new Set(headOfEachChannel(graph, nChannels))];
}

/** The first rank of each of the first channels. */
export function headOfEachChannel(graph: ChannelGraph | undefined, nChannels: number): number[] {
  if (graph === undefined) return [];
  return Array.from({ length: nChannels }, (_, channel) => graph.intra[channel * graph.gpuCount] ?? 0);
}

function chains(table: NodeTable, graphChannels: number): Pick<Collnet, 'chainUp' | 'chainDown'> {
  const { nRanks, nNodes } = table;
  const chainUp = new Int32Array(graphChannels * nRanks).fill(-1);
  const chainDown = new Int32Array(graphChannels * nRanks).fill(-1);
  for (let channel = 0; channel < graphChannels; channel++) {
    const first = channel * nRanks;
    for (let node = 0; node < nNodes; node++) {
      const graph = kindOf(table, node).graphs.collnetChain;
      if (graph === undefined) continue;
      const base = table.rankBase[node] ?? 0;
      if (channel >= graph.nChannels) {
        // NCCL reads further memory that holds zeros, so rank 0 finds itself at every place.
        if (node === table.rankToNode[0] && graph.gpuCount > 1) chainUp[first] = 0;
        if (node === table.rankToNode[0] && graph.gpuCount === 1) chainUp[first] = nRanks;
        continue;
      }
      let above = nRanks;
      for (const localRank of rowOf(graph, channel)) {
        const rank = base + localRank;
        chainUp[first + rank] = above;
        if (above !== nRanks) chainDown[first + above] = rank;
        above = rank;
      }
    }
  }
  return { chainUp, chainDown };
}

/** The links of one rank. */
export function collnetDirectOf(table: NodeTable, collnet: Collnet, rank: number): CollnetDirect {
  const node = table.rankToNode[rank] ?? 0;
  const kind = kindOf(table, node);
  const base = table.rankBase[node] ?? 0;
  const heads = (collnet.direct ? (collnet.heads[table.kindOfNode[node] ?? 0] ?? []) : []).map((head) => base + head);
  const headRank = heads.indexOf(rank);
  const graph = kind.graphs.collnetDirect;
  // NCCL takes the row of the head's number, not of the channel where it found the head: its order may be that of another head.
  const down =
    headRank < 0 || graph === undefined
      ? []
      : [...rowOf(graph, headRank)].map((local) => base + local).filter((other) => other !== rank);
  const up = heads.filter((head) => head !== rank);
  return {
    headRank,
    out: headRank < 0 ? -1 : table.nRanks,
    nHeads: heads.length,
    shift: heads.length === 0 ? 0 : (rank % kind.ranks.length) % heads.length,
    depth: heads.length === 0 ? 0 : up.length === 0 && down.length === 0 ? 1 : 2,
    heads: heads.map((_, turn) => heads[(Math.max(0, headRank) + turn) % heads.length] ?? 0),
    up,
    down,
  };
}
