// reduceCopy: reads N sources once, combines them in source order, writes M destinations once. This is the one loop
// that all collectives spend their time in (NCCL's primitive of the same name).
//
// Sources and destinations are tables of addresses (u32) in memory. Source order is fixed by the caller, so results
// do not depend on which rank computes them or when.

export const SUM = 0;
export const PROD = 1;
export const MIN = 2;
export const MAX = 3;
export const AVG = 4;

export const FLOAT32 = 0;
export const FLOAT64 = 1;
export const INT32 = 2;

/** log2 of the element's bytes. */
@inline
export function sizeShift(type: i32): i32 {
  return type == FLOAT64 ? 3 : 2;
}

@inline
function combine<T extends number>(op: i32, a: v128, b: v128): v128 {
  if (op == PROD) return v128.mul<T>(a, b);
  if (op == MIN) return v128.min<T>(a, b);
  if (op == MAX) return v128.max<T>(a, b);
  return v128.add<T>(a, b);
}

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

/** What is done once to each combined vector: averages of floats divide by the number of sources. */
@inline
function finish<T extends number>(op: i32, a: v128, divisor: v128): v128 {
  if (isFloat<T>() && op == AVG) return v128.div<T>(a, divisor);
  return a;
}

@inline
function finishScalar<T extends number>(op: i32, a: T, nSources: i32): T {
  if (op == AVG) return (a / (nSources as T)) as T;
  return a;
}

/** Elements one at a time from byte `i` to `end`: the tail, and integer averages (SIMD has no integer division). */
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

/** Two sources, one or two destinations: the shape of two ranks, with all addresses in registers. */
@inline
function pairLoop<T extends number>(op: i32, a: usize, b: usize, c: usize, d: usize, bytes: usize, divisor: v128): usize {
  let i: usize = 0;
  for (; i + 64 <= bytes; i += 64) {
    const v0 = finish<T>(op, combine<T>(op, v128.load(a + i), v128.load(b + i)), divisor);
    const v1 = finish<T>(op, combine<T>(op, v128.load(a + i, 16), v128.load(b + i, 16)), divisor);
    const v2 = finish<T>(op, combine<T>(op, v128.load(a + i, 32), v128.load(b + i, 32)), divisor);
    const v3 = finish<T>(op, combine<T>(op, v128.load(a + i, 48), v128.load(b + i, 48)), divisor);
    v128.store(c + i, v0);
    v128.store(c + i, v1, 16);
    v128.store(c + i, v2, 32);
    v128.store(c + i, v3, 48);
    if (c != d) {
      v128.store(d + i, v0);
      v128.store(d + i, v1, 16);
      v128.store(d + i, v2, 32);
      v128.store(d + i, v3, 48);
    }
  }
  return i;
}

@inline
function reduceTyped<T extends number>(
  op: i32, sources: usize, nSources: i32, destinations: usize, nDestinations: i32, from: usize, bytes: usize,
): void {
  let i = from;
  const end = from + bytes;
  if (isFloat<T>() || op != AVG) {
    const divisor = v128.splat<T>(nSources as T);
    if (nSources == 2 && nDestinations <= 2) {
      const c = load<u32>(destinations) as usize;
      const d = nDestinations == 2 ? (load<u32>(destinations, 4) as usize) : c;
      i += pairLoop<T>(op, (load<u32>(sources) as usize) + from, (load<u32>(sources, 4) as usize) + from, c + from, d + from, bytes, divisor);
    }
    for (; i + 128 <= end; i += 128) {
      let p = (load<u32>(sources) as usize) + i;
      let v0 = v128.load(p), v1 = v128.load(p, 16), v2 = v128.load(p, 32), v3 = v128.load(p, 48);
      let v4 = v128.load(p, 64), v5 = v128.load(p, 80), v6 = v128.load(p, 96), v7 = v128.load(p, 112);
      for (let s = 1; s < nSources; s++) {
        p = (load<u32>(sources + (s << 2)) as usize) + i;
        v0 = combine<T>(op, v0, v128.load(p));
        v1 = combine<T>(op, v1, v128.load(p, 16));
        v2 = combine<T>(op, v2, v128.load(p, 32));
        v3 = combine<T>(op, v3, v128.load(p, 48));
        v4 = combine<T>(op, v4, v128.load(p, 64));
        v5 = combine<T>(op, v5, v128.load(p, 80));
        v6 = combine<T>(op, v6, v128.load(p, 96));
        v7 = combine<T>(op, v7, v128.load(p, 112));
      }
      v0 = finish<T>(op, v0, divisor);
      v1 = finish<T>(op, v1, divisor);
      v2 = finish<T>(op, v2, divisor);
      v3 = finish<T>(op, v3, divisor);
      v4 = finish<T>(op, v4, divisor);
      v5 = finish<T>(op, v5, divisor);
      v6 = finish<T>(op, v6, divisor);
      v7 = finish<T>(op, v7, divisor);
      for (let d = 0; d < nDestinations; d++) {
        p = (load<u32>(destinations + (d << 2)) as usize) + i;
        v128.store(p, v0);
        v128.store(p, v1, 16);
        v128.store(p, v2, 32);
        v128.store(p, v3, 48);
        v128.store(p, v4, 64);
        v128.store(p, v5, 80);
        v128.store(p, v6, 96);
        v128.store(p, v7, 112);
      }
    }
  }
  scalarLoop<T>(op, sources, nSources, destinations, nDestinations, i, end);
}

