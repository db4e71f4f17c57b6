import { describeValue } from '../../describe-value.js';
import type { NumericArray } from '../device/types.js';
import { InvalidArgumentError, InvalidUsageError } from '../../errors.js';
import { didYouMean } from '../../suggest.js';

/** An array that consists of a part a rank: rank r's are `counts[r]` elements from `displacements[r]` on. */
export interface Parts {
  /** The array that has all parts. */
  readonly array: NumericArray;
  /** Numbers of elements: an array of numbers or an integer array, such as an Int32Array. */
  readonly counts: ArrayLike<number>;
  /** Default: one part behind the other. */
  readonly displacements?: ArrayLike<number> | undefined;
}

const partsNames: readonly string[] = Object.keys({ array: true, counts: true, displacements: true } satisfies Record<
  keyof Parts,
  true
>);

/** Refuses what is no description of parts: a bare array for one. */
export function checkParts(call: string, which: string, parts: unknown): void {
  if (typeof parts === 'object' && parts !== null && 'array' in parts && 'counts' in parts) {
    const unknown = Object.keys(parts).find((name) => !partsNames.includes(name));
    if (unknown === undefined) return;
    throw new InvalidArgumentError(
      'UNKNOWN_NAME',
      `${call}: its ${which} argument has no ${JSON.stringify(unknown)}${didYouMean(unknown, partsNames)}; it is { array, counts, displacements? }`,
    );
  }
  throw new InvalidArgumentError(
    'ARGUMENT_TYPE',
    `${call}: its ${which} argument is { array, counts, displacements? }, with a count for each rank`,
  );
}

/** Refuses counts that are not one whole number from 0 a rank. Returns a copy, which the caller's changes do not reach. */
export function checkCounts(call: string, given: ArrayLike<number>, nRanks: number): readonly number[] {
  const counts = checkList(call, 'counts', given);
  if (counts.length !== nRanks) {
    throw new InvalidArgumentError(
      'ARGUMENT_RANGE',
      `${call}: there are ${String(counts.length)} counts for ${String(nRanks)} ranks; pass one a rank`,
    );
  }
  for (let rank = 0; rank < nRanks; rank++) {
    const count: number | undefined = counts[rank];
    if (count === undefined || !Number.isSafeInteger(count) || count < 0) {
      throw new InvalidArgumentError(
        'ARGUMENT_RANGE',
        `${call}: the count of rank ${String(rank)} is ${describeValue(count)}; pass whole numbers of elements from 0`,
      );
    }
  }
  return counts;
}

/**
 * Offset of each rank's part: the displacements that the caller gave, or one part behind the other. Refuses parts
 * that do not fit into the array, and, of an output, parts that overlap.
 */
export function checkDisplacements(
  call: string,
  array: NumericArray,
  counts: readonly number[],
  given: ArrayLike<number> | undefined,
  isOutput: boolean,
): readonly number[] {
  if (given === undefined) {
    let next = 0;
    return counts.map((count) => (next += count) - count);
  }
  const displacements = checkList(call, 'displacements', given);
  if (displacements.length !== counts.length) {
    throw new InvalidArgumentError(
      'ARGUMENT_RANGE',
      `${call}: there are ${String(displacements.length)} displacements for ${String(counts.length)} ranks; pass one a rank`,
    );
  }
  displacements.forEach((from, rank) => {
    const count = counts[rank] ?? 0;
    if (!Number.isSafeInteger(from) || from < 0 || from + count > array.length) {
      throw new InvalidArgumentError(
        'ARGUMENT_RANGE',
        `${call}: the ${String(count)} elements of rank ${String(rank)} at displacement ${describeValue(from)} are not within the ${String(array.length)} elements of the ${isOutput ? 'output' : 'input'}`,
      );
    }
  });
  if (isOutput) checkPartsApart(call, array, counts, displacements);
  return displacements;
}

/** As an ordinary array: sums of a typed array's elements need not fit into it. */
function checkList(call: string, what: string, list: unknown): readonly number[] {
  if (Array.isArray(list) || (ArrayBuffer.isView(list) && !(list instanceof DataView)))
    return Array.from(list as ArrayLike<number>);
  throw new InvalidArgumentError(
    'ARGUMENT_TYPE',
    `${call}: its ${what} are an array with a number of elements for each rank, not ${describeValue(list)}`,
  );
}

