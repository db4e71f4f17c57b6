/** What a rank that waits for long said last: that it waits, and what it knows of why (algorithms/hold-ups.ts). */
export interface WaitReport {
  /** Another number each time that it says so: who hears it again and again knows that the rank goes on waiting. */
  readonly count: number;
  /** Int32. */
  readonly words: readonly number[];
}

const COUNT = 0;
const LENGTH = 1;
const WORDS = 2;

/**
 * A rank's report in shared memory: how often it was made (odd while it is written), how many words it has, and these.
 * One thread of one rank writes it. Who is stopped while writing has said nothing.
 */
export class WaitWords {
  readonly #words: Int32Array;
  readonly #at: number;
  readonly #most: number;

  /** @param room words from `at` on, zero at first; a longer report is cut */
  constructor(words: Int32Array, at: number, room: number) {
    this.#words = words;
    this.#at = at;
    this.#most = room - WORDS;
  }

  say(report: readonly number[]): void {
    const words = this.#words;
    const at = this.#at;
    const count = Atomics.load(words, at + COUNT) & ~1;
    Atomics.store(words, at + COUNT, count + 1);
    const length = Math.min(report.length, this.#most);
    Atomics.store(words, at + LENGTH, length);
    for (let i = 0; i < length; i++) Atomics.store(words, at + WORDS + i, report[i] ?? 0);
    Atomics.store(words, at + COUNT, (count + 2) | 0);
  }

  heard(): WaitReport | undefined {
    const words = this.#words;
    const at = this.#at;
    const count = Atomics.load(words, at + COUNT);
    if (count === 0 || (count & 1) !== 0) return undefined;
    const length = Math.min(Atomics.load(words, at + LENGTH), this.#most);
    const report = Array.from({ length }, (_, i) => Atomics.load(words, at + WORDS + i));
    return Atomics.load(words, at + COUNT) === count ? { count, words: report } : undefined;
  }
}
