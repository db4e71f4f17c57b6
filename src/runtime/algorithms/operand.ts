import type { Libc } from '../device/libc.js';
import type { Segment } from '../device/segment.js';
import type { NumericArray } from '../device/types.js';
import { InvalidArgumentError } from '../../errors.js';

/** Below this length, a call into the C library costs more than its faster copy gains. */
const LIBC_COPY_BYTES = 4096;

/** Up to this length, a call of a kernel costs more than its faster copy gains. */
const WORDS_BYTES = 32;

const nothing = new Uint8Array(0);
const nowhere: ArrayBufferLike = nothing.buffer;

/**
 * An array that a collective reads or writes piece by piece: in the segment, where kernels work on it in place ("placed"), or
 * in other memory, from which pieces are copied. One object serves many calls.
 */
export class Operand {
  placed = false;
  /** Of the array in the segment, or else in its buffer. */
  #offset = 0;
  #view: Uint8Array = nothing;
  #buffer = nowhere;
  /** Address in this process of an array outside the segment; 0 before it is needed. */
  #begin = 0;

  constructor(
    readonly segment: Segment,
    readonly libc: Libc | undefined,
  ) {}

  /** Takes an array. Throws `BUFFER_DETACHED` if it was detached, as may happen before its call's turn. */
  use(array: NumericArray): void {
    this.#offset = this.segment.offsetOf(array);
    this.placed = this.#offset >= 0;
    if (!this.placed) {
      this.#offset = array.byteOffset;
      this.#buffer = array.buffer;
      this.#view = viewOf(this.#buffer, this.#offset, array.byteLength);
    }
    this.#begin = 0;
  }

  /** True if the array lies in the same memory as another one of `bytes` bytes, and behind it. */
  isBehind(other: Operand, bytes: number): boolean {
    if (this.placed !== other.placed || this.#offset < other.#offset + bytes) return false;
    return this.placed ? this.segment === other.segment : this.#buffer === other.#buffer;
  }

  /** Address in this process of an array outside the segment, if others can read it there (peer-memory.ts); otherwise 0. */
  open(): number {
    const { peerMemory } = this.segment;
    return peerMemory?.isOpen === true ? peerMemory.addressOf(this.#view) : 0;
  }

  /** Throws `BUFFER_DETACHED` if `bytes` bytes of an array outside the segment no longer exist. */
  checkAttached(bytes: number): void {
    this.#piece(0, bytes);
  }

  /** Drops the reference to the array. */
  forget(): void {
    if (this.placed) return;
    this.#view = nothing;
    this.#buffer = nowhere;
  }

  /** Address of byte `from` of a placed array. */
  address(from: number): number {
    return this.#offset + from;
  }

  /** Address in this process of the `bytes` bytes at `from`, for machine code, which must be available. */
  here(from: number, bytes: number): number {
    if (this.placed) return this.segment.machineCode?.addressOf(this.#offset + from) ?? 0;
    this.checkAttached(from + bytes);
    if (this.#begin === 0) this.#begin = Number(this.libc?.addressOf(this.#view));
    return this.#begin + from;
  }

  /** Address of the `bytes` bytes at `from`: in place, or copied to `room`. */
  read(from: number, bytes: number, room: number): number {
    if (this.placed) return this.#offset + from;
    this.#copy(this.#at(room, bytes), this.#piece(from, bytes), bytes);
    return room;
  }

  /** Copies the `bytes` bytes at `from` to `address`. */
  copyTo(address: number, from: number, bytes: number): void {
    const at = this.read(from, bytes, address);
    if (at !== address) this.segment.kernels.copy(address, at, bytes);
  }

  /** Writes the `bytes` bytes at address `source` to byte `from`. With `backward`, a placed array is written from its end on. */
  write(from: number, bytes: number, source: number, backward = false): void {
    const { kernels } = this.segment;
    if (!this.placed) this.#copy(this.#piece(from, bytes), this.#at(source, bytes), bytes);
    else if (source === this.#offset + from) return;
    else if (backward) kernels.copyBackward(this.#offset + from, source, bytes);
    else kernels.copy(this.#offset + from, source, bytes);
  }

  /**
   * Copies `bytes` bytes to byte `from` from another rank of the segment that opened its array. Returns false if they cannot be
   * read; checks of liveness find the reason.
   */
  readFrom(from: number, bytes: number, localRank: number, address: number): boolean {
    const destination = this.placed ? this.#at(this.#offset + from, bytes) : this.#piece(from, bytes);
    return this.segment.peerMemory?.read(localRank, address, destination) ?? false;
  }

  /**
   * copyTo() of all of a short array, by words where a kernel's call would take longer.
   * @param words of the segment
   */
  copyShortTo(words: Int32Array, address: number, bytes: number): void {
    if (bytes === 0) return;
    if (this.placed && bytes <= WORDS_BYTES && ((this.#offset | bytes) & 3) === 0) copyWords(words, address, this.#offset, bytes);
    else this.copyTo(address, 0, bytes);
  }

  /** write() of all of a short array, like {@link copyShortTo}. */
  writeShort(words: Int32Array, source: number, bytes: number): void {
    if (bytes === 0) return;
    if (this.placed && bytes <= WORDS_BYTES && ((this.#offset | bytes) & 3) === 0) copyWords(words, this.#offset, source, bytes);
    else this.write(0, bytes, source);
  }

  /** Copies `bytes` bytes of another operand from its byte `from` to byte `to`, like write(), unless it is the same memory. */
  copyFrom(source: Operand, from: number, to: number, bytes: number, backward = false): void {
    if (bytes === 0) return;
    if (source.placed) {
      this.write(to, bytes, source.#offset + from, backward);
      return;
    }
    const destination = this.placed ? this.#at(this.#offset + to, bytes) : this.#piece(to, bytes);
    const origin = source.#piece(from, bytes);
    if (destination.buffer !== origin.buffer || destination.byteOffset !== origin.byteOffset)
      this.#copy(destination, origin, bytes);
  }

  #at(address: number, bytes: number): Uint8Array {
    return new Uint8Array(this.segment.buffer, address, bytes);
  }

  /** A piece of an array outside the segment, which the caller may have detached during the call. */
  #piece(from: number, bytes: number): Uint8Array {
    if (this.#view.length < from + bytes) throw detached();
    // A part of a detached array cannot be made, even if it has no bytes.
    if (bytes === 0) return nothing;
    return this.#view.subarray(from, from + bytes);
  }

  #copy(destination: Uint8Array, source: Uint8Array, bytes: number): void {
    if (this.libc !== undefined && bytes >= LIBC_COPY_BYTES) this.libc.copy(destination, source, bytes);
    else destination.set(source);
  }
}

/** Copies a multiple of 4 bytes between two addresses that are multiples of 4. */
function copyWords(words: Int32Array, to: number, from: number, bytes: number): void {
  for (let i = 0; i < bytes; i += 4) words[(to + i) >>> 2] = words[(from + i) >>> 2] ?? 0;
}

/** View of bytes outside the segment. Throws `BUFFER_DETACHED` if the caller has detached them. */
export function viewOf(buffer: ArrayBufferLike, from: number, bytes: number): Uint8Array {
  try {
    return new Uint8Array(buffer, from, bytes);
  } catch (cause) {
    throw detached(cause);
  }
}

function detached(cause?: unknown): InvalidArgumentError {
  return new InvalidArgumentError('BUFFER_DETACHED', 'an array of this call was transferred or resized during the call', {
    cause,
  });
}
