// The loop over many float16 or bfloat16, with the results of combine().

import { Bfloat16, Float16, is, Sum } from './codes';
import { combine } from './combine';
import { storeFour } from './copy';
import { areLarge, areNan, combineWithNan, oneNan, sumSmall } from './narrow';

/**
 * Processes whole blocks of 64 bytes from byte `from` on; T and Op are Float16 and Sum, or Bfloat16 and Sum or Prod. Returns
 * the end of the blocks.
 */
@inline
export function reduceWords<T, Op>(
  sources: usize, nSources: i32, destinations: usize, nDestinations: i32, from: usize, end: usize,
): usize {
  if (nSources == 2 && nDestinations <= 2) {
    const c = load<u32>(destinations) as usize;
    const d = nDestinations == 2 ? (load<u32>(destinations, 4) as usize) : c;
    return reducePair<T, Op>(load<u32>(sources) as usize, load<u32>(sources, 4) as usize, c, d, from, end);
  }
  let i = from;
  for (; i + 64 <= end; i += 64) {
    let p = (load<u32>(sources) as usize) + i;
    let v0 = v128.load(p), v1 = v128.load(p, 16), v2 = v128.load(p, 32), v3 = v128.load(p, 48);
    for (let s = 1; s < nSources; s++) {
      p = (load<u32>(sources + (s << 2)) as usize) + i;
      const w0 = v128.load(p), w1 = v128.load(p, 16), w2 = v128.load(p, 32), w3 = v128.load(p, 48);
      if (needCare<T>(v0, v1, v2, v3) || needCare<T>(w0, w1, w2, w3)) {
        v0 = sumCarefully(v0, w0);
        v1 = sumCarefully(v1, w1);
        v2 = sumCarefully(v2, w2);
        v3 = sumCarefully(v3, w3);
      } else {
        v0 = combineQuickly<T, Op>(v0, w0);
        v1 = combineQuickly<T, Op>(v1, w1);
        v2 = combineQuickly<T, Op>(v2, w2);
        v3 = combineQuickly<T, Op>(v3, w3);
      }
    }
    if (nSources > 1 && mayBeNan<T>(v0, v1, v2, v3)) {
      v0 = oneNan<T>(v0);
      v1 = oneNan<T>(v1);
      v2 = oneNan<T>(v2);
      v3 = oneNan<T>(v3);
    }
    for (let d = 0; d < nDestinations; d++) {
      storeFour((load<u32>(destinations + (d << 2)) as usize) + i, v0, v1, v2, v3);
    }
  }
  return i;
}

/** The same for two sources and one or two destinations, the case of two ranks, with all addresses in registers. */
@inline
function reducePair<T, Op>(a: usize, b: usize, c: usize, d: usize, from: usize, end: usize): usize {
  let i = from;
  for (; i + 64 <= end; i += 64) {
    let v0 = v128.load(a + i), v1 = v128.load(a + i, 16), v2 = v128.load(a + i, 32), v3 = v128.load(a + i, 48);
    const w0 = v128.load(b + i), w1 = v128.load(b + i, 16), w2 = v128.load(b + i, 32), w3 = v128.load(b + i, 48);
    if (needCare<T>(v0, v1, v2, v3) || needCare<T>(w0, w1, w2, w3)) {
      v0 = sumCarefully(v0, w0);
      v1 = sumCarefully(v1, w1);
      v2 = sumCarefully(v2, w2);
      v3 = sumCarefully(v3, w3);
    } else {
      v0 = combineQuickly<T, Op>(v0, w0);
      v1 = combineQuickly<T, Op>(v1, w1);
      v2 = combineQuickly<T, Op>(v2, w2);
      v3 = combineQuickly<T, Op>(v3, w3);
      if (mayBeNan<T>(v0, v1, v2, v3)) {
        v0 = oneNan<T>(v0);
        v1 = oneNan<T>(v1);
        v2 = oneNan<T>(v2);
        v3 = oneNan<T>(v3);
      }
    }
    storeFour(c + i, v0, v1, v2, v3);
    if (c != d) storeFour(d + i, v0, v1, v2, v3);
  }
  return i;
}

@inline
function needCare<T>(a: v128, b: v128, c: v128, d: v128): bool {
  return is<T, Float16>() && areLarge(a, b, c, d);
}

@inline
function mayBeNan<T>(a: v128, b: v128, c: v128, d: v128): bool {
  return is<T, Bfloat16>() && areNan(a, b, c, d);
}

@inline
function combineQuickly<T, Op>(a: v128, b: v128): v128 {
  return is<T, Bfloat16>() ? combineWithNan<Op>(a, b) : sumSmall(a, b);
}

/** Rare, so it is not inlined. */
function sumCarefully(a: v128, b: v128): v128 {
  return combine<Float16, Sum>(a, b);
}
