// Fields of a call's code (encoded by src/runtime/algorithms/call.ts): kind | type << 4 | operator << 8 | algorithm << 12.

export const ALL_REDUCE: i32 = 1;
export const BROADCAST: i32 = 2;
export const REDUCE: i32 = 4;
export const REDUCE_SCATTER: i32 = 6;
export const ALL_TO_ALL: i32 = 7;
export const GATHER: i32 = 8;
export const SCATTER: i32 = 9;
export const SCAN: i32 = 13;
export const EXSCAN: i32 = 14;

@inline
export function kindIn(code: i32): i32 {
  return code & 15;
}

@inline
export function typeIn(code: i32): i32 {
  return (code >> 4) & 15;
}

@inline
export function operatorIn(code: i32): i32 {
  return (code >> 8) & 15;
}
