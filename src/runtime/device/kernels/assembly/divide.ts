// Averages: a sum is divided by the number of its terms once, at the end.

import {
  Bfloat16, BFLOAT16, Float16, FLOAT16, FLOAT32, FLOAT64, Float8e4m3, FLOAT8E4M3, Float8e5m2, INT32, INT64, INT8, UINT32, UINT64,
  UINT8,
} from './codes';
import { divideNarrow } from './narrow';
import { loadPiece, pieceBytes, storePiece } from './pieces';

/** Divides each element in place. Integers truncate toward zero; floats of 8 and 16 bits are divided as float32 and rounded. */
export function divide(type: i32, address: usize, bytes: usize, divisor: i32): void {
  const end = address + bytes;
  if (divisor == 1) return;
  switch (type) {
    case FLOAT32: divideFloats<f32>(address, end, divisor as f32); break;
    case FLOAT64: divideFloats<f64>(address, end, divisor as f64); break;
    case INT8: divideIntegers<i8, i32>(address, end, divisor); break;
    case UINT8: divideIntegers<u8, u32>(address, end, divisor); break;
    case INT32: divideIntegers<i32, i32>(address, end, divisor); break;
    case UINT32: divideIntegers<u32, u32>(address, end, divisor); break;
    case INT64: divideIntegers<i64, i64>(address, end, divisor as i64); break;
    case UINT64: divideIntegers<u64, u64>(address, end, divisor as u64); break;
    case FLOAT16: divideEach<Float16>(address, end, divisor); break;
    case BFLOAT16: divideEach<Bfloat16>(address, end, divisor); break;
    case FLOAT8E4M3: divideEach<Float8e4m3>(address, end, divisor); break;
    default: divideEach<Float8e5m2>(address, end, divisor);
  }
}

@inline
function divideFloats<T extends number>(from: usize, end: usize, divisor: T): void {
  const divisors = v128.splat<T>(divisor);
  let p = from;
  for (; p + 16 <= end; p += 16) v128.store(p, v128.div<T>(v128.load(p), divisors));
  for (; p < end; p += sizeof<T>()) store<T>(p, (load<T>(p) / divisor) as T);
}

/** Divides in `Wide`, to which elements are widened. */
@inline
function divideIntegers<T extends number, Wide extends number>(from: usize, end: usize, divisor: Wide): void {
  for (let p = from; p < end; p += sizeof<T>()) store<T>(p, ((load<T>(p) as Wide) / divisor) as T);
}

@inline
function divideEach<T>(from: usize, end: usize, divisor: i32): void {
  const divisors = f32x4.splat(divisor as f32);
  let p = from;
  for (; p + 16 <= end; p += 16) v128.store(p, divideNarrow<T>(v128.load(p), divisors));
  while (p < end) {
    const bytes = pieceBytes(end - p);
    storePiece(p, bytes, divideNarrow<T>(loadPiece(p, bytes), divisors));
    p += bytes;
  }
}
