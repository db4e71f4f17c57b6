/**
 * The double binary tree of hosts. In a binary tree half of the nodes are leaves, which receive and never forward, so
 * half of the send bandwidth lies idle. Two trees, each with half of the data, in which the leaves of one are inner
 * nodes of the other, use all of it.
 *
 *     first tree, 7 nodes           second tree: all shifted by one      6 nodes: mirrored
 *
 *       0                             1                                    5
 *        \__4__                        \__5__                          ___1
 *          /   \                         /   \                        /   \
 *         2     6                       3     0                      0     3
 *        / \   /                       / \   /                            / \
 *       1   3 5                       2   4 6                            2   4
 *
 * The form is NCCL's (`trees.cc`): node 0 is the root and has one child; a node's lowest set bit gives its level.
 */

/** A node's neighbours in one tree; -1 stands for none. */
export interface TreePlace {
  readonly parent: number;
  /** Number of the node among its parent's children. */
  readonly slot: 0 | 1;
  readonly children: readonly [number, number];
}

/** Neighbours of `node` in both trees over `count` nodes. */
export function doubleTree(count: number, node: number): readonly [TreePlace, TreePlace] {
  const first = binaryTree(count, node);
  const second =
    count % 2 === 1
      ? renumbered(binaryTree(count, (node - 1 + count) % count), (other) => (other + 1) % count)
      : renumbered(binaryTree(count, count - 1 - node), (other) => count - 1 - other);
  return [first, second];
}

function binaryTree(count: number, node: number): TreePlace {
  if (node === 0) return { parent: -1, slot: 0, children: [-1, count > 1 ? highestPowerOfTwoBelow(count) : -1] };
  const level = node & -node;
  const usualParent = (node ^ level) | (level << 1);
  const parent = usualParent < count ? usualParent : node ^ level;

  const step = level >> 1;
  let stepUp = step;
  // Where the second child would be past the last node, the highest descendant that exists takes its place.
  while (stepUp > 0 && node + stepUp >= count) stepUp >>= 1;
  return { parent, slot: node < parent ? 0 : 1, children: [step === 0 ? -1 : node - step, stepUp === 0 ? -1 : node + stepUp] };
}

function renumbered({ parent, slot, children }: TreePlace, number: (node: number) => number): TreePlace {
  const orNone = (node: number) => (node === -1 ? -1 : number(node));
  return { parent: orNone(parent), slot, children: [orNone(children[0]), orNone(children[1])] };
}

function highestPowerOfTwoBelow(count: number): number {
  return 1 << (31 - Math.clz32(count - 1));
}
