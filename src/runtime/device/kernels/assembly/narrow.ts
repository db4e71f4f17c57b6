// Vectors of floating-point numbers of 8 and 16 bits, for which WebAssembly has no arithmetic. The result for each element is
// that of widening to float32, combining and rounding to nearest even. No step depends on the machine: NaN results have one
// pattern (CUDA's: all bits but the sign), minima and maxima keep NaN and order -0 < 0.
//
// Each 32-bit lane holds two or four elements. They are moved to the top of a lane one by one, and their results are moved back:
//
//     lane of two elements      | odd  16 | even 16 |
//     odd at the top            | odd  16 |    …    |
//     even at the top           | even 16 | 0       |
//
// Sums need no true float32 value. Shifted right until the exponent's last bit is at float32's position, an element is a
// float32 equal to its value times 2^(bias - 127), including subnormal numbers. Sums of these are exact in float32, and the
// bits to round off are below one position for normal and subnormal results alike. Only infinities and NaNs are different
// there, so vectors that contain one are treated separately (float16 and float8; bfloat16 is the upper half of float32).

import { Avg, Bfloat16, Float16, Float8e4m3, Float8e5m2, is, Max, Min, Prod, Sum } from './codes';

/** Combines two vectors of elements. */
@inline
export function combineNarrow<T, Op>(a: v128, b: v128): v128 {
  if (is<Op, Min>() || is<Op, Max>()) return extreme<T, Op>(a, b);
  if (is<Op, Prod>() || is<T, Bfloat16>()) return combineAsFloats<T, Op>(a, b);
  return sum<T>(a, b);
}

/** Divides each element of a vector by the same float32 number. */
@inline
export function divideNarrow<T>(a: v128, divisors: v128): v128 {
  return combineAsFloats<T, Avg>(a, divisors);
}

@inline
function isWord<T>(): bool {
  return is<T, Float16>() || is<T, Bfloat16>();
}

// ── the formats ───────────────────────────────────────────────────────────────────────────────────────────────────────

/** Number of bits by which an element at the top of a lane is shifted right to become a scaled float32. */
@inline
function exponentShift<T>(): i32 {
  return is<T, Bfloat16>() ? 0 : is<T, Float8e4m3>() ? 4 : 3;
}

/** Bits of a float32 fraction that the format drops. */
@inline
function droppedBits<T>(): i32 {
  return is<T, Bfloat16>() ? 16 : is<T, Float16>() ? 13 : is<T, Float8e4m3>() ? 20 : 21;
}

@inline
function bias<T>(): i32 {
  return is<T, Bfloat16>() ? 127 : is<T, Float8e4m3>() ? 7 : 15;
}

/** Largest magnitude that is not a NaN. */
@inline
function lastNumber<T>(): i32 {
  return is<T, Bfloat16>() ? 0x7f80 : is<T, Float16>() ? 0x7c00 : is<T, Float8e4m3>() ? 0x7e : 0x7c;
}

/** Result of an overflow: infinity, or the largest number. */
@inline
function overflow<T>(): i32 {
  return is<T, Float8e5m2>() ? 0x7b : lastNumber<T>();
}

/** NaN; also the mask of a magnitude. */
@inline
function nan<T>(): i32 {
  return isWord<T>() ? 0x7fff : 0x7f;
}

// ── vectors of elements ───────────────────────────────────────────────────────────────────────────────────────────────

@inline
function splat<T>(value: i32): v128 {
  return isWord<T>() ? i16x8.splat(value as i16) : i8x16.splat(value as i8);
}

@inline
function magnitudes<T>(a: v128): v128 {
  return v128.and(a, splat<T>(nan<T>()));
}

@inline
function greater<T>(a: v128, b: v128): v128 {
  return isWord<T>() ? i16x8.gt_s(a, b) : i8x16.gt_s(a, b);
}

@inline
function equal<T>(a: v128, b: v128): v128 {
  return isWord<T>() ? i16x8.eq(a, b) : i8x16.eq(a, b);
}

/** Maps elements to integers in the order of the numbers, -0 before 0; applied twice, it returns them. */
@inline
function ordered<T>(a: v128): v128 {
  return v128.xor(a, v128.and(greater<T>(splat<T>(0), a), splat<T>(nan<T>())));
}

