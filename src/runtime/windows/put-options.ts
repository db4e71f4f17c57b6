import type { BlockingCallOptions } from '../algorithms/arguments.js';

/** Options of a put, whose `signal` is one of the window: an AbortSignal goes to {@link Window.flush}. */
export interface PutOptions extends BlockingCallOptions {
  /** Signals the target once the data have arrived. Default false. */
  readonly signal?: boolean | undefined;
}
