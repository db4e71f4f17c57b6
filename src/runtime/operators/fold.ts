import { describeError, InvalidUsageError } from '../../errors.js';
import { describeValue } from '../../describe-value.js';
import type { DataType, NumericArray } from '../device/types.js';
import type { CheckedOperator } from './operator.js';
import { defined } from '../../defined.js';

/** The call that an operator serves, for its errors. */
interface FoldPlace {
  readonly call: string;
  readonly rank: number;
}

/** Writes the combination of `lower` and `higher` to `lower`. */
export type Fold = (lower: NumericArray, higher: NumericArray) => void;

/**
 * Makes a function that combines arrays of a type by an operator.
 *
 * The function throws InvalidUsageError `OPERATOR_FAILED` where the operator throws, or returns something else than a number.
 */
export function foldOf(operator: CheckedOperator, type: DataType, place: FoldPlace): Fold {
  const { ofElements, ofArrays } = operator;
  const combine = ofArrays !== undefined ? ofWhole(ofArrays) : ofElements !== undefined ? ofEach(ofElements, type) : undefined;
  return (lower, higher) => {
    if (lower.length === 0) return;
    let wrong: string | undefined;
    try {
      wrong = combine?.(lower, higher);
    } catch (cause) {
      throw new InvalidUsageError(
        'OPERATOR_FAILED',
        `${place.call}: the operator threw on rank ${place.rank}: ${textOf(cause)}`,
        { rank: place.rank, cause },
      );
    }
    if (wrong === undefined) return;
    throw new InvalidUsageError('OPERATOR_FAILED', `${place.call}: on rank ${place.rank}, the operator ${wrong}`, {
      rank: place.rank,
    });
  };
}

/** Combines two arrays; returns the fault of the operator's result, if any. */
type Combine = (lower: NumericArray, higher: NumericArray) => string | undefined;

function ofWhole(operator: (lower: NumericArray, higher: NumericArray) => unknown): Combine {
  return (lower, higher) => {
    const result = operator(lower, higher);
    if (result === undefined || result === lower) return undefined;
    return `gave ${describeValue(result)}; let combine write the results to its first array, and give nothing`;
  };
}

type Elements = Record<number, number | bigint>;

function ofEach(operator: (lower: number | bigint, higher: number | bigint) => unknown, type: DataType): Combine {
  const decode = type.decode;
  return (lower, higher) => {
    const encoded = decode !== undefined && lower instanceof type.array;
    const into = (encoded ? decode(lower) : lower) as unknown as Elements;
    const from = (encoded ? decode(higher) : higher) as unknown as Elements;
    const { length } = lower;
    const first = operator(defined(into[0]), defined(from[0]));
    if (typeof first !== typeof into[0]) {
      return (
        `gave ${describeValue(first)} for ${describeValue(into[0])} and ${describeValue(from[0])}; let it give a ${typeof into[0]}, ` +
        'or pass { combine } for one that takes arrays'
      );
    }
    into[0] = first as number | bigint;
    for (let i = 1; i < length; i++) into[i] = operator(into[i] as number, from[i] as number) as number;
    if (encoded) type.encode?.(into as unknown as Float32Array, lower);
    return undefined;
  };
}

/** The class of an error and its message, since the class often has more detail. */
function textOf(cause: unknown): string {
  return cause instanceof Error && cause.name !== 'Error' ? `${cause.name}: ${describeError(cause)}` : describeError(cause);
}
