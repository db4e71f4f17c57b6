import { types } from '#platform/system';
import { counted } from '../../counted.js';
import { describeValue } from '../../describe-value.js';
import { InvalidArgumentError } from '../../errors.js';
import { checkOptionNames } from '../../option-names.js';
import { canCombine, combinesPairs, type DataType, type NumericArray, type OperatorName } from '../device/types.js';

/** A number of an array: a bigint of 64-bit integers. */
export type ElementOf<T extends NumericArray> = T extends BigInt64Array | BigUint64Array ? bigint : number;

/**
 * An operator of the program's own that combines two numbers: of lower ranks, and of a higher one. It must be associative,
 * since tccl may group the ranks in any way, and the same on all ranks; it need not be commutative.
 */
export type ElementOperator<T extends NumericArray = NumericArray> = (lower: ElementOf<T>, higher: ElementOf<T>) => ElementOf<T>;

/** The same for whole arrays: faster, and for results that depend on several elements. */
export interface ArrayOperator<T extends NumericArray = NumericArray> {
  /**
   * Combines each element of `lower`, from lower ranks, with that of `higher`, and writes the results to `lower`. Both are
   * parts of the inputs, of equal length, and only valid during the call.
   */
  readonly combine: (lower: T, higher: T) => void;
  /** Number of consecutive elements that belong together, such as 4 for matrices of 2 by 2. No part cuts them. Default 1. */
  readonly unit?: number | undefined;
}

/** An operator of the program's own: a function combines two numbers, `{ combine }` two arrays. */
export type OwnOperator<T extends NumericArray = NumericArray> = ElementOperator<T> | ArrayOperator<T>;

/** An operator of the program's own that was checked. */
export interface CheckedOperator {
  readonly ofElements: ((lower: number | bigint, higher: number | bigint) => unknown) | undefined;
  readonly ofArrays: ((lower: NumericArray, higher: NumericArray) => unknown) | undefined;
  readonly unit: number;
}

/** An operator of the program's own for arrays of any class, before it is checked. */
export type UncheckedOperator =
  | ((lower: never, higher: never) => unknown)
  | { readonly combine: (lower: never, higher: never) => void; readonly unit?: number | undefined };

/** True for an operator of the program's own, also for one whose function has another name than `combine`. */
export function isOwnOperator(operator: unknown): operator is UncheckedOperator {
  if (typeof operator !== 'object' || operator === null) return typeof operator === 'function';
  return (
    'combine' in operator || (!('premulSum' in operator) && Object.values(operator).some((field) => typeof field === 'function'))
  );
}

const names: readonly string[] = Object.keys({ combine: true, unit: true } satisfies Record<keyof ArrayOperator, true>);

/** Throws ARGUMENT_TYPE, ARGUMENT_RANGE, UNKNOWN_NAME, or BUFFER_SIZE where `count` elements are no whole units. */
export function checkOwnOperator(call: string, operator: UncheckedOperator, count: number): CheckedOperator {
  if (typeof operator === 'function') {
    checkFunction(call, operator);
    return { ofElements: operator as CheckedOperator['ofElements'], ofArrays: undefined, unit: 1 };
  }
  if (!('combine' in operator)) {
    throw new InvalidArgumentError(
      'ARGUMENT_TYPE',
      `${call}: an operator of your own is a function of two numbers, or { combine } with one of two arrays; this one has ${Object.keys(operator).join(', ')}`,
    );
  }
  checkOptionNames(call, operator, names, '{ combine: (lower, higher) => { … }, unit: 4 }');
  const { combine, unit = 1 } = operator;
  checkFunction(call, combine);
  if (!Number.isInteger(unit) || unit < 1 || unit > LONGEST_UNIT) {
    throw new InvalidArgumentError(
      'ARGUMENT_RANGE',
      `${call}: the operator's unit is ${describeValue(unit)}; pass a whole number of elements from 1 to ${LONGEST_UNIT}`,
    );
  }
  if (count % unit !== 0) {
    throw new InvalidArgumentError(
      'BUFFER_SIZE',
      `${call}: the operator combines units of ${unit} elements, of which ${count} elements are no whole number`,
    );
  }
  return { ofElements: undefined, ofArrays: combine as CheckedOperator['ofArrays'], unit };
}

const LONGEST_UNIT = 2 ** 20;

/**
 * Refuses types that an operator of ours does not combine, and pairs that would be torn apart.
 * @param lengths of the parts
 * @throws InvalidArgumentError `ARGUMENT_TYPE`, `BUFFER_SIZE`
 */
export function checkFurther(call: string, operator: OperatorName, type: DataType, lengths: readonly number[]): void {
  const isOfPairs = combinesPairs(operator);
  if (!canCombine(operator, type)) {
    const wanted = isOfPairs ? 'pairs of elements of 4 or 8 bytes, such as a Float64Array has' : 'integers';
    const advice = isOfPairs ? '' : '; pass an array of integers, such as an Int32Array';
    throw new InvalidArgumentError('ARGUMENT_TYPE', `${call}: ${operator} combines ${wanted}, not ${type.name}${advice}`);
  }
  const odd = isOfPairs ? lengths.find((length) => length % 2 !== 0) : undefined;
  if (odd === undefined) return;
  throw new InvalidArgumentError(
    'BUFFER_SIZE',
    `${call}: ${operator} combines pairs, a value and its place, so ${counted(odd, 'element')} ${odd === 1 ? 'is' : 'are'} one too few or too many`,
  );
}

/** Throws `ARGUMENT_TYPE` unless an operator is a function that returns its result. */
export function checkFunction(call: string, operator: unknown): void {
  if (typeof operator === 'function' && !types.isAsyncFunction(operator) && !types.isGeneratorFunction(operator)) return;
  const what =
    typeof operator !== 'function' ? describeValue(operator) : types.isAsyncFunction(operator) ? 'an async one' : 'a generator';
  throw new InvalidArgumentError(
    'ARGUMENT_TYPE',
    `${call}: an operator of your own is a function that is neither async nor a generator, not ${what}`,
  );
}
