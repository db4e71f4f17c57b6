// reduceCopy: reads N sources once, combines them in source order, and writes M destinations once. All collectives spend
// their time in this loop (NCCL has a primitive of the same name).
//
// Sources and destinations are tables of addresses (u32) in memory. The caller fixes the order of sources, so results do not
// depend on which rank computes them or when.

import {
  AVG, Avg, BAND, Band, BFLOAT16, Bfloat16, BOR, Bor, BXOR, Bxor, codeOf, FLOAT16, Float16, FLOAT32, Float32, FLOAT64, Float64,
  FLOAT8E4M3, Float8e4m3, FLOAT8E5M2, Float8e5m2, INT32, Int32, INT64, Int64, INT8, Int8, is, LAND, Land, LOR, Lor, MAX, Max,
  MAXLOC, Maxloc, MIN, Min, MINLOC, Minloc, operatorOf, PROD, Prod, SUM, Sum, UINT32, Uint32, UINT64, Uint64, UINT8, Uint8,
} from './codes';
import { combine, combineAny } from './combine';
import { copy, storeFour } from './copy';
import { divide } from './divide';
import { isFurther, isLocated } from './further';
import { loadPiece, pieceBytes, storePiece } from './pieces';
import { reduceWords } from './words';

/** Bytes that are summed and then divided while they are in the first-level cache. */
const AVERAGED_BYTES: usize = 8192;
/** Shortest length for which a call of machine code pays (measured). */
const MACHINE_CODE_BYTES: usize = 4096;

/** Sums as much as it can of the first bytes, and returns the number of bytes: machine-code.ts. */
@external('env', 'sumFloat16')
declare function sumByMachineCode(s: usize, n: i32, d: usize, m: i32, from: usize, bytes: usize): usize;

@inline
function combineScalar<T extends number>(op: i32, a: T, b: T): T {
  if (op == PROD) return (a * b) as T;
  if (isFloat<T>()) {
    if (op == MIN) return min<T>(a, b);
    if (op == MAX) return max<T>(a, b);
  } else {
    if (op == MIN) return a < b ? a : b;
    if (op == MAX) return a > b ? a : b;
  }
  return (a + b) as T;
}

@inline
function finishScalar<T extends number>(op: i32, a: T, nSources: i32): T {
  if (op == AVG) return (a / (nSources as T)) as T;
  return a;
}

/** Final step for each combined vector: averages of float32 and float64 divide by the number of sources. */
@inline
function finish<T, Op>(a: v128, divisor: v128): v128 {
  if (!is<Op, Avg>()) return a;
  return is<T, Float32>() ? f32x4.div(a, divisor) : f64x2.div(a, divisor);
}

/** The tail, from byte `i` to `end`, one element at a time. */
@inline
function scalarLoop<T extends number>(
  op: i32, sources: usize, nSources: i32, destinations: usize, nDestinations: i32, from: usize, end: usize,
): void {
  for (let i = from; i < end; i += sizeof<T>()) {
    let a = load<T>((load<u32>(sources) as usize) + i);
    for (let s = 1; s < nSources; s++) a = combineScalar<T>(op, a, load<T>((load<u32>(sources + (s << 2)) as usize) + i));
    a = finishScalar<T>(op, a, nSources);
    for (let d = 0; d < nDestinations; d++) store<T>((load<u32>(destinations + (d << 2)) as usize) + i, a);
  }
}

/** The tail of types that are processed as incomplete vectors. */
function pieceLoop(
  type: i32, op: i32, sources: usize, nSources: i32, destinations: usize, nDestinations: i32, from: usize, end: usize,
): void {
  for (let i = from; i < end; ) {
    const bytes = pieceBytes(end - i);
    let a = loadPiece((load<u32>(sources) as usize) + i, bytes);
    for (let s = 1; s < nSources; s++) a = combineAny(type, op, a, loadPiece((load<u32>(sources + (s << 2)) as usize) + i, bytes));
    for (let d = 0; d < nDestinations; d++) storePiece((load<u32>(destinations + (d << 2)) as usize) + i, bytes, a);
    i += bytes;
  }
}

