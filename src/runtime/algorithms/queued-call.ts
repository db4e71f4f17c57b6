import type { DataType, NumericArray } from '../device/types.js';
import type { CallDetails } from './call.js';

/** A collective that waits for its turn. */
export interface QueuedCall {
  readonly code: number;
  readonly type: DataType;
  readonly root: number;
  readonly send: NumericArray;
  readonly recv: NumericArray;
  readonly count: number;
  readonly details: CallDetails | undefined;
  /** The calls that it stands for, where it is several in one. */
  readonly parts?: readonly QueuedCall[];
  /** Done right before it begins, and right after it has ended. */
  readonly before?: () => void;
  readonly after?: () => void;
}
