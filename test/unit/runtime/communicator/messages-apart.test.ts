import fc from 'fast-check';
import { expect, test } from 'vitest';
import { checkApart, type GroupedMessage } from '../../../../src/runtime/communicator/messages-apart.js';

const member = { rank: 3 };
const buffers = [new ArrayBuffer(64), new ArrayBuffer(64)];
const message = (sends: boolean, buffer: number, from: number, length: number): GroupedMessage => ({
  member,
  sends,
  peer: from % 4,
  array: new Uint8Array(buffers[buffer] ?? new ArrayBuffer(64), from, length),
});

function isRefused(messages: readonly GroupedMessage[]): boolean {
  try {
    checkApart('group', messages);
    return false;
  } catch (error) {
    expect(error).toMatchObject({ code: 'BUFFER_OVERLAP', rank: 3 });
    return true;
  }
}

/** True if two messages share an element, and one of them is received. */
function overlaps(messages: readonly GroupedMessage[]): boolean {
  const bytesOf = ({ array }: GroupedMessage): number[] => Array.from({ length: array.length }, (_, i) => array.byteOffset + i);
  return messages.some((a, i) =>
    messages.slice(i + 1).some((b) => {
      if (a.array.buffer !== b.array.buffer || (a.sends && b.sends)) return false;
      const bytes = new Set(bytesOf(a));
      return bytesOf(b).some((byte) => bytes.has(byte));
    }),
  );
}

test('messages of a group are refused if one is received into elements that another one uses', () => {
  const anyMessage = fc
    .tuple(fc.boolean(), fc.integer({ min: 0, max: 1 }), fc.integer({ min: 0, max: 50 }), fc.integer({ min: 0, max: 12 }))
    .map(([sends, buffer, from, length]) => message(sends, buffer, from, length));
  fc.assert(
    fc.property(fc.array(anyMessage, { maxLength: 7 }), (messages) => {
      expect(isRefused(messages)).toBe(overlaps(messages));
    }),
    { numRuns: 300 },
  );
});

test('the error names both arrays', () => {
  expect(() => checkApart('exchange', [message(true, 0, 1, 8), message(true, 1, 0, 8), message(false, 0, 6, 8)])).toThrow(
    'exchange: the array sent to rank 1 and the array received from rank 2 overlap by 3 bytes; pass arrays apart',
  );
});
