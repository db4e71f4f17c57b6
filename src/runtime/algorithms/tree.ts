import { InternalError } from '../../errors.js';
import { doubleTree, type TreePlace } from '../../planner/graph/merge/double-tree.js';
import { callKinds } from '../device/kernels/kernels.js';
import type { PeerConnections, WantedEnd } from '../transport/peers.js';
import type { FifoSize, ReceiveConnection, SendConnection } from '../transport/transport.js';
import type { NetworkAlgorithm, NetworkPlayer } from './algorithm.js';
import { alignedShare } from './alignment.js';
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
  ends: ({ order, rings }, rank) => {
    const ends = wantedEnds(order, rank, rings.length);
    return { sendTo: ends, receiveFrom: ends };
  },
  open: ({ combiner, order, rank, connections }) => new DoubleTree(combiner, order, rank, connections),
};

/** One of the two trees, as seen by this rank. */
interface Tree {
  readonly index: number;
  /** By positions in the order. */
  readonly place: TreePlace;
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
 * The algorithm *tree*: two binary trees of all ranks, each with half of the data; the leaves of one are inner nodes of the
 * other (graph/merge/double-tree.ts has a picture). Data go up to the roots, where they are complete, and down again, slice
 * by slice, in both directions at once:
 *
 *     up      children ──► this rank adds its own ──► parent
 *     down    parent ──► this rank keeps it ──► children            (at a root, up continues as down)
 *
 * One rank's data reach all others after about 2 log2(n) messages; a ring needs n. A broadcast goes from its root up to the
 * roots of the trees, then down; a reduce goes up, then down to its root only.
 */
class DoubleTree implements NetworkPlayer {
  readonly #trees: readonly Tree[];
  readonly #sliceBytes: number;
  readonly #tracks: Slices[] = [];
  /** Position of this rank in the order. */
  readonly #here: number;

  constructor(
    combiner: Combiner,
    readonly order: readonly number[],
    rank: number,
    connections: PeerConnections,
  ) {
    const { sends, receives } = connections;
    this.#here = order.indexOf(rank);
    let [nextSend, nextReceive] = [0, 0];
    this.#trees = doubleTree(order.length, this.#here).map((place, index): Tree => {
      const children = place.children.filter((child) => child >= 0);
      const nParents = place.parent < 0 ? 0 : 1;
      const tree = {
        index,
        place,
        children,
        toParent: sends.slice(nextSend, nextSend + nParents),
        toChildren: sends.slice(nextSend + nParents, nextSend + nParents + children.length),
        fromParent: receives.slice(nextReceive, nextReceive + nParents),
        fromChildren: receives.slice(nextReceive + nParents, nextReceive + nParents + children.length),
        up: new Slices(combiner),
        down: new Slices(combiner),
      };
      nextSend += nParents + children.length;
      nextReceive += nParents + children.length;
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
    return this.#start(bytes, ({ place, fromChildren, toChildren, fromParent, toParent, up, down }, from, length, slice) => {
      if (place.parent < 0) {
        up.start(fromChildren, toChildren, length, from, from, true, slice);
        return;
      }
      up.start(fromChildren, toParent, length, from, -1, false, slice);
      down.start(fromParent, toChildren, length, -1, from, false, slice);
    });
  }

  #broadcast(bytes: number, root: number, inPlace: boolean): readonly Track[] {
    const rootPlace = this.order.indexOf(root);
    return this.#start(bytes, (tree, from, length, slice) => {
      const { place, toChildren, fromParent, toParent, up, down } = tree;
      const towards = this.#childTowards(tree, rootPlace);
      const isRoot = towards === 'here';
      const above: readonly ReceiveConnection[] =
        typeof towards === 'number' ? tree.fromChildren.slice(towards, towards + 1) : none;
      const own = isRoot ? from : -1;
      const keep = isRoot && inPlace ? -1 : from;
      if (place.parent < 0) {
        up.start(above, toChildren, length, own, keep, false, slice);
        return;
      }
      // Data that come down may have passed through this rank on their way up; it receives them like all others.
      if (towards !== undefined) up.start(above, toParent, length, own, isRoot ? keep : -1, false, slice);
      down.start(fromParent, toChildren, length, -1, isRoot ? -1 : from, false, slice);
    });
  }

  #reduce(bytes: number, root: number): readonly Track[] {
    const rootPlace = this.order.indexOf(root);
    return this.#start(bytes, (tree, from, length, slice) => {
      const { place, fromChildren, fromParent, toParent, up, down } = tree;
      const towards = this.#childTowards(tree, rootPlace);
      const below: readonly SendConnection[] = typeof towards === 'number' ? tree.toChildren.slice(towards, towards + 1) : none;
      const keep = towards === 'here' ? from : -1;
      if (place.parent < 0) {
        up.start(fromChildren, below, length, from, keep, true, slice);
        return;
      }
      up.start(fromChildren, toParent, length, from, -1, false, slice);
      if (towards !== undefined) down.start(fromParent, below, length, -1, keep, false, slice);
    });
  }

  /** Starts one half of the data on each tree; if the messages would be too small, all on the first. */
  #start(bytes: number, start: (tree: Tree, from: number, bytes: number, sliceBytes: number) => void): readonly Track[] {
    const half = bytes <= LEAST_SLICE_BYTES ? bytes : alignedShare(bytes, 2);
    this.#tracks.length = 0;
    for (const tree of this.#trees) {
      const length = tree.index === 0 ? half : bytes - half;
      if (tree.index > 0 && length === 0) continue;
      // As many slices as fill a path from leaf to leaf, if they are long enough.
      const wanted = alignedShare(length, 8);
      start(tree, tree.index === 0 ? 0 : half, length, Math.min(this.#sliceBytes, Math.max(LEAST_SLICE_BYTES, wanted)));
      this.#tracks.push(tree.down, tree.up);
    }
    return this.#tracks;
  }

  /** The child whose subtree contains a position, `here`, or undefined if the position is not below this rank. */
  #childTowards({ index, children }: Tree, target: number): number | 'here' | undefined {
    let at = target;
    let below = -1;
    while (at >= 0 && at !== this.#here) {
      below = at;
      at = doubleTree(this.order.length, at)[index === 0 ? 0 : 1].parent;
    }
    if (at < 0) return undefined;
    return below < 0 ? 'here' : children.indexOf(below);
  }
}

/**
 * Connections of a rank: in each tree with its parent and its children, in both directions. Each tree goes over the NICs of
 * another ring, if there are several.
 */
function wantedEnds(order: readonly number[], rank: number, nRings: number): readonly WantedEnd[] {
  return doubleTree(order.length, order.indexOf(rank)).flatMap(({ parent, children }, index) =>
    [parent, ...children]
      .filter((place) => place >= 0)
      .map((place) => ({ peer: order[place] ?? rank, name: `tree ${index}`, channel: index % nRings })),
  );
}
