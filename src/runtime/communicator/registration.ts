import type { NumericArray } from '../device/types.js';

/** Handle of a registered array: register() returns it, deregister() takes it. */
export interface Registration {
  /** The registered array. */
  readonly array: NumericArray;
  /**
   * True if calls work on the array where it lies, which only arrays from alloc(), and views of them, make possible. For
   * all others registering changes nothing: memory that JavaScript has already cannot be shared later, so such arrays go
   * through staging, registered or not.
   */
  readonly zeroCopy: boolean;
}
