import { InvalidArgumentError } from '../errors.js';
import { didYouMean } from '../suggest.js';

/** Buffers of calls that lie in windows registered as symmetric (`ncclCommWindowRegister` with `NCCL_WIN_COLL_SYMMETRIC`). */
export const windowKinds = ['none', 'send', 'receive', 'both'] as const;
/** One of {@link windowKinds}. */
export type Windows = (typeof windowKinds)[number];

/**
 * The windows that a text names: one of {@link windowKinds}, or `symmetric` for both buffers.
 *
 * @throws InvalidArgumentError `UNKNOWN_NAME` for another word
 */
export function windowsOf(text: string): Windows {
  const word = text.trim().toLowerCase();
  if (word === 'symmetric') return 'both';
  const known = windowKinds.find((kind) => kind === word);
  if (known !== undefined) return known;
  const names = ['symmetric', ...windowKinds];
  throw new InvalidArgumentError(
    'UNKNOWN_NAME',
    `no windows '${text}'${didYouMean(word, names)} (there are ${names.join(', ')})`,
  );
}

/** True if calls may use symmetric kernels or copy engines. */
export function usesWindows({
  windows,
  symmetricWithoutWindows,
}: {
  readonly windows: Windows;
  readonly symmetricWithoutWindows: number;
}): boolean {
  return windows !== 'none' || symmetricWithoutWindows !== 0;
}
