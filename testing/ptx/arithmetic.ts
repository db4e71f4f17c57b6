import {
  fromBfloat16,
  fromFloat16,
  fromFloat8e4m3,
  fromFloat8e5m2,
  toBfloat16,
  toFloat16,
  toFloat8e4m3,
  toFloat8e5m2,
} from '../../src/runtime/device/formats.js';

/** Type with which an instruction reads or writes a register: an unsigned or signed number, a float, a bigint, a truth value. */
export type View = 'pred' | 'b16' | 'u32' | 's32' | 'f32' | 'u64' | 's64' | 'f64';
export type Value = number | bigint;

/** An instruction that only computes: views of its destination and sources, and the result for values so read. */
export interface Pure {
  readonly views: readonly View[];
  readonly run: (...values: never[]) => Value;
}

const pure = (views: string, run: Pure['run']): Pure => ({ views: views.split(' ') as View[], run });

/** Decoders and encoders of small floats for one element. */
const one = new Float32Array(1);
const bits16 = new Uint16Array(1);
const bits8 = new Uint8Array(1);
const value = (): number => one[0] ?? NaN;
export const halfValue = (bits: number): number => (fromFloat16([bits], one), value());
export const brainValue = (bits: number): number => (fromBfloat16([bits], one), value());
export const halfBits = (number: number): number => toFloat16([number], bits16)[0] ?? 0;
export const brainBits = (number: number): number => toBfloat16([number], bits16)[0] ?? 0;
const e4m3Value = (bits: number): number => (fromFloat8e4m3([bits], one), value());
const e5m2Value = (bits: number): number => (fromFloat8e5m2([bits], one), value());
const e4m3Bits = (number: number): number => toFloat8e4m3([number], bits8)[0] ?? 0;
const e5m2Bits = (number: number): number => toFloat8e5m2([number], bits8)[0] ?? 0;

const low = (word: number): number => word & 0xffff;
const high = (word: number): number => word >>> 16;
const joined = (lower: number, upper: number): number => ((upper << 16) | lower) >>> 0;

/** Applies a function of numbers to both halves of words, and rounds once: what these instructions do. */
const packed =
  (decode: (bits: number) => number, encode: (value: number) => number, run: (...values: number[]) => number) =>
  (...operands: number[]): number =>
    joined(encode(run(...operands.map((x) => decode(low(x))))), encode(run(...operands.map((x) => decode(high(x))))));

/** PTX's minimum ignores a NaN; JavaScript's does not. Both order -0 before 0. */
const ignoringNan =
  (extreme: (a: number, b: number) => number) =>
  (a: number, b: number): number =>
    Number.isNaN(a) ? b : Number.isNaN(b) ? a : extreme(a, b);

const isNan = (a: number, b: number): number => Number(Number.isNaN(a) || Number.isNaN(b));
const shiftLeft = (a: number, n: number): number => (n > 31 ? 0 : (a << n) >>> 0);
const field = (word: number, at: number, length: number): number => (word >>> at) & ((1 << length) - 1);

/** Numbers of 32 bits are numbers, those of 64 bits bigints; both of either sign. */
const wordOperations = {
  add: (a: number, b: number) => a + b,
  sub: (a: number, b: number) => a - b,
  'mul.lo': Math.imul,
  'mul.hi': (a: number, b: number) => Number((BigInt(a) * BigInt(b)) >> 32n),
  'mad.lo': (a: number, b: number, c: number) => Math.imul(a, b) + c,
  div: (a: number, b: number) => Math.trunc(a / nonZero(b)),
  rem: (a: number, b: number) => a % nonZero(b),
  min: Math.min,
  max: Math.max,
};
const doubleOperations = {
  add: (a: bigint, b: bigint) => a + b,
  sub: (a: bigint, b: bigint) => a - b,
  'mul.lo': (a: bigint, b: bigint) => a * b,
  'mul.hi': (a: bigint, b: bigint) => (a * b) >> 64n,
  'mad.lo': (a: bigint, b: bigint, c: bigint) => a * b + c,
  div: (a: bigint, b: bigint) => a / nonZero(b),
  rem: (a: bigint, b: bigint) => a % nonZero(b),
  min: (a: bigint, b: bigint) => (a < b ? a : b),
  max: (a: bigint, b: bigint) => (a > b ? a : b),
};
const comparisons = {
  eq: (a: Value, b: Value) => Number(a === b),
  // Of floats, a NaN is not unequal either.
  ne: (a: Value, b: Value) => Number(a < b || a > b),
  lt: (a: Value, b: Value) => Number(a < b),
  le: (a: Value, b: Value) => Number(a <= b),
  gt: (a: Value, b: Value) => Number(a > b),
  ge: (a: Value, b: Value) => Number(a >= b),
};

