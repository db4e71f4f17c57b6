import type { Timing } from './timing.js';

/** A slice that a worker is about to do: reused for all slices, so that the clock allocates none. */
export interface SliceInProgress {
  worker: number;
  bytes: number;
  startUs: number;
  endUs: number;
  /** Time of the slice besides its bytes. */
  overheadUs: number;
  /** Arrival of the last byte that it receives. */
  completeUs: number;
  /** Rate of its slowest connection, bytes a µs. */
  rate: number;
  /** Time to notify the proxies of NICs. */
  notifyUs: number;
}

/** Time in which the bytes of a slice are on the links of a connection. */
export interface WireUse {
  readonly connection: number;
  readonly startUs: number;
  readonly endUs: number;
}

/**
 * The connections of a call in time: when the messages in their slots arrive, when the slots are free again, and the workers
 * that wait for either. Flat arrays and plain loops, because this is the inner loop of a simulation.
 */
export class Fifos {
  /** Time in which each connection's messages used its share of a NIC or of PCI links. */
  readonly wireUs: Float64Array;
  /** Costs, copied because timings have objects of several shapes, which are slow to read in a loop. */
  readonly #readRate: Float64Array;
  readonly #writeRate: Float64Array;
  readonly #wireRate: Float64Array;
  readonly #sharedRate: Float64Array;
  readonly #stepUs: Float64Array;
  readonly #sendUs: Float64Array;
  readonly #latencyUs: Float64Array;
  readonly #creditUs: Float64Array;
  readonly #rendezvousUs: number;
  readonly #rendezvousBytes: number;
  readonly #slots: number;
  readonly #mask: number;
  readonly #sent: Int32Array;
  readonly #taken: Int32Array;
  /** By slot: arrival of the first byte, of the last, and of the one with which a receiver may begin. */
  readonly #firstArrival: Float64Array;
  readonly #lastArrival: Float64Array;
  readonly #startArrival: Float64Array;
  /** Time at which the sender may use each slot again. */
  readonly #freedAt: Float64Array;
  /** Time at which a connection's share of a NIC is free. */
  readonly #wireFree: Float64Array;
  /** The worker that waits for a message or for a free slot of each connection; -1 for none. */
  readonly #receiver: Int32Array;
  readonly #sender: Int32Array;
  readonly #wake: (worker: number) => void;

  constructor(count: number, timing: Timing, wake: (worker: number) => void) {
    const { slots } = timing;
    this.#readRate = timing.readRate;
    this.#writeRate = timing.writeRate;
    this.#wireRate = timing.wireRate;
    this.#sharedRate = timing.sharedRate;
    this.#stepUs = timing.stepUs;
    this.#sendUs = timing.sendUs;
    this.#latencyUs = timing.latencyUs;
    this.#creditUs = timing.creditUs;
    this.#rendezvousUs = timing.rendezvousUs;
    this.#rendezvousBytes = timing.rendezvousBytes;
    this.#slots = slots;
    this.#mask = slots - 1;
    this.#sent = new Int32Array(count);
    this.#taken = new Int32Array(count);
    this.#firstArrival = new Float64Array(count * slots);
    this.#lastArrival = new Float64Array(count * slots);
    this.#startArrival = timing.cutsThrough ? this.#firstArrival : this.#lastArrival;
    this.#freedAt = new Float64Array(count * slots);
    this.#wireFree = new Float64Array(count);
    this.#receiver = new Int32Array(count).fill(-1);
    this.#sender = new Int32Array(count).fill(-1);
    this.wireUs = new Float64Array(count);
    this.#wake = wake;
  }

