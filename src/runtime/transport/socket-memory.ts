import type { Segment } from '../device/segment.js';
import { REASON_BYTES } from './ending.js';
import { FRAME_HEADER_BYTES, REPORT_BYTES } from './socket-frames.js';
import type { FifoSize } from './transport.js';

/** Longest frame that a sender receives. */
export const INBOX_BYTES = FRAME_HEADER_BYTES + REASON_BYTES;

const lines = (bytes: number): number => Math.ceil(bytes / 64) * 64;

/**
 * Memory of a connection in this rank's segment: slots, each after a line whose last 8 bytes are the frame's header, and room
 * for frames without a message. Places are offsets from its beginning.
 */
export class SlotMemory {
  /** Longest frame that fits a slot. */
  readonly frameBytes: number;
  readonly address: number;
  readonly words: Uint32Array;
  readonly bytes: Uint8Array;
  /** Place of an outgoing frame without a message. */
  readonly outbox: number;
  /** Place of incoming frames of a sender. */
  readonly inbox: number;
  readonly #stride: number;
  #freed = false;

  /** @throws SystemError `OUT_OF_MEMORY` when the segment has no room for it. */
  constructor(
    readonly segment: Segment,
    readonly size: FifoSize,
    readonly slots: number = size.steps,
  ) {
    this.frameBytes = FRAME_HEADER_BYTES + Math.max(size.slotBytes, REASON_BYTES);
    this.#stride = lines(this.frameBytes + 64);
    this.outbox = slots * this.#stride;
    this.inbox = this.outbox + lines(FRAME_HEADER_BYTES + REPORT_BYTES);
    const bytes = this.inbox + lines(INBOX_BYTES);
    this.address = segment.allocateBytes(bytes);
    this.words = new Uint32Array(segment.buffer, this.address, bytes / 4);
    this.bytes = new Uint8Array(segment.buffer, this.address, bytes);
  }

  /** The address of a slot's message. */
  at(slot: number): number {
    return this.address + slot * this.#stride + 64;
  }

  /** The place of the frame in a slot. */
  frame(slot: number): number {
    return slot * this.#stride + 64 - FRAME_HEADER_BYTES;
  }

  kind(place: number): number {
    return this.words[place >>> 2] ?? 0;
  }

  value(place: number): number {
    return this.words[(place >>> 2) + 1] ?? 0;
  }

  setHeader(place: number, kind: number, value: number): void {
    this.words[place >>> 2] = kind;
    this.words[(place >>> 2) + 1] = value;
  }

  /** Frees the memory; a second call does nothing, because the memory may belong to somebody else by then. */
  free(): void {
    if (!this.#freed) this.segment.freeBytes(this.address);
    this.#freed = true;
  }
}
