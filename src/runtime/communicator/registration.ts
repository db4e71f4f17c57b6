import type { TypedArray } from '../device/types.js';

/** Handle of a registered array: register() returns it, deregister() takes it. */
export interface Registration {
  /** The registered array. */
  readonly array: TypedArray;
  /**
   * True if calls work on the array without copies, which needs an array from alloc() or a view of one. For all others
   * registration changes nothing: existing JavaScript memory cannot be shared later, so such arrays are copied through staging.
   */
  readonly zeroCopy: boolean;
}
