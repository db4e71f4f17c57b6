import { type DataType, float32, float64, int32, type NumericArray } from '../device/types.js';

/** An element type as perf knows it: under nccl-tests' name, with what a check needs to know. */
export interface ElementType {
  readonly name: string;
  readonly bytes: number;
  readonly isFloat: boolean;
  /** Whole numbers up to 2^exactBits in magnitude are exact in this type. */
  readonly exactBits: number;
  readonly array: new (buffer: ArrayBufferLike, byteOffset: number, length: number) => NumericArray;
}

const type = (name: string, { bytes, array }: DataType, isFloat: boolean, exactBits: number): ElementType =>
  ({ name, bytes, array, isFloat, exactBits });

/** In nccl-tests' order. */
export const elementTypes: readonly ElementType[] = [
  type('int32', int32, false, 30),
  type('float', float32, true, 24),
  type('double', float64, true, 52),
];
