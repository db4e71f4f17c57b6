import { clockMs } from '../platform/platform.js';
import { callBits, entry, ENTRY_BYTES, entryDoubles, header, RING_ENTRIES, STATE_BYTES } from './board-layout.js';

const ENTRY_WORDS = ENTRY_BYTES / 4;
/** Time between two readings of the clock, each of which takes some 0.05 µs, while calls follow each other quickly. */
const READ_EVERY_MS = 0.02;
/** Most calls from one reading to the next: later calls may be slower. */
const MOST_UNTIMED = 64;
const OPEN = -1;

/**
 * The last calls of a rank, for readers of its board (board-layout.ts). Equal calls that follow each other without a wait share
 * an entry, which a small call then only compares itself with. An entry has the time of its first call, if the clock was read.
 */
export class CallRing {
  /** The user whose calls the last entry has, if the next equal one may share it, and that call. */
  holder: object | undefined;
  code = 0;
  root = 0;
  count = 0;
  /** Number of calls until the clock is read again. */
  left = 0;
  readonly #words: Int32Array;
  readonly #floats: Float32Array;
  readonly #doubles: Float64Array;
  /** Entries written so far. */
  #total = 0;
  #readMs = 0;
  /** Calls per reading of the clock; 1 if there is time to read it at the ends of calls, too. */
  #perReading = 1;

  /** @param at address of the board */
  constructor(buffer: ArrayBufferLike, at: number, words: Int32Array) {
    this.#words = words;
    this.#floats = new Float32Array(buffer, at + STATE_BYTES, RING_ENTRIES * ENTRY_WORDS);
    this.#doubles = new Float64Array(buffer, at + STATE_BYTES, (RING_ENTRIES * ENTRY_WORDS) / 2);
  }

  /** Adds a call that does not wait so far, and to whose entry equal calls of `holder` may be added. */
  add(holder: object | undefined, serial: number, number: number, code: number, peer: number, count: number): void {
    const index = this.#total & (RING_ENTRIES - 1);
    const words = this.#words;
    const at = STATE_BYTES / 4 + index * ENTRY_WORDS;
    words[at + entry.call] = code | (serial << callBits.serialShift);
    words[at + entry.peer] = peer;
    words[at + entry.number] = number;
    words[at + entry.duration] = 0;
    const doubles = this.#doubles;
    doubles[(index * ENTRY_WORDS) / 2 + entryDoubles.count] = count;
    doubles[(index * ENTRY_WORDS) / 2 + entryDoubles.start] = this.left <= 0 ? this.#read() : 0;
    words[header.recorded] = ++this.#total | 0;
    this.holder = holder;
    this.code = code;
    this.root = peer;
    this.count = count;
  }

  /** Marks the last entry, of one call, as one that waits. Returns its number. */
  wait(): number {
    const index = this.#total - 1;
    this.#floats[this.#at(index) + entry.duration] = OPEN;
    this.holder = undefined;
    return index;
  }

  /** True if the call that was added last is the only one of its entry. */
  isAlone(number: number): boolean {
    return this.#words[STATE_BYTES / 4 + this.#at(this.#total - 1) + entry.number] === number;
  }

  /** Counts one more call in the last entry. */
  again(): void {
    const at = STATE_BYTES / 4 + this.#at(this.#total - 1) + entry.number;
    this.#words[at] = ((this.#words[at] ?? 0) + 1) | 0;
  }

  /** Sets the start of a call that waits, unless it is known. */
  started(index: number, sinceMs: number): void {
    const at = this.#at(index) / 2 + entryDoubles.start;
    if (this.#holds(index) && this.#doubles[at] === 0) this.#doubles[at] = sinceMs;
  }

  /** @param hasLasted true if the call has waited for so long that a reading of the clock does not matter */
  end(index: number, hasLasted: boolean): void {
    if (!this.#holds(index)) return;
    const at = this.#at(index);
    const startMs = this.#doubles[at / 2 + entryDoubles.start] ?? 0;
    const isTimed = startMs > 0 && (hasLasted || this.#perReading === 1);
    this.#floats[at + entry.duration] = isTimed ? Math.max(0, clockMs() - startMs) : 0;
  }

  #at(index: number): number {
    return (index & (RING_ENTRIES - 1)) * ENTRY_WORDS;
  }

  /** False if later calls have taken the entry's place. */
  #holds(index: number): boolean {
    return index >= 0 && this.#total - index <= RING_ENTRIES;
  }

  #read(): number {
    const nowMs = clockMs();
    const callMs = (nowMs - this.#readMs) / this.#perReading;
    this.#readMs = nowMs;
    this.left = this.#perReading = Math.max(1, Math.min(MOST_UNTIMED, Math.ceil(READ_EVERY_MS / callMs)));
    return nowMs;
  }
}
