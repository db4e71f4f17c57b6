import type { TimedCallOptions } from '../algorithms/arguments.js';
import { ofRank } from '../caller-stack.js';
import { checkInteger } from '../device/scalar.js';
import { dataTypes, float64, int64, uint64, type DataType, type DataTypeName, type ReductionOperator } from '../device/types.js';
import { InvalidArgumentError } from '../../errors.js';
import type { AnyOperator, CheckedCall } from './checked-call.js';
import { checkAlone } from '../messages/running-group.js';
import { misplaced } from './misplaced.js';

/** A number that ranks combine: a bigint is a 64-bit integer. */
export type Scalar = number | bigint;

/** Result of a reduction of numbers: a number for numbers, a bigint for bigints. */
export type ScalarOf<V extends Scalar> = V extends bigint ? bigint : number;

/** Operator of a reduction of numbers: its name, or a function of the combination of lower ranks and a higher rank's number. */
export type ScalarOperator<V extends Scalar = Scalar> =
  ReductionOperator | ((lower: ScalarOf<V>, higher: ScalarOf<V>) => ScalarOf<V>);

/** True for the first argument of a reduction of numbers. */
export function isScalar(value: unknown): value is Scalar {
  return typeof value === 'number' || typeof value === 'bigint';
}

/** A reduction of a number, as one of an array of one element. */
interface ScalarCall {
  readonly call: CheckedCall;
  /** The result, when the call has ended; null on a rank that gets none. */
  readonly result: () => Scalar | null;
}

/**
 * @param call of the reduction's name
 * @throws InvalidArgumentError, InvalidUsageError `UNSUPPORTED` in a group
 */
export function scalarCall(
  call: CheckedCall,
  value: Scalar,
  operator: unknown,
  root: number | undefined,
  options: TimedCallOptions | undefined,
): ScalarCall {
  const { name, rank } = call;
  checkAlone(
    name,
    rank,
    'a group gives no results, so a reduction of a number cannot be part of it; pass an array of one element',
  );
  const type = ofRank(rank, () => {
    const misplacement = misplaced(name, operator, 1, true);
    if (misplacement !== undefined) throw misplacement;
    return typeOf(name, value, options?.type);
  });
  const array = new type.array(new ArrayBuffer(type.bytes), 0, 1);
  type.write(array, 0, value);
  const kind = name.replace(/Sync$/, '') as 'allReduce' | 'reduce' | 'scan' | 'exscan';
  if (kind === 'reduce') call.reduce(array, array, operator as AnyOperator, root, options);
  else call[kind](array, array, operator as AnyOperator, options);
  const hasResult = kind === 'reduce' ? rank === (root ?? 0) : kind !== 'exscan' || rank > 0;
  return { call, result: () => (hasResult ? type.read(array, 0) : null) };
}

/** The type that a number is combined as. CheckedCall refuses unknown names. */
function typeOf(call: string, value: Scalar, name: DataTypeName | undefined): DataType {
  const isBig = typeof value === 'bigint';
  const usual = isBig ? int64 : float64;
  const type = name === undefined ? usual : (dataTypes.find((one) => one.name === name) ?? usual);
  if (isBig !== (type === int64 || type === uint64)) {
    const what = isBig ? 'a bigint is combined as int64 or uint64' : `a number is not combined as ${type.name}`;
    throw new InvalidArgumentError(
      'ARGUMENT_TYPE',
      `${call}: ${what}; pass a ${isBig ? 'number' : 'bigint'} for type ${type.name}`,
    );
  }
  if (!type.isFloat) checkInteger(call, type, value);
  return type;
}
