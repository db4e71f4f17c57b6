import { InternalError } from './errors.js';

/**
 * The value of an element or entry that cannot be missing, which types do not show: an index within bounds, a key that was set.
 * A missing one is a fault of tccl, which its stack names.
 */
export function defined<T>(value: T | undefined): T {
  if (value === undefined) throw new InternalError('INTERNAL', 'a value that cannot be missing is missing');
  return value;
}
