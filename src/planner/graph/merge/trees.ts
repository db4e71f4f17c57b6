import { InputError } from '../../../errors.js';
import { type ChannelGraph, Pattern } from '../graph.js';
import { doubleTree, type TreePlace } from './double-tree.js';
import { kindOf, type NodeTable } from './nodes.js';
import { rowOf } from './rings.js';

/** Most children of a rank: two on other nodes and the next one in the chain of its own. */
export const TREE_ARITY = 3;

/** The trees through all ranks, without those of channels that repeat earlier ones. */
export interface Trees {
  /** Number of trees. */
  readonly count: number;
  /** By tree × rank: parent, or -1. */
  readonly up: Int32Array;
  /** By tree × rank × {@link TREE_ARITY}: children, or -1. */
  readonly down: Int32Array;
  /** Depth of all trees in NCCL's model of time. */
  readonly depth: number;
}

/**
 * Trees through all ranks. Within a node the ranks of a channel are a chain with its head up; between nodes the chains form a
 * double binary tree. The pattern of the node's tree graph determines the ranks that are connected with other nodes:
 *
 *                   to parent   to first child   to second child
 *     BALANCED_TREE    head        second            head
 *     SPLIT_TREE       head        second            second
 *     TREE             head        head              head
 *
 * Tree c is channel c of the graphs in the first of the two trees, tree c + graphChannels the same channel in the second.
 *
 * @param graphChannels channels that all graphs have
 * @param count number of trees, at most twice as many
 */
export function joinTrees(table: NodeTable, graphChannels: number, count: number): Trees {
  const { nRanks, nNodes } = table;
  const up = new Int32Array(count * nRanks).fill(-1);
  const down = new Int32Array(count * nRanks * TREE_ARITY).fill(-1);
  const places = Array.from({ length: nNodes }, (_, node) => doubleTree(nNodes, node));

  for (let tree = 0; tree < count; tree++) {
    const chains = table.kinds.map(({ graphs }) => chainOf(graphs.tree, tree % graphChannels));
    const treeUp = up.subarray(tree * nRanks, (tree + 1) * nRanks);
    const treeDown = down.subarray(tree * nRanks * TREE_ARITY, (tree + 1) * nRanks * TREE_ARITY);
    const second = tree >= graphChannels ? 1 : 0;
    for (let node = 0; node < nNodes; node++) {
      const chain = chains[table.kindOfNode[node] ?? 0];
      if (chain !== undefined) linkChain(chain.ranks, table.rankBase[node] ?? 0, treeUp, treeDown);
    }
    for (let node = 0; node < nNodes; node++) {
      const place = places[node]?.[second];
      if (place !== undefined) linkNode(table, chains, node, place, treeUp, treeDown);
    }
  }
  return { count, up, down, depth: Math.trunc(nRanks / nNodes) - 1 + (31 - Math.clz32(nNodes)) };
}

/** The chain of one channel within a node, and those of its ranks that are connected with other nodes. */
interface Chain {
  readonly ranks: Int32Array;
  readonly toParent: number;
  readonly toChild: readonly [number, number];
}

function chainOf(graph: ChannelGraph, channel: number): Chain {
  const ranks = rowOf(graph, channel);
  const head = ranks[0] ?? 0;
  const second = ranks[1] ?? head;
  const firstChild = graph.pattern === Pattern.TREE ? head : second;
  const secondChild = graph.pattern === Pattern.SPLIT_TREE ? second : head;
  return { ranks, toParent: head, toChild: [firstChild, secondChild] };
}

function linkChain(ranks: Int32Array, base: number, up: Int32Array, down: Int32Array): void {
  for (let index = 1; index < ranks.length; index++) {
    const above = base + (ranks[index - 1] ?? 0);
    const rank = base + (ranks[index] ?? 0);
    up[rank] = above;
    down[above * TREE_ARITY] = rank;
  }
}

/** The links of one node to its parent and children in the tree of nodes. */
function linkNode(
  table: NodeTable,
  chains: readonly Chain[],
  node: number,
  { parent, slot, children }: TreePlace,
  up: Int32Array,
  down: Int32Array,
): void {
  const chain = chains[table.kindOfNode[node] ?? 0];
  if (chain === undefined) return;
  const base = table.rankBase[node] ?? 0;
  if (parent !== -1) {
    const above = chains[table.kindOfNode[parent] ?? 0];
    up[base + chain.toParent] = (table.rankBase[parent] ?? 0) + (above?.toChild[slot] ?? 0);
  }
  for (const side of [0, 1] as const) {
    const child = children[side];
    if (child === -1) continue;
    const below = chains[table.kindOfNode[child] ?? 0];
    addChild(table, down, base + chain.toChild[side], (table.rankBase[child] ?? 0) + (below?.toParent ?? 0));
  }
}

function addChild(table: NodeTable, down: Int32Array, rank: number, child: number): void {
  for (let index = rank * TREE_ARITY; index < (rank + 1) * TREE_ARITY; index++) {
    if (down[index] !== -1) continue;
    down[index] = child;
    return;
  }
  const { pattern } = kindOf(table, table.rankToNode[rank] ?? 0).graphs.tree;
  throw new InputError(
    'CONTENT',
    `rank ${rank} would have more than ${TREE_ARITY} children in a tree: its tree graph, of pattern ${pattern}, visits it more than once`,
    { ncclResult: 3, rank },
  );
}
