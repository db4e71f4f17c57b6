/** Random numbers that a seed decides (splitmix32). */
export class Random {
  #state: number;

  constructor(seed: number) {
    this.#state = seed | 0;
  }

  /** From 0 to below 1. */
  next(): number {
    this.#state = (this.#state + 0x9e3779b9) | 0;
    let bits = this.#state ^ (this.#state >>> 16);
    bits = Math.imul(bits, 0x21f0aaad);
    bits ^= bits >>> 15;
    bits = Math.imul(bits, 0x735a2d97);
    return ((bits ^ (bits >>> 15)) >>> 0) / 2 ** 32;
  }

  /** A whole number from `from` to below `end`. */
  integer(from: number, end: number): number {
    return from + Math.floor(this.next() * (end - from));
  }

  chance(probability: number): boolean {
    return this.next() < probability;
  }

  /** One of several values. */
  of<T>(values: readonly [T, ...T[]]): T {
    return values[this.integer(0, values.length)] ?? values[0];
  }
}
