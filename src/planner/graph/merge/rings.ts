import { InputError } from '../../../errors.js';
import { type ChannelGraph, CrossNic } from '../graph.js';
import type { Rules } from '../../versions/rules.js';
import type { AlignedGraphs } from './align.js';
import type { MergeListener } from './trace.js';
import { kindOf, type NodeTable } from './nodes.js';

/** The rings through all ranks, without those of channels that repeat earlier ones. */
export interface Rings {
  /** Number of rings. */
  readonly count: number;
  /** By ring × position: the ranks in the order of the ring, from rank 0 on. */
  readonly order: Int32Array;
  /** By ring × rank: the rank's position in that order. */
  readonly position: Int32Array;
}

/**
 * Joins the rings of all nodes end to end: the last rank of a node sends to the first of the next one.
 *
 *     node 0   0 7 6 3 2 5 4 1        ┌─► 0 7 6 3 2 5 4 1 ─► 10 9 8 13 12 15 14 11 ─┐
 *     node 1   10 9 8 13 12 15 14 11  └─────────────────────────────────────────────┘
 *
 * If a node found pairs of rings that cross its NICs (in by rail a and out by rail b, and the reverse), each node at an odd place
 * swaps the two, so that data that leave by rail b enter the next node by rail b:
 *
 *     node 0  ring 0 a►b   ring 1 b►a          node 1, swapped  ring 0 b►a   ring 1 a►b
 *
 * @param graphChannels channels that all graphs have, of which `count` or more are used
 * @param crossing by kind of node: true if its rings form pairs that cross NICs
 * @throws InputError where a ring misses a rank
 */
export function joinRings(
  table: NodeTable,
  graphChannels: number,
  count: number,
  crossing: readonly boolean[],
  listen?: MergeListener,
): Rings {
  const { nRanks, nNodes } = table;
  const order = new Int32Array(count * nRanks);
  const position = new Int32Array(count * nRanks).fill(-1);
  const swaps = crossing.map((crosses) => crosses && graphChannels % 2 === 0);
  if (listen !== undefined) {
    const swapped = table.kindOfNode.filter((kind, node) => node % 2 === 1 && swaps[kind] === true).length;
    if (swapped > 0) listen({ kind: 'rails-swapped', nodes: swapped });
  }

  for (let ring = 0; ring < count; ring++) {
    const rows = table.kinds.map(({ graphs }) => [rowOf(graphs.ring, ring), rowOf(graphs.ring, ring ^ 1)] as const);
    // The order begins with rank 0, on node 0; the ranks before it on that node come at the end.
    const start = Math.max(0, rows[table.kindOfNode[0] ?? 0]?.[0].indexOf(0) ?? 0);
    const first = ring * nRanks;
    let next = 0;
    for (let node = 0; node < nNodes; node++) {
      const kind = table.kindOfNode[node] ?? 0;
      const row = rows[kind]?.[node % 2 === 1 && swaps[kind] === true ? 1 : 0] ?? emptyRow;
      const base = table.rankBase[node] ?? 0;
      for (const localRank of row) {
        const rank = base + localRank;
        const place = next < start ? next - start + nRanks : next - start;
        if (next >= nRanks || table.rankToNode[rank] !== node || position[first + rank] !== -1)
          throw notOnce(table, node, ring, rank);
        order[first + place] = rank;
        position[first + rank] = place;
        next++;
      }
    }
    if (next < nRanks) throw missing(table, ring, position.subarray(first, first + nRanks).indexOf(-1));
  }
  return { count, order, position };
}

/** By kind of node: true if its rings form pairs that cross NICs. Older versions use the value that all nodes agree on. */
export function crossingKinds({ kinds, nNodes }: NodeTable, graphs: AlignedGraphs, { swappedRings }: Rules): boolean[] {
  const { crossNic } = graphs.ring;
  return kinds.map((kind) => {
    switch (swappedRings) {
      case 'none':
        return false;
      case 'crossing, even nodes':
        return crossNic !== CrossNic.NEVER && nNodes % 2 === 0;
      case 'crossing':
        return crossNic !== CrossNic.NEVER;
      case 'pairs':
        return crossNic === CrossNic.PAIRED;
      case 'own pairs':
        return kind.graphs.ring.crossNic === CrossNic.PAIRED;
    }
  });
}

const emptyRow = new Int32Array(0);

/** The ranks of one channel of a graph, in its order. */
export function rowOf(graph: ChannelGraph, channel: number): Int32Array {
  return graph.intra.subarray(channel * graph.gpuCount, (channel + 1) * graph.gpuCount);
}

function notOnce(table: NodeTable, node: number, ring: number, rank: number): InputError {
  const { ranks } = kindOf(table, node);
  const isOurs = table.rankToNode[rank] === node;
  const what = isOurs ? `visits rank ${rank} twice` : `visits rank ${rank}, which is not among its ${ranks.length} ranks`;
  return new InputError(
    'CONTENT',
    `ring ${ring} of node ${node} ${what}: the ring graph of each node must hold each of its ranks once`,
    { ncclResult: 3, rank },
  );
}

function missing(table: NodeTable, ring: number, rank: number): InputError {
  return new InputError(
    'CONTENT',
    `ring ${ring} does not contain rank ${rank}: the ring graph of node ${table.rankToNode[rank] ?? 0} leaves it out`,
    { ncclResult: 3, rank },
  );
}
