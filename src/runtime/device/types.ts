import { InvalidArgumentError } from '../../errors.js';
import { describeValue } from '../../describe-value.js';
import { didYouMean } from '../../suggest.js';
import type { PlatformDisposable } from '../platform/declarations.js';
import {
  fromBfloat16,
  fromFloat16,
  fromFloat8e4m3,
  fromFloat8e5m2,
  toBfloat16,
  toFloat16,
  toFloat8e4m3,
  toFloat8e5m2,
} from './formats.js';

/** Float16Array, if the program is compiled for a runtime that has it. */
type NativeFloat16Array = typeof globalThis extends { Float16Array: { prototype: infer T } } ? T : never;

/**
 * Arrays of collectives. The class determines the element type, except that a Uint16Array holds float16 or bfloat16 and a
 * Uint8Array may hold one of the float8 types: the call's `type` decides.
 */
export type NumericArray =
  | Int8Array
  | Uint8Array
  | Int32Array
  | Uint32Array
  | BigInt64Array
  | BigUint64Array
  | Uint16Array
  | Float32Array
  | Float64Array
  // eslint-disable-next-line @typescript-eslint/no-redundant-type-constituents -- it is `never` only where it does not exist
  | NativeFloat16Array;

/** Typed arrays whose elements are numbers. Some of them cannot be combined by an operator. */
export type TypedArray = NumericArray | Int16Array | Uint8ClampedArray;

/** Arrays of calls that combine nothing. Anything but a typed array is taken as its bytes. */
export type MovableArray = TypedArray | DataView | ArrayBuffer | SharedArrayBuffer;

/** An array of `comm.alloc`, which `using` frees at the end of its block. */
export type AllocatedArray<T extends TypedArray> = T & PlatformDisposable;

/** An array of class T, of `comm.alloc` or not: calls take both kinds beside each other. */
export type GivenArray<T> = T | (T & PlatformDisposable);

/** Class of such an array, as in `comm.alloc`. */
export interface NumericArrayConstructor<T extends TypedArray = NumericArray> {
  /** Size of an element, as in typed arrays. */
  readonly BYTES_PER_ELEMENT: number;
  /** The class's name. */
  readonly name: string;
  /**
   * Type of an array on any buffer. From the constructors alone, TypeScript infers arrays on an ArrayBuffer, which those of
   * `alloc` are not.
   */
  readonly prototype: T;
  new (buffer: ArrayBufferLike, byteOffset: number, length: number): T;
}

/** Name of an element type, as in `options.type`; docs/reference/types.md lists the arrays that hold it. */
export type DataTypeName =
  | 'int8'
  | 'uint8'
  | 'int32'
  | 'uint32'
  | 'int64'
  | 'uint64'
  | 'float16'
  | 'float32'
  | 'float64'
  | 'bfloat16'
  | 'float8e4m3'
  | 'float8e5m2'
  | MovedTypeName;

/** Name of a type whose elements are only moved. */
type MovedTypeName = 'int16' | 'uint16';

/** An element type. */
export interface DataType {
  readonly name: DataTypeName;
  /** Code of the type in the kernels (kernels/assembly/codes.ts). */
  readonly code: number;
  readonly bytes: number;
  readonly isFloat: boolean;
  /** Class of the arrays that hold it. */
  readonly array: NumericArrayConstructor;
  /** Element `index` of such an array, as a number. */
  read(array: NumericArray, index: number): number | bigint;
  /** Writes a number, rounded to nearest even for floating-point types; integers keep the bits that fit. */
  write(array: NumericArray, index: number, value: number | bigint): void;
  /** Of a type whose arrays hold encoded numbers: all of them, decoded; and their encoding into such an array. */
  readonly decode?: (array: NumericArray) => Float32Array;
  readonly encode?: (values: Float32Array, into: NumericArray) => void;
}

/** Types whose arrays hold the numbers themselves. */
const native = (name: DataTypeName, code: number, isFloat: boolean, array: NumericArrayConstructor): DataType => ({
  name,
  code,
  bytes: array.BYTES_PER_ELEMENT,
  isFloat,
  array,
  read: (from, index) => from[index] ?? 0,
  write: (to, index, value) => {
    to[index] = to instanceof BigInt64Array || to instanceof BigUint64Array ? BigInt(value) : Number(value);
  },
});

/** Types whose arrays hold encoded numbers. */
const encoded = (
  name: DataTypeName,
  code: number,
  array: typeof Uint16Array | typeof Uint8Array,
  decode: (bits: ArrayLike<number>) => Float32Array,
  encode: (values: ArrayLike<number>, into?: never) => ArrayLike<number>,
): DataType => ({
  name,
  code,
  bytes: array.BYTES_PER_ELEMENT,
  isFloat: true,
  array,
  read: (from, index) => (from instanceof array ? decode([from[index] ?? 0])[0] : from[index]) ?? 0,
  write: (to, index, value) => {
    to[index] = (to instanceof array ? encode([Number(value)])[0] : Number(value)) as never;
  },
  decode: (from) => decode(from as Uint16Array),
  encode: (values, into) => void encode(values, into as never),
});

