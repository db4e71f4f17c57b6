/** Integer arithmetic as C does it. */

/** The greatest power of two not above `value`, as exponent; -1 for 0. Whole numbers up to 2^53. */
export function floorLog2(value: number): number {
  return value < 2 ** 31 ? 31 - Math.clz32(value) : 31 + floorLog2(Math.floor(value / 2 ** 31));
}

/**
 * The product of C ints where it is compared with a size. NCCL multiplies in 32 bits: from some thousands of ranks on it
 * overflows, and a negative product counts as a size beyond all others.
 */
export function sizeProduct(...factors: readonly number[]): number {
  const product = factors.reduce((all, factor) => Math.imul(all, factor), 1);
  return product < 0 ? Infinity : product;
}
