import type { DataType, NumericArray } from '../device/types.js';
import type { CallDetails } from './call.js';

/** A collective as engines get it; call.ts defines the code, and `root` and `count` of each kind. */
export interface EngineCall {
  readonly code: number;
  readonly type: DataType;
  readonly root: number;
  /** Arrays that are not used on this rank may have any length; those of a barrier are empty. */
  readonly send: NumericArray;
  readonly recv: NumericArray;
  readonly count: number;
  /** Of V forms, premulSum, and calls with a limit. */
  readonly details?: CallDetails | undefined;
}

/** A collective in the queue. */
export interface QueuedCall extends EngineCall {
  /** The calls that were fused into this one. */
  readonly parts?: readonly QueuedCall[];
  /** Called right before the call begins, and right after it has ended. */
  readonly before?: () => void;
  readonly after?: () => void;
  /** The calls that take its place in the queue when it has ended, before all others. */
  readonly chain?: CallChain | undefined;
}

/** Calls in sequence, without another call of the communicator between them. */
export interface CallChain {
  /** The next call, which depends on the result of the last one. An error ends the communicator. */
  next(): QueuedCall | undefined;
  /** Arrays that later calls use. */
  arrays(): readonly NumericArray[];
}

/** Arrays that a call uses, and those of the calls that take its place. */
export function arraysOf({ send, recv, chain }: QueuedCall): NumericArray[] {
  return [send, recv, ...(chain?.arrays() ?? [])];
}