export const int8 = native('int8', 3, false, Int8Array);
export const uint8 = native('uint8', 4, false, Uint8Array);
export const int32 = native('int32', 2, false, Int32Array);
export const uint32 = native('uint32', 5, false, Uint32Array);
export const int64 = native('int64', 6, false, BigInt64Array);
export const uint64 = native('uint64', 7, false, BigUint64Array);
export const float16 = encoded('float16', 8, Uint16Array, fromFloat16, toFloat16);
export const float32 = native('float32', 0, true, Float32Array);
export const float64 = native('float64', 1, true, Float64Array);
export const bfloat16 = encoded('bfloat16', 9, Uint16Array, fromBfloat16, toBfloat16);
export const float8e4m3 = encoded('float8e4m3', 10, Uint8Array, fromFloat8e4m3, toFloat8e4m3);
export const float8e5m2 = encoded('float8e5m2', 11, Uint8Array, fromFloat8e5m2, toFloat8e5m2);

/** Elements that are only moved: NCCL has no such types, and no kernel combines them. */
const int16 = native('int16', 12, false, Int16Array as unknown as NumericArrayConstructor);
const uint16 = native('uint16', 13, false, Uint16Array);
const movedTypes: readonly DataType[] = [int16, uint16];

/** All types that can be combined, in NCCL's order. */
export const dataTypes: readonly DataType[] = [
  int8,
  uint8,
  int32,
  uint32,
  int64,
  uint64,
  float16,
  float32,
  float64,
  bfloat16,
  float8e4m3,
  float8e5m2,
];

/** Bytes of objects in messages (objects/): a type of their own, so that they never match an array. */
export const objectBytes: DataType = native('uint8', 32, false, Uint8Array);

const allTypes: readonly DataType[] = [...dataTypes, ...movedTypes, objectBytes];

/** Type of a code in a call or message. */
export function typeOfCode(code: number): DataType | undefined {
  return allTypes.find((type) => type.code === code);
}

/** Text of a message's content: `4 float32`, `an object`. */
export function describeElements(count: number, type: DataType): string {
  return type === objectBytes ? 'an object' : `${count} ${type.name}`;
}

/** Sum of the ranks' inputs, each multiplied by its rank's scalar and rounded to the type first. */
export interface PremulSum {
  /** Scalar that the type can represent, a bigint for 64-bit integers; ranks may have different ones. */
  readonly premulSum: number | bigint;
}

export type NamedOperator = 'sum' | 'prod' | 'min' | 'max' | 'avg';

/**
 * Operators that NCCL does not have. Bitwise: `band`, `bor`, `bxor`, of integers. Logical: `land`, `lor`, whose results are
 * 0 or 1. Of pairs (a value, then its place): `minloc`, `maxloc` give the least or greatest value with its lowest place.
 */
export type FurtherOperator = 'band' | 'bor' | 'bxor' | 'land' | 'lor' | 'minloc' | 'maxloc';

/** The operators of a reduction. `avg` is the sum divided by the number of ranks; integers truncate toward zero. */
export type ReductionOperator = NamedOperator | FurtherOperator | PremulSum;

/** NCCL's operators with a name. */
export const reductionOperators: readonly NamedOperator[] = ['sum', 'prod', 'min', 'max', 'avg'];
const furtherOperators: readonly FurtherOperator[] = ['band', 'bor', 'bxor', 'land', 'lor', 'minloc', 'maxloc'];

/** Operators by the kernels' code. */
export const operatorNames = [...reductionOperators, 'premulSum', ...furtherOperators] as const;
export type OperatorName = (typeof operatorNames)[number];

/** Code of premulSum in the kernels. */
export const PREMUL_SUM = operatorNames.indexOf('premulSum');

/** Codes of the kernels that change elements of windows (kernels/assembly/accumulate.ts), behind those of the operators. */
export const REPLACE = operatorNames.length;
export const COMPARE = REPLACE + 1;

/**
 * Code of an operator in the kernels. Throws `UNKNOWN_NAME`, also for `premulSum` without its scalar; the message begins with the
 * name of the call, if given.
 */
export function operatorCode(operator: ReductionOperator, call?: string): number {
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
      return otherOperatorCode(operator, call);
  }
}

