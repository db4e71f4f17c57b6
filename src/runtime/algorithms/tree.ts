import { InternalError } from '../../errors.js';
import { callKinds } from '../device/kernels/kernels.js';
import type { PeerConnections, WantedEnd } from '../transport/peers.js';
import type { FifoSize, ReceiveConnection, SendConnection } from '../transport/transport.js';
import type { NetworkAlgorithm, NetworkPlayer } from './algorithm.js';
import { alignedShare } from './alignment.js';
import type { Channels, TreeChannel } from './channels.js';
import type { Combiner } from './combiner.js';
import { HEADER_BYTES, type Track } from './exchange.js';
import type { NetworkCall } from './network-call.js';
import { LONGEST_SLICE_BYTES, Slices } from './slices.js';

/** Shortest slice: below, hand-overs cost more than an earlier start of the others gains. */
const LEAST_SLICE_BYTES = 8 * 1024;
const treeFifo: FifoSize = { steps: 8, slotBytes: HEADER_BYTES + LONGEST_SLICE_BYTES };
/**
 * Largest call, one slice of a tree, for which a tree's few messages are faster than a ring's many; measured
 * (docs/notes/algorithms.md).
 */
const DEFAULT_BYTES = 8 * 1024;

export const tree: NetworkAlgorithm = {
  name: 'tree',
  kinds: ['allReduce', 'broadcast', 'barrier', 'reduce'],
  mostRanks: Infinity,
  over: 'connections',
  // With two ranks, tree and ring are the same.
  defaultUpToBytes: (nRanks) => (nRanks > 2 ? DEFAULT_BYTES : 0),
  fifo: () => treeFifo,
  ends: (channels, rank) => {
    const ends = wantedEnds(channels, rank);
    return { sendTo: ends, receiveFrom: ends };
  },
  open: ({ combiner, channels: { trees }, rank, connections }) => new Trees(combiner, trees, rank, connections),
};

/** One of the trees, as seen by this rank. */
interface Tree {
  /** By rank: parent, -1 for the root. */
  readonly parents: readonly number[];
  readonly isRoot: boolean;
  readonly children: readonly number[];
  readonly fromChildren: readonly ReceiveConnection[];
  readonly toChildren: readonly SendConnection[];
  readonly fromParent: readonly ReceiveConnection[];
  readonly toParent: readonly SendConnection[];
  readonly up: Slices;
  readonly down: Slices;
}

const none: readonly never[] = [];

/**
 * The algorithm *tree*: trees of all ranks, each with a part of the data. On one host they are two binary trees, and the leaves
 * of one are inner nodes of the other (graph/merge/double-tree.ts has a picture). On several hosts the plan gives them: the ranks
 * of a host are a chain, and the chains hang in a double binary tree of hosts (graph/merge/trees.ts). Data go up to the roots,
 * where they are complete, and down again, slice by slice, in both directions at the same time:
 *
 *     up      children ──► this rank adds its own ──► parent
 *     down    parent ──► this rank keeps it ──► children            (at a root, up continues as down)
 *
 * One rank's data reach all others after about 2 log2(n) messages; a ring needs n. A broadcast goes from its root up to the
 * roots of the trees, then down; a reduce goes up, then down to its root only.
 */
class Trees implements NetworkPlayer {
  readonly #trees: readonly Tree[];
  readonly #sliceBytes: number;
  readonly #tracks: Slices[] = [];

