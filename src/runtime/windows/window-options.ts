import type { BlockingCallOptions } from '../algorithms/arguments.js';
import type { FurtherOperator, NamedOperator } from '../device/types.js';

/** Options of a put, whose `signal` is one of the window: an AbortSignal goes to {@link Window.flush}. */
export interface PutOptions extends BlockingCallOptions {
  /** Signals the target once the data have arrived. Default false. */
  readonly signal?: boolean | undefined;
}

/** Operator that combines a given element with one of a window; `replace` stores the given one. */
export type WindowOperator = Exclude<NamedOperator | FurtherOperator, 'avg' | 'minloc' | 'maxloc'> | 'replace';
