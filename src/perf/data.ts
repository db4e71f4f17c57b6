import type { NamedOperator } from '../device/types.js';
import type { ElementArray, ElementType } from './types.js';

/**
 * The numbers that a check sends, and what must come back. They are pseudo-random by rank, element and round, so that
 * an element that is missing, doubled, stale or in the wrong place shows; and they are chosen by operator so that each
 * result is exact in its type, in whatever order the ranks were combined:
 *
 *     sum       1 … 2^bits / nRanks, never 0
 *     prod      ±2, or -1 for ranks beyond the type's bits: never 1, so that no factor can be missing unseen
 *     min, max  of both signs
 *     avg       nRanks × (1 … 2^(bits/2)): the mean is a whole number; where the library multiplies by 1/nRanks and
 *               that is not exact, it may be off by less than a quarter
 *     (none)    like min and max
 */
export class TestData {
  readonly type: ElementType;
  readonly operator: NamedOperator | undefined;
  readonly nRanks: number;
  /** Largest difference from the expected element that is not wrong. */
  readonly tolerance: number;
  readonly #round: number;
  /** Sources are multiples of this … */
  readonly #unit: number;
  /** … times 1 to this, a power of two. */
  readonly #span: number;

  /** @param round changes all numbers, so that what an earlier call left behind is wrong */
  constructor(type: ElementType, operator: NamedOperator | undefined, nRanks: number, round: number) {
    this.type = type;
    this.operator = operator;
    this.nRanks = nRanks;
    this.#round = round;
    const averages = operator === 'avg';
    const bits = averages ? Math.floor(type.exactBits / 2) : type.exactBits;
    this.#unit = averages ? nRanks : 1;
    this.#span = 2 ** Math.max(0, Math.min(30, bits - Math.ceil(Math.log2(nRanks))));
    this.tolerance = averages && type.isFloat && !Number.isInteger(Math.log2(nRanks)) ? 0.25 : 0;
  }

  /** Writes elements `first`, `first + 1`, … of what `rank` sends. */
  source(target: ElementArray, rank: number, first: number): void {
    const seed = mix(Math.imul(this.#round, 0x9e3779b1) ^ Math.imul(rank + 1, 0x85ebca6b));
    const mask = this.#span - 1;
    const { operator } = this;
    if (operator === 'prod') {
      // Each rank below the type's bits doubles the magnitude at most once, so that the product stays exact.
      const magnitude = rank < this.type.exactBits - 1 ? 2 : 1;
      for (let i = 0; i < target.length; i++) {
        target[i] = magnitude === 1 || (mix(seed + first + i) & 1) === 0 ? -magnitude : magnitude;
      }
    } else if (operator === 'sum' || operator === 'avg') {
      for (let i = 0; i < target.length; i++) target[i] = this.#unit * (1 + (mix(seed + first + i) & mask));
    } else {
      for (let i = 0; i < target.length; i++) target[i] = (mix(seed + first + i) & mask) - (this.#span >>> 1);
    }
  }

  /** Writes elements `first`, … of all ranks' sources combined by the operator. */
  reduced(target: ElementArray, first: number): void {
    const term = new Float64Array(target.length);
    const total = new Float64Array(target.length);
    for (let rank = 0; rank < this.nRanks; rank++) {
      this.source(term, rank, first);
      if (rank === 0) total.set(term);
      else combine(total, term, this.operator ?? 'sum');
    }
    for (let i = 0; i < total.length; i++) target[i] = (total[i] ?? 0) / (this.operator === 'avg' ? this.nRanks : 1);
  }
}

/** `total[i] = total[i] op term[i]`. */
function combine(total: Float64Array, term: Float64Array, operator: NamedOperator): void {
  for (let i = 0; i < total.length; i++) {
    const a = total[i] ?? 0;
    const b = term[i] ?? 0;
    switch (operator) {
      case 'sum':
      case 'avg':
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
export interface Segment {
  readonly at: number;
  readonly count: number;
  readonly from: number | 'all';
  readonly first: number;
}

/** Elements compared at a time: their reference stays in the first-level cache. */
const blockLength = 1024;

/** The number of elements of `result` that differ from what its segments must hold. */
export function countWrong(result: ElementArray, segments: readonly Segment[], data: TestData): number {
  const block = new data.type.array(new ArrayBuffer(blockLength * data.type.bytes), 0, blockLength);
  let wrong = 0;
  for (const segment of segments) {
    for (let done = 0; done < segment.count; done += blockLength) {
      const want = block.subarray(0, Math.min(blockLength, segment.count - done));
      if (segment.from === 'all') data.reduced(want, segment.first + done);
      else data.source(want, segment.from, segment.first + done);
      const got = result.subarray(segment.at + done, segment.at + done + want.length);
      for (let i = 0; i < want.length; i++) {
        // Written so that NaN is wrong.
        if (!(Math.abs((got[i] ?? NaN) - (want[i] ?? NaN)) <= data.tolerance)) wrong++;
      }
    }
  }
  return wrong;
}