  constructor(
    combiner: Combiner,
    trees: readonly TreeChannel[],
    readonly rank: number,
    connections: PeerConnections,
  ) {
    const { sends, receives } = connections;
    let next = 0;
    this.#trees = trees.map(({ up, down }): Tree => {
      const children = down[rank] ?? [];
      const isRoot = (up[rank] ?? -1) < 0;
      // The parent comes first; see wantedEnds().
      const first = next + (isRoot ? 0 : 1);
      const end = first + children.length;
      const tree = {
        parents: up,
        isRoot,
        children,
        toParent: sends.slice(next, first),
        toChildren: sends.slice(first, end),
        fromParent: receives.slice(next, first),
        fromChildren: receives.slice(first, end),
        up: new Slices(combiner),
        down: new Slices(combiner),
      };
      next = end;
      return tree;
    });
    this.#sliceBytes = Math.min(...sends.map(({ size }) => size.slotBytes)) - HEADER_BYTES;
  }

  start(call: NetworkCall): readonly Track[] {
    switch (call.kind) {
      case callKinds.allReduce:
        return this.#allReduce(call.bytes);
      case callKinds.broadcast:
        return this.#broadcast(call.bytes, call.root, call.isInPlace);
      case callKinds.reduce:
        return this.#reduce(call.bytes, call.root);
      case callKinds.barrier:
        // All the way up and down again: no rank leaves before the last has arrived.
        return this.#allReduce(0);
      default:
        throw new InternalError('INTERNAL', `tree has no call of kind ${call.kind}`);
    }
  }

  #allReduce(bytes: number): readonly Track[] {
    return this.#start(bytes, ({ isRoot, fromChildren, toChildren, fromParent, toParent, up, down }, from, length, slice) => {
      if (isRoot) {
        up.start(fromChildren, toChildren, length, from, from, true, slice);
        return;
      }
      up.start(fromChildren, toParent, length, from, -1, false, slice);
      down.start(fromParent, toChildren, length, -1, from, false, slice);
    });
  }

  #broadcast(bytes: number, root: number, inPlace: boolean): readonly Track[] {
    return this.#start(bytes, (tree, from, length, slice) => {
      const { isRoot, toChildren, fromParent, toParent, up, down } = tree;
      const towards = this.#childTowards(tree, root);
      const isSource = towards === 'here';
      const above: readonly ReceiveConnection[] =
        typeof towards === 'number' ? tree.fromChildren.slice(towards, towards + 1) : none;
      const own = isSource ? from : -1;
      const keep = isSource && inPlace ? -1 : from;
      if (isRoot) {
        up.start(above, toChildren, length, own, keep, false, slice);
        return;
      }
      // Data that come down may have passed through this rank on their way up; it receives them like all others.
      if (towards !== undefined) up.start(above, toParent, length, own, isSource ? keep : -1, false, slice);
      down.start(fromParent, toChildren, length, -1, isSource ? -1 : from, false, slice);
    });
  }

  #reduce(bytes: number, root: number): readonly Track[] {
    return this.#start(bytes, (tree, from, length, slice) => {
      const { isRoot, fromChildren, fromParent, toParent, up, down } = tree;
      const towards = this.#childTowards(tree, root);
      const below: readonly SendConnection[] = typeof towards === 'number' ? tree.toChildren.slice(towards, towards + 1) : none;
      const keep = towards === 'here' ? from : -1;
      if (isRoot) {
        up.start(fromChildren, below, length, from, keep, true, slice);
        return;
      }
      up.start(fromChildren, toParent, length, from, -1, false, slice);
      if (towards !== undefined) down.start(fromParent, below, length, -1, keep, false, slice);
    });
  }

  /** Divides the data among the trees; if the messages would be too small, among fewer of them. */
  #start(bytes: number, start: (tree: Tree, from: number, bytes: number, sliceBytes: number) => void): readonly Track[] {
    const nUsed = Math.min(this.#trees.length, Math.max(1, Math.ceil(bytes / LEAST_SLICE_BYTES)));
    const part = nUsed === 1 ? bytes : alignedShare(bytes, nUsed);
    this.#tracks.length = 0;
    let from = 0;
    for (const tree of this.#trees) {
      const length = Math.min(part, bytes - from);
      // As many slices as fill a path from leaf to leaf, if they are long enough.
      const wanted = alignedShare(length, 8);
      start(tree, from, length, Math.min(this.#sliceBytes, Math.max(LEAST_SLICE_BYTES, wanted)));
      this.#tracks.push(tree.down, tree.up);
      from += length;
      if (from >= bytes) break;
    }
    return this.#tracks;
  }

  /** The child whose subtree contains a rank, `here`, or undefined if the rank is not below this one. */
  #childTowards({ parents, children }: Tree, target: number): number | 'here' | undefined {
    let at = target;
    let below = -1;
    while (at >= 0 && at !== this.rank) {
      below = at;
      at = parents[at] ?? -1;
    }
    if (at < 0) return undefined;
    return below < 0 ? 'here' : children.indexOf(below);
  }
}

/** Connections of a rank: in each tree with its parent and its children, in both directions. */
function wantedEnds({ trees, rings }: Channels, rank: number): readonly WantedEnd[] {
  return trees.flatMap(({ up, down }, index) =>
    [up[rank] ?? -1, ...(down[rank] ?? [])]
      .filter((peer) => peer >= 0)
      .map((peer) => ({ peer, name: `tree ${index}`, channel: index % rings.length })),
  );
}