/** Two sources, one or two destinations: the case of two ranks, with all addresses in registers. */
@inline
function pairLoop<T, Op>(a: usize, b: usize, c: usize, d: usize, bytes: usize, divisor: v128): usize {
  let i: usize = 0;
  for (; i + 64 <= bytes; i += 64) {
    const v0 = finish<T, Op>(combine<T, Op>(v128.load(a + i), v128.load(b + i)), divisor);
    const v1 = finish<T, Op>(combine<T, Op>(v128.load(a + i, 16), v128.load(b + i, 16)), divisor);
    const v2 = finish<T, Op>(combine<T, Op>(v128.load(a + i, 32), v128.load(b + i, 32)), divisor);
    const v3 = finish<T, Op>(combine<T, Op>(v128.load(a + i, 48), v128.load(b + i, 48)), divisor);
    storeFour(c + i, v0, v1, v2, v3);
    if (c != d) storeFour(d + i, v0, v1, v2, v3);
  }
  return i;
}

function reduceWide<T, Op>(
  sources: usize, nSources: i32, destinations: usize, nDestinations: i32, from: usize, bytes: usize,
): void {
  let i = from;
  const end = from + bytes;
  const divisor = is<T, Float64>() ? f64x2.splat(nSources as f64) : f32x4.splat(nSources as f32);
  if (nSources == 2 && nDestinations <= 2) {
    const c = load<u32>(destinations) as usize;
    const d = nDestinations == 2 ? (load<u32>(destinations, 4) as usize) : c;
    i += pairLoop<T, Op>((load<u32>(sources) as usize) + from, (load<u32>(sources, 4) as usize) + from, c + from, d + from, bytes, divisor);
  }
  for (; i + 128 <= end; i += 128) {
    let p = (load<u32>(sources) as usize) + i;
    let v0 = v128.load(p), v1 = v128.load(p, 16), v2 = v128.load(p, 32), v3 = v128.load(p, 48);
    let v4 = v128.load(p, 64), v5 = v128.load(p, 80), v6 = v128.load(p, 96), v7 = v128.load(p, 112);
    for (let s = 1; s < nSources; s++) {
      p = (load<u32>(sources + (s << 2)) as usize) + i;
      v0 = combine<T, Op>(v0, v128.load(p));
      v1 = combine<T, Op>(v1, v128.load(p, 16));
      v2 = combine<T, Op>(v2, v128.load(p, 32));
      v3 = combine<T, Op>(v3, v128.load(p, 48));
      v4 = combine<T, Op>(v4, v128.load(p, 64));
      v5 = combine<T, Op>(v5, v128.load(p, 80));
      v6 = combine<T, Op>(v6, v128.load(p, 96));
      v7 = combine<T, Op>(v7, v128.load(p, 112));
    }
    v0 = finish<T, Op>(v0, divisor);
    v1 = finish<T, Op>(v1, divisor);
    v2 = finish<T, Op>(v2, divisor);
    v3 = finish<T, Op>(v3, divisor);
    v4 = finish<T, Op>(v4, divisor);
    v5 = finish<T, Op>(v5, divisor);
    v6 = finish<T, Op>(v6, divisor);
    v7 = finish<T, Op>(v7, divisor);
    for (let d = 0; d < nDestinations; d++) {
      p = (load<u32>(destinations + (d << 2)) as usize) + i;
      storeFour(p, v0, v1, v2, v3);
      storeFour(p + 64, v4, v5, v6, v7);
    }
  }
  if (is<T, Float32>()) scalarLoop<f32>(operatorOf<Op>(), sources, nSources, destinations, nDestinations, i, end);
  else if (is<T, Float64>()) scalarLoop<f64>(operatorOf<Op>(), sources, nSources, destinations, nDestinations, i, end);
  else if (is<T, Int32>()) scalarLoop<i32>(operatorOf<Op>(), sources, nSources, destinations, nDestinations, i, end);
  else pieceLoop(codeOf<T>(), operatorOf<Op>(), sources, nSources, destinations, nDestinations, i, end);
}

