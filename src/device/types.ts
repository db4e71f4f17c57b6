import { InvalidArgumentError } from '../errors.js';
import { didYouMean } from '../suggest.js';

/** Arrays that a collective takes: the element type follows from the class. */
export type NumericArray = Float32Array | Float64Array | Int32Array;

/** Class of such an array, as `comm.alloc` takes it. */
export interface NumericArrayConstructor<T extends NumericArray = NumericArray> {
  readonly BYTES_PER_ELEMENT: number;
  readonly name: string;
  new (buffer: ArrayBufferLike, byteOffset: number, length: number): T;
}

/** A type of elements. `code` is what the kernels know it by (kernels/assembly/reduce.ts). */
export interface DataType {
  readonly name: 'float32' | 'float64' | 'int32';
  readonly code: number;
  readonly bytes: number;
  readonly array: NumericArrayConstructor;
}

export const float32: DataType = { name: 'float32', code: 0, bytes: 4, array: Float32Array };
export const float64: DataType = { name: 'float64', code: 1, bytes: 8, array: Float64Array };
export const int32: DataType = { name: 'int32', code: 2, bytes: 4, array: Int32Array };

export const dataTypes: readonly DataType[] = [float32, float64, int32];

/** The operators of a reduction. `avg` is the sum divided by the number of ranks; integers truncate toward zero. */
export type ReductionOperator = 'sum' | 'prod' | 'min' | 'max' | 'avg';

export const reductionOperators: readonly ReductionOperator[] = ['sum', 'prod', 'min', 'max', 'avg'];

/** The kernels' code of an operator. Throws `UNKNOWN_NAME`. */
export function operatorCode(operator: ReductionOperator): number {
  switch (operator) {
    case 'sum':
      return 0;
    case 'prod':
      return 1;
    case 'min':
      return 2;
    case 'max':
      return 3;
    case 'avg':
      return 4;
    default:
      throw new InvalidArgumentError(
        'UNKNOWN_NAME',
        `no reduction operator is called ${JSON.stringify(operator)}${didYouMean(String(operator), reductionOperators)}` +
          `; use one of ${reductionOperators.join(', ')}`,
      );
  }
}

/** The type of an array's elements. Throws `ARGUMENT_TYPE` for anything that no collective takes. */
export function dataTypeOf(array: NumericArray): DataType {
  if (array instanceof Float32Array) return float32;
  if (array instanceof Float64Array) return float64;
  if (array instanceof Int32Array) return int32;
  throw new InvalidArgumentError(
    'ARGUMENT_TYPE',
    `${describe(array)} cannot be exchanged; pass a ${dataTypes.map((type) => type.array.name).join(', ')}`,
  );
}

function describe(value: unknown): string {
  if (value === null || typeof value !== 'object') return `${typeof value} ${String(value)}`;
  return `an object of class ${value.constructor.name}`;
}
