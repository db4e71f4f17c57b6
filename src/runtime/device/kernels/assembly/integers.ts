// Vectors of integers for which SIMD has no instruction.

import { is, Max, Min, Prod } from './codes';

/** Combines vectors of 8-bit integers; sums and products are the same with and without sign. */
@inline
export function combineBytes<T extends number, Op>(a: v128, b: v128): v128 {
  if (is<Op, Prod>()) return multiplyBytes(a, b);
  if (is<Op, Min>()) return v128.min<T>(a, b);
  if (is<Op, Max>()) return v128.max<T>(a, b);
  return i8x16.add(a, b);
}

/** Even and odd bytes are multiplied as 16-bit integers, whose low bytes do not depend on the high ones. */
@inline
function multiplyBytes(a: v128, b: v128): v128 {
  const even = i16x8.mul(a, b);
  const odd = i16x8.mul(i16x8.shr_u(a, 8), i16x8.shr_u(b, 8));
  return v128.or(v128.and(even, i16x8.splat(0xff)), i16x8.shl(odd, 8));
}

/** Combines vectors of 64-bit integers. */
@inline
export function combineLongs<T extends number, Op>(a: v128, b: v128): v128 {
  if (is<Op, Prod>()) return i64x2.mul(a, b);
  if (is<Op, Min>()) return v128.bitselect(a, b, isGreater<T>(b, a));
  if (is<Op, Max>()) return v128.bitselect(a, b, isGreater<T>(a, b));
  return i64x2.add(a, b);
}

@inline
export function isGreater<T extends number>(a: v128, b: v128): v128 {
  if (isSigned<T>()) return i64x2.gt_s(a, b);
  const top = i64x2.splat(i64.MIN_VALUE);
  return i64x2.gt_s(v128.xor(a, top), v128.xor(b, top));
}
