// Combines two vectors of any type by any operator. Averages are sums here; the caller divides at the end.

import {
  BAND, Band, Bfloat16, BFLOAT16, BOR, Bor, BXOR, Bxor, Float16, FLOAT16, Float32, FLOAT32, Float64, FLOAT64, Float8e4m3,
  FLOAT8E4M3, Float8e5m2, FLOAT8E5M2, Int32, INT32, Int64, INT64, Int8, INT8, is, LAND, Land, LOR, Lor, Max, MAX, MAXLOC, Maxloc,
  Min, MIN, MINLOC, Minloc, Prod, PROD, Sum, Uint32, UINT32, Uint64, UINT64, Uint8, UINT8,
} from './codes';
import { combineFurther, isFurther } from './further';
import { combineBytes, combineLongs } from './integers';
import { combineNarrow } from './narrow';

@inline
export function combine<T, Op>(a: v128, b: v128): v128 {
  if (isFurther<Op>()) return combineFurther<T, Op>(a, b);
  if (is<T, Float32>()) return combineLanes<f32, Op>(a, b);
  if (is<T, Float64>()) return combineLanes<f64, Op>(a, b);
  if (is<T, Int32>()) return combineLanes<i32, Op>(a, b);
  if (is<T, Uint32>()) return combineLanes<u32, Op>(a, b);
  if (is<T, Int8>()) return combineBytes<i8, Op>(a, b);
  if (is<T, Uint8>()) return combineBytes<u8, Op>(a, b);
  if (is<T, Int64>()) return combineLongs<i64, Op>(a, b);
  if (is<T, Uint64>()) return combineLongs<u64, Op>(a, b);
  return combineNarrow<T, Op>(a, b);
}

@inline
function combineLanes<T extends number, Op>(a: v128, b: v128): v128 {
  if (is<Op, Prod>()) return v128.mul<T>(a, b);
  if (is<Op, Min>()) return v128.min<T>(a, b);
  if (is<Op, Max>()) return v128.max<T>(a, b);
  return v128.add<T>(a, b);
}

/** The same by numbers of type and operator, for the few elements at the end of an array. */
export function combineAny(type: i32, op: i32, a: v128, b: v128): v128 {
  switch (type) {
    case FLOAT32: return combineOf<Float32>(op, a, b);
    case FLOAT64: return combineOf<Float64>(op, a, b);
    case INT32: return combineOf<Int32>(op, a, b);
    case UINT32: return combineOf<Uint32>(op, a, b);
    case INT8: return combineOf<Int8>(op, a, b);
    case UINT8: return combineOf<Uint8>(op, a, b);
    case INT64: return combineOf<Int64>(op, a, b);
    case UINT64: return combineOf<Uint64>(op, a, b);
    case FLOAT16: return combineOf<Float16>(op, a, b);
    case BFLOAT16: return combineOf<Bfloat16>(op, a, b);
    case FLOAT8E4M3: return combineOf<Float8e4m3>(op, a, b);
    case FLOAT8E5M2: return combineOf<Float8e5m2>(op, a, b);
    default: return unreachable();
  }
}

@inline
function combineOf<T>(op: i32, a: v128, b: v128): v128 {
  if (op == PROD) return combine<T, Prod>(a, b);
  if (op == MIN) return combine<T, Min>(a, b);
  if (op == MAX) return combine<T, Max>(a, b);
  if (op == BAND) return combine<T, Band>(a, b);
  if (op == BOR) return combine<T, Bor>(a, b);
  if (op == BXOR) return combine<T, Bxor>(a, b);
  if (op == LAND) return combine<T, Land>(a, b);
  if (op == LOR) return combine<T, Lor>(a, b);
  if (op == MINLOC) return combine<T, Minloc>(a, b);
  if (op == MAXLOC) return combine<T, Maxloc>(a, b);
  return combine<T, Sum>(a, b);
}
