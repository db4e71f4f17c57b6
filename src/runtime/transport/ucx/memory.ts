import type { Libc } from '../../device/libc.js';
import type { Segment } from '../../device/segment.js';
import { REASON_BYTES } from '../../failure/transfer.js';
import type { FifoSize } from '../transport.js';
import { NOTE_HEADER_BYTES, REPORT_BYTES } from './notes.js';
import type { UcxWorker } from './worker.js';

const lines = (bytes: number): number => Math.ceil(bytes / 64) * 64;

/** Longest note that the other side sends. */
export const INBOX_BYTES = NOTE_HEADER_BYTES + REASON_BYTES;

/**
 * Memory of a connection in this rank's segment, registered with the network cards: its slots, and room for a note that
 * arrives, for one that is sent, and for the last one. `at` gives places in the segment, `to` addresses of the process.
 */
export class UcxMemory {
  readonly inbox: number;
  readonly outbox: number;
  readonly farewell: number;
  readonly words: Uint32Array;
  readonly bytes: Uint8Array;
  readonly #segment: Segment;
  readonly #place: number;
  readonly #stride: number;
  readonly #base: number;
  readonly #unmap: () => void;

  /** @throws SystemError `OUT_OF_MEMORY` when the segment has no room for it, `NETWORK` when it cannot be registered */
  constructor(
    segment: Segment,
    libc: Libc,
    worker: UcxWorker,
    readonly size: FifoSize,
  ) {
    this.#segment = segment;
    this.#stride = lines(size.slotBytes);
    const slots = size.steps * this.#stride;
    const bytes = slots + 2 * lines(INBOX_BYTES) + lines(NOTE_HEADER_BYTES + REPORT_BYTES);
    this.#place = segment.allocateBytes(bytes);
    this.inbox = this.#place + slots;
    this.farewell = this.inbox + lines(INBOX_BYTES);
    this.outbox = this.farewell + lines(INBOX_BYTES);
    this.words = new Uint32Array(segment.buffer);
    this.bytes = new Uint8Array(segment.buffer);
    this.#base = Number(libc.addressOf(this.bytes));
    try {
      this.#unmap = worker.map(this.to(this.#place), bytes);
    } catch (error) {
      segment.freeBytes(this.#place);
      throw error;
    }
  }

  /** Place of a slot. */
  at(slot: number): number {
    return this.#place + slot * this.#stride;
  }

  /** Address of a place. */
  to(place: number): number {
    return this.#base + place;
  }

  free(): void {
    this.#unmap();
    this.#segment.freeBytes(this.#place);
  }
}
