// Sums of sources, each multiplied by its own scalar: premulSum. Products and sums are rounded to the type.
//
// A scalar is 8 bytes of memory: one element, repeated as often as it fits (written by src/runtime/device/scalar.ts).

import {
  Bfloat16, BFLOAT16, codeOf, Float16, FLOAT16, Float32, FLOAT32, Float64, FLOAT64, Float8e4m3, FLOAT8E4M3, Float8e5m2, FLOAT8E5M2,
  Int32, INT32, Int64, INT64, Int8, INT8, Prod, PROD, Sum, SUM, UINT32, UINT64, UINT8,
} from './codes';
import { combine, combineAny } from './combine';
import { loadPiece, pieceBytes, storePiece } from './pieces';

/**
 * reduceCopy with a scalar for each source, in the table `scalars`. With one source it only multiplies. Sources that ranks
 * have already scaled get the scalar 1.
 */
export function reduceScaled(
  type: i32, scalars: usize, sources: usize, nSources: i32, destinations: usize, nDestinations: i32, from: usize, bytes: usize,
): void {
  // Products and sums of integers are the same with and without sign.
  switch (type) {
    case FLOAT32: scaleTyped<Float32>(scalars, sources, nSources, destinations, nDestinations, from, bytes); break;
    case FLOAT64: scaleTyped<Float64>(scalars, sources, nSources, destinations, nDestinations, from, bytes); break;
    case INT8: case UINT8: scaleTyped<Int8>(scalars, sources, nSources, destinations, nDestinations, from, bytes); break;
    case INT32: case UINT32: scaleTyped<Int32>(scalars, sources, nSources, destinations, nDestinations, from, bytes); break;
    case INT64: case UINT64: scaleTyped<Int64>(scalars, sources, nSources, destinations, nDestinations, from, bytes); break;
    case FLOAT16: scaleTyped<Float16>(scalars, sources, nSources, destinations, nDestinations, from, bytes); break;
    case BFLOAT16: scaleTyped<Bfloat16>(scalars, sources, nSources, destinations, nDestinations, from, bytes); break;
    case FLOAT8E4M3: scaleTyped<Float8e4m3>(scalars, sources, nSources, destinations, nDestinations, from, bytes); break;
    case FLOAT8E5M2: scaleTyped<Float8e5m2>(scalars, sources, nSources, destinations, nDestinations, from, bytes); break;
    default: unreachable();
  }
}

function scaleTyped<T>(
  scalars: usize, sources: usize, nSources: i32, destinations: usize, nDestinations: i32, from: usize, bytes: usize,
): void {
  let i = from;
  const end = from + bytes;
  for (; i + 32 <= end; i += 32) {
    let p = (load<u32>(sources) as usize) + i;
    let scalar = v128.load64_splat(scalars);
    let v0 = combine<T, Prod>(v128.load(p), scalar), v1 = combine<T, Prod>(v128.load(p, 16), scalar);
    for (let s = 1; s < nSources; s++) {
      p = (load<u32>(sources + (s << 2)) as usize) + i;
      scalar = v128.load64_splat(scalars + (s << 3));
      v0 = combine<T, Sum>(v0, combine<T, Prod>(v128.load(p), scalar));
      v1 = combine<T, Sum>(v1, combine<T, Prod>(v128.load(p, 16), scalar));
    }
    for (let d = 0; d < nDestinations; d++) {
      p = (load<u32>(destinations + (d << 2)) as usize) + i;
      v128.store(p, v0);
      v128.store(p, v1, 16);
    }
  }
  scalePieces(codeOf<T>(), scalars, sources, nSources, destinations, nDestinations, i, end);
}

function scalePieces(
  type: i32, scalars: usize, sources: usize, nSources: i32, destinations: usize, nDestinations: i32, from: usize, end: usize,
): void {
  for (let i = from; i < end; ) {
    const bytes = pieceBytes(end - i);
    let a = combineAny(type, PROD, loadPiece((load<u32>(sources) as usize) + i, bytes), v128.load64_splat(scalars));
    for (let s = 1; s < nSources; s++) {
      const product = combineAny(type, PROD, loadPiece((load<u32>(sources + (s << 2)) as usize) + i, bytes), v128.load64_splat(scalars + (s << 3)));
      a = combineAny(type, SUM, a, product);
    }
    for (let d = 0; d < nDestinations; d++) storePiece((load<u32>(destinations + (d << 2)) as usize) + i, bytes, a);
    i += bytes;
  }
}
