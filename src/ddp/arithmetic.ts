import type { DataType, NumericArray } from '../runtime/device/types.js';

/** Arrays of floating-point numbers; those of other types are decoded. */
type Floats = Float32Array | Float64Array;

/** Adds `array` to `into`, both of type `type`. */
export function add(array: NumericArray, into: NumericArray, type: DataType): void {
  const [terms, sums] = [numbersOf(array, type), numbersOf(into, type)];
  for (let i = 0; i < sums.length; i++) sums[i] = (sums[i] ?? 0) + (terms[i] ?? 0);
  writeBack(sums, into, type);
}

/** Multiplies the elements of `array` by `factor`. */
export function scale(array: NumericArray, factor: number, type: DataType): void {
  const numbers = numbersOf(array, type);
  for (let i = 0; i < numbers.length; i++) numbers[i] = (numbers[i] ?? 0) * factor;
  writeBack(numbers, array, type);
}

/** Sum of the squares of `array`'s elements, in double precision and their order. */
export function sumOfSquares(array: NumericArray, type: DataType): number {
  const numbers = numbersOf(array, type);
  let sum = 0;
  for (let i = 0; i < numbers.length; i++) sum += (numbers[i] ?? 0) ** 2;
  return sum;
}

/** The elements as numbers: `array` itself, unless its elements are bits of a type that JavaScript has no array for. */
function numbersOf(array: NumericArray, type: DataType): Floats {
  return array instanceof type.array && type.decode !== undefined ? type.decode(array) : (array as Floats);
}

function writeBack(numbers: Floats, array: NumericArray, type: DataType): void {
  if ((numbers as NumericArray) !== array) type.encode?.(numbers as Float32Array, array);
}
