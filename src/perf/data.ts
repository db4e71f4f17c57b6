import type { NumericArray } from '../runtime/device/types.js';
import { type ElementType, type PerfOperator, scalarOf } from './types.js';

/**
 * The inputs of a check, and the expected results. They are pseudo-random by rank, element and round, so that a missing, doubled,
 * stale or misplaced element is detected; and each result is exact in its type for any order of the ranks:
 *
 *     sum       1 … 2^bits / nRanks, never 0, but for ranks beyond 2^bits
 *     mulsum    half of that: odd ranks double theirs
 *     prod      ±2, or -1 for ranks beyond the type's bits: never 1, so that no factor can be missing unseen; where
 *               there is no sign, 2 or 4, or 1 for ranks beyond
 *     min, max  of both signs, where the type has two
 *     avg       nRanks × (1 … 2^(bits/2)): the mean is a whole number; where the library multiplies by 1/nRanks and
 *               that is not exact, it may be off by less than a quarter. In types of few bits, the same of all ranks
 *     (none)    like min and max
 */
export class TestData {
  readonly type: ElementType;
  readonly operator: PerfOperator | undefined;
  readonly nRanks: number;
  /** Largest tolerated difference from the expected element. */
  readonly tolerance: number;
  readonly #round: number;
  /** Sources are multiples of this … */
  readonly #unit: number;
  /** … times 1 to this, a power of two. */
  readonly #span: number;
  /** True if all ranks send the same. */
  readonly #alike: boolean;

  /** @param round changes all numbers, so that results of an earlier call are wrong */
  constructor(type: ElementType, operator: PerfOperator | undefined, nRanks: number, round: number) {
    const averages = operator === 'avg';
    const scales = operator === 'mulsum';
    const adds = averages || scales || operator === 'sum';
    const rankBits = Math.ceil(Math.log2(nRanks));
    this.type = type;
    this.operator = operator;
    this.nRanks = nRanks;
    this.#round = round;
    this.#alike = averages && Math.floor(type.exactBits / 2) < rankBits + 1;
    const bits =
      (averages && !this.#alike ? Math.floor(type.exactBits / 2) : type.exactBits) - (adds ? rankBits : 0) - (scales ? 1 : 0);
    this.#unit = averages && !this.#alike ? nRanks : 1;
    this.#span = 2 ** Math.max(0, Math.min(30, bits));
    this.tolerance = averages && !this.#alike && type.isFloat && !Number.isInteger(Math.log2(nRanks)) ? 0.25 : 0;
  }

  /** Elements `first`, `first + 1`, … of the input of `rank`, as many as `target` has. */
  source(target: Float64Array, rank: number, first: number): void {
    const sender = this.#alike ? 0 : rank;
    const seed = mix(Math.imul(this.#round, 0x9e3779b1) ^ Math.imul(sender + 1, 0x85ebca6b));
    const mask = this.#span - 1;
    const { operator } = this;
    if (operator === 'prod') {
      // Each rank below the type's bits doubles the magnitude at most once, so that the product stays exact.
      const { exactBits, isSigned } = this.type;
      const [one, other] = !isSigned ? (rank < exactBits / 2 - 1 ? [2, 4] : [1, 1]) : rank < exactBits - 1 ? [-2, 2] : [-1, -1];
      for (let i = 0; i < target.length; i++) target[i] = (mix(seed + first + i) & 1) === 0 ? one : other;
    } else if (operator === 'sum' || operator === 'avg' || operator === 'mulsum') {
      // The sum of more ones than this is not exact.
      const unit = rank < 2 ** (this.type.exactBits - (operator === 'mulsum' ? 1 : 0)) ? this.#unit : 0;
      for (let i = 0; i < target.length; i++) target[i] = unit * (1 + (mix(seed + first + i) & mask));
    } else {
      const lowest = this.type.isSigned ? this.#span >>> 1 : 0;
      for (let i = 0; i < target.length; i++) target[i] = (mix(seed + first + i) & mask) - lowest;
    }
  }

  /** Elements `first`, … of all ranks' sources combined by the operator, as many as `target` has. */
  reduced(target: Float64Array, first: number): void {
    const term = new Float64Array(target.length);
    for (let rank = 0; rank < this.nRanks; rank++) {
      this.source(term, rank, first);
      if (this.operator === 'mulsum') for (let i = 0; i < term.length; i++) term[i] = (term[i] ?? 0) * scalarOf(rank);
      if (rank === 0) target.set(term);
      else combine(target, term, this.operator ?? 'sum');
    }
    if (this.operator === 'avg') for (let i = 0; i < target.length; i++) target[i] = (target[i] ?? 0) / this.nRanks;
  }

  /** Fills `target` with the input of `rank` from its element `first` on. */
  fill(target: NumericArray, rank: number, first: number): void {
    const numbers = new Float64Array(Math.min(BLOCK_LENGTH, target.length));
    for (let done = 0; done < target.length; done += BLOCK_LENGTH) {
      const block = numbers.subarray(0, Math.min(BLOCK_LENGTH, target.length - done));
      this.source(block, rank, first + done);
      this.type.store(target.subarray(done, done + block.length), block);
    }
  }
}

/** `total[i] = total[i] op term[i]`. */
function combine(total: Float64Array, term: Float64Array, operator: PerfOperator): void {
  for (let i = 0; i < total.length; i++) {
    const a = total[i] ?? 0;
    const b = term[i] ?? 0;
    switch (operator) {
      case 'sum':
      case 'avg':
      case 'mulsum':
        total[i] = a + b;
        break;
      case 'prod':
        total[i] = a * b;
        break;
      case 'max':
        total[i] = Math.max(a, b);
        break;
      case 'min':
        total[i] = Math.min(a, b);
        break;
    }
  }
}

/** A bijection of 32-bit numbers without visible pattern (the finaliser of MurmurHash3). */
function mix(value: number): number {
  let h = value | 0;
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return (h ^ (h >>> 16)) >>> 0;
}

/** Elements `at`, … `at + count - 1` of a result: those from `first` on of one rank's source, or of all combined. */
export interface ResultPart {
  readonly at: number;
  readonly count: number;
  readonly from: number | 'all';
  readonly first: number;
}

/** Elements worked on at a time: their reference stays in the first-level cache. */
const BLOCK_LENGTH = 1024;

/** The number of elements of `result` that differ from the expected values of its parts. */
export function countWrong(result: NumericArray, parts: readonly ResultPart[], data: TestData): number {
  const { type } = data;
  const numbers = new Float64Array(BLOCK_LENGTH);
  const stored = new type.array(new ArrayBuffer(BLOCK_LENGTH * type.bytes), 0, BLOCK_LENGTH);
  let wrong = 0;
  for (const part of parts) {
    for (let done = 0; done < part.count; done += BLOCK_LENGTH) {
      const length = Math.min(BLOCK_LENGTH, part.count - done);
      const expected = numbers.subarray(0, length);
      if (part.from === 'all') data.reduced(expected, part.first + done);
      else data.source(expected, part.from, part.first + done);
      // Converted to the type and back: negative numbers wrap around in unsigned types.
      type.store(stored, expected);
      const want = type.load(stored.subarray(0, length));
      const got = type.load(result.subarray(part.at + done, part.at + done + length));
      for (let i = 0; i < length; i++) {
        // Written so that NaN is wrong.
        if (!(Math.abs((got[i] ?? NaN) - (want[i] ?? NaN)) <= data.tolerance)) wrong++;
      }
    }
  }
  return wrong;
}
