// Types and operators: as numbers, like in calls (src/runtime/device/types.ts has the same numbers), and as classes that
// represent them where the compiler generates code for each. The compiler evaluates is<A, B>() and compiles only one of the
// branches; it would compile both if they compared numbers.

export const SUM = 0;
export const PROD = 1;
export const MIN = 2;
export const MAX = 3;
export const AVG = 4;
/** Sum of all ranks' inputs, each multiplied by a scalar of that rank. */
export const PREMUL_SUM = 5;
export const BAND = 6;
export const BOR = 7;
export const BXOR = 8;
export const LAND = 9;
export const LOR = 10;
export const MINLOC = 11;
export const MAXLOC = 12;
/** Of windows only (accumulate.ts): stores the element, or stores it if the one there is as expected. */
export const REPLACE = 13;
export const COMPARE = 14;

export const FLOAT32 = 0;
export const FLOAT64 = 1;
export const INT32 = 2;
export const INT8 = 3;
export const UINT8 = 4;
export const UINT32 = 5;
export const INT64 = 6;
export const UINT64 = 7;
export const FLOAT16 = 8;
export const BFLOAT16 = 9;
export const FLOAT8E4M3 = 10;
export const FLOAT8E5M2 = 11;
/** Moved, but never combined. */
const INT16 = 12;
const UINT16 = 13;

export class Sum {}
export class Prod {}
export class Min {}
export class Max {}
export class Avg {}
export class Band {}
export class Bor {}
export class Bxor {}
export class Land {}
export class Lor {}
export class Minloc {}
export class Maxloc {}

export class Float32 {}
export class Float64 {}
export class Int32 {}
export class Int8 {}
export class Uint8 {}
export class Uint32 {}
export class Int64 {}
export class Uint64 {}
export class Float16 {}
export class Bfloat16 {}
export class Float8e4m3 {}
export class Float8e5m2 {}

@inline
export function is<A, B>(): bool {
  return idof<A>() == idof<B>();
}

/** The number of a type. */
@inline
export function codeOf<T>(): i32 {
  if (is<T, Float32>()) return FLOAT32;
  if (is<T, Float64>()) return FLOAT64;
  if (is<T, Int32>()) return INT32;
  if (is<T, Int8>()) return INT8;
  if (is<T, Uint8>()) return UINT8;
  if (is<T, Uint32>()) return UINT32;
  if (is<T, Int64>()) return INT64;
  if (is<T, Uint64>()) return UINT64;
  if (is<T, Float16>()) return FLOAT16;
  if (is<T, Bfloat16>()) return BFLOAT16;
  if (is<T, Float8e4m3>()) return FLOAT8E4M3;
  return FLOAT8E5M2;
}

/** The number of an operator. */
@inline
export function operatorOf<Op>(): i32 {
  if (is<Op, Sum>()) return SUM;
  if (is<Op, Prod>()) return PROD;
  if (is<Op, Min>()) return MIN;
  if (is<Op, Max>()) return MAX;
  if (is<Op, Avg>()) return AVG;
  if (is<Op, Band>()) return BAND;
  if (is<Op, Bor>()) return BOR;
  if (is<Op, Bxor>()) return BXOR;
  if (is<Op, Land>()) return LAND;
  if (is<Op, Lor>()) return LOR;
  if (is<Op, Minloc>()) return MINLOC;
  return MAXLOC;
}

/** Two bits for each type. */
const SIZE_SHIFTS: u32 =
  (2 << (2 * FLOAT32)) | (3 << (2 * FLOAT64)) | (2 << (2 * INT32)) | (2 << (2 * UINT32)) |
  (3 << (2 * INT64)) | (3 << (2 * UINT64)) | (1 << (2 * FLOAT16)) | (1 << (2 * BFLOAT16)) |
  (1 << (2 * INT16)) | (1 << (2 * UINT16));

/** log2 of the element's bytes. */
@inline
export function sizeShift(type: i32): i32 {
  return ((SIZE_SHIFTS >> (type << 1)) & 3) as i32;
}
