import { defined } from '../../defined.js';
/** Last report of a rank that waits for long, with its observations of the cause (algorithms/wait-chains.ts). */
export interface WaitReport {
  /** Changes with each report: a reader that sees new numbers knows that the rank still waits. */
  readonly count: number;
  /** Int32. */
  readonly words: readonly number[];
}

/** A report as bytes of a message; a longer one is cut. */
export function packReport(report: readonly number[], mostBytes: number): Uint8Array {
  return new Uint8Array(Int32Array.from(report.slice(0, mostBytes / 4)).buffer);
}

/** The report in the bytes of a message, which follows `last`. */
export function unpackReport(bytes: Uint8Array, last: WaitReport | undefined): WaitReport {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const words = Array.from({ length: bytes.byteLength / 4 }, (_, i) => view.getInt32(4 * i, true));
  return { count: (last?.count ?? 0) + 1, words };
}

const COUNT = 0;
const LENGTH = 1;
const WORDS = 2;

/**
 * A rank's report in shared memory: the number of reports (odd while one is written), the number of words, and the words. One
 * thread of one rank writes it. A rank that is stopped while writing has reported nothing.
 */
export class WaitWords {
  readonly #words: Int32Array;
  readonly #at: number;
  readonly #most: number;

  /** @param room number of words from `at` on, initially zero; a longer report is cut */
  constructor(words: Int32Array, at: number, room: number) {
    this.#words = words;
    this.#at = at;
    this.#most = room - WORDS;
  }

  publish(report: readonly number[]): void {
    const words = this.#words;
    const at = this.#at;
    const count = Atomics.load(words, at + COUNT) & ~1;
    Atomics.store(words, at + COUNT, count + 1);
    const length = Math.min(report.length, this.#most);
    Atomics.store(words, at + LENGTH, length);
    for (let i = 0; i < length; i++) Atomics.store(words, at + WORDS + i, defined(report[i]));
    Atomics.store(words, at + COUNT, (count + 2) | 0);
  }

  latest(): WaitReport | undefined {
    const words = this.#words;
    const at = this.#at;
    const count = Atomics.load(words, at + COUNT);
    if (count === 0 || (count & 1) !== 0) return undefined;
    const length = Math.min(Atomics.load(words, at + LENGTH), this.#most);
    const report = Array.from({ length }, (_, i) => Atomics.load(words, at + WORDS + i));
    return Atomics.load(words, at + COUNT) === count ? { count, words: report } : undefined;
  }
}