function otherOperatorCode(operator: unknown, call: string | undefined): number {
  if (typeof operator === 'object' && operator !== null && 'premulSum' in operator) return PREMUL_SUM;
  const further = furtherOperators.indexOf(operator as FurtherOperator);
  if (further >= 0) return PREMUL_SUM + 1 + further;
  const names = [...reductionOperators, ...furtherOperators];
  const guess = guessedOperator(operator, names);
  throw new InvalidArgumentError(
    'UNKNOWN_NAME',
    `${call === undefined ? '' : `${call}: `}there is no reduction operator ${describeOperator(operator)}${guess}; use one of ${names.join(', ')} or { premulSum: scalar }`,
  );
}

/** `; did you mean sum?` for `add`, or the empty string. */
export function guessedOperator(operator: unknown, names: readonly string[]): string {
  return typeof operator === 'string' ? didYouMean(usualName(operator, operatorsElsewhere), names) : '';
}

function describeOperator(operator: unknown): string {
  if (typeof operator !== 'object' || operator === null || Object.getPrototypeOf(operator) !== Object.prototype)
    return describeValue(operator);
  return JSON.stringify(operator, (_, part: unknown) => (typeof part === 'bigint' ? `${part}n` : part));
}

/** Names that other libraries and languages have for our operators and types. */
type NamesElsewhere<Name extends string> = readonly (readonly [Name, readonly string[]])[];

const operatorsElsewhere: NamesElsewhere<NamedOperator | FurtherOperator> = [
  ['sum', ['add', 'plus', 'total', 'increment']],
  ['prod', ['product', 'mul', 'times', 'multiply']],
  ['min', ['minimum']],
  ['max', ['maximum']],
  ['avg', ['mean', 'average']],
  ['land', ['and', 'all', 'every']],
  ['lor', ['or', 'any', 'some']],
  ['bxor', ['xor']],
  ['minloc', ['argmin']],
  ['maxloc', ['argmax']],
];

const typesElsewhere: NamesElsewhere<DataTypeName> = [
  ['int8', ['i8', 's8', 'char']],
  ['uint8', ['u8', 'byte', 'uchar', 'uint8clamped', 'bool']],
  ['int16', ['i16', 's16', 'short']],
  ['uint16', ['u16', 'ushort']],
  ['int32', ['i32', 's32', 'int', 'integer']],
  ['uint32', ['u32', 'uint', 'unsigned']],
  ['int64', ['i64', 's64', 'long', 'bigint', 'bigint64']],
  ['uint64', ['u64', 'ulong', 'biguint64']],
  ['float16', ['f16', 'fp16', 'half']],
  ['float32', ['f32', 'fp32', 'float', 'single', 'number']],
  ['float64', ['f64', 'fp64', 'double']],
  ['bfloat16', ['bf16', 'brain']],
  ['float8e4m3', ['fp8', 'float8', 'f8', 'e4m3', 'fp8e4m3']],
  ['float8e5m2', ['e5m2', 'fp8e5m2']],
];

/** Our name for one of another library, such as `MPI_PROD`, `bf16` or `Float32Array`; without one, the word itself. */
function usualName<Name extends string>(word: string, names: NamesElsewhere<Name>): string {
  const plain = word
    .toLowerCase()
    .replace(/^(?:mpi[._]|nccl|torch\.|reduceop\.)/, '')
    .replace(/(?:array|_t)$/, '')
    .replaceAll('_', '');
  return names.find(([ours, others]) => ours === plain || others.includes(plain))?.[0] ?? word;
}

/** True if an operator combines pairs of elements. */
export function combinesPairs(operator: OperatorName): boolean {
  return operator === 'minloc' || operator === 'maxloc';
}

/** True if an operator combines elements of a type: in small ones, a place would not fit into an element. */
export function canCombine(operator: OperatorName, type: DataType): boolean {
  if (combinesPairs(operator)) return type.bytes >= 4;
  return !(type.isFloat && (operator === 'band' || operator === 'bor' || operator === 'bxor'));
}

/**
 * The type of an array's elements: that of its class, or `name`, which must fit the class. Throws `ARGUMENT_TYPE` for values
 * that no collective takes and for a type that the class cannot hold, `UNKNOWN_NAME` for an unknown name; the message begins
 * with the name of the call, if given.
 */
