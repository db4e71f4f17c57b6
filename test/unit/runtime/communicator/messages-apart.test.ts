import fc from 'fast-check';
import { expect, test } from 'vitest';
import { areInOrder, checkApart, type GroupedMessage } from '../../../../src/runtime/communicator/messages-apart.js';
import { uint8 } from '../../../../src/runtime/device/types.js';
import { ranks, type Rank } from '../algorithms/ranks-in-one-thread.js';

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

test('messages whose arrays follow each other need no comparison with all others, and never overlap', () => {
  const [{ segment, p2p }] = ranks(1) as [Rank];
  const memories = [segment.alloc(Uint8Array, 64), new Uint8Array(64), new Uint8Array(64)];
  const inOrder = (messages: readonly GroupedMessage[]): boolean =>
    areInOrder(messages.map(({ sends, array }) => p2p.prepare(sends, 0, array, uint8, undefined, undefined)));
  const part = (sends: boolean, memory: number, from: number, length: number): GroupedMessage => ({
    member,
    sends,
    peer: 0,
    array: memories[memory]!.subarray(from, from + length),
  });
  const anyPart = fc
    .tuple(fc.boolean(), fc.nat(2), fc.nat(50), fc.integer({ min: 1, max: 12 }))
    .map(([sends, memory, from, length]) => part(sends, memory, from, length));
  fc.assert(
    fc.property(fc.array(anyPart, { maxLength: 4 }), (messages) => {
      expect(inOrder(messages) && overlaps(messages)).toBe(false);
    }),
    { numRuns: 1000 },
  );
  for (const memory of [0, 1]) {
    const parts = [0, 8, 16].map((from) => part(false, memory, from, 8));
    expect([inOrder(parts), inOrder(parts.toReversed()), inOrder([...parts, part(true, memory, 20, 8)])]).toEqual([
      true,
      true,
      false,
    ]);
  }
});
