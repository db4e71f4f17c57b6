// Combines elements of a window where they lie. Each changes by an atomic instruction of its own, so ranks may combine into the same
// elements at the same time.

import { COMPARE, FLOAT16, FLOAT32, FLOAT64, REPLACE, sizeShift, SUM } from './codes';
import { combineAny } from './combine';

/**
 * Combines the elements of `source` into those of `destination`, and writes what these were to `before`, unless that is 0.
 * COMPARE stores an element where the destination equals the element 8 bytes behind it.
 */
export function accumulate(type: i32, op: i32, destination: usize, source: usize, bytes: usize, before: usize): void {
  const shift = sizeShift(type);
  if (shift == 0) each<u8>(type, op, destination, source, bytes, before);
  else if (shift == 1) each<u16>(type, op, destination, source, bytes, before);
  else if (shift == 2) each<u32>(type, op, destination, source, bytes, before);
  else each<u64>(type, op, destination, source, bytes, before);
}

/** @param U unsigned integer of an element's size */
@inline
function each<U extends number>(type: i32, op: i32, destination: usize, source: usize, bytes: usize, before: usize): void {
  const adds = op == SUM && type != FLOAT32 && type != FLOAT64 && type < FLOAT16;
  for (let i: usize = 0; i < bytes; i += sizeof<U>()) {
    const to = destination + i;
    const given = load<U>(source + i);
    let was: U;
    if (adds) was = atomic.add<U>(to, given);
    else if (op == REPLACE) was = atomic.xchg<U>(to, given);
    else if (op == COMPARE) was = atomic.cmpxchg<U>(to, load<U>(source + i, 8), given);
    else was = exchanged<U>(type, op, to, v128.splat<U>(given));
    if (before != 0) store<U>(before + i, was);
  }
}

/** Combines one element, again if another rank has changed it meanwhile; returns what it was. */
function exchanged<U extends number>(type: i32, op: i32, to: usize, given: v128): U {
  let was: U = atomic.load<U>(to);
  while (true) {
    const old = v128.splat<U>(was);
    const now = combineAny(type, op, old, given);
    const found: U = atomic.cmpxchg<U>(to, was, v128.extract_lane<U>(now, 0));
    if (found == was) return was;
    was = found;
  }
}
