import { callKinds, DONE, PARTLY, PENDING, type Kernels } from '../device/kernels/kernels.js';
import type { Libc } from '../device/libc.js';
import type { Segment } from '../device/segment.js';
import { STAGE_BYTES, type Team } from '../device/team.js';
import { int32, type DataType, type NumericArray } from '../device/types.js';
import { InvalidArgumentError } from '../errors.js';
import { unsupported } from './call.js';

/** Below this, a call into the C library costs more than its faster copy gains. */
const LIBC_COPY_BYTES = 4096;

const nothing = new Int32Array(0);

/**
 * The algorithm *direct*, for ranks that share one segment: NVLS's way on shared memory. The work and the waiting are
 * in the kernels (device/kernels/assembly/local.ts); here is what decides between the one-phase form for small
 * operations and the two-phase form, and what carries arrays that lie outside the segment through staging memory,
 * chunk by chunk.
 *
 *      zero copy      |---------------------- one round ----------------------|
 *      staged         | copy in, round, copy out | copy in, round, copy out | …   (STAGE_BYTES each, on every rank)
 *
 * One operation is under way at a time. Each step returns what the kernels return: PENDING, DONE, or a mismatch.
 */
export class Direct {
  readonly segment: Segment;
  readonly #kernels: Kernels;
  /** The operation under way. */
  #code = 0;
  #root = 0;
  #count = 0;
  #type: DataType = int32;
  #send: NumericArray = nothing;
  #recv: NumericArray = nothing;
  #sendOffset = 0;
  #recvOffset = 0;
  #staged = false;
  #small = false;
  /** Elements that earlier rounds completed. */
  #completed = 0;
  #stage = -1;

  /**
   * @param smallBytes operations up to this size take one phase; all ranks must agree. At most SLOT_BYTES.
   */
  constructor(
    readonly team: Team,
    readonly libc: Libc | undefined,
    readonly smallBytes: number,
  ) {
    this.segment = team.segment;
    this.#kernels = team.kernels;
  }

  /**
   * Starts a call about the first `count` elements and goes on while it need not wait.
   *
   * @param code the call as the kernels take it (call.ts)
   * @param spins how many unset flags to look at before PENDING is returned
   */
  begin(code: number, type: DataType, root: number, send: NumericArray, recv: NumericArray, count: number, spins: number): number {
    if ((code & 15) > callKinds.barrier) throw unsupported(code, 'direct');
    if ((code & 15) === callKinds.barrier) {
      this.#small = true;
      this.#staged = false;
      return this.#kernels.barrier(code, spins);
    }
    const sendOffset = this.segment.offsetOf(send);
    const recvOffset = send === recv ? sendOffset : this.segment.offsetOf(recv);
    this.#small = count * type.bytes <= this.smallBytes;
    this.#staged = sendOffset < 0 || recvOffset < 0;
    this.#completed = 0;
    if (this.#staged) {
      this.#remember(code, type, root, send, recv, sendOffset, recvOffset, count);
      return this.#continue(this.#startRound(spins), spins);
    }

    // The fast path: nothing is remembered of a call that finishes at once.
    const status = this.#callKernel(code, root, sendOffset, recvOffset, count, spins);
    if (status === DONE) return DONE;
    this.#remember(code, type, root, send, recv, sendOffset, recvOffset, count);
    return this.#continue(status, spins);
  }

  /** Goes on with the operation under way. */
  progress(spins: number): number {
    const status = this.#kernels.progress(spins);
    return status === PENDING ? PENDING : this.#continue(status, spins);
  }

  /** Forgets the caller's arrays. */
  close(): void {
    this.#send = nothing;
    this.#recv = nothing;
  }

  #remember(code: number, type: DataType, root: number, send: NumericArray, recv: NumericArray, sendOffset: number, recvOffset: number, count: number): void {
    this.#code = code;
    this.#type = type;
    this.#root = root;
    this.#send = send;
    this.#recv = recv;
    this.#sendOffset = sendOffset;
    this.#recvOffset = recvOffset;
    this.#count = count;
  }

  #callKernel(code: number, root: number, send: number, recv: number, count: number, spins: number): number {
    const broadcast = (code & 15) === callKinds.broadcast;
    if (this.#small) {
      return broadcast
        ? this.#kernels.broadcastSmall(code, root, send, recv, count, spins)
        : this.#kernels.allReduceSmall(code, send, recv, count, spins);
    }
    const staged = this.#staged ? 1 : 0;
    return broadcast
      ? this.#kernels.broadcastDirect(code, root, send, recv, count, staged, spins)
      : this.#kernels.allReduceDirect(code, send, recv, count, staged, spins);
  }

  #startRound(spins: number): number {
    const left = this.#count - this.#completed;
    if (this.#staged) {
      const stage = this.#stageOffset();
      if (this.#reads()) this.#copyIn(Math.min(left, STAGE_BYTES / this.#type.bytes));
      return this.#callKernel(this.#code, this.#root, stage, stage, left, spins);
    }
    const done = this.#completed * this.#type.bytes;
    return this.#callKernel(this.#code, this.#root, this.#sendOffset + done, this.#recvOffset + done, left, spins);
  }

  /** Finishes rounds and starts the next ones until one has to wait. */
  #continue(status: number, spins: number): number {
    while (status === DONE || status === PARTLY) {
      const elements = status === DONE ? this.#count - this.#completed : this.#kernels.roundBytes() / this.#type.bytes;
      if (this.#staged) this.#copyOut(elements);
      this.#completed += elements;
      if (this.#completed >= this.#count) {
        this.close();
        return DONE;
      }
      status = this.#startRound(spins);
    }
    return status;
  }

  /** Whether this rank's input matters: in a broadcast only the root's does. */
  #reads(): boolean {
    return (this.#code & 15) !== callKinds.broadcast || this.team.localRank === this.#root;
  }

  #stageOffset(): number {
    if (this.#stage < 0) this.#stage = this.segment.allocateBytes(STAGE_BYTES);
    return this.#stage;
  }

  #copyIn(elements: number): void {
    const bytes = elements * this.#type.bytes;
    this.#copy(this.#stageView(bytes), this.#view(this.#send, elements), bytes);
  }

  #copyOut(elements: number): void {
    const bytes = elements * this.#type.bytes;
    this.#copy(this.#view(this.#recv, elements), this.#stageView(bytes), bytes);
  }

  #stageView(bytes: number): Uint8Array {
    return new Uint8Array(this.segment.buffer, this.#stageOffset(), bytes);
  }

  /** The bytes of the caller's array that this round is about; the caller may have taken them away meanwhile. */
  #view(array: NumericArray, elements: number): Uint8Array {
    if (array.length < this.#completed + elements) {
      throw new InvalidArgumentError('BUFFER_DETACHED', 'an array of this call was transferred or resized away while the call was under way');
    }
    const bytesPerElement = array.BYTES_PER_ELEMENT;
    return new Uint8Array(array.buffer, array.byteOffset + this.#completed * bytesPerElement, elements * bytesPerElement);
  }

  #copy(destination: Uint8Array, source: Uint8Array, bytes: number): void {
    if (this.libc !== undefined && bytes >= LIBC_COPY_BYTES) this.libc.copy(destination, source, bytes);
    else destination.set(source);
  }
}
