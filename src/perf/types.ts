import { type DataType, float32, float64, int32, type NumericArrayConstructor } from '../device/types.js';

/** The arrays of the types that perf knows. */
export type ElementArray = Float32Array | Float64Array | Int32Array;

/** An element type as perf knows it: under nccl-tests' name, with what a check needs to know. */
export interface ElementType {
  readonly name: string;
  readonly bytes: number;
  readonly isFloat: boolean;
  /** Whole numbers up to 2^exactBits in magnitude are exact in this type. */
  readonly exactBits: number;
  readonly array: NumericArrayConstructor<ElementArray>;
}

const type = (name: string, { bytes, array }: DataType, isFloat: boolean, exactBits: number): ElementType =>
  ({ name, bytes, array: array as NumericArrayConstructor<ElementArray>, isFloat, exactBits });

/** In nccl-tests' order. */
export const elementTypes: readonly ElementType[] = [
  type('int32', int32, false, 30),
  type('float', float32, true, 24),
  type('double', float64, true, 52),
];
