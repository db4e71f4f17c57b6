import type { RingOfRanks } from '../transport/ring.js';
import type { FifoSize, ReceiveConnection, SendConnection } from '../transport/transport.js';
import type { Blocks } from './blocks.js';
import type { Combiner } from './combiner.js';
import { countsRoom, HEADER_BYTES, type Track } from './exchange.js';
import { RingSchedule } from './ring-schedule.js';

/**
 * Most data that travel at once. Smaller slices hand over more often, which costs most where ranks share cores; larger
 * ones take more memory a connection (npm run bench -- --only transport compares them).
 */
const SLICE_BYTES = 256 * 1024;
/** The connections that a ring of `nRanks` ranks works on. */
export function ringFifo(nRanks: number): FifoSize {
  return { steps: 8, slotBytes: HEADER_BYTES + SLICE_BYTES + countsRoom(nRanks) };
}

/** Most data in a message of the protocol LL, and the connections that it needs. */
const LL_SLICE_BYTES = 4096;
export const LOW_LATENCY_FIFO: FifoSize = { steps: 8, slotBytes: HEADER_BYTES + LL_SLICE_BYTES };

const none: readonly never[] = [];

/**
 * The algorithm *ring*: ranks in a circle, each of which takes from the previous and sends to the next. Every rank sends
 * and receives as few bytes as can be, all at the same time; but what one rank has reaches the last only after n - 1
 * messages. Each start function gives the work of this rank.
 *
 * The protocols *Simple* and *LL* are rings on connections of two kinds: slices of up to 256 KiB that kernels work on where
 * they lie, or short messages that say by themselves that they are there (transport/shm-low-latency.ts).
 */
export class Ring implements Track {
  readonly #schedule: RingSchedule;
  readonly #from: readonly ReceiveConnection[];
  readonly #to: readonly SendConnection[];
  readonly #tracks: readonly Track[] = [this];

  /** @param roomBytes what of a slot is not for header and data */
  constructor(readonly combiner: Combiner, readonly ring: RingOfRanks, roomBytes = 0) {
    const { steps, slotBytes } = ring.links?.send.size ?? ringFifo(1);
    this.#schedule = new RingSchedule(ring.order, ring.index, slotBytes - HEADER_BYTES - roomBytes, steps / 2);
    this.#from = ring.links === undefined ? none : [ring.links.receive];
    this.#to = ring.links === undefined ? none : [ring.links.send];
  }

  allReduce(bytes: number): readonly Track[] {
    this.#schedule.startAllReduce(bytes);
    return this.#tracks;
  }

  /** @param blocks of the input, by rank */
  reduceScatter(blocks: Blocks): readonly Track[] {
    this.#schedule.startReduceScatter(blocks);
    return this.#tracks;
  }

  /**
   * @param blocks of the output, by rank
   * @param inPlace whether this rank's block is there already
   */
  allGather(blocks: Blocks, inPlace: boolean): readonly Track[] {
    this.#schedule.startAllGather(blocks, !inPlace);
    return this.#tracks;
  }

  broadcast(bytes: number, root: number, inPlace: boolean): readonly Track[] {
    this.#schedule.startBroadcast(bytes, this.ring.order.indexOf(root), !inPlace);
    return this.#tracks;
  }

  reduce(bytes: number, root: number): readonly Track[] {
    this.#schedule.startReduce(bytes, this.ring.order.indexOf(root));
    return this.#tracks;
  }

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
