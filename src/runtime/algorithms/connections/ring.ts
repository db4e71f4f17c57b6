import { divides, gathers, isUneven } from '../call-traits.js';
import type { Moves } from '../../../planner/schedule/moves.js';
import { RelayMoves } from '../../../planner/schedule/relay-moves.js';
import { RingMoves } from '../../../planner/schedule/ring-moves.js';
import { callKinds } from '../../device/kernels/kernels.js';
import { InternalError } from '../../../errors.js';
import { linkRings, placesIn, ringEnds, type RingOfRanks } from '../../transport/ring.js';
import type { FifoSize } from '../../transport/transport.js';
import type { NetworkAlgorithm, NetworkPlayer } from './algorithm.js';
import type { Combiner } from './combiner.js';
import { countsRoom, HEADER_BYTES, type Track } from './exchange.js';
import { ALIGNMENT, alignedShare } from '../alignment.js';
import { Blocks } from './blocks.js';
import type { NetworkCall } from './network-call.js';
import { BUFFER_SLICE_BYTES, MOST_BUFFERS, ringParts, sliceOfBuffers } from '../slices.js';
import { WorkerTrack } from './worker-track.js';

/** Size of the connections in a ring of `nRanks` ranks. */
export function ringFifo(nRanks: number): FifoSize {
  return { steps: 8, slotBytes: HEADER_BYTES + sliceOfBuffers(MOST_BUFFERS) + countsRoom(nRanks) };
}

/** Longest slice of the protocol LL, and the size of its connections. */
const LL_SLICE_BYTES = 4096;
export const lowLatencyFifo: FifoSize = { steps: 8, slotBytes: HEADER_BYTES + LL_SLICE_BYTES };

const none: readonly never[] = [];

export const ring: NetworkAlgorithm = {
  fifo: ringFifo,
  ends: ({ order, rings }, rank) => (order.length === 1 ? { sendTo: [], receiveFrom: [] } : ringEnds(placesIn(rings, rank))),
  open: ({ combiner, channels, rank, connections }) =>
    new Rings(combiner, linkRings(placesIn(channels.rings, rank), connections)),
};

/**
 * The algorithm *ring*: ranks in a circle, each of which receives from the previous and sends to the next. Every rank sends and
 * receives the minimum number of bytes, all at the same time; but one rank's data reach the last rank only after n - 1 messages.
 *
 * The protocols *Simple* and *LL* are rings on two kinds of connections: slices of up to 120 KiB that kernels process in
 * place, or short messages whose words carry their own flags (transport/shm-low-latency.ts).
 */
export class Ring implements NetworkPlayer {
  /** Longest slice. */
  readonly sliceBytes: number;
  /** This rank's work of a call, and what it relays. */
  readonly tracks: readonly WorkerTrack[];
  readonly #moves: RingMoves;
  /** The moves of the rank that this one relays for, and this one's, which follow them. */
  readonly #relayed: { readonly sender: RingMoves; readonly moves: RelayMoves } | undefined;
  readonly #partBlocks: Blocks;
  /** The same ring with the protocol LL, for calls of at most `#quickBytes`. */
  #quick: Ring | undefined;
  #quickBytes = 0;

