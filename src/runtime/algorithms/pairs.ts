import { callKinds } from '../device/kernels/kernels.js';
import { InternalError } from '../../errors.js';
import type { PeerConnections } from '../transport/peers.js';
import type { FifoSize, ReceiveConnection, SendConnection } from '../transport/transport.js';
import type { NetworkAlgorithm, NetworkPlayer } from './algorithm.js';
import { alignedPiece } from './alignment.js';
import type { Blocks } from './blocks.js';
import type { Combiner, Piece } from './combiner.js';
import { HEADER_BYTES, type Track } from './exchange.js';
import type { NetworkCall } from './network-call.js';
import { LONGEST_SLICE_BYTES, Slices } from './slices.js';

const SHORTEST_SLICE_BYTES = 4 * 1024;
/** Approximate limit for the data that all connections of a rank may hold. */
const HELD_BYTES = 4 * 2 ** 20;
const STEPS = 4;

/** Size of a connection between two ranks: the more ranks, the shorter the slices. */
function pairFifo(nRanks: number): FifoSize {
  const fair = alignedPiece(HELD_BYTES / STEPS, nRanks);
  return { steps: STEPS, slotBytes: HEADER_BYTES + Math.min(LONGEST_SLICE_BYTES, Math.max(SHORTEST_SLICE_BYTES, fair)) };
}

const none: readonly never[] = [];

export const pairs: NetworkAlgorithm = {
  name: 'pairs',
  kinds: ['allToAll', 'gather', 'scatter', 'allToAllV', 'scan', 'exscan'],
  mostRanks: Infinity,
  over: 'connections',
  defaultUpToBytes: () => Infinity,
  fifo: pairFifo,
  ends: ({ order: { length } }, rank) => {
    const ends = Array.from({ length: length - 1 }, (_, i) => ({ peer: (rank + 1 + i) % length, name: 'pair' }));
    return { sendTo: ends, receiveFrom: ends };
  },
  open: ({ combiner, order, rank, connections }) => new Pairs(combiner, rank, order.length, connections),
};

/**
 * The algorithm *pairs*: every rank exchanges data with every other on a connection of their own, all at the same time. For
 * data that differ between pairs and so cannot be passed on or reduced on the way: all-to-all, gather, scatter.
 */
class Pairs implements NetworkPlayer {
  /** By rank; undefined for this rank. */
  readonly #sends: readonly (readonly SendConnection[] | undefined)[];
  readonly #receives: readonly (readonly ReceiveConnection[] | undefined)[];
  readonly #sending: readonly Slices[];
  readonly #receiving: readonly Slices[];
  readonly #swapping: readonly Swap[];
  readonly #inclusive: Slices;
  readonly #exclusive: Slices;
  readonly #sliceBytes: number;
  /** The other ranks, beginning with the next: not all ranks begin with the same. */
  readonly #others: readonly number[];
  readonly #tracks: Track[] = [];

  constructor(
    readonly combiner: Combiner,
    readonly rank: number,
    nRanks: number,
    connections: PeerConnections,
  ) {
    const byRank = <E extends { readonly peer: number }>(ends: readonly E[]): (readonly E[] | undefined)[] =>
      Array.from({ length: nRanks }, (_, peer) => (peer === rank ? undefined : ends.filter((end) => end.peer === peer)));
    this.#sends = byRank(connections.sends);
    this.#receives = byRank(connections.receives);
    this.#sending = Array.from({ length: nRanks }, () => new Slices(combiner));
    this.#receiving = Array.from({ length: nRanks }, () => new Slices(combiner));
    this.#inclusive = new Slices(combiner);
    this.#exclusive = new ExclusiveSlices(combiner);
    this.#swapping = Array.from({ length: nRanks }, () => new Swap(combiner));
    this.#sliceBytes = Math.min(...connections.sends.map(({ size }) => size.slotBytes)) - HEADER_BYTES;
    this.#others = Array.from({ length: nRanks - 1 }, (_, i) => (rank + 1 + i) % nRanks);
  }

  start(call: NetworkCall): readonly Track[] {
    switch (call.kind) {
      case callKinds.allToAllV:
        if (call.derived === 'gatherV') return this.#gatherV(call.blocks(), call.receivedBlocks(), call.root);
        if (call.derived === 'scatterV') return this.#scatterV(call.blocks(), call.receivedBlocks(), call.root);
        return this.#allToAll(call.blocks(), call.receivedBlocks(), false);
      case callKinds.allToAll:
        return this.#allToAll(call.blocks(), call.receivedBlocks(), call.isInPlace);
      case callKinds.scan:
      case callKinds.exscan:
        return this.#scan(call.bytes, call.kind === callKinds.exscan);
      case callKinds.gather:
        return this.#gather(call.blocks(), call.root);
      case callKinds.scatter:
        return this.#scatter(call.blocks(), call.root);
      default:
        throw new InternalError('INTERNAL', `pairs has no call of kind ${call.kind}`);
    }
  }