/** Replaces every NaN by the one NaN. */
@inline
export function oneNan<T>(a: v128): v128 {
  return v128.bitselect(splat<T>(nan<T>()), a, greater<T>(magnitudes<T>(a), splat<T>(lastNumber<T>())));
}

@inline
function extreme<T, Op>(a: v128, b: v128): v128 {
  const x = ordered<T>(a);
  const y = ordered<T>(b);
  let result: v128;
  if (isWord<T>()) result = ordered<T>(is<Op, Min>() ? i16x8.min_s(x, y) : i16x8.max_s(x, y));
  else result = ordered<T>(is<Op, Min>() ? i8x16.min_s(x, y) : i8x16.max_s(x, y));
  if (is<T, Float8e5m2>()) result = saturate<T>(result);
  const largest = largerMagnitudes<T>(a, b);
  return v128.bitselect(splat<T>(nan<T>()), result, greater<T>(largest, splat<T>(lastNumber<T>())));
}

@inline
function largerMagnitudes<T>(a: v128, b: v128): v128 {
  const x = magnitudes<T>(a);
  const y = magnitudes<T>(b);
  return isWord<T>() ? i16x8.max_s(x, y) : i8x16.max_s(x, y);
}

/** Replaces infinity by the largest number. */
@inline
function saturate<T>(a: v128): v128 {
  const isInfinite = equal<T>(magnitudes<T>(a), splat<T>(lastNumber<T>()));
  const largest = v128.or(v128.andnot(a, splat<T>(nan<T>())), splat<T>(overflow<T>()));
  return v128.bitselect(largest, a, isInfinite);
}

// ── sums of float16 and float8 ────────────────────────────────────────────────────────────────────────────────────────

@inline
function sum<T>(a: v128, b: v128): v128 {
  const result = sumOfFinite<T>(a, b);
  // Infinities and NaNs: adding the difference to the next power of two sets the top bit.
  const first = is<T, Float8e4m3>() ? lastNumber<T>() + 1 : lastNumber<T>();
  const larger = largerMagnitudes<T>(a, b);
  let special: i32;
  if (isWord<T>()) special = i8x16.bitmask(i16x8.add(larger, i16x8.splat((0x8000 - first) as i16))) & 0xaaaa;
  else special = i8x16.bitmask(i8x16.add(larger, i8x16.splat((0x80 - first) as i8)));
  return special != 0 ? sumWithSpecials<T>(a, b, result) : result;
}

@inline
function sumOfFinite<T>(a: v128, b: v128): v128 {
  const odd = sumScaled<T>(a, b);
  if (isWord<T>()) return joinWords(place<T>(roundScaled<T>(f32x4.add(scaledEven(a), scaledEven(b)))), odd);
  return joinBytes(
    sumScaled<T>(i32x4.shl(a, 24), i32x4.shl(b, 24)), sumScaled<T>(i32x4.shl(a, 16), i32x4.shl(b, 16)),
    sumScaled<T>(i32x4.shl(a, 8), i32x4.shl(b, 8)), odd,
  );
}

/** Sums the elements at the top of each lane. */
@inline
function sumScaled<T>(a: v128, b: v128): v128 {
  return place<T>(roundScaled<T>(f32x4.add(scaled<T>(a), scaled<T>(b))));
}

/** The element at the top of each lane as a scaled float32. */
@inline
function scaled<T>(a: v128): v128 {
  const bits = (nan<T>() << droppedBits<T>()) | (1 << 31);
  return v128.and(i32x4.shr_s(a, exponentShift<T>()), i32x4.splat(bits));
}

/**
 * The even float16 of each lane as a scaled float32: after multiplication by 2^13, the sign must not repeat into the exponent.
 */
@inline
function scaledEven(a: v128): v128 {
  return v128.and(i32x4.dot_i16x8_s(a, i32x4.splat(1 << 13)), i32x4.splat(0x8fffe000));
}

/** Adds the amount that makes cutting off the dropped bits round to nearest even. */
@inline
function roundScaled<T>(a: v128): v128 {
  const dropped = droppedBits<T>();
  const isOdd = v128.and(i32x4.shr_u(a, dropped), i32x4.splat(1));
  return i32x4.add(i32x4.add(a, i32x4.splat((1 << (dropped - 1)) - 1)), isOdd);
}

