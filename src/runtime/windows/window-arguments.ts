import { counted } from '../../counted.js';
import { describeValue } from '../../describe-value.js';
import type { Segment } from '../device/segment.js';
import { checkInteger } from '../device/scalar.js';
import {
  canCombine,
  dataTypes,
  guessedOperator,
  operatorCode,
  REPLACE,
  type DataType,
  type NumericArray,
} from '../device/types.js';
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
import type { PutOptions, WindowOperator } from './window-options.js';

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
      `${call}: ${counted(count, 'element')} at offset ${String(targetOffset)} ${count === 1 ? 'is' : 'are'} not within the ${counted(length, 'element')} that rank ${peer} has in the window`,
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

/** Throws if an array is not of the window's type. */
export function checkAccumulated(call: string, source: NumericArray, windowType: DataType): void {
  checkWindowArray(call, 'source', source, windowType, undefined, checkGetOptions);
}

const windowOperators: readonly WindowOperator[] = ['sum', 'prod', 'min', 'max', 'band', 'bor', 'bxor', 'land', 'lor', 'replace'];

/** The kernels' code of an operator. Throws UNKNOWN_NAME, or ARGUMENT_TYPE if it does not combine elements of a type. */
export function checkWindowOperator(call: string, operator: WindowOperator, type: DataType): number {
  if (operator === 'replace') return REPLACE;
  if (!windowOperators.includes(operator)) {
    const names = windowOperators.join(', ');
    const guess = guessedOperator(operator, windowOperators);
    throw new InvalidArgumentError(
      'UNKNOWN_NAME',
      `${call}: a window has no operator ${describeValue(operator)}${guess}; use one of ${names}`,
    );
  }
  if (!dataTypes.includes(type)) {
    throw new InvalidArgumentError(
      'ARGUMENT_TYPE',
      `${call}: elements of a window of ${type.name} can be replaced but not combined; make one of an Int32Array`,
    );
  }
  if (!canCombine(operator, type))
    throw new InvalidArgumentError(
      'ARGUMENT_TYPE',
      `${call}: ${operator} combines integers, not ${type.name}; make a window of integers, such as an Int32Array`,
    );
  return operatorCode(operator);
}

/** Throws unless a value is a number that an element of the type can be. */
export function checkElement(call: string, what: string, value: unknown, type: DataType): void {
  if (typeof value !== 'number' && typeof value !== 'bigint') {
    const example = type.array.BYTES_PER_ELEMENT === 8 && !type.isFloat ? '1n' : '1';
    const advice =
      typeof value === 'object' && value !== null ? '; pass one element, or call accumulate, which takes an array' : '';
    throw new InvalidArgumentError(
      'ARGUMENT_TYPE',
      `${call}: the ${what} is a number, such as ${example}, not ${describeValue(value)}${advice}`,
    );
  }
  if (!type.isFloat) checkInteger(call, type, value);
}

/** Throws unless elements of a type are compared by their bits. */
export function checkComparable(call: string, type: DataType): void {
  if (!type.isFloat) return;
  throw new InvalidArgumentError(
    'ARGUMENT_TYPE',
    `${call}: it compares integers, but the window is of ${type.name}; make one of integers beside it`,
  );
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