  /**
   * @param sent this rank's blocks for each rank, in its input
   * @param received the blocks of each rank for this one, in its output
   * @param inPlace true if both are the same memory; blocks are then swapped
   */
  #allToAll(sent: Blocks, received: Blocks, inPlace: boolean): readonly Track[] {
    this.#tracks.length = 0;
    if (!inPlace) this.#copyOwn(sent.from[this.rank] ?? 0, received.from[this.rank] ?? 0, sent.bytes[this.rank] ?? 0);
    for (const peer of this.#others) {
      if (inPlace) {
        const swap = this.#swapping[peer];
        swap?.start(
          this.#receives[peer] ?? none,
          this.#sends[peer] ?? none,
          sent.from[peer] ?? 0,
          sent.bytes[peer] ?? 0,
          this.#sliceBytes,
        );
        if (swap !== undefined) this.#tracks.push(swap);
      } else {
        this.#receive(peer, received.from[peer] ?? 0, received.bytes[peer] ?? 0);
        this.#send(peer, sent.from[peer] ?? 0, sent.bytes[peer] ?? 0);
      }
    }
    return this.#tracks;
  }

  /** @param blocks of the root's output */
  #gather(blocks: Blocks, root: number): readonly Track[] {
    this.#tracks.length = 0;
    if (this.rank !== root) {
      this.#send(root, 0, blocks.bytes[this.rank] ?? 0);
      return this.#tracks;
    }
    this.#copyOwn(0, blocks.from[root] ?? 0, blocks.bytes[root] ?? 0);
    for (const peer of this.#others) this.#receive(peer, blocks.from[peer] ?? 0, blocks.bytes[peer] ?? 0);
    return this.#tracks;
  }

  /** @param blocks of the root's input */
  #scatter(blocks: Blocks, root: number): readonly Track[] {
    this.#tracks.length = 0;
    if (this.rank !== root) {
      this.#receive(root, 0, blocks.bytes[this.rank] ?? 0);
      return this.#tracks;
    }
    this.#copyOwn(blocks.from[root] ?? 0, 0, blocks.bytes[root] ?? 0);
    for (const peer of this.#others) this.#send(peer, blocks.from[peer] ?? 0, blocks.bytes[peer] ?? 0);
    return this.#tracks;
  }

  /** An allToAllV in which only the root receives. */
  #gatherV(sent: Blocks, received: Blocks, root: number): readonly Track[] {
    if (this.rank === root) return this.#gather(received, root);
    this.#tracks.length = 0;
    this.#send(root, sent.from[root] ?? 0, sent.bytes[root] ?? 0);
    return this.#tracks;
  }

  /** An allToAllV in which only the root sends. */
  #scatterV(sent: Blocks, received: Blocks, root: number): readonly Track[] {
    if (this.rank === root) return this.#scatter(sent, root);
    this.#tracks.length = 0;
    this.#receive(root, received.from[root] ?? 0, received.bytes[root] ?? 0);
    return this.#tracks;
  }

  /** Ranks in a chain: each adds its input to the received sum, and passes the result on. */
  #scan(bytes: number, isExclusive: boolean): readonly Track[] {
    const { rank } = this;
    this.#tracks.length = 0;
    const from = this.#receives[rank - 1] ?? none;
    const to = this.#sends[rank + 1] ?? none;
    const track = isExclusive ? this.#exclusive : this.#inclusive;
    track.start(from, to, bytes, 0, isExclusive && from.length === 0 ? -1 : 0, true, this.#sliceBytes);
    this.#tracks.push(track);
    return this.#tracks;
  }

  #send(peer: number, from: number, bytes: number): void {
    const track = this.#sending[peer];
    if (track === undefined) return;
    track.start(none, this.#sends[peer] ?? none, bytes, from, -1, false, this.#sliceBytes);
    this.#tracks.push(track);
  }

  #receive(peer: number, to: number, bytes: number): void {
    const track = this.#receiving[peer];
    if (track === undefined) return;
    track.start(this.#receives[peer] ?? none, none, bytes, -1, to, false, this.#sliceBytes);
    this.#tracks.push(track);
  }

  #copyOwn(from: number, to: number, bytes: number): void {
    this.combiner.destination.copyFrom(this.combiner.source, from, to, bytes);
  }
}

/** Slices of an exclusive scan: the received sum is the output; with this rank's input added, it is sent on. */
class ExclusiveSlices extends Slices {
  override pass(inputs: readonly number[], outputs: readonly number[]): void {
    const { combiner, bytes, own, keep, from, to } = this;
    if (to.length > 0) combiner.pass({ bytes, own, keep: -1, complete: false }, inputs, from.length, outputs, to.length);
    if (from.length > 0) combiner.pass({ bytes, own: -1, keep, complete: true }, inputs, from.length, none, 0);
  }
}

/** Track that swaps two blocks of two ranks: sends each slice before it takes the one that replaces it. */
class Swap implements Track, Piece {
  done = true;
  bytes = 0;
  own = -1;
  keep = -1;
  readonly complete = false;
  #receives: readonly ReceiveConnection[] = none;
  #sends: readonly SendConnection[] = none;
  #at = 0;
  #end = 0;
  #sliceBytes = 0;
  #sent = false;

  constructor(readonly combiner: Combiner) {}

  start(
    receives: readonly ReceiveConnection[],
    sends: readonly SendConnection[],
    from: number,
    bytes: number,
    sliceBytes: number,
  ): void {
    this.done = false;
    this.#receives = receives;
    this.#sends = sends;
    this.#at = from;
    this.#end = from + bytes;
    this.#sliceBytes = sliceBytes;
    this.#setMove(false);
  }

  get from(): readonly ReceiveConnection[] {
    return this.#sent ? this.#receives : none;
  }

  get to(): readonly SendConnection[] {
    return this.#sent ? none : this.#sends;
  }

  pass(inputs: readonly number[], outputs: readonly number[]): void {
    this.combiner.pass(this, inputs, this.from.length, outputs, this.to.length);
  }

  finish(): void {
    this.combiner.keep(this);
    if (this.#sent) {
      this.#at += this.bytes;
      this.done = this.#at === this.#end;
    }
    this.#setMove(!this.#sent);
  }

  #setMove(sent: boolean): void {
    this.#sent = sent;
    this.bytes = Math.min(this.#sliceBytes, this.#end - this.#at);
    this.own = sent ? -1 : this.#at;
    this.keep = sent ? this.#at : -1;
  }
}