// One compiled loop a type and operator. They are not inlined: the dispatch below stays small.
function sumFloat32(s: usize, n: i32, d: usize, m: i32, from: usize, bytes: usize): void { reduceTyped<f32>(SUM, s, n, d, m, from, bytes); }
function prodFloat32(s: usize, n: i32, d: usize, m: i32, from: usize, bytes: usize): void { reduceTyped<f32>(PROD, s, n, d, m, from, bytes); }
function minFloat32(s: usize, n: i32, d: usize, m: i32, from: usize, bytes: usize): void { reduceTyped<f32>(MIN, s, n, d, m, from, bytes); }
function maxFloat32(s: usize, n: i32, d: usize, m: i32, from: usize, bytes: usize): void { reduceTyped<f32>(MAX, s, n, d, m, from, bytes); }
function avgFloat32(s: usize, n: i32, d: usize, m: i32, from: usize, bytes: usize): void { reduceTyped<f32>(AVG, s, n, d, m, from, bytes); }
function sumFloat64(s: usize, n: i32, d: usize, m: i32, from: usize, bytes: usize): void { reduceTyped<f64>(SUM, s, n, d, m, from, bytes); }
function prodFloat64(s: usize, n: i32, d: usize, m: i32, from: usize, bytes: usize): void { reduceTyped<f64>(PROD, s, n, d, m, from, bytes); }
function minFloat64(s: usize, n: i32, d: usize, m: i32, from: usize, bytes: usize): void { reduceTyped<f64>(MIN, s, n, d, m, from, bytes); }
function maxFloat64(s: usize, n: i32, d: usize, m: i32, from: usize, bytes: usize): void { reduceTyped<f64>(MAX, s, n, d, m, from, bytes); }
function avgFloat64(s: usize, n: i32, d: usize, m: i32, from: usize, bytes: usize): void { reduceTyped<f64>(AVG, s, n, d, m, from, bytes); }
function sumInt32(s: usize, n: i32, d: usize, m: i32, from: usize, bytes: usize): void { reduceTyped<i32>(SUM, s, n, d, m, from, bytes); }
function prodInt32(s: usize, n: i32, d: usize, m: i32, from: usize, bytes: usize): void { reduceTyped<i32>(PROD, s, n, d, m, from, bytes); }
function minInt32(s: usize, n: i32, d: usize, m: i32, from: usize, bytes: usize): void { reduceTyped<i32>(MIN, s, n, d, m, from, bytes); }
function maxInt32(s: usize, n: i32, d: usize, m: i32, from: usize, bytes: usize): void { reduceTyped<i32>(MAX, s, n, d, m, from, bytes); }
function avgInt32(s: usize, n: i32, d: usize, m: i32, from: usize, bytes: usize): void { reduceTyped<i32>(AVG, s, n, d, m, from, bytes); }

/**
 * Combines `bytes` bytes at byte offset `from` of all sources and writes them at the same offset of all destinations.
 * A destination may be a source; they may not overlap otherwise. `nSources` is also what averages divide by.
 */
