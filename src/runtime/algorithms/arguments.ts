import { wasFreed } from '../device/shared-arrays.js';
import {
  dataTypeOf,
  movedTypeOf,
  type DataType,
  type DataTypeName,
  type MovableArray,
  type NumericArray,
} from '../device/types.js';
import { counted } from '../../counted.js';
import { describeValue } from '../../describe-value.js';
import { InvalidArgumentError, InvalidUsageError, namingCall } from '../../errors.js';
import { checkOptionNames } from '../../option-names.js';
import type { PlatformAbortSignal } from '../platform/declarations.js';

/** Options of every collective. */
export interface CallOptions {
  /** The type of the elements. Default: that of the array's class. */
  readonly type?: DataTypeName | undefined;
}

/** Limit of a call that blocks. */
export interface BlockingLimits {
  /** Ends the call with `TIMEOUT` after so many milliseconds. Default: `comm.timeoutMs`, counted while nothing moves. */
  readonly timeoutMs?: number | undefined;
}

/** Limits of a call: docs/guides/cancel.md has the rule. */
export interface CallLimits extends BlockingLimits {
  /** Cancels the call, which rejects with the signal's reason. */
  readonly signal?: PlatformAbortSignal | undefined;
}

/** Options of a blocking form. */
export interface BlockingCallOptions extends CallOptions, BlockingLimits {}

/** Options of a promise form. */
export interface TimedCallOptions extends CallOptions, CallLimits {}

/** Option of a message. */
export interface TagOption {
  /** Whole number from 0 to 16777215. A send has tag 0 by default; a receive without a tag takes a message of any. */
  readonly tag?: number | undefined;
}

const callOptionNames: readonly (keyof CallOptions)[] = ['type'];
export const timedOptionNames: readonly (keyof TimedCallOptions)[] = ['type', 'signal', 'timeoutMs'];
const sendNames: readonly string[] = [...timedOptionNames, 'tag'];
const receiveNames: readonly string[] = [...timedOptionNames, 'atMost', 'tag'];
/** Names of the options of messages with arrays. */
const messageOptionNames: Readonly<Record<string, readonly string[]>> = {
  send: sendNames,
  sendSync: sendNames,
  recv: receiveNames,
  recvSync: receiveNames,
  sendRecv: sendNames,
  sendRecvSync: sendNames,
  recvAny: receiveNames,
  recvAnySync: receiveNames,
};
/** Throws for wrong options of a call with arrays. */
export function checkMessageOptions(call: string, options: object): void {
  checkCallOptions(call, options, messageOptionNames[call] ?? timedOptionNames);
}

const limitNames: readonly (keyof CallLimits)[] = ['signal', 'timeoutMs'];

/** Throws ARGUMENT_TYPE, ARGUMENT_RANGE or UNKNOWN_NAME for options of a call that do not exist or have a wrong value. */
export function checkCallOptions(call: string, options: object, names: readonly string[] = callOptionNames): void {
  checkOptionNames(call, options, names, names.includes('type') ? "{ type: 'float16' }" : '{ timeoutMs: 1000 }');
  checkLimitValues(call, options);
}

/** Throws for wrong limits of a call without other options. */
export function checkLimits(call: string, options: object | undefined): void {
  if (options !== undefined) checkCallOptions(call, options, limitNames);
}

/** Throws for wrong options of a call that has a tag and limits; returns the tag. */
export function checkTagged(call: string, options: (TagOption & CallLimits) | undefined): number | undefined {
  if (options === undefined) return undefined;
  checkCallOptions(call, options, taggedNames);
  return checkTag(call, options.tag);
}

const taggedNames: readonly string[] = [...limitNames, 'tag'];

/** Throws ARGUMENT_TYPE or ARGUMENT_RANGE for a wrong tag; returns it. */
export function checkTag(call: string, tag: number | undefined): number | undefined {
  if (tag === undefined || (Number.isInteger(tag) && tag >= 0 && tag <= MOST_TAG)) return tag;
  throw new InvalidArgumentError(
    typeof tag === 'number' ? 'ARGUMENT_RANGE' : 'ARGUMENT_TYPE',
    `${call}: tag is a whole number from 0 to ${MOST_TAG}, not ${describeValue(tag)}`,
  );
}

/** Largest tag: the header of a message has 24 bits for it. */
const MOST_TAG = 2 ** 24 - 1;

function checkLimitValues(call: string, { signal, timeoutMs }: CallLimits): void {
  if (signal !== undefined) checkSignal(call, signal);
  if (timeoutMs !== undefined) checkTimeout(call, timeoutMs);
}

export function checkSignal(call: string, signal: unknown): void {
  if (signal instanceof AbortSignal) return;
  throw new InvalidArgumentError('ARGUMENT_TYPE', `${call}: signal is an AbortSignal, not ${describeValue(signal)}`);
}

export function checkTimeout(call: string, timeoutMs: unknown): void {
  if (!(typeof timeoutMs === 'number' && timeoutMs > 0 && timeoutMs <= LONGEST_CALL_MS)) {
    throw new InvalidArgumentError(
      'ARGUMENT_RANGE',
      `${call}: timeoutMs is a number of milliseconds above 0, 24 days at most, not ${describeValue(timeoutMs)}`,
    );
  }
}

/** Longest time-out of a call: timers take no more. */
const LONGEST_CALL_MS = 2 ** 31 - 1;

/**
 * The type of an array's elements. Throws ARGUMENT_TYPE, UNKNOWN_NAME or BUFFER_DETACHED.
 * @param typeOf checks which arrays the call takes
 */
