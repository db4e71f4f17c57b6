import { describeValue } from '../../describe-value.js';
import { InvalidArgumentError } from '../../errors.js';
import { checkOptionNames } from '../../option-names.js';
import type { PlatformAbortSignal } from '../platform/declarations.js';

/** The progress of `pool.map`: numbers of items. */
export interface MapProgress {
  /** Number of items whose results have come. */
  readonly done: number;
  /** Number of all items. */
  readonly total: number;
}

/** Options of `pool.map`. */
export interface MapOptions {
  /** When it is aborted, the call rejects with its reason; ranks end the item that they are at and begin no other. */
  readonly signal?: PlatformAbortSignal | undefined;
  /** Called when results have come, of one item or several. What it throws ends the map. */
  readonly onProgress?: ((progress: MapProgress) => void) | undefined;
}

const optionNames = Object.keys({ signal: true, onProgress: true } satisfies Record<keyof MapOptions, true>);
const EXAMPLE = "pool.map('digest', files, { signal })";

/** @throws InvalidArgumentError `UNKNOWN_NAME`, `ARGUMENT_TYPE` */
export function checkedMapOptions(options: MapOptions): Omit<MapOptions, 'signal'> & { readonly signal?: AbortSignal } {
  checkOptionNames('map', options, optionNames, EXAMPLE);
  const { signal, onProgress } = options;
  if (signal !== undefined && !(signal instanceof AbortSignal))
    throw new InvalidArgumentError('ARGUMENT_TYPE', `map: signal is an AbortSignal, not ${describeValue(signal)}`);
  if (onProgress !== undefined && typeof onProgress !== 'function')
    throw new InvalidArgumentError('ARGUMENT_TYPE', `map: onProgress is a function, not ${describeValue(onProgress)}`);
  return { onProgress, ...(signal === undefined ? {} : { signal: signal }) };
}

/** @throws InvalidArgumentError `ARGUMENT_TYPE` */
export function checkedItems(items: unknown): readonly unknown[] {
  if (typeof items === 'object' && items !== null && Symbol.iterator in items) return [...(items as Iterable<unknown>)];
  throw new InvalidArgumentError(
    'ARGUMENT_TYPE',
    `map takes an array or another iterable of items, as in ${EXAMPLE}, not ${describeValue(items)}`,
  );
}