/** Instructions of each type of number. */
function* ofTypes(): Generator<[string, Pure]> {
  for (const type of ['u32', 's32', 'u64', 's64', 'f32', 'f64'] as const) {
    for (const [name, run] of Object.entries(comparisons)) yield [`setp.${name}.${type}`, pure(`pred ${type} ${type}`, run)];
    const bits = `u${type.slice(1)}`;
    yield [`selp.${type}`, pure(`${bits} ${bits} ${bits} pred`, (a: Value, b: Value, c: number) => (c ? a : b))];
    if (!type.startsWith('u')) yield [`neg.${type}`, pure(`${type} ${type}`, (a: Value) => -a)];
    if (type.startsWith('f')) {
      // Without a rounding, a GPU may join a product and a sum; these do not.
      yield [`add.${type}`, pure(`${type} ${type} ${type}`, (a: number, b: number) => a + b)];
      yield [`sub.${type}`, pure(`${type} ${type} ${type}`, (a: number, b: number) => a - b)];
      yield [`mul.${type}`, pure(`${type} ${type} ${type}`, (a: number, b: number) => a * b)];
      for (const [name, run] of Object.entries(comparisons))
        yield [`setp.${name}u.${type}`, pure(`pred ${type} ${type}`, (a: number, b: number) => isNan(a, b) | run(a, b))];
      yield [`mov.${type}`, pure(`${bits} ${bits}`, (a: Value) => a)];
      continue;
    }
    const isWord = type.endsWith('32');
    const operations: Readonly<Record<string, Pure['run']>> = isWord ? wordOperations : doubleOperations;
    for (const [name, run] of Object.entries(operations))
      yield [`${name}.${type}`, pure(`${type} ${`${type} `.repeat(run.length).trim()}`, run)];
    const most = isWord ? 31 : 63;
    const shift = isWord
      ? (a: number, n: number) => (type === 'u32' ? a >>> n : a >> n)
      : (a: bigint, n: number) => a >> BigInt(n);
    const beyond = (a: Value): Value => (type.startsWith('s') && a < 0 ? (isWord ? -1 : -1n) : isWord ? 0 : 0n);
    yield [`shr.${type}`, pure(`${type} ${type} u32`, (a: Value, n: number) => (n > most ? beyond(a) : shift(a as never, n)))];
    if (!isWord) continue;
    const wide = type.replace('32', '64');
    yield [`mul.wide.${type}`, pure(`${wide} ${type} ${type}`, (a: number, b: number) => BigInt(a) * BigInt(b))];
  }
}

/** `a × b + c` in float32, rounded once: float64 has the product, and the sum is rounded to odd before it is rounded. */
function fma(a: number, b: number, c: number): number {
  const product = a * b;
  const sum = product + c;
  const part = sum - product;
  const error = product - (sum - part) + (c - part);
  if (error === 0 || !Number.isFinite(sum)) return sum;
  wide64[0] = sum;
  const bits = wideBits[0] ?? 0n;
  if ((bits & 1n) === 0n) wideBits[0] = error > 0 === sum > 0 ? bits | 1n : (bits - 1n) | 1n;
  return wide64[0];
}

const wide64 = new Float64Array(1);
const wideBits = new BigUint64Array(wide64.buffer);

/** A number divided by 0 is undefined in PTX. */
function nonZero<T extends Value>(divisor: T): T {
  if (divisor === 0 || divisor === 0n) throw new Error('an integer is divided by 0');
  return divisor;
}

