import {
  fromBfloat16,
  fromFloat16,
  fromFloat8e4m3,
  fromFloat8e5m2,
  toBfloat16,
  toFloat16,
  toFloat8e4m3,
  toFloat8e5m2,
} from '../runtime/device/formats.js';
import {
  bfloat16,
  type DataType,
  type DataTypeName,
  float16,
  float32,
  float64,
  float8e4m3,
  float8e5m2,
  int32,
  int64,
  int8,
  type NumericArray,
  type NumericArrayConstructor,
  reductionOperators,
  uint32,
  uint64,
  uint8,
} from '../runtime/device/types.js';

/** The operators by nccl-tests' names: *mulsum* is the sum of inputs that each rank multiplies with a number of its own. */
export const perfOperators = [...reductionOperators, 'mulsum'] as const;
export type PerfOperator = (typeof perfOperators)[number];

/** Factor of a rank's input in a mulsum. */
export const scalarOf = (rank: number): number => 1 + (rank % 2);

/** An element type of perf: nccl-tests' name, with properties that checks need. */
export interface ElementType {
  readonly name: string;
  /** Options of a call. */
  readonly type: DataTypeName;
  readonly bytes: number;
  readonly isFloat: boolean;
  readonly isSigned: boolean;
  /** Whole numbers up to 2^exactBits in magnitude are exact in this type. */
  readonly exactBits: number;
  readonly array: NumericArrayConstructor;
  /** Writes numbers that are exact in this type. */
  store(target: NumericArray, numbers: Float64Array): void;
  /** Numbers that an array's elements stand for. */
  load(source: NumericArray): ArrayLike<number>;
}

/** Arrays that hold the numbers themselves. */
type Plain = Int8Array | Uint8Array | Int32Array | Uint32Array | Float32Array | Float64Array;
type Bits = Uint8Array | Uint16Array;

const named = ({ name, bytes, isFloat, array }: DataType, ncclTestsName: string, exactBits: number) => ({
  name: ncclTestsName,
  type: name,
  bytes,
  isFloat,
  isSigned: !name.startsWith('uint'),
  exactBits,
  array,
});

const plain = (type: DataType, name: string, exactBits: number): ElementType => ({
  ...named(type, name, exactBits),
  store: (target, numbers) => (target as Plain).set(numbers),
  load: (source) => source as Plain,
});

const big = (type: DataType, name: string, exactBits: number): ElementType => ({
  ...named(type, name, exactBits),
  store: (target, numbers) => {
    for (let i = 0; i < numbers.length; i++) target[i] = BigInt(numbers[i] ?? 0);
  },
  // Float64Array.from takes an iterator for each element: ten times as long.
  load: (source) => {
    const numbers = new Float64Array(source.length);
    for (let i = 0; i < numbers.length; i++) numbers[i] = Number(source[i]);
    return numbers;
  },
});

const encoded = (
  type: DataType,
  name: string,
  exactBits: number,
  encode: (numbers: ArrayLike<number>) => Bits,
  decode: (bits: ArrayLike<number>) => Float32Array,
): ElementType => ({
  ...named(type, name, exactBits),
  store: (target, numbers) => (target as Bits).set(encode(numbers)),
  load: (source) => decode(source as Bits),
});

/** In nccl-tests' order. */
export const elementTypes: readonly ElementType[] = [
  plain(int8, 'int8', 6),
  plain(uint8, 'uint8', 7),
  plain(int32, 'int32', 30),
  plain(uint32, 'uint32', 31),
  big(int64, 'int64', 52),
  big(uint64, 'uint64', 52),
  encoded(float16, 'half', 11, toFloat16, fromFloat16),
  plain(float32, 'float', 24),
  plain(float64, 'double', 52),
  encoded(bfloat16, 'bfloat16', 8, toBfloat16, fromBfloat16),
  encoded(float8e4m3, 'f8e4m3', 4, toFloat8e4m3, fromFloat8e4m3),
  encoded(float8e5m2, 'f8e5m2', 3, toFloat8e5m2, fromFloat8e5m2),
];