/** Elements of all parts. */
export function total(counts: readonly number[]): number {
  return counts.reduce((sum, count) => sum + count, 0);
}

/** Number of elements that the parts span. */
export function extent(counts: readonly number[], displacements: readonly number[]): number {
  return counts.reduce((end, count, rank) => (count === 0 ? end : Math.max(end, (displacements[rank] ?? 0) + count)), 0);
}

// ── parts apart ─────────────────────────────────────────────────────────────────────────────────────────────────────

/** A rank's part, as bytes of the memory in which its array lies. */
interface Stretch {
  readonly rank: number;
  readonly from: number;
  readonly to: number;
}

/** Refuses two parts of an output that share elements: which of them would win is left to chance. */
function checkPartsApart(call: string, array: NumericArray, counts: readonly number[], displacements: readonly number[]): void {
  let left: Stretch | undefined;
  for (const right of stretchesOf(array, counts, displacements)) {
    if (left !== undefined && right.from < left.to) {
      throw new InvalidUsageError(
        'BUFFER_OVERLAP',
        `${call}: the parts of ranks ${String(left.rank)} and ${String(right.rank)} overlap in the output; give each its own elements`,
      );
    }
    left = right;
  }
}

/**
 * Refuses an input that shares elements with a part of the output, other than as this rank's part of it. Between the parts
 * it may lie.
 */
export function checkInputApart(
  call: string,
  send: NumericArray,
  recv: NumericArray,
  counts: readonly number[],
  displacements: readonly number[],
  rank: number,
): void {
  if (send.buffer !== recv.buffer) return;
  const inPlaceAt = displacements[rank] ?? 0;
  if (send.byteOffset === recv.byteOffset + inPlaceAt * recv.BYTES_PER_ELEMENT) return;
  const found = firstOverlap(stretchesOf(send, [send.length], [0]), stretchesOf(recv, counts, displacements));
  if (found === undefined) return;
  throw new InvalidUsageError(
    'BUFFER_OVERLAP',
    `${call}: the input and the output's part of rank ${String(found.output.rank)} overlap by ${String(found.bytes)} bytes; ` +
      `pass the output's elements from ${String(inPlaceAt)} on as input to work in place, or pass an input that lies apart from all parts`,
  );
}

/** Refuses a part of the input that shares elements with a part of the output. They may lie between each other. */
export function checkAllApart(
  call: string,
  send: NumericArray,
  sendCounts: readonly number[],
  sendFrom: readonly number[],
  recv: NumericArray,
  recvCounts: readonly number[],
  recvFrom: readonly number[],
): void {
  if (send.buffer !== recv.buffer) return;
  const found = firstOverlap(stretchesOf(send, sendCounts, sendFrom), stretchesOf(recv, recvCounts, recvFrom));
  if (found === undefined) return;
  throw new InvalidUsageError(
    'BUFFER_OVERLAP',
    `${call}: the input's part for rank ${String(found.input.rank)} and the output's part from rank ${String(found.output.rank)} overlap by ${String(found.bytes)} bytes; ` +
      'it does not work in place: pass parts that lie apart',
  );
}

/** The parts that have elements, from the first in memory to the last. */
function stretchesOf(
  { byteOffset, BYTES_PER_ELEMENT }: NumericArray,
  counts: readonly number[],
  displacements: readonly number[],
): Stretch[] {
  const stretches: Stretch[] = [];
  counts.forEach((count, rank) => {
    const from = byteOffset + (displacements[rank] ?? 0) * BYTES_PER_ELEMENT;
    if (count > 0) stretches.push({ rank, from, to: from + count * BYTES_PER_ELEMENT });
  });
  return stretches.sort((a, b) => a.from - b.from);
}

/**
 * A part of the input and one of the output that share bytes. Those of the input may overlap each other, those of the
 * output not.
 */
function firstOverlap(
  inputs: readonly Stretch[],
  outputs: readonly Stretch[],
): { input: Stretch; output: Stretch; bytes: number } | undefined {
  let next = 0;
  for (const input of inputs) {
    // Inputs further on begin no earlier.
    let output = outputs[next];
    while (output !== undefined && output.to <= input.from) output = outputs[++next];
    if (output !== undefined && output.from < input.to) {
      return { input, output, bytes: Math.min(input.to, output.to) - Math.max(input.from, output.from) };
    }
  }
  return undefined;
}
