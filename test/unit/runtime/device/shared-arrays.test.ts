import { setImmediate as turn } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { Segment } from '../../../../src/runtime/device/segment.js';
import { createMemory } from '../../../../src/runtime/device/shared-memory.js';
import type { TypedArray } from '../../../../src/runtime/device/types.js';

const MIB = 2 ** 20;
const small = (): Segment => Segment.alone(createMemory(1024));
const inUse = (segment: Segment): number => Math.round(segment.memoryUse().used.arrays / MIB);

/** Allocates arrays that nothing keeps, in a turn of the event loop that has ended when it resolves. */
async function allocateAndDrop(segment: Segment, count: number): Promise<void> {
  for (let i = 0; i < count; i++) segment.alloc(Uint8Array, 4 * MIB);
  await turn();
}

test('arrays that a program drops make room for others, without end', async () => {
  const segment = small();
  for (let round = 0; round < 20; round++) await allocateAndDrop(segment, 10);
  segment.collectArrays();
  expect(inUse(segment)).toBe(0);
});

test('arrays that a turn of the event loop drops make room only after it, which the error says', async () => {
  const segment = small();
  const fill = (): void => {
    for (let i = 0; i < 100; i++) segment.alloc(Uint8Array, 4 * MIB);
  };
  expect(fill).toThrow(
    /; free arrays with comm\.free or using \(those that a loop of blocking calls drops are collected only after an await\)/,
  );
  await turn();
  segment.alloc(Uint8Array, 40 * MIB);
});

test('parts, other views and the buffer of an array keep its memory', async () => {
  const segment = small();
  const part = segment
    .alloc(Uint8Array, 4 * MIB)
    .fill(1)
    .subarray(5, 10);
  const view = new DataView(segment.alloc(Uint8Array, 4 * MIB).fill(2).buffer, part.byteOffset, 1);
  const { buffer } = segment.alloc(Uint8Array, 4 * MIB);
  for (let round = 0; round < 4; round++) await allocateAndDrop(segment, 10);
  segment.collectArrays();
  expect(inUse(segment)).toBe(12);
  expect([...part]).toEqual([1, 1, 1, 1, 1]);
  expect([segment.offsetOf(part), view.byteLength, buffer.byteLength]).toEqual([part.byteOffset, 1, segment.bytes]);
});

test('arrays that something uses are collected only afterwards; those of failed calls, and of other threads, never', async () => {
  const segment = small();
  let isUsed = true;
  const release = segment.keep({ uses: () => isUsed, why: 'in use' });
  await allocateAndDrop(segment, 1);
  segment.collectArrays();
  expect(inUse(segment)).toBe(4);
  isUsed = false;
  segment.collectArrays();
  expect(inUse(segment)).toBe(0);
  release();
  await allocateAndDrop(segment, 1);
  segment.abandonArrays(() => true);
  ((): void => segment.keepArraysIn({ results: new Map([[1, [segment.alloc(Uint8Array, 4 * MIB).subarray(1)]]]) }))();
  await turn();
  segment.collectArrays();
  expect(inUse(segment)).toBe(8);
});

test('the end of a block with using frees an array once, and refuses one in use', () => {
  const segment = small();
  const dispose = (Symbol as { readonly dispose?: symbol }).dispose;
  if (dispose === undefined) return;
  const end = (array: TypedArray): void => (array as unknown as Record<symbol, () => void>)[dispose]?.();
  const x = segment.alloc(Uint8Array, 4 * MIB);
  const release = segment.keep({ uses: () => true, why: 'a call is under way' });
  expect(() => end(x)).toThrow('free: a call is under way');
  release();
  end(x);
  end(x);
  expect(inUse(segment)).toBe(0);
  expect(() => segment.free(x)).toThrow('this one was freed before');
  const y = segment.alloc(Uint8Array, 4 * MIB);
  segment.abandonArrays(() => true);
  end(y);
  expect(inUse(segment)).toBe(4);
});
