import { FIRST_STEP, HEAD, ShmConnection, type Fifo } from './shm-connection.js';
import type { ReceiveConnection, SendConnection } from './transport.js';

/*
 * Protocol LL: short messages through a FIFO whose slots are lines of 8-byte words, each with 4 bytes of data and a 4-byte flag
 * that are stored together (device/kernels/assembly/low-latency.ts). The flag is the number of the step. The receiver polls the
 * data itself: a message with 8 bytes of data needs one cache line, where the other FIFO needs one line each for the counter, the
 * length, the header and the data.
 *
 * Each side keeps the unpacked message in a slot of its own.
 */

/** Header in front of every message: its size, and how many of its first words carry a value. */
export interface HeaderShape {
  readonly headerBytes: number;
  readonly headerWords: number;
}

/** After this many steps, all words of the slots are rewritten, so that no old flag remains when step numbers wrap around. */
const CLEAN_EVERY = 2 ** 24;

/** Number of words in a slot: length, header and data. */
function wordsOf(slotBytes: number, { headerBytes, headerWords }: HeaderShape): number {
  return 1 + headerWords + Math.ceil((slotBytes - headerBytes) / 4);
}

/** Distance between slots in bytes. */
export function lowLatencyStride(slotBytes: number, header: HeaderShape): number {
  return Math.ceil((wordsOf(slotBytes, header) * 8) / 64) * 64;
}

export class LowLatencySender extends ShmConnection implements SendConnection {
  readonly #slot: number;
  #tail = FIRST_STEP;
  /** The receiver's counter as last read. */
  #head = FIRST_STEP;

  constructor(
    fifo: Fifo,
    peer: number,
    hasPeerLeft: () => boolean,
    readonly header: HeaderShape,
  ) {
    const slot = fifo.segment.allocateBytes(fifo.place.slotBytes);
    super(true, fifo, peer, hasPeerLeft, () => fifo.segment.freeBytes(slot));
    this.#slot = slot;
  }

  acquire(): number {
    if (this.ended !== undefined) throw this.ended;
    const { mask } = this.fifo;
    if (((this.#tail - this.#head) | 0) > mask) {
      this.#head = Atomics.load(this.words, HEAD);
      if (((this.#tail - this.#head) | 0) > mask) {
        this.throwIfLeft();
        return -1;
      }
    }
    return this.#slot;
  }

  post(bytes: number): void {
    const { fifo, header } = this;
    const line = fifo.slots + (this.#tail & fifo.mask) * fifo.stride;
    const cleans = (this.#tail & (CLEAN_EVERY - 1)) <= fifo.mask;
    const fill = cleans ? wordsOf(fifo.place.slotBytes, header) - wordsOf(bytes, header) : 0;
    fifo.segment.kernels.postFlagged(line, this.#tail, this.#slot, bytes, header.headerWords, header.headerBytes, fill);
    this.#tail = (this.#tail + 1) | 0;
  }
}

export class LowLatencyReceiver extends ShmConnection implements ReceiveConnection {
  messageBytes = 0;
  readonly #slot: number;
  #head = FIRST_STEP;
  /** True if the oldest message has been unpacked into this side's slot. */
  #taken = false;

  constructor(
    fifo: Fifo,
    peer: number,
    hasPeerLeft: () => boolean,
    onEnd: () => void,
    readonly header: HeaderShape,
  ) {
    const slot = fifo.segment.allocateBytes(fifo.place.slotBytes);
    super(false, fifo, peer, hasPeerLeft, () => {
      fifo.segment.freeBytes(slot);
      onEnd();
    });
    this.#slot = slot;
  }

  peek(): number {
    if (this.ended !== undefined) throw this.ended;
    this.#take();
    if (!this.#taken) this.throwIfLeft();
    return this.#taken ? this.#slot : -1;
  }

  release(): void {
    this.#taken = false;
    this.#head = (this.#head + 1) | 0;
    Atomics.store(this.words, HEAD, this.#head);
  }

  protected override hasUnread(): boolean {
    this.#take();
    return this.#taken;
  }

  #take(): void {
    if (this.#taken) return;
    const { fifo, header } = this;
    const line = fifo.slots + (this.#head & fifo.mask) * fifo.stride;
    const bytes = fifo.segment.kernels.takeFlagged(line, this.#head, this.#slot, header.headerWords, header.headerBytes);
    if (bytes < 0) return;
    this.messageBytes = bytes;
    this.#taken = true;
  }
}
