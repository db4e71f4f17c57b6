import { InvalidArgumentError } from '../errors.js';

const unitBytes: Readonly<Record<string, number>> = { '': 1, k: 2 ** 10, m: 2 ** 20, g: 2 ** 30 };

/** Limit of rows: a step of one byte up to a gigabyte is a typing error. */
const MAX_SIZES = 100_000;

/**
 * A number of bytes in the syntax of nccl-tests: a number, then nothing, `K`, `M` or `G` in powers of 1024 (`8`, `64K`, `1.5M`,
 * `1g`, also `64KiB` and `64KB`). A fraction of a byte is cut off.
 *
 * @param flag names the option in the error
 * @throws InvalidArgumentError `ARGUMENT_RANGE`
 */
export function parseSize(text: string, flag: string): number {
  const match = /^(\d+(?:\.\d*)?|\.\d+)([kmg]?)(?:i?b)?$/i.exec(text.trim());
  const bytes = match === null ? NaN : Math.floor(Number(match[1]) * (unitBytes[(match[2] ?? '').toLowerCase()] ?? NaN));
  if (Number.isSafeInteger(bytes)) return bytes;
  throw new InvalidArgumentError('ARGUMENT_RANGE', `${flag} '${text}' is not a size: write bytes as 8, 64K, 1.5M or 1G`);
}

/** Step from one size to the next: times a factor above 1, or plus some bytes. */
export type Step = { readonly kind: 'factor'; readonly factor: number } | { readonly kind: 'bytes'; readonly bytes: number };

/**
 * All sizes from `minBytes` to `maxBytes`, both ends included.
 *
 * @throws InvalidArgumentError `ARGUMENT_RANGE` for an empty range, or a step that never arrives
 */
export function sweep(minBytes: number, maxBytes: number, step: Step): number[] {
  if (minBytes > maxBytes) {
    throw new InvalidArgumentError('ARGUMENT_RANGE', `--minbytes ${minBytes} is more than --maxbytes ${maxBytes}`);
  }
  if (minBytes === maxBytes) return [minBytes];
  if (step.kind === 'factor' && minBytes === 0) {
    throw new InvalidArgumentError('ARGUMENT_RANGE', '--minbytes 0 never grows by a factor: use --stepbytes, or start above 0');
  }
  if (step.kind === 'bytes' && (step.bytes === 0 || (maxBytes - minBytes) / step.bytes > MAX_SIZES)) {
    throw new InvalidArgumentError(
      'ARGUMENT_RANGE',
      `--stepbytes ${step.bytes} makes too many sizes from ${minBytes} to ${maxBytes}: use a larger one, or --stepfactor`,
    );
  }
  const sizes: number[] = [];
  for (let size = minBytes; size <= maxBytes; size = step.kind === 'factor' ? size * step.factor : size + step.bytes) {
    sizes.push(size);
  }
  return sizes;
}

/** Text of a size: `8 B`, `64 KiB`, `1.5 MiB`. */
export function formatSize(bytes: number): string {
  let value = bytes;
  let unit = 'B';
  for (const next of ['KiB', 'MiB', 'GiB']) {
    if (value < 1024) break;
    value /= 1024;
    unit = next;
  }
  return `${Number(value.toPrecision(4))} ${unit}`;
}
