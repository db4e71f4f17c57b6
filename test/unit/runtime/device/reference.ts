// What a reduction must give, element by element: integers in exact arithmetic, small floats by looking for the nearest of
// all numbers that the type has. Nothing here is shared with the kernels or with src/runtime/device/formats.ts.

import type { DataType, FurtherOperator, NamedOperator, NumericArray } from '../../../../src/runtime/device/types.js';

/** An element as its array has it: a number, or the bits of a small float. */
export type Element = number | bigint;
type Value = number | bigint;

/** Operators that combine element with element. */
export type ElementOperator = NamedOperator | Exclude<FurtherOperator, 'minloc' | 'maxloc'>;

/** Combines the inputs' elements in order. */
export function reduceElements(type: DataType, operator: ElementOperator, elements: readonly Element[]): Element {
  const [first] = elements;
  if (first === undefined) throw new Error('no elements');
  if (elements.length === 1) return first;
  const arithmetic = arithmeticOf(type);
  const combined = elements.map((element) => arithmetic.value(element)).reduce((a, b) => arithmetic.combine(operator, a, b));
  return arithmetic.element(operator === 'avg' ? arithmetic.divide(combined, elements.length) : combined);
}

/** A value and its place. */
export type Pair = readonly [value: Element, place: Element];

/** The pair with the extreme value, NaN before all numbers, with the lowest place of those. */
export function extremePair(operator: 'minloc' | 'maxloc', pairs: readonly Pair[]): Pair {
  const isBetter = ([a]: Pair, [b]: Pair) =>
    Number.isNaN(a) || Number.isNaN(b) ? Number.isNaN(a) && !Number.isNaN(b) : operator === 'minloc' ? a < b : a > b;
  const isLower = (a: Pair, b: Pair) => !isBetter(a, b) && !isBetter(b, a) && a[1] < b[1];
  return pairs.reduce((a, b) => (isBetter(b, a) || isLower(b, a) ? b : a));
}

/** Multiplies each element by its scalar, then sums. Scalars are elements, too. */
export function scaledSum(type: DataType, elements: readonly Element[], scalars: readonly Element[]): Element {
  const arithmetic = arithmeticOf(type);
  const products = elements.map((element, i) =>
    arithmetic.combine('prod', arithmetic.value(element), arithmetic.value(scalars[i]!)),
  );
  return arithmetic.element(products.reduce((a, b) => arithmetic.combine('sum', a, b)));
}

/** An element divided by a whole number. */
export function divideElement(type: DataType, element: Element, divisor: number): Element {
  const arithmetic = arithmeticOf(type);
  return arithmetic.element(arithmetic.divide(arithmetic.value(element), divisor));
}

interface Arithmetic {
  value(element: Element): Value;
  element(value: Value): Element;
  combine(operator: ElementOperator, a: Value, b: Value): Value;
  divide(value: Value, divisor: number): Value;
}

const known = new Map<DataType, Arithmetic>();

function arithmeticOf(type: DataType): Arithmetic {
  let arithmetic = known.get(type);
  if (arithmetic === undefined) known.set(type, (arithmetic = makeArithmetic(type)));
  return arithmetic;
}

function makeArithmetic(type: DataType): Arithmetic {
  if (!type.isFloat) return integers(type);
  if (type.name === 'float64') return floats((x) => x);
  if (type.name === 'float32') return floats(Math.fround);
  const format = smallFloat(type.name as SmallFloat);
  return {
    ...floats((x) => format.round(Math.fround(x))),
    value: (bits) => format.decode(Number(bits)),
    element: (x) => format.encode(Number(x)),
  };
}

function integers(type: DataType): Arithmetic {
  const bits = type.bytes * 8;
  const isUnsigned = type.name.startsWith('u');
  const wrap = (value: bigint) => (isUnsigned ? BigInt.asUintN(bits, value) : BigInt.asIntN(bits, value));
  const compare = (a: bigint, b: bigint) => (a < b ? a : b);
  return {
    value: (element) => BigInt(element),
    element: (value) => (bits === 64 ? value : Number(value)),
    combine: (operator, x, y) => {
      const [a, b] = [BigInt(x), BigInt(y)];
      if (operator === 'prod') return wrap(a * b);
      if (operator === 'min') return compare(a, b);
      if (operator === 'max') return compare(a, b) === a ? b : a;
      if (operator === 'band') return wrap(a & b);
      if (operator === 'bor') return wrap(a | b);
      if (operator === 'bxor') return wrap(a ^ b);
      if (operator === 'land') return a !== 0n && b !== 0n ? 1n : 0n;
      if (operator === 'lor') return a !== 0n || b !== 0n ? 1n : 0n;
      return wrap(a + b);
    },
    divide: (value, divisor) => BigInt(value) / BigInt(divisor),
  };
}