/** Scaled float32 numbers as elements at the top of their lanes; the bits below are undefined. */
@inline
function place<T>(a: v128): v128 {
  const magnitude = v128.and(a, i32x4.splat(0x7fffffff));
  const limited = i32x4.min_s(magnitude, i32x4.splat(overflow<T>() << droppedBits<T>()));
  return v128.or(i32x4.shl(limited, exponentShift<T>()), v128.and(a, i32x4.splat(1 << 31)));
}

/** Packs elements at the tops of lanes side by side. */
@inline
function joinWords(even: v128, odd: v128): v128 {
  return i8x16.shuffle(i32x4.shr_u(even, 16), odd, 0, 1, 18, 19, 4, 5, 22, 23, 8, 9, 26, 27, 12, 13, 30, 31);
}

@inline
function joinBytes(a: v128, b: v128, c: v128, d: v128): v128 {
  const low = v128.or(i32x4.shr_u(a, 24), v128.and(i32x4.shr_u(b, 16), i32x4.splat(0xff00)));
  const high = v128.or(v128.and(i32x4.shr_u(c, 8), i32x4.splat(0xff0000)), v128.and(d, i32x4.splat(0xff000000)));
  return v128.or(low, high);
}

/** Replaces results where `a` or `b` is infinite or NaN. Rare, so it is not inlined. */
function sumWithSpecials<T>(a: v128, b: v128, result: v128): v128 {
  const x = magnitudes<T>(a);
  const y = magnitudes<T>(b);
  const last = splat<T>(lastNumber<T>());
  let isNan = v128.or(greater<T>(x, last), greater<T>(y, last));
  if (!is<T, Float8e4m3>()) {
    const infiniteA = equal<T>(x, last);
    const infiniteB = equal<T>(y, last);
    const opposite = greater<T>(splat<T>(0), v128.xor(a, b));
    isNan = v128.or(isNan, v128.and(v128.and(infiniteA, infiniteB), opposite));
    result = v128.bitselect(a, result, infiniteA);
    result = v128.bitselect(b, result, infiniteB);
    if (is<T, Float8e5m2>()) result = saturate<T>(result);
  }
  return v128.bitselect(splat<T>(nan<T>()), result, isNan);
}

// ── many at a time ────────────────────────────────────────────────────────────────────────────────────────────────────
// Building blocks for long sums of float16, and long sums and products of bfloat16: rare values are looked for in four
// vectors at a time.

/** True if a sum of these may overflow, or must handle an infinity or NaN: some magnitude is 2^15 or more. */
@inline
export function areLarge(a: v128, b: v128, c: v128, d: v128): bool {
  return v128.any_true(i16x8.sub_sat_u(largestDoubled(a, b, c, d), i16x8.splat(0xefff as i16)));
}

/** True if some of these bfloat16 are NaN. */
@inline
export function areNan(a: v128, b: v128, c: v128, d: v128): bool {
  return v128.any_true(i16x8.sub_sat_u(largestDoubled(a, b, c, d), i16x8.splat(0xff00 as i16)));
}

/** Doubling removes the sign. */
@inline
function largestDoubled(a: v128, b: v128, c: v128, d: v128): v128 {
  return i16x8.max_u(i16x8.max_u(i16x8.add(a, a), i16x8.add(b, b)), i16x8.max_u(i16x8.add(c, c), i16x8.add(d, d)));
}

/** float16 sums of vectors that are not large. */
@inline
export function sumSmall(a: v128, b: v128): v128 {
  const even = roundScaled<Float16>(f32x4.add(scaledEven(a), scaledEven(b)));
  const odd = roundScaled<Float16>(f32x4.add(scaled<Float16>(a), scaled<Float16>(b)));
  return joinWords(placeSmall(even), placeSmall(odd));
}

@inline
function placeSmall(a: v128): v128 {
  return v128.or(i32x4.shl(a, exponentShift<Float16>()), v128.and(a, i32x4.splat(1 << 31)));
}

/** Combines bfloat16 without unifying NaNs, which oneNan() does. */
@inline
export function combineWithNan<Op>(a: v128, b: v128): v128 {
  const even = combineFloats<Op>(i32x4.shl(a, 16), i32x4.shl(b, 16));
  const odd = combineFloats<Op>(widen<Bfloat16>(a), widen<Bfloat16>(b));
  return joinWords(roundScaled<Bfloat16>(even), roundScaled<Bfloat16>(odd));
}