export function checkArray(call: string, array: NumericArray, options: CallOptions | undefined, typeOf = dataTypeOf): DataType {
  if (options !== undefined) {
    checkMessageOptions(call, options);
  }
  const type = typeOf(array, options?.type, call);
  if (array.length === 0) checkAlive(call, array);
  if (wasFreed(array)) {
    throw namingCall(
      new InvalidArgumentError(
        'BUFFER_DETACHED',
        `${call}: the array was freed, and its memory may be in use by another array; pass an array that was not freed`,
      ),
    );
  }
  return type;
}

/** {@link checkArray} for a call that combines nothing. */
export function checkMoved(call: string, array: NumericArray, options: CallOptions | undefined): DataType {
  return checkArray(call, array, options, movedTypeOf);
}

/** Converts a DataView or an ArrayBuffer to an array of its bytes. The check of the type refuses other values. */
export function asElements(call: string, array: MovableArray): NumericArray {
  // Messages pass here each time, so typed arrays come first.
  if (ArrayBuffer.isView(array) && !(array instanceof DataView)) return array as NumericArray;
  if (array instanceof DataView) return bytesOf(call, () => new Uint8Array(array.buffer, array.byteOffset, array.byteLength));
  if (array instanceof ArrayBuffer || array instanceof SharedArrayBuffer)
    return bytesOf(call, () => new Uint8Array(array, 0, array.byteLength));
  return array;
}

function bytesOf(call: string, view: () => Uint8Array): Uint8Array {
  try {
    return view();
  } catch (cause) {
    throw gone(call, cause);
  }
}

/** Throws if the output's elements have another type than the input's. */
export function checkSameType(
  call: string,
  type: DataType,
  recv: NumericArray,
  options: CallOptions | undefined,
  typeOf = dataTypeOf,
): void {
  const other = checkArray(call, recv, options, typeOf);
  if (other !== type) {
    throw new InvalidArgumentError(
      'ARGUMENT_TYPE',
      `${call}: input is a ${type.array.name}, output a ${other.array.name}; both must have one type`,
    );
  }
}

/** Throws if an output is too short. `what` names the content that it must have room for. */
export function checkRoom(call: string, recv: NumericArray, wanted: number, what: string): void {
  if (recv.length < wanted) {
    throw new InvalidArgumentError(
      'BUFFER_SIZE',
      `${call}: the output has ${counted(recv.length, 'element')}, but ${what} needs ${String(wanted)}; pass a longer one`,
    );
  }
}

/** Throws if an input has another length. `what` names the parts of the input. */
export function checkLength(call: string, send: NumericArray, wanted: number, what: string): void {
  if (send.length !== wanted) {
    throw new InvalidArgumentError(
      'BUFFER_SIZE',
      `${call}: the input has ${counted(send.length, 'element')}, but ${what} makes ${String(wanted)}; pass an array (or subarray) of that length`,
    );
  }
}

/**
 * Throws if input and output share elements, unless the input is the part of the output (or the output the part of the input)
 * that works in place.
 *
 * @param sendElements number of elements of the input that are read
 * @param recvElements number of elements of the output that are written
 * @param inPlaceAt offset in elements of the input within the output when the call works in place; negative if the output
 *   lies within the input
 */
export function checkOverlap(
  call: string,
  send: NumericArray,
  sendElements: number,
  recv: NumericArray,
  recvElements: number,
  inPlaceAt: number,
): void {
  if (send.buffer !== recv.buffer) return;
  const elementBytes = send.BYTES_PER_ELEMENT;
  const distance = send.byteOffset - recv.byteOffset;
  const shared = Math.min(distance + sendElements * elementBytes, recvElements * elementBytes) - Math.max(distance, 0);
  if (shared <= 0 || distance === inPlaceAt * elementBytes) return;
  const place =
    inPlaceAt === 0 && sendElements === recvElements
      ? 'pass the same array twice to work in place, or'
      : inPlaceAt > 0 || sendElements < recvElements
        ? `pass the output's elements from ${inPlaceAt} on as input to work in place, or`
        : `pass the input's elements from ${Math.abs(inPlaceAt)} on as output to work in place, or`;
  throw new InvalidUsageError(
    'BUFFER_OVERLAP',
    `${call}: input and output overlap by ${String(shared)} bytes; ${place} pass arrays apart`,
  );
}

export function checkRoot(call: string, root: number, nRanks: number): void {
  if (!Number.isInteger(root) || root < 0 || root >= nRanks) {
    throw new InvalidArgumentError(
      'ROOT_RANGE',
      `${call}: root is ${describeValue(root)}, but ranks go from 0 to ${String(nRanks - 1)}` +
        (typeof root === 'object' ? '; options come after the root' : ''),
    );
  }
}

/** An array without elements is either empty or detached; only a detached one refuses to be filled. */
function checkAlive(call: string, array: NumericArray): void {
  try {
    array.set([]);
  } catch (cause) {
    throw gone(call, cause);
  }
}

function gone(call: string, cause: unknown): InvalidArgumentError {
  return namingCall(
    new InvalidArgumentError(
      'BUFFER_DETACHED',
      `${call}: an array's memory was transferred to another thread or resized; pass an array that was not detached`,
      { cause },
    ),
  );
}

export function checkPeer(call: string, peer: number, nRanks: number): void {
  if (!Number.isInteger(peer) || peer < 0 || peer >= nRanks) {
    throw new InvalidArgumentError(
      'ARGUMENT_RANGE',
      Number.isInteger(peer)
        ? `${call}: there is no rank ${String(peer)}; ranks go from 0 to ${String(nRanks - 1)}`
        : `${call}: a rank is a whole number from 0 to ${String(nRanks - 1)}, not ${describeValue(peer)}`,
    );
  }
}

/** Array.isArray without turning the elements of a readonly array into `any`. */
export function isArray(value: unknown): value is readonly number[] {
  return Array.isArray(value);
}
