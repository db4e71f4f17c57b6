import { Buffer } from '#platform/bytes';
import type { Segment } from '../device/segment.js';
import { WaitWords, type WaitReport } from '../device/wait-report.js';
import { closedHere, closedThere } from '../failure/reasons.js';
import { packReason, REASON_BYTES, unpackReason } from '../failure/transfer.js';
import type { Connection, FifoSize } from './transport.js';

/*
 * A FIFO between two ranks of one host, in the receiver's heap. Each counter has a cache line of its own, written by one side
 * only. A side keeps a copy of the other side's counter and reads the counter again only when it would have to wait by the copy.
 *
 *     0      tail u32, sender's state u32, bytes of its reason u32          written by the sender
 *     64     length of each step's message u32[steps]
 *     128    head u32, receiver's state u32, bytes of its reason u32        written by the receiver
 *     192    where the output of its call is (algorithms/connections/exchange.ts)       written by the receiver
 *     256    the sender's reason for an abort
 *     1152   the receiver's
 *     2048   the sender's report that it waits (device/wait-report.ts)
 *     2176   the receiver's
 * 2304   slots, one after the other
 *
 * Counters are compared by difference, so overflow is harmless. They start just below 2^31, so that every run exercises it.
 */
export const TAIL = 0;
export const SENDER_STATE = 1;
export const LENGTHS = 16;
export const HEAD = 32;
const RECEIVER_STATE = 33;
const RECEIVER_LINE = 192;
const SENDER_REASON = 256;
const RECEIVER_REASON = SENDER_REASON + REASON_BYTES;
const SENDER_REPORT = RECEIVER_REASON + REASON_BYTES;
const REPORT_BYTES = 128;
const RECEIVER_REPORT = SENDER_REPORT + REPORT_BYTES;
export const SLOTS = RECEIVER_REPORT + REPORT_BYTES;
export const FIRST_STEP = 0x7ffffffd | 0;
export const MOST_STEPS = 16;

/** Values of a side's state word. The reason of an abort is complete before the word changes. */
export const OPEN = 0;
const CLOSED = 1;
const ABORTED = 2;

export interface FifoPlace extends FifoSize {
  readonly address: number;
}

export function strideOf(slotBytes: number): number {
  return Math.ceil(slotBytes / 64) * 64;
}

export function encodeInfo({ address, steps, slotBytes }: FifoPlace): Uint8Array {
  const info = Buffer.alloc(12);
  info.writeUInt32LE(address, 0);
  info.writeUInt32LE(steps, 4);
  info.writeUInt32LE(slotBytes, 8);
  return info;
}

export function decodeInfo(bytes: Uint8Array): FifoPlace {
  const info = Buffer.from(bytes);
  return { address: info.readUInt32LE(0), steps: info.readUInt32LE(4), slotBytes: info.readUInt32LE(8) };
}

/** The memory that both sides share. */
export class Fifo {
  readonly words: Int32Array;
  readonly slots: number;
  readonly mask: number;

  /** @param stride bytes from slot to slot */
  constructor(
    readonly segment: Segment,
    readonly place: FifoPlace,
    readonly stride: number,
  ) {
    this.words = new Int32Array(segment.buffer, place.address, SLOTS / 4);
    this.slots = place.address + SLOTS;
    this.mask = place.steps - 1;
  }

  clear(): void {
    this.words.fill(0);
    Atomics.store(this.words, TAIL, FIRST_STEP);
    Atomics.store(this.words, HEAD, FIRST_STEP);
  }
}

/** Behaviour common to both sides. `mine` and `theirs` are the offsets of the state words. */
export abstract class ShmConnection implements Connection {
  readonly transport = 'shm';
  readonly polled = true;
  readonly fd = -1;
  readonly size: FifoSize;
  readonly receiverLine: number;
  protected readonly words: Int32Array;
  /** Error that later calls on this side throw. */
  protected ended: Error | undefined;
  readonly #mine: number;
  readonly #theirs: number;
  readonly #report: WaitWords;
  readonly #theirReport: WaitWords;

  /**
   * @param hasPeerLeft returns whether the other side's rank has left the communicator; throws if a rank of the host died
   * @param onEnd called once when this side has left
   */
  protected constructor(
    sends: boolean,
    protected readonly fifo: Fifo,
    readonly peer: number,
    readonly hasPeerLeft: () => boolean,
    readonly onEnd: () => void,
  ) {
    this.size = fifo.place;
    this.receiverLine = fifo.place.address + RECEIVER_LINE;
    this.words = fifo.words;
    this.#mine = sends ? SENDER_STATE : RECEIVER_STATE;
    this.#theirs = sends ? RECEIVER_STATE : SENDER_STATE;
    const [mine, theirs] = sends ? [SENDER_REPORT, RECEIVER_REPORT] : [RECEIVER_REPORT, SENDER_REPORT];
    this.#report = new WaitWords(this.words, mine / 4, REPORT_BYTES / 4);
    this.#theirReport = new WaitWords(this.words, theirs / 4, REPORT_BYTES / 4);
  }

  wakeOn(): void {
    // Shared memory has no descriptor.
  }

  flush(): boolean {
    return true;
  }

  onNews(): void {
    // Shared memory has no events.
  }

  check(): void {
    if (this.ended !== undefined) throw this.ended;
    this.throwIfLeft();
    if (!this.hasPeerLeft() || this.hasUnread()) return;
    this.throwIfLeft();
    throw closedThere(this.peer);
  }

  reportWait(report: readonly number[]): void {
    // The memory may belong to somebody else once both sides have left.
    if (this.ended === undefined) this.#report.publish(report);
  }

  waitReport(): WaitReport | undefined {
    return this.ended === undefined ? this.#theirReport.latest() : undefined;
  }

  close(report?: readonly number[]): Promise<void> {
    if (report !== undefined) this.reportWait(report);
    this.#end(closedHere(this.peer), CLOSED);
    return Promise.resolve();
  }

  abort(reason: Error): void {
    if (this.ended !== undefined) return;
    const packed = packReason(reason);
    new Uint8Array(this.words.buffer, this.#reasonAddress(this.#mine), REASON_BYTES).set(packed);
    Atomics.store(this.words, this.#mine + 1, packed.length);
    this.#end(reason, ABORTED);
  }

  /** Throws if the other side has left the connection, and all that it posted before has been read. */
  protected throwIfLeft(): void {
    const state = Atomics.load(this.words, this.#theirs);
    if (state === OPEN || this.hasUnread()) return;
    if (state === CLOSED) throw closedThere(this.peer);
    const length = Atomics.load(this.words, this.#theirs + 1);
    throw unpackReason(new Uint8Array(this.words.buffer, this.#reasonAddress(this.#theirs), length), this.peer);
  }

  /** True if a message is unread. Reads the counter again: a message may have arrived just before the other side left. */
  protected hasUnread(): boolean {
    return false;
  }

  #end(error: Error, state: number): void {
    if (this.ended !== undefined) return;
    this.ended = error;
    Atomics.store(this.words, this.#mine, state);
    this.onEnd();
  }

  #reasonAddress(stateWord: number): number {
    return this.words.byteOffset + (stateWord === SENDER_STATE ? SENDER_REASON : RECEIVER_REASON);
  }
}
