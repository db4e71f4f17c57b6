import { describeValue } from '../../describe-value.js';
import { InvalidArgumentError } from '../../errors.js';
import type { DataType } from './types.js';

/** Size of a scalar for the kernels: one element, repeated. */
export const SCALAR_BYTES = 8;

/**
 * Writes the scalar of a premulSum, converted to the type, in the kernels' form: repeated to fill SCALAR_BYTES bytes.
 * Floating-point types round to nearest even. Throws `ARGUMENT_TYPE` unless it is a number, and `ARGUMENT_RANGE` if an
 * integer type cannot represent it.
 */
export function writeScalar(type: DataType, scalar: number | bigint, buffer: ArrayBufferLike, address: number): void {
  if (typeof scalar !== 'number' && typeof scalar !== 'bigint') {
    throw new InvalidArgumentError('ARGUMENT_TYPE', `premulSum takes a number, not ${describeValue(scalar)}`);
  }
  const elements = new type.array(buffer, address, SCALAR_BYTES / type.bytes);
  if (!type.isFloat) checkInteger('premulSum', type, scalar);
  for (let i = 0; i < elements.length; i++) type.write(elements, i, scalar);
}

/** Throws `ARGUMENT_RANGE` if an integer type cannot represent a number. @param what that takes it, for the error */
export function checkInteger(what: string, type: DataType, scalar: number | bigint): void {
  const bits = BigInt(type.bytes * 8);
  const fits = (value: bigint) =>
    value === (type.name.startsWith('u') ? BigInt.asUintN(Number(bits), value) : BigInt.asIntN(Number(bits), value));
  if ((typeof scalar === 'number' && !Number.isInteger(scalar)) || !fits(BigInt(scalar))) {
    throw new InvalidArgumentError(
      'ARGUMENT_RANGE',
      `${what} of ${type.name} takes a whole number that fits the type, not ${String(scalar)}`,
    );
  }
}