export function reduceCopy(
  type: i32, op: i32, sources: usize, nSources: i32, destinations: usize, nDestinations: i32, from: usize, bytes: usize,
): void {
  switch ((type << 3) | op) {
    case (FLOAT32 << 3) | SUM: sumFloat32(sources, nSources, destinations, nDestinations, from, bytes); break;
    case (FLOAT32 << 3) | PROD: prodFloat32(sources, nSources, destinations, nDestinations, from, bytes); break;
    case (FLOAT32 << 3) | MIN: minFloat32(sources, nSources, destinations, nDestinations, from, bytes); break;
    case (FLOAT32 << 3) | MAX: maxFloat32(sources, nSources, destinations, nDestinations, from, bytes); break;
    case (FLOAT32 << 3) | AVG: avgFloat32(sources, nSources, destinations, nDestinations, from, bytes); break;
    case (FLOAT64 << 3) | SUM: sumFloat64(sources, nSources, destinations, nDestinations, from, bytes); break;
    case (FLOAT64 << 3) | PROD: prodFloat64(sources, nSources, destinations, nDestinations, from, bytes); break;
    case (FLOAT64 << 3) | MIN: minFloat64(sources, nSources, destinations, nDestinations, from, bytes); break;
    case (FLOAT64 << 3) | MAX: maxFloat64(sources, nSources, destinations, nDestinations, from, bytes); break;
    case (FLOAT64 << 3) | AVG: avgFloat64(sources, nSources, destinations, nDestinations, from, bytes); break;
    case (INT32 << 3) | SUM: sumInt32(sources, nSources, destinations, nDestinations, from, bytes); break;
    case (INT32 << 3) | PROD: prodInt32(sources, nSources, destinations, nDestinations, from, bytes); break;
    case (INT32 << 3) | MIN: minInt32(sources, nSources, destinations, nDestinations, from, bytes); break;
    case (INT32 << 3) | MAX: maxInt32(sources, nSources, destinations, nDestinations, from, bytes); break;
    case (INT32 << 3) | AVG: avgInt32(sources, nSources, destinations, nDestinations, from, bytes); break;
    default: unreachable();
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

/** reduceCopy for a few elements: sources lie `stride` bytes apart, one destination, no tables to fill. */
export function reduceFew(type: i32, op: i32, first: usize, nSources: i32, stride: usize, destination: usize, bytes: usize): void {
  if (type == FLOAT32) strideTyped<f32>(op, first, nSources, stride, destination, bytes);
  else if (type == FLOAT64) strideTyped<f64>(op, first, nSources, stride, destination, bytes);
  else strideTyped<i32>(op, first, nSources, stride, destination, bytes);
}

@inline
function divideFloats<T extends number>(from: usize, end: usize, divisor: T): void {
  const divisors = v128.splat<T>(divisor);
  let p = from;
  for (; p + 16 <= end; p += 16) v128.store(p, v128.div<T>(v128.load(p), divisors));
  for (; p < end; p += sizeof<T>()) store<T>(p, (load<T>(p) / divisor) as T);
}

/** Divides each element in place: an average whose sum came in steps (ring). Integers truncate toward zero. */
export function divide(type: i32, address: usize, bytes: usize, divisor: i32): void {
  const end = address + bytes;
  if (type == FLOAT32) divideFloats<f32>(address, end, divisor as f32);
  else if (type == FLOAT64) divideFloats<f64>(address, end, divisor as f64);
  else for (let p = address; p < end; p += 4) store<i32>(p, load<i32>(p) / divisor);
}

export function copy(destination: usize, source: usize, bytes: usize): void {
  let i: usize = 0;
  for (; i + 64 <= bytes; i += 64) {
    const v0 = v128.load(source + i), v1 = v128.load(source + i, 16);
    const v2 = v128.load(source + i, 32), v3 = v128.load(source + i, 48);
    v128.store(destination + i, v0);
    v128.store(destination + i, v1, 16);
    v128.store(destination + i, v2, 32);
    v128.store(destination + i, v3, 48);
  }
  for (; i < bytes; i++) store<u8>(destination + i, load<u8>(source + i));
}
