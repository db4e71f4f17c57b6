import type { DataType, NumericArray } from '../device/types.js';
import type { CallDetails } from './call.js';

/** A collective in the queue. */
export interface QueuedCall {
  readonly code: number;
  readonly type: DataType;
  readonly root: number;
  readonly send: NumericArray;
  readonly recv: NumericArray;
  readonly count: number;
  readonly details: CallDetails | undefined;
  /** The calls that were fused into this one. */
  readonly parts?: readonly QueuedCall[];
  /** Called right before the call begins, and right after it has ended. */
  readonly before?: () => void;
  readonly after?: () => void;
}