/** The loop of types and operators with many instructions for each vector: further unrolling gains nothing. */
function reduceNarrow<T, Op>(
  sources: usize, nSources: i32, destinations: usize, nDestinations: i32, from: usize, bytes: usize,
): void {
  const end = from + bytes;
  let i = from;
  if (is<Op, Sum>() && is<T, Float16>() && nSources > 1 && bytes >= MACHINE_CODE_BYTES) {
    i += sumByMachineCode(sources, nSources, destinations, nDestinations, from, bytes);
  }
  if (is<Op, Sum>() && is<T, Float16>() || (is<Op, Sum>() || is<Op, Prod>()) && is<T, Bfloat16>()) {
    i = reduceWords<T, Op>(sources, nSources, destinations, nDestinations, i, end);
  }
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
  pieceLoop(codeOf<T>(), operatorOf<Op>(), sources, nSources, destinations, nDestinations, i, end);
}

// One compiled loop for each type and operator. They are not inlined, which keeps the dispatch small.

@inline
function reduceTyped<T, Op>(s: usize, n: i32, d: usize, m: i32, from: usize, bytes: usize): void {
  if (isFurther<Op>() || is<T, Float16>() || is<T, Bfloat16>() || is<T, Float8e4m3>() || is<T, Float8e5m2>()) {
    reduceNarrow<T, Op>(s, n, d, m, from, bytes);
  } else reduceWide<T, Op>(s, n, d, m, from, bytes);
}

/** True if results of integers depend on their sign. */
@inline
function readsSign<Op>(): bool {
  return is<Op, Min>() || is<Op, Max>() || isLocated<Op>();
}

function reduceBy<Op>(type: i32, s: usize, n: i32, d: usize, m: i32, from: usize, bytes: usize): void {
  switch (type) {
    case FLOAT32: reduceTyped<Float32, Op>(s, n, d, m, from, bytes); break;
    case FLOAT64: reduceTyped<Float64, Op>(s, n, d, m, from, bytes); break;
    case UINT32: if (readsSign<Op>()) { reduceTyped<Uint32, Op>(s, n, d, m, from, bytes); break; }
    case INT32: reduceTyped<Int32, Op>(s, n, d, m, from, bytes); break;
    case UINT64: if (readsSign<Op>()) { reduceTyped<Uint64, Op>(s, n, d, m, from, bytes); break; }
    case INT64: reduceTyped<Int64, Op>(s, n, d, m, from, bytes); break;
    default: if (isLocated<Op>()) unreachable(); else reduceSmall<Op>(type, s, n, d, m, from, bytes);
  }
}

@inline
function reduceSmall<Op>(type: i32, s: usize, n: i32, d: usize, m: i32, from: usize, bytes: usize): void {
  switch (type) {
    case UINT8: if (readsSign<Op>()) { reduceTyped<Uint8, Op>(s, n, d, m, from, bytes); break; }
    case INT8: reduceTyped<Int8, Op>(s, n, d, m, from, bytes); break;
    case FLOAT16: reduceTyped<Float16, Op>(s, n, d, m, from, bytes); break;
    case BFLOAT16: reduceTyped<Bfloat16, Op>(s, n, d, m, from, bytes); break;
    case FLOAT8E4M3: reduceTyped<Float8e4m3, Op>(s, n, d, m, from, bytes); break;
    case FLOAT8E5M2: reduceTyped<Float8e5m2, Op>(s, n, d, m, from, bytes); break;
    default: unreachable();
  }
}

/**
 * Combines `bytes` bytes at byte offset `from` of all sources and writes the result at the same offset of all destinations. A
 * destination may be a source; otherwise they may not overlap. Averages divide by `nSources`. A single source is copied
 * unchanged.
 */
