/** What perf can measure with: nccl-tests' names of element types and operators, and what a check needs to know. */

export type Elements = Float32Array | Float64Array | Int32Array;

export interface ElementType {
  /** nccl-tests' name. */
  readonly name: string;
  readonly bytes: number;
  readonly isFloat: boolean;
  /** Whole numbers up to 2^exactBits in magnitude are exact in this type. */
  readonly exactBits: number;
  readonly array: { new (length: number): Elements; new (buffer: ArrayBufferLike, byteOffset: number, length: number): Elements };
}

export const elementTypes: readonly ElementType[] = [
  { name: 'int32', bytes: 4, isFloat: false, exactBits: 30, array: Int32Array },
  { name: 'float', bytes: 4, isFloat: true, exactBits: 24, array: Float32Array },
  { name: 'double', bytes: 8, isFloat: true, exactBits: 52, array: Float64Array },
];

export const operators = ['sum', 'prod', 'max', 'min', 'avg'] as const;
export type Operator = (typeof operators)[number];
