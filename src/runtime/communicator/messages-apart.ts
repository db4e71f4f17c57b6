import type { NumericArray } from '../device/types.js';
import type { Transfer } from '../messages/p2p-transfer.js';
import { InvalidUsageError } from '../../errors.js';
import { errorOfCall } from '../caller-stack.js';

/** A message of a group. */
export interface GroupedMessage {
  readonly member: { readonly rank: number };
  readonly sends: boolean;
  readonly peer: number;
  readonly array: NumericArray;
}

/**
 * True if the messages' arrays are known to be apart, because they follow each other in memory, in either direction, or all are
 * sent; otherwise checkApart() finds out.
 */
export function areInOrder(messages: readonly Transfer[]): boolean {
  let isSent = true;
  for (const { sends } of messages) isSent &&= sends;
  return isSent || follow(messages, 1) || follow(messages, -1);
}

/** True if the arrays follow each other upwards (1) or downwards (-1). */
function follow(messages: readonly Transfer[], step: 1 | -1): boolean {
  for (let i = 1; i < messages.length; i++) {
    const low = messages[step > 0 ? i - 1 : i];
    const high = messages[step > 0 ? i : i - 1];
    if (low === undefined || high?.operand.isBehind(low.operand, low.bytes) !== true) return false;
  }
  return true;
}

/**
 * Throws if a message would be received into elements that another message of the group uses: they are in flight at the same
 * time.
 *
 * @throws InvalidUsageError `BUFFER_OVERLAP`
 */
export function checkApart(call: string, messages: readonly GroupedMessage[]): void {
  if (messages.length <= 2) {
    // The most common group, without another array.
    const first = messages[0];
    const second = messages[1];
    if (first === undefined || second === undefined || (first.sends && second.sends)) return;
    if (overlappingBytes(first.array, second.array) > 0) throw overlap(call, first, second);
    return;
  }
  const ofBuffers = new Map<ArrayBufferLike, GroupedMessage[]>();
  for (const message of messages) {
    const { buffer } = message.array;
    const others = ofBuffers.get(buffer);
    if (others === undefined) ofBuffers.set(buffer, [message]);
    else others.push(message);
  }
  for (const others of ofBuffers.values()) checkSweep(call, others);
}

/** Compares each array with those before it in memory that reach farthest. */
function checkSweep(call: string, messages: GroupedMessage[]): void {
  messages.sort((a, b) => a.array.byteOffset - b.array.byteOffset);
  let sent: GroupedMessage | undefined;
  let received: GroupedMessage | undefined;
  for (const message of messages) {
    for (const other of message.sends ? [received] : [received, sent]) {
      if (other !== undefined && overlappingBytes(other.array, message.array) > 0) throw overlap(call, other, message);
    }
    if (message.sends) sent = farther(sent, message);
    else received = farther(received, message);
  }
}

function farther(a: GroupedMessage | undefined, b: GroupedMessage): GroupedMessage {
  return a !== undefined && endOf(a.array) > endOf(b.array) ? a : b;
}

function endOf(array: NumericArray): number {
  return array.byteOffset + array.byteLength;
}

/** Number of bytes that two arrays share. */
export function overlappingBytes(a: NumericArray, b: NumericArray): number {
  const bytes = Math.min(endOf(a), endOf(b)) - Math.max(a.byteOffset, b.byteOffset);
  return bytes > 0 && a.buffer === b.buffer ? bytes : 0;
}

function overlap(call: string, a: GroupedMessage, b: GroupedMessage): InvalidUsageError {
  const text = ({ sends, peer }: GroupedMessage): string =>
    sends ? `the array sent to rank ${peer}` : `the array received from rank ${peer}`;
  const [first, second] = a.sends ? [a, b] : [b, a];
  return errorOfCall(
    new InvalidUsageError(
      'BUFFER_OVERLAP',
      `${call}: ${text(first)} and ${text(second)} overlap by ${overlappingBytes(a.array, b.array)} bytes; pass arrays apart`,
    ),
    a.member.rank,
  );
}
