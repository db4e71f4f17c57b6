import { describeValue } from '../../describe-value.js';
import type { Segment } from '../device/segment.js';
import type { DataType, NumericArray } from '../device/types.js';
import { InvalidArgumentError, InvalidUsageError, namingCall } from '../../errors.js';
import { checkOptionNames } from '../../option-names.js';
import { addCallerFrames } from '../caller-stack.js';
import {
  checkCallOptions,
  checkMoved,
  checkPeer,
  checkTimeout,
  timedOptionNames,
  type CallOptions,
  type TimedCallOptions,
} from '../algorithms/arguments.js';
import type { PutOptions } from './put-options.js';

/** Checks the array of a new window. Throws ARGUMENT_TYPE, UNKNOWN_NAME or BUFFER_DETACHED. */
export function checkWindow(
  array: NumericArray,
  options: TimedCallOptions | undefined,
  segment: Segment,
): { readonly type: DataType; readonly address: number } {
  if (options !== undefined) checkCallOptions('window', options, timedOptionNames);
  const type = checkMoved('window', array, options);
  const address = segment.offsetOf(array);
  if (address >= 0) return { type, address };
  throw new InvalidArgumentError(
    'ARGUMENT_TYPE',
    'window: others can only write to memory that is shared; pass an array from alloc() of this communicator',
  );
}

/** Throws if an array has another type than the window. `what` names the array in the error. */
export function checkWindowArray(
  call: string,
  what: string,
  array: NumericArray,
  windowType: DataType,
  options: CallOptions | undefined,
  check: (call: string, options: object) => void,
): void {
  if (options !== undefined) check(call, options);
  const type = checkMoved(call, array, { type: options?.type ?? windowType.name });
  if (type !== windowType) {
    throw new InvalidArgumentError(
      'ARGUMENT_TYPE',
      `${call}: the ${what} holds ${type.name}, but the window is of ${windowType.name}; pass an array of that type`,
    );
  }
}

/** Throws unless `count` elements from `targetOffset` on are within the `length` elements of rank `peer`. */
export function checkTarget(call: string, count: number, targetOffset: number, peer: number, length: number): void {
  if (!Number.isSafeInteger(targetOffset) || targetOffset < 0) {
    throw new InvalidArgumentError(
      'ARGUMENT_RANGE',
      `${call}: the target's offset is ${describeValue(targetOffset)}; pass a whole number of elements from 0`,
    );
  }
  if (targetOffset + count > length) {
    throw new InvalidArgumentError(
      'BUFFER_SIZE',
      `${call}: ${count} elements at offset ${String(targetOffset)} are not within the ${length} elements that rank ${peer} has in the window`,
      { rank: peer },
    );
  }
}

/** The ranks whose signals are awaited, without duplicates. */
export function checkSenders(call: string, peers: number | readonly number[], count: number, nRanks: number): readonly number[] {
  const from = Array.isArray(peers) ? [...new Set(peers as readonly number[])] : [peers as number];
  for (const peer of from) checkPeer(call, peer, nRanks);
  if (!Number.isInteger(count) || count < 1 || count >= 2 ** 30) {
    throw new InvalidArgumentError('ARGUMENT_RANGE', `${call}: ${describeValue(count)} is not a number of signals from 1`);
  }
  return from;
}

const putOptionNames: readonly (keyof PutOptions)[] = ['type', 'signal', 'timeoutMs'];

export function checkPutOptions(call: string, options: PutOptions): void {
  checkOptionNames(call, options, putOptionNames, '{ signal: true }');
  const { signal, timeoutMs } = options;
  if (timeoutMs !== undefined) checkTimeout(call, timeoutMs);
  if (signal === undefined || typeof signal === 'boolean') return;
  throw new InvalidArgumentError(
    'ARGUMENT_TYPE',
    `${call}: signal says whether to signal the target, true or false, not ${describeValue(signal)}; flush takes an AbortSignal`,
  );
}

export function checkGetOptions(call: string, options: object): void {
  checkCallOptions(call, options, timedOptionNames);
}

/** Refuses a limit of a blocking put or get, which mostly finishes immediately. */
export function refuseLimits(call: string, timeoutMs: number | undefined): void {
  if (timeoutMs === undefined) return;
  throw addCallerFrames(
    namingCall(new InvalidUsageError('UNSUPPORTED', `${call}: it takes no timeoutMs; leave it out, comm.timeoutMs limits it`)),
  );
}
