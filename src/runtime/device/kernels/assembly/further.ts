// Operators that NCCL does not have: bits, truth values, and the place of an extreme. For the last, elements are pairs: a
// value in every even element, its place in the odd one behind it. Vectors hold whole pairs.

import {
  Bfloat16, BFLOAT16, Float16, FLOAT16, Float32, FLOAT32, Float64, FLOAT64, Float8e4m3, FLOAT8E4M3, Float8e5m2, FLOAT8E5M2,
  Int32, INT32, Int64, INT64, Int8, INT8, is, UINT32, Uint32, UINT64, Uint64, UINT8, BAND, BOR, BXOR, LAND, LOR, MAXLOC, MINLOC,
} from './codes';
import { isGreater } from './integers';
import { loadPiece, pieceBytes, storePiece } from './pieces';

class Band {}
class Bor {}
class Bxor {}
class Land {}
class Lor {}
class Minloc {}
class Maxloc {}

/** reduceCopy for these operators. */
export function reduceFurther(type: i32, op: i32, s: usize, n: i32, d: usize, m: i32, from: usize, bytes: usize): void {
  switch (op) {
    case BAND: loop<Int32, Band>(s, n, d, m, from, bytes); break;
    case BOR: loop<Int32, Bor>(s, n, d, m, from, bytes); break;
    case BXOR: loop<Int32, Bxor>(s, n, d, m, from, bytes); break;
    case LAND: logical<Land>(type, s, n, d, m, from, bytes); break;
    case LOR: logical<Lor>(type, s, n, d, m, from, bytes); break;
    case MINLOC: located<Minloc>(type, s, n, d, m, from, bytes); break;
    case MAXLOC: located<Maxloc>(type, s, n, d, m, from, bytes); break;
    default: unreachable();
  }
}

function logical<Op>(type: i32, s: usize, n: i32, d: usize, m: i32, from: usize, bytes: usize): void {
  switch (type) {
    case FLOAT32: loop<Float32, Op>(s, n, d, m, from, bytes); break;
    case FLOAT64: loop<Float64, Op>(s, n, d, m, from, bytes); break;
    case INT8: case UINT8: loop<Int8, Op>(s, n, d, m, from, bytes); break;
    case INT32: case UINT32: loop<Int32, Op>(s, n, d, m, from, bytes); break;
    case INT64: case UINT64: loop<Int64, Op>(s, n, d, m, from, bytes); break;
    case FLOAT16: loop<Float16, Op>(s, n, d, m, from, bytes); break;
    case BFLOAT16: loop<Bfloat16, Op>(s, n, d, m, from, bytes); break;
    case FLOAT8E4M3: loop<Float8e4m3, Op>(s, n, d, m, from, bytes); break;
    case FLOAT8E5M2: loop<Float8e5m2, Op>(s, n, d, m, from, bytes); break;
    default: unreachable();
  }
}

function located<Op>(type: i32, s: usize, n: i32, d: usize, m: i32, from: usize, bytes: usize): void {
  switch (type) {
    case FLOAT32: loop<Float32, Op>(s, n, d, m, from, bytes); break;
    case FLOAT64: loop<Float64, Op>(s, n, d, m, from, bytes); break;
    case INT32: loop<Int32, Op>(s, n, d, m, from, bytes); break;
    case UINT32: loop<Uint32, Op>(s, n, d, m, from, bytes); break;
    case INT64: loop<Int64, Op>(s, n, d, m, from, bytes); break;
    case UINT64: loop<Uint64, Op>(s, n, d, m, from, bytes); break;
    default: unreachable();
  }
}

/** Combines two vectors by an operator of single elements. */
export function combineFurther(type: i32, op: i32, a: v128, b: v128): v128 {
  switch (op) {
    case BAND: return v128.and(a, b);
    case BOR: return v128.or(a, b);
    case BXOR: return v128.xor(a, b);
    case LAND: return combineLogical<Land>(type, a, b);
    case LOR: return combineLogical<Lor>(type, a, b);
    default: return unreachable();
  }
}

@inline
function combineLogical<Op>(type: i32, a: v128, b: v128): v128 {
  switch (type) {
    case FLOAT32: return combine<Float32, Op>(a, b);
    case FLOAT64: return combine<Float64, Op>(a, b);
    case INT8: case UINT8: return combine<Int8, Op>(a, b);
    case INT32: case UINT32: return combine<Int32, Op>(a, b);
    case INT64: case UINT64: return combine<Int64, Op>(a, b);
    case FLOAT16: return combine<Float16, Op>(a, b);
    case BFLOAT16: return combine<Bfloat16, Op>(a, b);
    case FLOAT8E4M3: return combine<Float8e4m3, Op>(a, b);
    default: return combine<Float8e5m2, Op>(a, b);
  }
}

function loop<T, Op>(
  sources: usize, nSources: i32, destinations: usize, nDestinations: i32, from: usize, bytes: usize,
): void {
  const end = from + bytes;
  let i = from;
  for (; i + 32 <= end; i += 32) {
    let p = (load<u32>(sources) as usize) + i;
    let v0 = v128.load(p), v1 = v128.load(p, 16);
    for (let s = 1; s < nSources; s++) {
      p = (load<u32>(sources + (s << 2)) as usize) + i;
      v0 = combine<T, Op>(v0, v128.load(p));
      v1 = combine<T, Op>(v1, v128.load(p, 16));
    }
    for (let d = 0; d < nDestinations; d++) {
      p = (load<u32>(destinations + (d << 2)) as usize) + i;
      v128.store(p, v0);
      v128.store(p, v1, 16);
    }
  }
  while (i < end) {
    const length = pieceBytes(end - i);
    let a = loadPiece((load<u32>(sources) as usize) + i, length);
    for (let s = 1; s < nSources; s++) a = combine<T, Op>(a, loadPiece((load<u32>(sources + (s << 2)) as usize) + i, length));
    for (let d = 0; d < nDestinations; d++) storePiece((load<u32>(destinations + (d << 2)) as usize) + i, length, a);
    i += length;
  }
}

@inline
function combine<T, Op>(a: v128, b: v128): v128 {
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
  if (is<T, Int32>()) return i32x4.ne(a, i32x4.splat(0));
  if (is<T, Int64>()) return i64x2.ne(a, i64x2.splat(0));
  if (is<T, Float16>() || is<T, Bfloat16>()) return i16x8.ne(v128.and(a, i16x8.splat(0x7fff)), i16x8.splat(0));
  if (is<T, Int8>()) return i8x16.ne(a, i8x16.splat(0));
  return i8x16.ne(v128.and(a, i8x16.splat(0x7f)), i8x16.splat(0));
}

@inline
function one<T>(): v128 {
  if (is<T, Float32>()) return f32x4.splat(1);
  if (is<T, Float64>()) return f64x2.splat(1);
  if (is<T, Int32>()) return i32x4.splat(1);
  if (is<T, Int64>()) return i64x2.splat(1);
  if (is<T, Float16>()) return i16x8.splat(0x3c00);
  if (is<T, Bfloat16>()) return i16x8.splat(0x3f80);
  if (is<T, Int8>()) return i8x16.splat(1);
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