export function dataTypeOf(array: NumericArray, name?: DataTypeName, call?: string): DataType {
  if (name !== undefined) return combinedType(namedType(array, name, call), call);
  if (array instanceof Float32Array) return float32;
  if (array instanceof Float64Array) return float64;
  if (array instanceof Int32Array) return int32;
  if (array instanceof Uint8Array) return uint8;
  if (array instanceof BigInt64Array) return int64;
  if (array instanceof Int8Array) return int8;
  if (array instanceof Uint32Array) return uint32;
  if (array instanceof BigUint64Array) return uint64;
  if (isNativeFloat16(array)) return float16;
  if (array instanceof Uint16Array) {
    throw refusal(
      'ARGUMENT_TYPE',
      call,
      "a Uint16Array holds float16 or bfloat16, and nothing says which; pass { type: 'float16' } or { type: 'bfloat16' } as options",
    );
  }
  if ((array as TypedArray) instanceof Int16Array) return combinedType(int16, call);
  throw refusal(
    'ARGUMENT_TYPE',
    call,
    `${describeValue(array)} cannot be exchanged; ${conversionOf(array) ?? `pass one of ${arrayNames()}`}`,
  );
}

/** The element type of an array that is only moved, like {@link dataTypeOf}; a Uint16Array without `name` is uint16. */
export function movedTypeOf(array: NumericArray, name?: DataTypeName, call?: string): DataType {
  if (name !== undefined) return namedType(array, name, call);
  // The most common classes first: every message asks.
  if (array instanceof Float32Array) return float32;
  if (array instanceof Float64Array) return float64;
  if (array instanceof Int32Array) return int32;
  if (array instanceof Uint8Array) return uint8;
  if (array instanceof Uint16Array) return uint16;
  if ((array as TypedArray) instanceof Int16Array) return int16;
  if ((array as TypedArray) instanceof Uint8ClampedArray) return uint8;
  if (ArrayBuffer.isView(array)) return dataTypeOf(array, undefined, call);
  throw refusal(
    'ARGUMENT_TYPE',
    call,
    `${describeValue(array)} cannot be exchanged; ${conversionOf(array) ?? 'pass a typed array'}, or take a call for objects (sendObject, broadcastObject …)`,
  );
}

/** Advice for an array of numbers that is no typed array. */
function conversionOf(array: unknown): string | undefined {
  if (!Array.isArray(array)) return undefined;
  const first: unknown = array.flat(Infinity)[0];
  const type = typeof first === 'number' ? 'Float64Array' : typeof first === 'bigint' ? 'BigInt64Array' : undefined;
  const isNested = Array.isArray(array[0]);
  return type && `pass a typed array: ${type}.from(x${isNested ? '.flat(Infinity)' : ''})`;
}

/** Throws for a type whose elements are only moved. */
function combinedType(type: DataType, call: string | undefined): DataType {
  if (!movedTypes.includes(type)) return type;
  throw refusal(
    'ARGUMENT_TYPE',
    call,
    `${type.name} can be moved (broadcast, allGather, send …) but not combined; pass an Int32Array` +
      (type === uint16 ? ", or { type: 'float16' } or { type: 'bfloat16' } if that is what the array holds" : ''),
  );
}

/** True if `alloc` supports this class, because some type is exchanged in its arrays. */
export function isArrayClass(type: unknown): boolean {
  return (
    allTypes.some(({ array }) => array === type) ||
    type === Uint8ClampedArray ||
    (nativeFloat16 !== undefined && type === nativeFloat16)
  );
}

/** Text with the classes of arrays that can be exchanged. */
export function arrayNames(): string {
  return [...new Set(dataTypes.map((type) => type.array.name))].join(', ');
}

function namedType(array: NumericArray, name: unknown, call: string | undefined): DataType {
  const type = allTypes.find((candidate) => candidate.name === name);
  if (type === undefined) {
    const names = [...new Set(allTypes.map((candidate) => candidate.name))];
    throw refusal(
      'UNKNOWN_NAME',
      call,
      `no data type is called ${describeValue(name)}${typeof name === 'string' ? didYouMean(usualName(name, typesElsewhere), names) : ''}; use one of ${names.join(', ')}`,
    );
  }
  if (array instanceof type.array || (type === float16 && isNativeFloat16(array))) return type;
  if (type === uint8 && (array as TypedArray) instanceof Uint8ClampedArray) return type;
  throw refusal(
    'ARGUMENT_TYPE',
    call,
    `${describeValue(array)} does not hold ${type.name}; pass one of class ${type.array.name}`,
  );
}

function refusal(code: 'ARGUMENT_TYPE' | 'UNKNOWN_NAME', call: string | undefined, message: string): InvalidArgumentError {
  return new InvalidArgumentError(code, call === undefined ? message : `${call}: ${message}`);
}

const nativeFloat16 = (globalThis as { Float16Array?: new () => object }).Float16Array;

function isNativeFloat16(array: object): boolean {
  return nativeFloat16 !== undefined && array instanceof nativeFloat16;
}

/** The memory of an array, as bytes. */
export function bytesOf({ buffer, byteOffset, byteLength }: TypedArray): Uint8Array {
  return new Uint8Array(buffer, byteOffset, byteLength);
}
