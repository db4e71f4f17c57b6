import { describeValue } from '../../describe-value.js';
import type { GivenArray, MovableArray, NumericArray } from '../device/types.js';
import { InvalidArgumentError, InvalidUsageError } from '../../errors.js';
import { didYouMean } from '../../suggest.js';
import { defined } from '../../defined.js';

/** An array with one part for each rank: rank r's part is `counts[r]` elements from `displacements[r]` on. */
export interface Parts<T extends MovableArray = MovableArray> {
  /** The array that contains all parts. */
  readonly array: GivenArray<T>;
  /** Numbers of elements, as an array of numbers or an integer array such as an Int32Array. */
  readonly counts: ArrayLike<number>;
  /** Start of each part. Default: one part after the other. */
  readonly displacements?: ArrayLike<number> | undefined;
}

const partsNames: readonly string[] = Object.keys({ array: true, counts: true, displacements: true } satisfies Record<
  keyof Parts,
  true
>);

/** Throws unless `parts` has the form of Parts; a bare array, for example, does not. */
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

/** Throws unless `counts` has one whole number from 0 for each rank. Returns a copy, so that later changes have no effect. */
export function checkCounts(call: string, given: ArrayLike<number>, nRanks: number): readonly number[] {
  const counts = checkList(call, 'counts', given);
  if (counts.length !== nRanks) {
    throw new InvalidArgumentError(
      'ARGUMENT_RANGE',
      `${call}: there are ${String(counts.length)} counts for ${String(nRanks)} ranks; pass one for each rank`,
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
 * Start of each rank's part: the caller's displacements, or one part after the other. Throws if parts exceed the array or if
 * parts of an output overlap.
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
      `${call}: there are ${String(displacements.length)} displacements for ${String(counts.length)} ranks; pass one for each rank`,
    );
  }
  displacements.forEach((from, rank) => {
    const count = defined(counts[rank]);
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

/** Copies to an ordinary array, because sums may not fit into the typed array's elements. */
function checkList(call: string, what: string, list: unknown): readonly number[] {
  if (Array.isArray(list) || (ArrayBuffer.isView(list) && !(list instanceof DataView)))
    return Array.from(list as ArrayLike<number>);
  throw new InvalidArgumentError(
    'ARGUMENT_TYPE',
    `${call}: its ${what} are an array with a number of elements for each rank, not ${describeValue(list)}`,
  );
}

/** Sum of the counts. */
export function total(counts: readonly number[]): number {
  return counts.reduce((sum, count) => sum + count, 0);
}

/** Number of elements from the array's start to the end of the last part. */
export function extent(counts: readonly number[], displacements: readonly number[]): number {
  return counts.reduce((end, count, rank) => (count === 0 ? end : Math.max(end, defined(displacements[rank]) + count)), 0);
}

// ── parts apart ─────────────────────────────────────────────────────────────────────────────────────────────────────

/** Parts of both arrays of an all-to-all, by rank. */
type AllToAllParts = Readonly<Record<'counts' | 'displacements' | 'recvCounts' | 'recvDisplacements', readonly number[]>>;

/** A rank's part, as a range of bytes in the array's memory. */
interface Stretch {
  readonly rank: number;
  readonly from: number;
  readonly to: number;
}

/** Throws if two parts of an output share elements, because their order of writing is undefined. */
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
 * Throws if an array, which is the input or the output, shares elements with a part of the other one, unless it is this
 * rank's part. It may lie between the parts.
 */
// eslint-disable-next-line max-params -- parts are counts and displacements everywhere
export function checkBeside(
  call: string,
  is: 'input' | 'output',
  array: NumericArray,
  parted: NumericArray,
  counts: readonly number[],
  displacements: readonly number[],
  rank: number,
): void {
  if (array.buffer !== parted.buffer) return;
  const inPlaceAt = defined(displacements[rank]);
  if (array.byteOffset === parted.byteOffset + inPlaceAt * parted.BYTES_PER_ELEMENT) return;
  const [whole, parts] = [stretchesOf(array, [array.length], [0]), stretchesOf(parted, counts, displacements)];
  const found = is === 'input' ? firstOverlap(whole, parts) : firstOverlap(parts, whole);
  if (found === undefined) return;
  const other = is === 'input' ? 'output' : 'input';
  throw new InvalidUsageError(
    'BUFFER_OVERLAP',
    `${call}: the ${is} and the ${other}'s part of rank ${found[other].rank} overlap by ${found.bytes} bytes; ` +
      `pass the ${other}'s elements from ${inPlaceAt} on as ${is} to work in place, or pass an ${is} that lies apart from all parts`,
  );
}

/** Throws if a part of the input shares elements with a part of the output. Parts of both may alternate. */
export function checkAllApart(
  call: string,
  send: NumericArray,
  recv: NumericArray,
  { counts, displacements, recvCounts, recvDisplacements }: AllToAllParts,
): void {
  if (send.buffer !== recv.buffer) return;
  const found = firstOverlap(stretchesOf(send, counts, displacements), stretchesOf(recv, recvCounts, recvDisplacements));
  if (found === undefined) return;
  throw new InvalidUsageError(
    'BUFFER_OVERLAP',
    `${call}: the input's part for rank ${String(found.input.rank)} and the output's part from rank ${String(found.output.rank)} overlap by ${String(found.bytes)} bytes; ` +
      'it does not work in place: pass parts that lie apart',
  );
}

/** The parts that have elements, in the order of their addresses. */
function stretchesOf(
  { byteOffset, BYTES_PER_ELEMENT }: NumericArray,
  counts: readonly number[],
  displacements: readonly number[],
): Stretch[] {
  const stretches: Stretch[] = [];
  counts.forEach((count, rank) => {
    const from = byteOffset + defined(displacements[rank]) * BYTES_PER_ELEMENT;
    if (count > 0) stretches.push({ rank, from, to: from + count * BYTES_PER_ELEMENT });
  });
  return stretches.sort((a, b) => a.from - b.from);
}

/**
 * A part of the input and a part of the output that share bytes. Parts of the input may overlap each other, those of the
 * output may not.
 */
function firstOverlap(
  inputs: readonly Stretch[],
  outputs: readonly Stretch[],
): { input: Stretch; output: Stretch; bytes: number } | undefined {
  let next = 0;
  for (const input of inputs) {
    // Later inputs begin no earlier.
    let output = outputs[next];
    while (output !== undefined && output.to <= input.from) output = outputs[++next];
    if (output !== undefined && output.from < input.to) {
      return { input, output, bytes: Math.min(input.to, output.to) - Math.max(input.from, output.from) };
    }
  }
  return undefined;
}
