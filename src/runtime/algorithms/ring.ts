import { callKinds } from '../device/kernels/kernels.js';
import { InternalError } from '../../errors.js';
import { RingOfRanks } from '../transport/ring.js';
import type { FifoSize, ReceiveConnection, SendConnection } from '../transport/transport.js';
import type { NetworkAlgorithm, NetworkPlayer } from './algorithm.js';
import type { Combiner } from './combiner.js';
import { countsRoom, HEADER_BYTES, type Track } from './exchange.js';
import type { NetworkCall } from './network-call.js';
import { RingSchedule } from './ring-schedule.js';

/**
 * Longest slice. Smaller slices cost more hand-overs, which matters most if ranks share cores; larger ones need more memory
 * for each connection (npm run bench -- --only transport compares them).
 */
const SLICE_BYTES = 256 * 1024;
/** Size of the connections in a ring of `nRanks` ranks. */
export function ringFifo(nRanks: number): FifoSize {
  return { steps: 8, slotBytes: HEADER_BYTES + SLICE_BYTES + countsRoom(nRanks) };
}

/** Longest slice of the protocol LL, and the size of its connections. */
const LL_SLICE_BYTES = 4096;
export const lowLatencyFifo: FifoSize = { steps: 8, slotBytes: HEADER_BYTES + LL_SLICE_BYTES };

const none: readonly never[] = [];

export const ring: NetworkAlgorithm = {
  name: 'ring',
  kinds: ['allReduce', 'broadcast', 'barrier', 'reduce', 'allGather', 'reduceScatter', 'allGatherV', 'reduceScatterV'],
  mostRanks: Infinity,
  over: 'connections',
  defaultUpToBytes: () => Infinity,
  fifo: ringFifo,
  ends: (order, rank) => {
    const place = new RingOfRanks(rank, order, undefined);
    const end = (distance: number): { peer: number; name: string } => ({ peer: place.rankAt(distance), name: 'ring' });
    return order.length === 1 ? { sendTo: [], receiveFrom: [] } : { sendTo: [end(1)], receiveFrom: [end(-1)] };
  },
  open: ({
    combiner,
    order,
    rank,
    connections: {
      sends: [send],
      receives: [receive],
    },
  }) => {
    const links = send === undefined || receive === undefined ? undefined : { send, receive };
    return new Ring(combiner, new RingOfRanks(rank, order, links), countsRoom(order.length));
  },
};

/**
 * The algorithm *ring*: ranks in a circle, each of which receives from the previous and sends to the next. Every rank sends
 * and receives the minimum number of bytes, all at the same time; but one rank's data reach the last rank only after n - 1
 * messages.
 *
 * The protocols *Simple* and *LL* are rings on two kinds of connections: slices of up to 256 KiB that kernels process in
 * place, or short messages whose words carry their own flags (transport/shm-low-latency.ts).
 */
export class Ring implements NetworkPlayer, Track {
  readonly #schedule: RingSchedule;
  readonly #from: readonly ReceiveConnection[];
  readonly #to: readonly SendConnection[];
  readonly #tracks: readonly Track[] = [this];
  /** The same ring with the protocol LL, for calls of at most `#quickBytes`. */
  #quick: Ring | undefined;
  #quickBytes = 0;

  /** @param roomBytes part of a slot that is neither header nor data */
  constructor(
    readonly combiner: Combiner,
    readonly ring: RingOfRanks,
    roomBytes = 0,
  ) {
    const { steps, slotBytes } = ring.links?.send.size ?? ringFifo(1);
    this.#schedule = new RingSchedule(ring.order, ring.index, slotBytes - HEADER_BYTES - roomBytes, steps / 2);
    this.#from = ring.links === undefined ? none : [ring.links.receive];
    this.#to = ring.links === undefined ? none : [ring.links.send];
  }

  /** Gives calls of at most `bytes` to `quick`, whose connections use the protocol LL; V forms stay here. */
  useLowLatency(quick: Ring, bytes: number): void {
    this.#quick = quick;
    this.#quickBytes = bytes;
  }

  start(call: NetworkCall): readonly Track[] {
    const { kind, bytes } = call;
    const isUneven = kind === callKinds.allGatherV || kind === callKinds.reduceScatterV;
    if (this.#quick !== undefined && bytes <= this.#quickBytes && !isUneven) return this.#quick.start(call);
    switch (kind) {
      case callKinds.allReduce:
        this.#schedule.startAllReduce(bytes);
        break;
      case callKinds.broadcast:
        this.#schedule.startBroadcast(bytes, this.ring.order.indexOf(call.root), !call.isInPlace);
        break;
      case callKinds.reduce:
        this.#schedule.startReduce(bytes, this.ring.order.indexOf(call.root));
        break;
      case callKinds.barrier:
        this.#schedule.startBarrier();
        break;
      case callKinds.allGather:
      case callKinds.allGatherV:
        this.#schedule.startAllGather(call.blocks(), !call.isInPlace);
        break;
      case callKinds.reduceScatter:
      case callKinds.reduceScatterV:
        this.#schedule.startReduceScatter(call.blocks());
        break;
      default:
        throw new InternalError('INTERNAL', `ring has no call of kind ${kind}`);
    }
    return this.#tracks;
  }

  /** Lets all ranks meet. */
  barrier(): readonly Track[] {
    this.#schedule.startBarrier();
    return this.#tracks;
  }

  // ── the work, as a track ──────────────────────────────────────────────────────────────────────────────────────────

  get done(): boolean {
    return this.#schedule.done;
  }

  get from(): readonly ReceiveConnection[] {
    return this.#schedule.receives ? this.#from : none;
  }

  get to(): readonly SendConnection[] {
    return this.#schedule.sends ? this.#to : none;
  }

  get bytes(): number {
    return this.#schedule.bytes;
  }

  pass(inputs: readonly number[], outputs: readonly number[]): void {
    const schedule = this.#schedule;
    this.combiner.pass(schedule, inputs, schedule.receives ? 1 : 0, outputs, schedule.sends ? 1 : 0);
  }

  finish(): void {
    this.combiner.keep(this.#schedule);
    this.#schedule.next();
  }
}