  /** Delays a slice until its messages arrive. @returns false if one is not sent yet; then the worker is woken by it */
  awaitMessages(connections: readonly number[], slice: SliceInProgress): boolean {
    for (const number of connections) {
      const next = this.#taken[number] ?? 0;
      if ((this.#sent[number] ?? 0) <= next) {
        this.#receiver[number] = slice.worker;
        return false;
      }
      const slot = number * this.#slots + (next & this.#mask);
      slice.startUs = Math.max(slice.startUs, this.#startArrival[slot] ?? 0);
      slice.completeUs = Math.max(slice.completeUs, this.#lastArrival[slot] ?? 0);
      slice.rate = Math.min(slice.rate, this.#readRate[number] ?? Infinity);
    }
    return true;
  }

  /** Delays a slice until its slots are free. @returns false if one is not read yet; then the worker is woken by that */
  awaitSlots(connections: readonly number[], slice: SliceInProgress): boolean {
    for (const number of connections) {
      const next = this.#sent[number] ?? 0;
      if (next - this.#slots >= (this.#taken[number] ?? 0)) {
        this.#sender[number] = slice.worker;
        return false;
      }
      if (next >= this.#slots)
        slice.startUs = Math.max(slice.startUs, this.#freedAt[number * this.#slots + (next & this.#mask)] ?? 0);
      slice.rate = Math.min(slice.rate, this.#writeRate[number] ?? Infinity);
      slice.notifyUs = Math.max(slice.notifyUs, this.#sendUs[number] ?? 0);
    }
    return true;
  }

  /** Takes the messages of a slice that is done. */
  take(connections: readonly number[], slice: SliceInProgress): void {
    for (const number of connections) {
      const taken = this.#taken[number] ?? 0;
      this.#freedAt[number * this.#slots + (taken & this.#mask)] = slice.endUs + (this.#creditUs[number] ?? 0);
      this.#taken[number] = taken + 1;
      this.#wakeWaiting(this.#sender, number);
    }
  }

  /** Sends a slice that is done. @param wires gets the times at which its bytes are on links */
  put(connections: readonly number[], slice: SliceInProgress, wires: WireUse[] | undefined): void {
    const { startUs, endUs } = slice;
    for (const number of connections) {
      const sent = this.#sent[number] ?? 0;
      const slot = number * this.#slots + (sent & this.#mask);
      if (this.#wireRate[number] === Infinity) {
        const latency = this.#latencyUs[number] ?? 0;
        this.#firstArrival[slot] = startUs + slice.overheadUs + latency;
        this.#lastArrival[slot] = endUs + latency;
        this.wireUs[number] = (this.wireUs[number] ?? 0) + slice.bytes / (this.#sharedRate[number] ?? Infinity);
        wires?.push({ connection: number, startUs, endUs });
      } else {
        this.#putOnNic(number, slot, slice, wires);
      }
      this.#sent[number] = sent + 1;
      this.#wakeWaiting(this.#receiver, number);
    }
  }

  /** A NIC sends a slice when all of it has arrived; its first bytes arrive while the last are in flight. */
  #putOnNic(number: number, slot: number, { endUs, bytes }: SliceInProgress, wires: WireUse[] | undefined): void {
    const wireUs = bytes / (this.#wireRate[number] ?? Infinity);
    const step = this.#stepUs[number] ?? 0;
    const latency = (this.#latencyUs[number] ?? 0) + (bytes >= this.#rendezvousBytes ? this.#rendezvousUs : 0);
    const begins = Math.max(endUs, this.#wireFree[number] ?? 0);
    const leaves = begins + wireUs;
    this.#wireFree[number] = leaves + step;
    this.wireUs[number] = (this.wireUs[number] ?? 0) + wireUs + step;
    this.#firstArrival[slot] = begins + latency;
    this.#lastArrival[slot] = leaves + latency;
    wires?.push({ connection: number, startUs: leaves - wireUs, endUs: leaves });
  }

  #wakeWaiting(waiting: Int32Array, number: number): void {
    const worker = waiting[number] ?? -1;
    if (worker < 0) return;
    waiting[number] = -1;
    this.#wake(worker);
  }
}