@inline
function combineFloats<Op>(a: v128, b: v128): v128 {
  return is<Op, Sum>() ? f32x4.add(a, b) : f32x4.mul(a, b);
}

// ── through true float32 values ───────────────────────────────────────────────────────────────────────────────────────

/** For Op Avg, which divides, `b` is a vector of float32. */
@inline
function combineAsFloats<T, Op>(a: v128, b: v128): v128 {
  const odd = combineTops<T, Op>(a, b);
  if (isWord<T>()) return oneNan<T>(joinWords(combineTops<T, Op>(i32x4.shl(a, 16), up<Op>(b, 16)), odd));
  return oneNan<T>(joinBytes(
    combineTops<T, Op>(i32x4.shl(a, 24), up<Op>(b, 24)), combineTops<T, Op>(i32x4.shl(a, 16), up<Op>(b, 16)),
    combineTops<T, Op>(i32x4.shl(a, 8), up<Op>(b, 8)), odd,
  ));
}

@inline
function up<Op>(b: v128, bits: i32): v128 {
  return is<Op, Avg>() ? b : i32x4.shl(b, bits);
}

@inline
function combineTops<T, Op>(a: v128, b: v128): v128 {
  const x = widen<T>(a);
  if (is<Op, Avg>()) return round<T>(f32x4.div(x, b));
  const y = widen<T>(b);
  return round<T>(combineFloats<Op>(x, y));
}

/** The element at the top of each lane, as a float32 of the same value. */
@inline
function widen<T>(a: v128): v128 {
  if (is<T, Bfloat16>()) return v128.and(a, i32x4.splat(0xffff0000));
  const bits = scaled<T>(a);
  const sign = v128.and(bits, i32x4.splat(1 << 31));
  const magnitude = v128.xor(bits, sign);
  const normal = i32x4.add(magnitude, i32x4.splat((127 - bias<T>()) << 23));
  // A subnormal number gets the exponent of the smallest normal ones, and then their implicit bit is subtracted.
  const smallest = (128 - bias<T>()) << 23;
  const subnormal = f32x4.sub(i32x4.add(magnitude, i32x4.splat(smallest)), i32x4.splat(smallest));
  const number = v128.bitselect(subnormal, normal, i32x4.gt_s(i32x4.splat(1 << 23), magnitude));
  // float8e4m3 has no infinity, and its NaN needs a fraction that is a NaN in float32.
  const first = is<T, Float8e4m3>() ? nan<T>() : lastNumber<T>();
  const isSpecial = i32x4.gt_s(magnitude, i32x4.splat((first << droppedBits<T>()) - 1));
  const special = v128.and(isSpecial, i32x4.splat(is<T, Float8e4m3>() ? 0x7fc00000 : 0x7f800000));
  return v128.or(v128.or(number, special), sign);
}

/** Float32 values as elements at the top of each lane; the bits below are undefined, and NaNs have any pattern. */
@inline
function round<T>(a: v128): v128 {
  // NaNs of operations on widened numbers have no bits below the top 16, so rounding cannot overflow them.
  if (is<T, Bfloat16>()) return roundScaled<T>(a);
  const dropped = droppedBits<T>();
  const sign = v128.and(a, i32x4.splat(1 << 31));
  const magnitude = v128.xor(a, sign);
  const normal = roundScaled<T>(i32x4.sub(magnitude, i32x4.splat((127 - bias<T>()) << 23)));
  // Adding a number whose last place is the format's smallest number rounds a subnormal number to multiples of that.
  const large = i32x4.splat((127 + 24 - bias<T>() - (23 - dropped)) << 23);
  const subnormal = i32x4.shl(i32x4.sub(f32x4.add(magnitude, large), large), dropped);
  const number = v128.bitselect(subnormal, normal, i32x4.gt_s(i32x4.splat((128 - bias<T>()) << 23), magnitude));
  const limited = i32x4.min_s(number, i32x4.splat(overflow<T>() << dropped));
  const isNan = i32x4.gt_s(magnitude, i32x4.splat(0x7f800000));
  const result = v128.or(limited, v128.and(isNan, i32x4.splat(nan<T>() << dropped)));
  return v128.or(i32x4.shl(result, exponentShift<T>()), sign);
}
