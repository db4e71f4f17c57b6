import type { Segment } from '../device/segment.js';
import { REASON_BYTES } from '../failure/transfer.js';
import { CREDITS_SHIFT, FRAME_HEADER_BYTES, KIND_MASK, REPORT_BYTES } from './socket-frames.js';
import type { FifoSize } from './transport.js';
import { defined } from '../../defined.js';

/** Longest frame without a message. */
export const INBOX_BYTES = FRAME_HEADER_BYTES + REASON_BYTES;

const lines = (bytes: number): number => Math.ceil(bytes / 64) * 64;

/** Numbers of a connection's slots; 0 where it carries no messages in that direction. */
export interface SlotCounts {
  readonly sends: number;
  readonly receives: number;
}

/**
 * Memory of a connection in this rank's segment: slots for messages to send, slots for messages to receive, each after a line
 * whose last 8 bytes are the frame's header, and room for frames without a message. Places are offsets from its beginning.
 */
export class SlotMemory {
  /** Longest frame that fits a slot. */
  readonly frameBytes: number;
  readonly address: number;
  readonly words: Uint32Array;
  readonly bytes: Uint8Array;
  /** Place of an outgoing frame without a message. */
  readonly outbox: number;
  /** Place of incoming frames where no messages are received. */
  readonly inbox: number;
  readonly #stride: number;
  #freed = false;

  /** @throws SystemError `OUT_OF_MEMORY` when the segment has no room for it. */
  constructor(
    readonly segment: Segment,
    readonly size: FifoSize,
    readonly slots: SlotCounts,
  ) {
    this.frameBytes = FRAME_HEADER_BYTES + Math.max(size.slotBytes, REASON_BYTES);
    this.#stride = lines(this.frameBytes + 64);
    this.outbox = (slots.sends + slots.receives) * this.#stride;
    this.inbox = this.outbox + lines(FRAME_HEADER_BYTES + REPORT_BYTES);
    const bytes = this.inbox + lines(INBOX_BYTES);
    this.address = segment.allocateBytes(bytes);
    this.words = new Uint32Array(segment.buffer, this.address, bytes / 4);
    this.bytes = new Uint8Array(segment.buffer, this.address, bytes);
  }

  /** The place of the frame of a message to send, by its number. */
  outgoing(message: number): number {
    return (message % this.slots.sends) * this.#stride + 64 - FRAME_HEADER_BYTES;
  }

  /** The place of the frame of a received message, by its number. */
  incoming(message: number): number {
    return (this.slots.sends + (message % this.slots.receives)) * this.#stride + 64 - FRAME_HEADER_BYTES;
  }

  /** The address of the message in the frame at a place. */
  at(place: number): number {
    return this.address + place + FRAME_HEADER_BYTES;
  }

  /** Kind of a frame, and the credits that it brings. */
  kind(place: number): number {
    return defined(this.words[place >>> 2]) & KIND_MASK;
  }

  credits(place: number): number {
    return defined(this.words[place >>> 2]) >>> CREDITS_SHIFT;
  }

  value(place: number): number {
    return defined(this.words[(place >>> 2) + 1]);
  }

  setHeader(place: number, kind: number, value: number, credits = 0): void {
    this.words[place >>> 2] = kind | (credits << CREDITS_SHIFT);
    this.words[(place >>> 2) + 1] = value;
  }

  /** Frees the memory; a second call does nothing, because the memory may belong to somebody else by then. */
  free(): void {
    if (!this.#freed) this.segment.freeBytes(this.address);
    this.#freed = true;
  }
}
