import { clockMs } from '../platform/platform.js';
import {
  BOARD_BYTES,
  CALLS_OF_BLOCK,
  callBits,
  entry,
  ENTRY_BYTES,
  entryDoubles,
  header,
  RING_ENTRIES,
  STATE_BYTES,
} from './board-layout.js';

const ENTRY_WORDS = ENTRY_BYTES / 4;
/** Time between two readings of the clock, each of which takes some 0.05 µs, while calls follow each other quickly. */
const READ_EVERY_MS = 0.02;
/** Most calls from one reading to the next: later calls may be slower. */
const MOST_UNTIMED = 64;
/** Numbers of entries, which return to 0 after the last one. */
const NUMBERS = 2 ** 30 - 1;
const OPEN = -1;

/** A communicator whose calls share the last entry, or the last block of entries. */
export interface EntryHolder {
  /** Ends that. Returns the number of calls that have shared it, besides those with an entry. */
  release(): number;
}

/**
 * The last calls of a rank, for readers of its board (board-layout.ts). Equal collectives that follow each other without a wait
 * share an entry, which a small call then only compares itself with; messages that repeat in turn share a block of entries.
 */
export class CallRing {
  readonly #words: Int32Array;
  readonly #floats: Float32Array;
  readonly #doubles: Float64Array;
  /** Number of the next entry. */
  #total = 0;
  #holder: EntryHolder | undefined;
  /** Calls between two readings of the clock; 0 if there is time to read it at the ends of calls, too. */
  #untimedCalls = 0;
  #readMs = 0;
  /** Number of the entry for which it was read, and calls since then that have shared an entry. */
  #readAt = 0;
  #shared = 0;

  /** @param at address of the board */
  constructor(buffer: ArrayBufferLike, at: number, words: Int32Array) {
    this.#words = words;
    this.#floats = new Float32Array(buffer, at, BOARD_BYTES / 4);
    this.#doubles = new Float64Array(buffer, at, BOARD_BYTES / 8);
  }

  /** Adds a collective. Returns the number of calls, with this one, that may share its entry. */
  share(holder: EntryHolder, call: number, number: number, root: number, count: number): number {
    this.#endShared();
    const at = wordOf(this.#total);
    this.#doubles[at / 2 + entryDoubles.count] = count;
    this.#doubles[at / 2 + entryDoubles.start] = this.#untimed() >= this.#untimedCalls ? this.#read() : 0;
    this.#append(call, root, number);
    this.#holder = holder;
    return this.#untimedCalls + 1;
  }

  /** Adds another call, the first of a block. Returns the word that counts the calls of the block. */
  add(call: number, peer: number, number: number): number {
    this.#endShared();
    const at = wordOf(this.#total);
    this.#words[at + CALLS_OF_BLOCK] = 1;
    const start = this.#untimed() >= this.#untimedCalls ? this.#read() : 0;
    this.#doubles[at / 2 + entryDoubles.start] = start;
    this.#append(start > 0 ? call | callBits.timed : call, peer, number);
    return at + CALLS_OF_BLOCK;
  }

  /** Lets further calls share the block that has just begun. Returns their number. */
  shareBlock(holder: EntryHolder): number {
    this.#holder = holder;
    return this.#untimedCalls;
  }

  /** Adds a call to the block. Returns false if it has to begin another one. */
  extend(call: number, peer: number, number: number): boolean {
    if ((this.#total & (RING_ENTRIES - 1)) === 0) return false;
    this.#words[wordOf(this.#total) + CALLS_OF_BLOCK] = 0;
    this.#append(call, peer, number);
    return true;
  }

  /** Marks the last entry, of one call, as one that waits. Returns its number. */
  wait(): number {
    const index = (this.#total - 1) & NUMBERS;
    this.#floats[wordOf(index) + entry.duration] = OPEN;
    return index;
  }

  /** Sets the start of a call, unless it is known. */
  started(index: number, sinceMs: number): void {
    if (!this.#holds(index) || this.#startOf(index) > 0) return;
    const at = wordOf(index);
    this.#doubles[at / 2 + entryDoubles.start] = sinceMs;
    const call = this.#words[at + entry.call] ?? 0;
    if ((call & callBits.notCollective) !== 0) this.#words[at + entry.call] = call | callBits.timed;
  }

  /** @param hasLasted true if the call has waited for so long that a reading of the clock does not matter */
  end(index: number, hasLasted: boolean): void {
    if (!this.#holds(index)) return;
    const startMs = this.#startOf(index);
    const isTimed = startMs > 0 && (hasLasted || this.#untimedCalls === 0);
    this.#floats[wordOf(index) + entry.duration] = isTimed ? Math.max(0, clockMs() - startMs) : 0;
  }

  #append(call: number, peer: number, number: number): void {
    const words = this.#words;
    const total = this.#total;
    const at = wordOf(total);
    words[at + entry.call] = call;
    words[at + entry.peer] = peer;
    words[at + entry.number] = number;
    words[at + entry.duration] = 0;
    words[header.recorded] = this.#total = (total + 1) & NUMBERS;
  }

  #endShared(): void {
    // That of a closed communicator has no number of calls any more.
    const shared = this.#holder?.release() ?? 0;
    this.#shared = (this.#shared + Math.max(0, Math.min(shared, MOST_UNTIMED))) | 0;
    this.#holder = undefined;
  }

  /** Milliseconds; 0 if the clock was not read. */
  #startOf(index: number): number {
    const at = wordOf(index);
    const isTimed = ((this.#words[at + entry.call] ?? 0) & (callBits.notCollective | callBits.timed)) !== callBits.notCollective;
    return isTimed ? (this.#doubles[at / 2 + entryDoubles.start] ?? 0) : 0;
  }

  /** False if later calls have taken the entry's place. */
  #holds(index: number): boolean {
    return index >= 0 && ((this.#total - index) & NUMBERS) <= RING_ENTRIES;
  }

  /** Calls since the clock was read. */
  #untimed(): number {
    return ((this.#total - this.#readAt) & NUMBERS) + this.#shared;
  }

  #read(): number {
    const nowMs = clockMs();
    const callMs = (nowMs - this.#readMs) / Math.max(1, this.#untimed());
    const calls = Math.max(1, Math.min(MOST_UNTIMED, READ_EVERY_MS / callMs));
    this.#untimedCalls = (Math.ceil(calls) - 1) | 0;
    this.#readMs = nowMs;
    this.#readAt = this.#total;
    this.#shared = 0;
    return nowMs;
  }
}

function wordOf(index: number): number {
  return STATE_BYTES / 4 + (index & (RING_ENTRIES - 1)) * ENTRY_WORDS;
}