  /** @param roomBytes part of a slot that is neither header nor data */
  constructor(
    combiner: Combiner,
    readonly ring: RingOfRanks,
    roomBytes = 0,
  ) {
    const { order, index, links, relayedPlace } = ring;
    const { steps, slotBytes } = links?.send.size ?? ringFifo(1);
    this.sliceBytes = slotBytes - HEADER_BYTES - roomBytes;
    const cut = { sliceBytes: this.sliceBytes, slicesPerChunk: steps / 2, grainBytes: ALIGNMENT, meets: true };
    this.#moves = new RingMoves(order, index, cut);
    const trackOf = (moves: Moves, hop: typeof links): WorkerTrack =>
      new WorkerTrack(combiner, moves, {
        receives: [none, hop === undefined ? none : [hop.receive]],
        sends: [none, hop === undefined ? none : [hop.send]],
      });
    const own = trackOf(this.#moves, links);
    if (links?.relayed === undefined) this.tracks = [own];
    else {
      const sender = new RingMoves(order, relayedPlace, cut);
      this.#relayed = { sender, moves: new RelayMoves(sender) };
      this.tracks = [own, trackOf(this.#relayed.moves, links.relayed)];
    }
    this.#partBlocks = new Blocks(order.length);
  }

  /** Gives calls of at most `bytes` to `quick`, whose connections use the protocol LL; V forms stay here. */
  useLowLatency(quick: Ring, bytes: number): void {
    this.#quick = quick;
    this.#quickBytes = bytes;
  }

  start(call: NetworkCall): readonly Track[] {
    const { kind, bytes } = call;
    if (this.#quick !== undefined && bytes <= this.#quickBytes && !isUneven(kind)) return this.#quick.start(call);
    this.startPart(call, 0, 1);
    return this.tracks;
  }

  /** Starts part `part` of the `nParts` parts of a call, as tracks. */
  startPart(call: NetworkCall, part: number, nParts: number): void {
    this.#startMoves(this.#moves, call, part, nParts);
    if (this.#relayed !== undefined) this.#startMoves(this.#relayed.sender, call, part, nParts);
    this.#startTracks();
  }

  #startTracks(): void {
    this.#relayed?.moves.start();
    for (let i = 0; i < this.tracks.length; i++) this.tracks[i]?.start();
  }

  #startMoves(moves: RingMoves, call: NetworkCall, part: number, nParts: number): void {
    const share = nParts === 1 ? call.bytes : alignedShare(call.bytes, nParts);
    const from = Math.min(part * share, call.bytes);
    const bytes = Math.min(share, call.bytes - from);
    switch (call.kind) {
      case callKinds.allReduce:
        moves.startAllReduce(bytes, from);
        break;
      case callKinds.broadcast:
        moves.startBroadcast(bytes, this.ring.order.indexOf(call.root), !call.isInPlace, from);
        break;
      case callKinds.reduce:
        moves.startReduce(bytes, this.ring.order.indexOf(call.root), from);
        break;
      case callKinds.barrier:
        moves.startBarrier();
        break;
      case callKinds.allGather:
      case callKinds.allGatherV:
        moves.startAllGather(this.#blocksOf(call, part, nParts), !call.isInPlace);
        break;
      case callKinds.reduceScatter:
      case callKinds.reduceScatterV:
        moves.startReduceScatter(this.#blocksOf(call, part, nParts));
        break;
      default:
        throw new InternalError('INTERNAL', `ring has no call of kind ${call.kind}`);
    }
  }

  #blocksOf(call: NetworkCall, part: number, nParts: number): Blocks {
    const whole = call.blocks();
    return nParts === 1 ? whole : this.#partBlocks.partOf(whole, part, nParts);
  }

  /** Lets all ranks meet. */
  barrier(): readonly Track[] {
    this.#moves.startBarrier();
    this.#relayed?.sender.startBarrier();
    this.#startTracks();
    return this.tracks;
  }
}

/**
 * The algorithm *ring* on the rings of several channels. Each ring carries a part of a large call over its own NICs, all at the
 * same time; a small call takes the first ring.
 */
export class Rings implements NetworkPlayer {
  readonly #rings: readonly Ring[];
  readonly #first: Ring;
  /** By number of parts: the rings that carry them. */
  readonly #tracks: readonly (readonly Track[])[];

  constructor(combiner: Combiner, rings: readonly RingOfRanks[]) {
    this.#rings = rings.map((ring) => new Ring(combiner, ring, countsRoom(ring.order.length)));
    const [first] = this.#rings;
    if (first === undefined) throw new InternalError('INTERNAL', 'there is no ring');
    this.#first = first;
    this.#tracks = Array.from({ length: rings.length + 1 }, (_, count) =>
      this.#rings.slice(0, count).flatMap(({ tracks }) => tracks),
    );
  }

  start(call: NetworkCall): readonly Track[] {
    const nParts = this.#partsOf(call);
    if (nParts === 1) return this.#first.start(call);
    for (let part = 0; part < nParts; part++) this.#rings[part]?.startPart(call, part, nParts);
    return this.#tracks[nParts] ?? none;
  }

  /** Lets all ranks meet. */
  barrier(): readonly Track[] {
    return this.#first.barrier();
  }

  /** See Ring. */
  useLowLatency(quick: Ring, bytes: number): void {
    this.#first.useLowLatency(quick, bytes);
  }

  #partsOf(call: NetworkCall): number {
    const most = this.#rings.length;
    if (most === 1 || call.kind === callKinds.barrier) return 1;
    const bytes = divides(call.kind) || gathers(call.kind) ? call.blocks().longest * this.#first.ring.order.length : call.bytes;
    return ringParts(bytes, most, Math.min(this.#first.sliceBytes, BUFFER_SLICE_BYTES));
  }
}
