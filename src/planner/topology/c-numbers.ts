/** Reads numbers as the C library does, and so as NCCL reads XML attributes and the environment. */

const integer = /^[ \t\n\v\f\r]*([+-]?)(0[xX](?=[0-9a-fA-F]))?([0-9a-fA-F]*)/;

/**
 * The integer at the start of `text`, as `strtol` (base 0) reads it: leading blanks, sign, then hexadecimal after `0x`, octal
 * after `0`, else decimal; 0 when there is none. Later text is ignored. Exact up to 2^53.
 */
export function parseInteger(text: string): number {
  return Number(parseBigInteger(text, 0));
}

/**
 * As {@link parseInteger} for integers of any size, in base 0 (by prefix), 10 or 16. For base 16 the prefix `0x` is
 * optional.
 */
export function parseBigInteger(text: string, base: 0 | 10 | 16): bigint {
  const match = integer.exec(text);
  const [, sign, prefix, digits = ''] = match ?? [];
  let value: bigint;
  if (base === 16 || (base === 0 && prefix !== undefined)) value = digits === '' ? 0n : BigInt(`0x${digits}`);
  else if (prefix !== undefined)
    value = 0n; // base 10 stops at the x
  else if (base === 0 && digits.startsWith('0')) value = BigInt(`0o${/^[0-7]+/.exec(digits)?.[0] ?? '0'}`);
  else value = BigInt(/^[0-9]+/.exec(digits)?.[0] ?? '0');
  return sign === '-' ? -value : value;
}

/**
 * The integer at the start of `text`, as `strtoull` reads it: a minus wraps around, and integers of more than 64 bits become the
 * greatest.
 */
export function parseUnsigned64(text: string, base: 10 | 16): bigint {
  const value = parseBigInteger(text, base);
  const greatest = 2n ** 64n - 1n;
  return value > greatest || value < -greatest ? greatest : BigInt.asUintN(64, value);
}

/** The number at the start of `text`, as `strtof` reads it, rounded to a C float; 0 when there is none. */
export function parseFloat32(text: string): number {
  const value = Number.parseFloat(text);
  return Number.isNaN(value) ? 0 : Math.fround(value);
}

/** True if the whole text is one integer; blanks around it are allowed. */
export function isWholeInteger(text: string): boolean {
  return /^\s*[+-]?(0[xX][0-9a-fA-F]+|[0-9]+)\s*$/.test(text);
}