function floats(round: (value: number) => number): Arithmetic {
  const combine = {
    sum: (a: number, b: number) => a + b,
    avg: (a: number, b: number) => a + b,
    prod: (a: number, b: number) => a * b,
    min: Math.min,
    max: Math.max,
    land: (a: number, b: number) => Number(a !== 0 && b !== 0),
    lor: (a: number, b: number) => Number(a !== 0 || b !== 0),
  };
  return {
    value: (element) => element,
    element: (value) => value,
    combine: (operator, a, b) => round(combine[operator as keyof typeof combine](Number(a), Number(b))),
    divide: (value, divisor) => round(Number(value) / divisor),
  };
}

export type SmallFloat = 'float16' | 'bfloat16' | 'float8e4m3' | 'float8e5m2';

interface SmallFloatFormat {
  decode(bits: number): number;
  /** The nearest number that the type has, or what overflows become. */
  round(value: number): number;
  /** Bits of a number that the type has, or of NaN. */
  encode(value: number): number;
}

const layouts = {
  float16: { bits: 16, exponent: 5, bias: 15, infinite: true, saturates: false },
  bfloat16: { bits: 16, exponent: 8, bias: 127, infinite: true, saturates: false },
  float8e4m3: { bits: 8, exponent: 4, bias: 7, infinite: false, saturates: true },
  float8e5m2: { bits: 8, exponent: 5, bias: 15, infinite: true, saturates: true },
};

const formats = new Map<SmallFloat, SmallFloatFormat>();

export function smallFloat(name: SmallFloat): SmallFloatFormat {
  let format = formats.get(name);
  if (format === undefined) formats.set(name, (format = makeFormat(layouts[name])));
  return format;
}

function makeFormat({ bits, exponent, bias, infinite, saturates }: (typeof layouts)[SmallFloat]): SmallFloatFormat {
  const half = 2 ** (bits - 1);
  const fractions = 2 ** (bits - 1 - exponent);
  const special = infinite ? (2 ** exponent - 1) * fractions : half - 1;
  const magnitude = (m: number) => {
    const e = Math.floor(m / fractions);
    return e === 0 ? (m / fractions) * 2 ** (1 - bias) : (1 + (m % fractions) / fractions) * 2 ** (e - bias);
  };
  /** All magnitudes in order; the place is the bits. */
  const numbers = Float64Array.from({ length: special }, (_, m) => magnitude(m));
  const largest = numbers[special - 1]!;
  /** The number that would come after the largest: from halfway to it on, there is overflow. */
  const beyond = magnitude(special);
  const decode = (element: number) => {
    const m = element % half;
    const value = m < special ? numbers[m]! : infinite && m === special ? Infinity : NaN;
    return element >= half ? -value : value;
  };
  /** The place of the last magnitude that is not above `value`. */
  const placeBelow = (value: number) => {
    let low = 0;
    let high = special - 1;
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      if (numbers[middle]! <= value) low = middle;
      else high = middle - 1;
    }
    return low;
  };
  const roundMagnitude = (value: number) => {
    if (value >= (largest + beyond) / 2 || (saturates && value > largest)) return saturates ? largest : Infinity;
    const place = placeBelow(value);
    const below = numbers[place]!;
    const above = numbers[place + 1] ?? beyond;
    const toBelow = value - below;
    const toAbove = above - value;
    return toBelow < toAbove || (toBelow === toAbove && place % 2 === 0) ? below : above;
  };
  return {
    decode,
    round: (value) =>
      Number.isNaN(value) ? NaN : (Object.is(value, -0) || value < 0 ? -1 : 1) * roundMagnitude(Math.abs(value)),
    encode: (value) => {
      if (Number.isNaN(value)) return half - 1;
      const m = Math.abs(value) === Infinity ? special : placeBelow(Math.abs(value));
      return (Object.is(value, -0) || value < 0 ? half : 0) + m;
    },
  };
}

/** Elements as an array has them, for comparing with `toEqual`. */
export const elementsOf = (array: NumericArray): Element[] => [...(array as Iterable<Element>)];
