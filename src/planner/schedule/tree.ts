import { eachMove, SliceMoves, type EndSets, type ScheduledEnd } from './moves.js';
import { channelRange, ConnectionTable, type Schedule, type ScheduledCall, type Worker } from './schedule.js';

/** Trees through all ranks, and the sizes of pieces. */
interface TreeInput {
  readonly nRanks: number;
  /** By channel. */
  readonly trees: readonly Tree[];
  readonly chunkBytes: number;
}

/** One tree, by rank: parent and children. */
export interface Tree {
  /** Parent, -1 for the root. */
  readonly up: (rank: number) => number;
  /** Children; those below 0 are none. */
  readonly down: (rank: number) => readonly number[];
}

/** Sets of connections: none, with the parent, with all children, with each child. */
const NONE = 0;
const PARENT = 1;
const CHILDREN = 2;
const FIRST_CHILD = 3;

/**
 * The two workers of a rank in a tree. Data go up to the root, where they are complete, and down again, slice by slice, in both
 * directions at the same time:
 *
 *     up      children ──► this rank adds its own ──► parent
 *     down    parent ──► this rank keeps it ──► children            (at the root, up continues as down)
 *
 * NCCL splits the threads of a block in the same way. A broadcast goes from its root up to the root of the tree, then down; a
 * reduce goes up, then down to its root only. One object serves many calls.
 */
export class TreeWork {
  readonly up = new SliceMoves();
  readonly down = new SliceMoves();
  readonly #tree: Tree;
  readonly #rank: number;
  readonly #children: readonly number[];
  readonly #isRoot: boolean;

  constructor(tree: Tree, rank: number) {
    this.#tree = tree;
    this.#rank = rank;
    this.#isRoot = tree.up(rank) < 0;
    this.#children = childrenOf(tree, rank);
  }

  /** @param from offset of the tree's part of the data */
  startAllReduce(from: number, bytes: number, sliceBytes: number): void {
    if (this.#isRoot) {
      this.up.start(CHILDREN, CHILDREN, bytes, from, from, true, sliceBytes);
      return;
    }
    this.up.start(CHILDREN, PARENT, bytes, from, -1, false, sliceBytes);
    this.down.start(PARENT, CHILDREN, bytes, -1, from, false, sliceBytes);
  }

  /** @param copies true if the root's output is another array than its input */
  startBroadcast(from: number, bytes: number, sliceBytes: number, root: number, copies: boolean): void {
    const isSource = root === this.#rank;
    const towards = this.#childTowards(root);
    const above = towards < 0 ? NONE : FIRST_CHILD + towards;
    const own = isSource ? from : -1;
    const keep = isSource && !copies ? -1 : from;
    if (this.#isRoot) {
      this.up.start(above, CHILDREN, bytes, own, keep, false, sliceBytes);
      return;
    }
    // Data that come down may have passed through this rank on their way up; it receives them like all others.
    if (isSource || towards >= 0) this.up.start(above, PARENT, bytes, own, isSource ? keep : -1, false, sliceBytes);
    this.down.start(PARENT, CHILDREN, bytes, -1, isSource ? -1 : from, false, sliceBytes);
  }

  startReduce(from: number, bytes: number, sliceBytes: number, root: number): void {
    const isTarget = root === this.#rank;
    const towards = this.#childTowards(root);
    const below = towards < 0 ? NONE : FIRST_CHILD + towards;
    const keep = isTarget ? from : -1;
    if (this.#isRoot) {
      this.up.start(CHILDREN, below, bytes, from, keep, true, sliceBytes);
      return;
    }
    this.up.start(CHILDREN, PARENT, bytes, from, -1, false, sliceBytes);
    if (isTarget || towards >= 0) this.down.start(PARENT, below, bytes, -1, keep, false, sliceBytes);
  }

  /** Number of the child whose subtree has a rank, or -1. */
  #childTowards(target: number): number {
    let below = target;
    for (let at = target; at >= 0; at = this.#tree.up(at)) {
      if (at === this.#rank) return this.#children.indexOf(below);
      below = at;
    }
    return -1;
  }
}

function childrenOf({ down }: Tree, rank: number): readonly number[] {
  return down(rank).filter((child) => child >= 0);
}

/** Connections of a rank in a tree, for both workers. */
export function treeEnds(tree: Tree, rank: number, name: string, channel: number): EndSets {
  const end = (peer: number): ScheduledEnd => ({ peer, name, channel });
  const parent = tree.up(rank);
  const children = childrenOf(tree, rank).map(end);
  const sets = [[], parent < 0 ? [] : [end(parent)], children, ...children.map((child) => [child])];
  return { receives: sets, sends: sets };
}

/** Sums go up the trees, the result down again, or a part of that; see {@link TreeWork}. */
export function treeSchedule(call: ScheduledCall, { nRanks, trees, chunkBytes }: TreeInput): Schedule {
  const table = new ConnectionTable();
  const workers = trees.flatMap((tree, channel) => {
    const { offset, bytes } = channelRange(call.bytes, trees.length, channel);
    const ranks = Array.from({ length: nRanks }, (_, rank) => rank);
    const toParent = (rank: number) => (tree.up(rank) < 0 ? [] : [table.add(rank, tree.up(rank), channel)]);
    const fromParent = (rank: number) => (tree.up(rank) < 0 ? [] : [table.add(tree.up(rank), rank, channel)]);
    const rising = ranks.map(toParent);
    const falling = ranks.map(fromParent);
    return ranks.flatMap((rank): Worker[] => {
      const children = childrenOf(tree, rank);
      const setsOf = (above: readonly number[] | undefined, below: readonly (readonly number[])[]) => [
        [],
        above ?? [],
        children.flatMap((child) => below[child] ?? []),
        ...children.map((child) => below[child] ?? []),
      ];
      const receives = setsOf(falling[rank], rising);
      const sends = setsOf(rising[rank], falling);
      const worker = (direction: 'up' | 'down'): Worker => ({
        rank,
        channel,
        moves: () => {
          const work = new TreeWork(tree, rank);
          if (bytes > 0) startTree(work, call, offset, bytes, chunkBytes);
          return eachMove(work[direction], receives, sends);
        },
      });
      return tree.up(rank) < 0 ? [worker('up')] : [worker('up'), worker('down')];
    });
  });
  return { call, nRanks, connections: table.all, workers };
}

function startTree(work: TreeWork, { collective, root }: ScheduledCall, offset: number, bytes: number, chunkBytes: number): void {
  switch (collective) {
    case 'AllReduce':
      work.startAllReduce(offset, bytes, chunkBytes);
      break;
    case 'Broadcast':
      work.startBroadcast(offset, bytes, chunkBytes, root, true);
      break;
    case 'Reduce':
      work.startReduce(offset, bytes, chunkBytes, root);
      break;
    default:
      throw new RangeError(`trees do no ${collective}`);
  }
}
