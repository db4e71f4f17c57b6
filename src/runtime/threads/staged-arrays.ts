import { Operand, viewOf } from '../algorithms/operand.js';
import type { Libc } from '../device/libc.js';
import type { Team } from '../device/team.js';
import type { NumericArray } from '../device/types.js';
import { SystemError } from '../../errors.js';

/** A range of memory outside the segment, and the address of its copy. */
interface StagedRange {
  readonly outside: Operand;
  readonly bytes: number;
  readonly offset: number;
  /** True if the call writes it. */
  readonly returns: boolean;
}

/**
 * Copies in the segment of the arrays of one call that lie outside it, for threads that can reach only the segment. Arrays
 * that overlap outside also overlap inside.
 */
export class StagedArrays {
  #ranges: StagedRange[] = [];

  constructor(
    readonly team: Team,
    readonly libc: Libc | undefined,
  ) {}

  /** Addresses of both arrays, or of their copies, in the segment. Throws `OUT_OF_MEMORY` if they do not fit. */
  place(send: NumericArray, recv: NumericArray): readonly [number, number] {
    const { segment } = this.team;
    const sendOffset = segment.offsetOf(send);
    const recvOffset = send === recv ? sendOffset : segment.offsetOf(recv);
    if (sendOffset >= 0 && recvOffset >= 0) return [sendOffset, recvOffset];
    if (sendOffset < 0 && recvOffset < 0 && send.buffer === recv.buffer) {
      const from = Math.min(send.byteOffset, recv.byteOffset);
      const to = Math.max(send.byteOffset + send.byteLength, recv.byteOffset + recv.byteLength);
      // Separate arrays are copied separately, without the memory between them.
      if (to - from <= send.byteLength + recv.byteLength) {
        const offset = this.#admit(send.buffer, from, to - from, true);
        return [offset + send.byteOffset - from, offset + recv.byteOffset - from];
      }
    }
    return [
      sendOffset < 0 ? this.#admit(send.buffer, send.byteOffset, send.byteLength, false) : sendOffset,
      recvOffset < 0 ? this.#admit(recv.buffer, recv.byteOffset, recv.byteLength, true) : recvOffset,
    ];
  }

  /** Copies results back. Throws `BUFFER_DETACHED` if the caller has detached the memory. */
  leave(): void {
    const ranges = this.#ranges;
    this.#ranges = [];
    for (const { outside, bytes, offset, returns } of ranges) {
      if (returns) outside.write(0, bytes, offset);
      this.team.segment.freeBytes(offset);
    }
  }

  /** The call failed. Others may still write to the copies, so they stay until all have left. */
  abandon(): void {
    for (const { offset } of this.#ranges) this.team.keep(offset);
    this.#ranges = [];
  }

  #admit(buffer: ArrayBufferLike, from: number, bytes: number, returns: boolean): number {
    const { segment } = this.team;
    const outside = new Operand(segment, this.libc);
    outside.use(viewOf(buffer, from, bytes));
    const offset = this.#room(bytes);
    this.#ranges.push({ outside, bytes, offset, returns });
    outside.copyTo(offset, 0, bytes);
    return offset;
  }

  #room(bytes: number): number {
    const { segment } = this.team;
    try {
      return segment.allocateBytes(bytes);
    } catch (error) {
      if (!(error instanceof SystemError && error.code === 'OUT_OF_MEMORY')) throw error;
      throw new SystemError(
        'OUT_OF_MEMORY',
        `an array of ${bytes} bytes that is not from alloc must be copied for the thread that carries out the call, but at most ` +
          `${segment.memoryUse().largestFreeBytes} bytes of this rank's memory are free: take the array from alloc, or call in parts`,
        { cause: error },
      );
    }
  }
}
