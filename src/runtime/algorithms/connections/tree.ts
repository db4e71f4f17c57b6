import { InternalError } from '../../../errors.js';
import type { EndSets } from '../../../planner/schedule/moves.js';
import { treeEnds, TreeWork, type Tree } from '../../../planner/schedule/tree.js';
import { callKinds } from '../../device/kernels/kernels.js';
import type { PeerConnections } from '../../transport/peers.js';
import type { FifoSize } from '../../transport/transport.js';
import type { NetworkAlgorithm, NetworkPlayer } from './algorithm.js';
import { alignedShare } from '../alignment.js';
import type { Channels, TreeChannel } from './channels.js';
import type { Combiner } from './combiner.js';
import { HEADER_BYTES, type Track } from './exchange.js';
import type { NetworkCall } from './network-call.js';
import { BUFFER_SLICE_BYTES, fairSlice, type SlotLimits } from '../slices.js';
import { connected, endsOf, WorkerTrack } from './worker-track.js';

/** Shortest slice: below, hand-overs cost more than an earlier start of the others gains. */
const LEAST_SLICE_BYTES = 8 * 1024;
const treeFifo: FifoSize = { steps: 8, slotBytes: HEADER_BYTES + BUFFER_SLICE_BYTES };

export const tree = overTrees(
  () => treeFifo,
  ({ trees }) => trees,
);

/** An algorithm that is *tree* on trees of its own, over the NICs of the rings in turn. */
export function overTrees(
  fifo: NetworkAlgorithm['fifo'],
  treesOf: (channels: Channels) => readonly TreeChannel[],
): NetworkAlgorithm {
  return {
    fifo,
    ends: (channels, rank) => endsOf(setsOf(treesOf(channels), channels.rings.length, rank)),
    open: ({ combiner, channels, rank, connections }) =>
      new Trees(combiner, treesOf(channels), channels.rings.length, rank, connections),
  };
}

const shareSlots: SlotLimits = { steps: 8, heldBytes: 16 * 2 ** 20, shortestBytes: 8 * 1024, buffers: 1 };

/** Size of the connections in trees of shares. */
export function shareFifo(nRanks: number): FifoSize {
  return { steps: shareSlots.steps, slotBytes: HEADER_BYTES + fairSlice(shareSlots, nRanks) };
}

/** A tree of the channels, with this rank's work in it. */
interface RankTree {
  readonly work: TreeWork;
  readonly up: WorkerTrack;
  readonly down: WorkerTrack;
}

/**
 * The algorithm *tree*: trees of all ranks, each with a part of the data. On one host they are two binary trees, and the leaves
 * of one are inner nodes of the other (graph/merge/double-tree.ts has a picture). On several hosts the plan gives them: the ranks
 * of a host are a chain, and the chains hang in a double binary tree of hosts (graph/merge/trees.ts). One rank's data reach all
 * others after about 2 log2(n) messages; a ring needs n. See TreeWork (planner/schedule/tree.ts).
 */
class Trees implements NetworkPlayer {
  readonly #trees: readonly RankTree[];
  readonly #sliceBytes: number;
  readonly #tracks: Track[] = [];

  constructor(combiner: Combiner, trees: readonly TreeChannel[], nRings: number, rank: number, connections: PeerConnections) {
    const sets = setsOf(trees, nRings, rank);
    const connectionsOf = connected(endsOf(sets), connections);
    this.#trees = trees.map((tree, number) => {
      const work = new TreeWork(shapeOf(tree), rank);
      const ends = connectionsOf(sets[number] ?? { receives: [], sends: [] });
      return { work, up: new WorkerTrack(combiner, work.up, ends), down: new WorkerTrack(combiner, work.down, ends) };
    });
    this.#sliceBytes = Math.min(...connections.sends.map(({ size }) => size.slotBytes)) - HEADER_BYTES;
  }

  start({ kind, bytes, root, isInPlace }: NetworkCall): readonly Track[] {
    const tracks = this.#tracks;
    tracks.length = 0;
    // With messages that would be too small, all data go over the first trees.
    const nParts = Math.max(1, Math.min(this.#trees.length, Math.ceil(bytes / LEAST_SLICE_BYTES)));
    const share = alignedShare(bytes, nParts);
    for (let part = 0; part < nParts; part++) {
      const tree = this.#trees[part];
      const from = Math.min(bytes, part * share);
      const length = Math.min(share, bytes - from);
      if (tree === undefined || (part > 0 && length === 0)) continue;
      // As many slices as fill a path from leaf to leaf, if they are long enough.
      const slice = Math.min(this.#sliceBytes, Math.max(LEAST_SLICE_BYTES, alignedShare(length, 8)));
      const { work, up, down } = tree;
      switch (kind) {
        case callKinds.allReduce:
        // A barrier goes all the way up and down again: no rank leaves before the last has arrived.
        case callKinds.barrier:
          work.startAllReduce(from, length, slice);
          break;
        case callKinds.broadcast:
          work.startBroadcast(from, length, slice, root, !isInPlace);
          break;
        case callKinds.reduce:
          work.startReduce(from, length, slice, root);
          break;
        default:
          throw new InternalError('INTERNAL', `tree has no call of kind ${kind}`);
      }
      down.start();
      up.start();
      tracks.push(down, up);
    }
    return tracks;
  }
}

function shapeOf({ up, down }: TreeChannel): Tree {
  return { up: (rank) => up[rank] ?? -1, down: (rank) => down[rank] ?? [] };
}

function setsOf(trees: readonly TreeChannel[], nRings: number, rank: number): EndSets[] {
  return trees.map((tree, number) => treeEnds(shapeOf(tree), rank, `tree ${number}`, number % nRings));
}
