// Number formats for which JavaScript has no arrays: float16, bfloat16 and the two float8. Elements are stored as bits,
// in a Uint16Array or Uint8Array.
//
//                 sign exponent fraction   largest    smallest      infinity  NaN
//     float16        1     5       10      65504      2^-24         yes       0x7fff
//     bfloat16       1     8        7      3.39e38    2^-133        yes       0x7fff
//     float8e4m3     1     4        3      448        2^-9          no        0x7f
//     float8e5m2     1     5        2      57344      2^-16         yes       0x7f
//
// Numbers are rounded to the nearest number of the format, ties to even. Numbers that are too large become infinity in
// the 16-bit formats and, as in CUDA (__NV_SATFINITE), the largest number in the 8-bit ones, infinity included. Every NaN
// becomes the one above, which is CUDA's.

import { InvalidArgumentError } from '../../errors.js';
import { defined } from '../../defined.js';

/** A binary floating-point format of at most 16 bits. */
interface Format {
  readonly fractionBits: number;
  /** Bias of exponents; float32 has 127. */
  readonly bias: number;
  /** Bits of the largest magnitude that a conversion returns: infinity, or the largest number. */
  readonly overflow: number;
  readonly nan: number;
  readonly signBit: number;
  /** Magnitude of infinity; greater magnitudes are NaNs. */
  readonly infinity: number;
}

const float16: Format = { fractionBits: 10, bias: 15, overflow: 0x7c00, nan: 0x7fff, signBit: 0x8000, infinity: 0x7c00 };
const bfloat16: Format = { fractionBits: 7, bias: 127, overflow: 0x7f80, nan: 0x7fff, signBit: 0x8000, infinity: 0x7f80 };
/** Without infinity: the magnitude below its NaN is the largest number. */
const float8e4m3: Format = { fractionBits: 3, bias: 7, overflow: 0x7e, nan: 0x7f, signBit: 0x80, infinity: Infinity };
const float8e5m2: Format = { fractionBits: 2, bias: 15, overflow: 0x7b, nan: 0x7f, signBit: 0x80, infinity: 0x7c };

/** Converts numbers to float16 bits in `target`, from its start. */
export function toFloat16(values: ArrayLike<number>, target: Uint16Array = new Uint16Array(values.length)): Uint16Array {
  return encodeAll(float16, values, target);
}

/** Converts float16 bits to numbers, which are exact in float32. */
export function fromFloat16(bits: ArrayLike<number>, target: Float32Array = new Float32Array(bits.length)): Float32Array {
  return decodeAll(float16, bits, target);
}

/** Converts numbers to bfloat16 bits in `target`, from its start. */
export function toBfloat16(values: ArrayLike<number>, target: Uint16Array = new Uint16Array(values.length)): Uint16Array {
  return encodeAll(bfloat16, values, target);
}

/** Converts bfloat16 bits to numbers, which are exact in float32. */
export function fromBfloat16(bits: ArrayLike<number>, target: Float32Array = new Float32Array(bits.length)): Float32Array {
  return decodeAll(bfloat16, bits, target);
}

/** Converts numbers to float8 bits (four bits of exponent, three of fraction) in `target`, from its start. */
export function toFloat8e4m3(values: ArrayLike<number>, target: Uint8Array = new Uint8Array(values.length)): Uint8Array {
  return encodeAll(float8e4m3, values, target);
}

/** Converts float8e4m3 bits to numbers. */
export function fromFloat8e4m3(bits: ArrayLike<number>, target: Float32Array = new Float32Array(bits.length)): Float32Array {
  return decodeAll(float8e4m3, bits, target);
}

/** Converts numbers to float8 bits (five bits of exponent, two of fraction) in `target`, from its start. */
export function toFloat8e5m2(values: ArrayLike<number>, target: Uint8Array = new Uint8Array(values.length)): Uint8Array {
  return encodeAll(float8e5m2, values, target);
}

/** Converts float8e5m2 bits to numbers. */
export function fromFloat8e5m2(bits: ArrayLike<number>, target: Float32Array = new Float32Array(bits.length)): Float32Array {
  return decodeAll(float8e5m2, bits, target);
}

const cell = new Float32Array(1);
const cellBits = new Uint32Array(cell.buffer);

function encodeAll<T extends Uint8Array | Uint16Array>(format: Format, values: ArrayLike<number>, target: T): T {
  checkRoom(values, target);
  for (let i = 0; i < values.length; i++) target[i] = encode(format, values[i] ?? 0);
  return target;
}

function decodeAll(format: Format, bits: ArrayLike<number>, target: Float32Array): Float32Array {
  checkRoom(bits, target);
  for (let i = 0; i < bits.length; i++) target[i] = decode(format, bits[i] ?? 0);
  return target;
}

/** Throws if an array is too short, which would otherwise silently take only a part. */
function checkRoom(values: ArrayLike<number>, target: ArrayLike<number>): void {
  if (target.length >= values.length) return;
  throw new InvalidArgumentError(
    'BUFFER_SIZE',
    `${values.length} numbers do not fit into a target of ${target.length} elements; pass one that is long enough, or none`,
  );
}

function encode(format: Format, value: number): number {
  const { fractionBits, bias, overflow } = format;
  const bits = oddFloat32(value);
  const magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return format.nan;
  const sign = bits < 0 ? format.signBit : 0;
  // Bits of the float32 fraction that the format drops; below its normal numbers, one more for each power of two.
  const dropped = 23 - fractionBits;
  const below = 128 - bias - (magnitude >>> 23);
  let rounded: number;
  if (below <= 0 || bias === 127) rounded = roundBits(magnitude - ((127 - bias) << 23), dropped);
  else rounded = dropped + below > 25 ? 0 : roundBits((magnitude & 0x7fffff) | 0x800000, dropped + below);
  return sign | Math.min(rounded, overflow);
}

/** `value / 2^bits`, rounded to nearest even. */
function roundBits(value: number, bits: number): number {
  return (value + (1 << (bits - 1)) - 1 + ((value >>> bits) & 1)) >>> bits;
}

/**
 * The bits of a number as float32, rounded "to odd": inexact results have their last bit set. Rounding such a number again,
 * to a format with at least two bits less, has the same result as rounding the exact number.
 */
function oddFloat32(value: number): number {
  cell[0] = value;
  const nearest = cell[0];
  const bits = defined(cellBits[0]);
  if (nearest === value || value !== value) return bits | 0;
  return (Math.abs(nearest) > Math.abs(value) ? bits - 1 : bits) | 1;
}

function decode(format: Format, bits: number): number {
  const { fractionBits, bias, infinity } = format;
  const magnitude = bits & (format.signBit - 1);
  const sign = bits & format.signBit ? -1 : 1;
  if (magnitude >= infinity) return magnitude === infinity ? sign * Infinity : NaN;
  if (infinity === Infinity && magnitude === format.nan) return NaN;
  const exponent = magnitude >> fractionBits;
  const fraction = magnitude & ((1 << fractionBits) - 1);
  // Not 2 ** x: this is exact and fast, because these exponents are those of normal float32 (or float64) numbers.
  return exponent === 0
    ? sign * fraction * powerOfTwo(1 - bias - fractionBits)
    : sign * (fraction + (1 << fractionBits)) * powerOfTwo(exponent - bias - fractionBits);
}

const powers = Float64Array.from({ length: 512 }, (_, i) => 2 ** (i - 256));

function powerOfTwo(exponent: number): number {
  return defined(powers[exponent + 256]);
}