export function reduceCopy(
  type: i32, op: i32, sources: usize, nSources: i32, destinations: usize, nDestinations: i32, from: usize, bytes: usize,
): void {
  switch (op) {
    case SUM: reduceBy<Sum>(type, sources, nSources, destinations, nDestinations, from, bytes); break;
    case PROD: reduceBy<Prod>(type, sources, nSources, destinations, nDestinations, from, bytes); break;
    case MIN: reduceBy<Min>(type, sources, nSources, destinations, nDestinations, from, bytes); break;
    case MAX: reduceBy<Max>(type, sources, nSources, destinations, nDestinations, from, bytes); break;
    case AVG: average(type, sources, nSources, destinations, nDestinations, from, bytes); break;
    case BAND: reduceNarrow<Int32, Band>(sources, nSources, destinations, nDestinations, from, bytes); break;
    case BOR: reduceNarrow<Int32, Bor>(sources, nSources, destinations, nDestinations, from, bytes); break;
    case BXOR: reduceNarrow<Int32, Bxor>(sources, nSources, destinations, nDestinations, from, bytes); break;
    case LAND: reduceBy<Land>(type, sources, nSources, destinations, nDestinations, from, bytes); break;
    case LOR: reduceBy<Lor>(type, sources, nSources, destinations, nDestinations, from, bytes); break;
    case MINLOC: reduceBy<Minloc>(type, sources, nSources, destinations, nDestinations, from, bytes); break;
    case MAXLOC: reduceBy<Maxloc>(type, sources, nSources, destinations, nDestinations, from, bytes); break;
    default: unreachable();
  }
}

/** Divides in the loop, or for each block: a sum, a division and copies. */
function average(type: i32, sources: usize, nSources: i32, destinations: usize, nDestinations: i32, from: usize, bytes: usize): void {
  if (type == FLOAT32) return reduceWide<Float32, Avg>(sources, nSources, destinations, nDestinations, from, bytes);
  if (type == FLOAT64) return reduceWide<Float64, Avg>(sources, nSources, destinations, nDestinations, from, bytes);
  const first = load<u32>(destinations) as usize;
  const end = from + bytes;
  for (let i = from; i < end; i += AVERAGED_BYTES) {
    const length = min<usize>(AVERAGED_BYTES, end - i);
    reduceCopy(type, SUM, sources, nSources, destinations, 1, i, length);
    divide(type, first + i, length, nSources);
    for (let d = 1; d < nDestinations; d++) copy((load<u32>(destinations + (d << 2)) as usize) + i, first + i, length);
  }
}

@inline
function strideTyped<T extends number>(op: i32, first: usize, nSources: i32, stride: usize, destination: usize, bytes: usize): void {
  for (let i: usize = 0; i < bytes; i += sizeof<T>()) {
    let source = first + i;
    let a = load<T>(source);
    for (let s = 1; s < nSources; s++) {
      source += stride;
      a = combineScalar<T>(op, a, load<T>(source));
    }
    store<T>(destination + i, finishScalar<T>(op, a, nSources));
  }
}

/** reduceCopy for a few elements: sources are `stride` bytes apart, one destination, no tables. */
export function reduceFew(type: i32, op: i32, first: usize, nSources: i32, stride: usize, destination: usize, bytes: usize): void {
  if (type == FLOAT32) strideTyped<f32>(op, first, nSources, stride, destination, bytes);
  else if (type == FLOAT64) strideTyped<f64>(op, first, nSources, stride, destination, bytes);
  else if (type == INT32) strideTyped<i32>(op, first, nSources, stride, destination, bytes);
  else stridePieces(type, op, first, nSources, stride, destination, bytes);
}

function stridePieces(type: i32, op: i32, first: usize, nSources: i32, stride: usize, destination: usize, bytes: usize): void {
  for (let i: usize = 0; i < bytes; ) {
    const length = pieceBytes(bytes - i);
    let source = first + i;
    let a = loadPiece(source, length);
    for (let s = 1; s < nSources; s++) {
      source += stride;
      a = combineAny(type, op, a, loadPiece(source, length));
    }
    storePiece(destination + i, length, a);
    i += length;
  }
  if (op == AVG) divide(type, destination, bytes, nSources);
}