/** Instructions that compute, by their whole mnemonic. A result of 64 bits is taken modulo 2^64, one of 32 bits modulo 2^32. */
export const pureInstructions: ReadonlyMap<string, Pure> = new Map([
  ...ofTypes(),
  ...Object.entries({
    'shr.u16': pure('b16 b16 u32', (a: number, n: number) => (n > 15 ? 0 : a >>> n)),
    'mov.pred': pure('pred pred', (a: number) => a),
    'not.pred': pure('pred pred', (a: number) => 1 - a),
    'and.pred': pure('pred pred pred', (a: number, b: number) => a & b),
    'or.pred': pure('pred pred pred', (a: number, b: number) => a | b),
    'selp.b32': pure('u32 u32 u32 pred', (a: number, b: number, c: number) => (c ? a : b)),
    'selp.b64': pure('u64 u64 u64 pred', (a: bigint, b: bigint, c: number) => (c ? a : b)),

    'and.b32': pure('u32 u32 u32', (a: number, b: number) => a & b),
    'or.b32': pure('u32 u32 u32', (a: number, b: number) => a | b),
    'xor.b32': pure('u32 u32 u32', (a: number, b: number) => a ^ b),
    'shl.b32': pure('u32 u32 u32', shiftLeft),
    'bfe.u32': pure('u32 u32 u32 u32', field),
    'bfe.s32': pure('s32 u32 u32 u32', (a: number, at: number, n: number) => (field(a, at, n) << (32 - n)) >> (32 - n)),
    'bfi.b32': pure('u32 u32 u32 u32 u32', (a: number, b: number, at: number, n: number) => {
      const mask = ((1 << n) - 1) << at;
      return (b & ~mask) | ((a << at) & mask);
    }),

    'and.b64': pure('u64 u64 u64', (a: bigint, b: bigint) => a & b),
    'or.b64': pure('u64 u64 u64', (a: bigint, b: bigint) => a | b),
    'xor.b64': pure('u64 u64 u64', (a: bigint, b: bigint) => a ^ b),
    'shl.b64': pure('u64 u64 u32', (a: bigint, n: number) => (n > 63 ? 0n : a << BigInt(n))),

    'setp.nan.f32': pure('pred f32 f32', isNan),
    'setp.nan.f64': pure('pred f64 f64', isNan),

    // A result in float64 of two float32, rounded to float32, is the nearest: float64 has more than twice the digits.
    'fma.rn.f32': pure('f32 f32 f32 f32', fma),
    'add.rn.f32': pure('f32 f32 f32', (a: number, b: number) => a + b),
    'mul.rn.f32': pure('f32 f32 f32', (a: number, b: number) => a * b),
    'div.rn.f32': pure('f32 f32 f32', (a: number, b: number) => a / b),
    'min.f32': pure('f32 f32 f32', ignoringNan(Math.min)),
    'max.f32': pure('f32 f32 f32', ignoringNan(Math.max)),
    'min.NaN.f32': pure('f32 f32 f32', Math.min),
    'max.NaN.f32': pure('f32 f32 f32', Math.max),
    'add.rn.f64': pure('f64 f64 f64', (a: number, b: number) => a + b),
    'mul.rn.f64': pure('f64 f64 f64', (a: number, b: number) => a * b),
    'div.rn.f64': pure('f64 f64 f64', (a: number, b: number) => a / b),
    'min.f64': pure('f64 f64 f64', ignoringNan(Math.min)),
    'max.f64': pure('f64 f64 f64', ignoringNan(Math.max)),
    'add.rn.f16x2': pure(
      'u32 u32 u32',
      packed(halfValue, halfBits, (a = 0, b = 0) => a + b),
    ),
    'mul.rn.f16x2': pure(
      'u32 u32 u32',
      packed(halfValue, halfBits, (a = 0, b = 0) => a * b),
    ),
    'min.NaN.f16x2': pure('u32 u32 u32', packed(halfValue, halfBits, Math.min)),
    'max.NaN.f16x2': pure('u32 u32 u32', packed(halfValue, halfBits, Math.max)),
    'fma.rn.bf16x2': pure('u32 u32 u32 u32', packed(brainValue, brainBits, exactFma)),
    'min.NaN.bf16x2': pure('u32 u32 u32', packed(brainValue, brainBits, Math.min)),
    'max.NaN.bf16x2': pure('u32 u32 u32', packed(brainValue, brainBits, Math.max)),

    'cvt.u64.u32': pure('u64 u32', (a: number) => BigInt(a)),
    'cvt.u32.u64': pure('u32 u64', (a: bigint) => Number(a & 0xffffffffn)),
    'cvt.rn.f32.u32': pure('f32 u32', (a: number) => a),
    'cvt.rn.f32.s32': pure('f32 s32', (a: number) => a),
    'cvt.rzi.s64.f32': pure('s64 f32', toInteger),
    'cvt.rzi.s64.f64': pure('s64 f64', toInteger),
    'cvt.rn.f64.u32': pure('f64 u32', (a: number) => a),
    'cvt.f32.f16': pure('f32 b16', halfValue),
    'cvt.rn.f16.f32': pure('b16 f32', halfBits),
    'cvt.rn.f16x2.f32': pure('u32 f32 f32', (a: number, b: number) => joined(halfBits(b), halfBits(a))),
    'cvt.rn.bf16x2.f32': pure('u32 f32 f32', (a: number, b: number) => joined(brainBits(b), brainBits(a))),
    'cvt.rn.f16x2.e4m3x2': pure('u32 b16', (a: number) => joined(halfBits(e4m3Value(a & 0xff)), halfBits(e4m3Value(a >>> 8)))),
    'cvt.rn.f16x2.e5m2x2': pure('u32 b16', (a: number) => joined(halfBits(e5m2Value(a & 0xff)), halfBits(e5m2Value(a >>> 8)))),
    'cvt.rn.satfinite.e4m3x2.f32': pure('b16 f32 f32', (a: number, b: number) => (e4m3Bits(a) << 8) | e4m3Bits(b)),
    'cvt.rn.satfinite.e5m2x2.f32': pure('b16 f32 f32', (a: number, b: number) => (e5m2Bits(a) << 8) | e5m2Bits(b)),
  }),
]);

/** `a × b + c` of bfloat16 before it is rounded, for factors whose product float64 holds: a sum of far numbers is rounded. */
function exactFma(a = 0, b = 0, c = 0): number {
  if (b !== 1) throw new Error('fma is known for a factor of 1 alone');
  return a + c;
}

/** Toward zero, within 64 bits. NaN is 0 on a GPU of some types, and is not defined here. */
function toInteger(a: number): bigint {
  if (Number.isNaN(a)) throw new Error('a conversion of NaN to an integer');
  const [least, most] = [-(2n ** 63n), 2n ** 63n - 1n];
  if (a >= 2 ** 63) return most;
  return a < -(2 ** 63) ? least : BigInt(Math.trunc(a));
}
