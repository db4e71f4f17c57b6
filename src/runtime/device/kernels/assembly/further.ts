// Operators that NCCL does not have: bits, truth values, and the place of an extreme. For the last, elements are pairs: a
// value in every even element, its place in the odd one behind it. Vectors hold whole pairs.

import {
  Band, Bfloat16, Bor, Bxor, Float16, Float32, Float64, Float8e4m3, Int32, Int64, Int8, is, Land, Lor, Maxloc, Minloc, Uint32,
  Uint64, Uint8,
} from './codes';
import { isGreater } from './integers';

/** True for an operator of this file. */
@inline
export function isFurther<Op>(): bool {
  return is<Op, Band>() || is<Op, Bor>() || is<Op, Bxor>() || is<Op, Land>() || is<Op, Lor>() || isLocated<Op>();
}

/** True for an operator of pairs, which have elements of 4 or 8 bytes. */
@inline
export function isLocated<Op>(): bool {
  return is<Op, Minloc>() || is<Op, Maxloc>();
}

@inline
export function combineFurther<T, Op>(a: v128, b: v128): v128 {
  if (is<Op, Band>()) return v128.and(a, b);
  if (is<Op, Bor>()) return v128.or(a, b);
  if (is<Op, Bxor>()) return v128.xor(a, b);
  if (is<Op, Land>()) return v128.and(v128.and(isTrue<T>(a), isTrue<T>(b)), one<T>());
  if (is<Op, Lor>()) return v128.and(v128.or(isTrue<T>(a), isTrue<T>(b)), one<T>());
  return extreme<T, Op>(a, b);
}

// ── truth values ──────────────────────────────────────────────────────────────────────────────────────────────────────

/** All bits of the elements that are not 0. NaN is true, -0 is not. */
@inline
function isTrue<T>(a: v128): v128 {
  if (is<T, Float32>()) return f32x4.ne(a, f32x4.splat(0));
  if (is<T, Float64>()) return f64x2.ne(a, f64x2.splat(0));
  if (is<T, Int32>() || is<T, Uint32>()) return i32x4.ne(a, i32x4.splat(0));
  if (is<T, Int64>() || is<T, Uint64>()) return i64x2.ne(a, i64x2.splat(0));
  if (is<T, Float16>() || is<T, Bfloat16>()) return i16x8.ne(v128.and(a, i16x8.splat(0x7fff)), i16x8.splat(0));
  if (is<T, Int8>() || is<T, Uint8>()) return i8x16.ne(a, i8x16.splat(0));
  return i8x16.ne(v128.and(a, i8x16.splat(0x7f)), i8x16.splat(0));
}

@inline
function one<T>(): v128 {
  if (is<T, Float32>()) return f32x4.splat(1);
  if (is<T, Float64>()) return f64x2.splat(1);
  if (is<T, Int32>() || is<T, Uint32>()) return i32x4.splat(1);
  if (is<T, Int64>() || is<T, Uint64>()) return i64x2.splat(1);
  if (is<T, Float16>()) return i16x8.splat(0x3c00);
  if (is<T, Bfloat16>()) return i16x8.splat(0x3f80);
  if (is<T, Int8>() || is<T, Uint8>()) return i8x16.splat(1);
  return i8x16.splat(is<T, Float8e4m3>() ? 0x38 : 0x3c);
}

// ── the place of an extreme ───────────────────────────────────────────────────────────────────────────────────────────

/** The pairs with the better value: of two as good the one with the lower place. NaN is better than any number. */
@inline
function extreme<T, Op>(a: v128, b: v128): v128 {
  const less = greater<T>(a, b);
  let better = is<Op, Minloc>() ? less : greater<T>(b, a);
  let equal = isEqual<T>(a, b);
  if (is<T, Float32>() || is<T, Float64>()) {
    const aIsNaN = v128.not(isEqual<T>(a, a));
    const bIsNaN = v128.not(isEqual<T>(b, b));
    better = v128.or(better, v128.andnot(bIsNaN, aIsNaN));
    equal = v128.or(equal, v128.and(aIsNaN, bIsNaN));
  }
  const choosesB = v128.or(ofValues<T>(better), v128.and(ofValues<T>(equal), ofPlaces<T>(less)));
  return v128.bitselect(b, a, choosesB);
}

@inline
function greater<T>(a: v128, b: v128): v128 {
  if (is<T, Float32>()) return f32x4.gt(a, b);
  if (is<T, Float64>()) return f64x2.gt(a, b);
  if (is<T, Int32>()) return i32x4.gt_s(a, b);
  if (is<T, Uint32>()) return i32x4.gt_u(a, b);
  if (is<T, Int64>()) return isGreater<i64>(a, b);
  return isGreater<u64>(a, b);
}

@inline
function isEqual<T>(a: v128, b: v128): v128 {
  if (is<T, Float32>()) return f32x4.eq(a, b);
  if (is<T, Float64>()) return f64x2.eq(a, b);
  if (is<T, Int32>() || is<T, Uint32>()) return i32x4.eq(a, b);
  return i64x2.eq(a, b);
}

@inline
function isShort<T>(): bool {
  return is<T, Float32>() || is<T, Int32>() || is<T, Uint32>();
}

/** Widens a comparison of the values to both elements of their pairs. */
@inline
function ofValues<T>(mask: v128): v128 {
  return isShort<T>() ? v128.shuffle<i32>(mask, mask, 0, 0, 2, 2) : v128.shuffle<i64>(mask, mask, 0, 0);
}

/** Widens a comparison of the places to both elements of their pairs. */
@inline
function ofPlaces<T>(mask: v128): v128 {
  return isShort<T>() ? v128.shuffle<i32>(mask, mask, 1, 1, 3, 3) : v128.shuffle<i64>(mask, mask, 1, 1);
}
