import { describeValue } from '../describe-value.js';
import { InvalidArgumentError } from '../errors.js';
import type { DataTypeName, NumericArray } from '../runtime/device/types.js';

/** Access to the tensors of a library, for calls that exchange arrays. */
export interface Tensors<Tensor> {
  /**
   * A tensor's elements; changing them may change the tensor. Elements of a device come in a promise, in `into` if it is of
   * their class and length. The tensor must stay as it is until the promise resolves.
   */
  read(tensor: Tensor, into?: NumericArray): NumericArray | Promise<NumericArray>;
  /** The type of its elements, where their array's class does not tell. */
  typeOf(tensor: Tensor): DataTypeName | undefined;
  /** Makes a tensor of the element type of `like`, and of its shape unless `shape` is given. Copies `array`. */
  make(array: NumericArray, like: Tensor, shape?: readonly number[]): Tensor | Promise<Tensor>;
  /** Copies `array` into a tensor that can change: a variable. */
  write(tensor: Tensor, array: NumericArray): void | Promise<void>;
  shapeOf(tensor: Tensor): readonly number[];
}

/** Typed arrays as tensors of one dimension. */
export const plainArrays: Tensors<NumericArray> = {
  read: (array) => array,
  typeOf: () => undefined,
  make: (array) => array.slice(),
  write: (array, from) => copy(from, array),
  shapeOf: ({ length }) => [length],
};

/** The elements of a tensor, `what`, as an array. */
export function numbersOf(data: unknown, what: string): NumericArray {
  if (ArrayBuffer.isView(data) && !(data instanceof DataView)) return data as NumericArray;
  throw new InvalidArgumentError('ARGUMENT_TYPE', `${what} has ${describeValue(data)} as its elements, not numbers`);
}

/** A new array of the class of `array`. */
export function emptyOf(array: NumericArray, length: number): NumericArray {
  return new (array.constructor as new (length: number) => NumericArray)(length);
}

/** Copies elements between arrays of one class. */
export function copy(from: NumericArray, to: NumericArray): void {
  (to as Float32Array).set(from as Float32Array);
}

/** Checks that `library`, which the caller imported, has a member; `example` is how to pass it. */
export function checkLibrary(call: string, library: object, member: string, example: string): void {
  if (typeof (library as Readonly<Record<string, unknown>> | undefined | null)?.[member] === 'function') return;
  throw new InvalidArgumentError(
    'ARGUMENT_TYPE',
    `${call}: pass the library, as in ${example}, not ${describeValue(library)}, which has no ${member}`,
  );
}

/** Number of elements of a tensor. */
export function lengthOf(shape: readonly number[]): number {
  return shape.reduce((product, each) => product * each, 1);
}
