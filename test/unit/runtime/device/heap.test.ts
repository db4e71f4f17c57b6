import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Heap } from '../../../../src/runtime/device/heap.js';

test('allocations are aligned, inside the range, and never overlap, in any order of allocating and freeing', () => {
  fc.assert(
    fc.property(fc.array(fc.record({ bytes: fc.nat(5000), freeFirst: fc.boolean() }), { maxLength: 60 }), (steps) => {
      const heap = new Heap(4096, 4096 + 65536);
      const live: { from: number; to: number }[] = [];
      for (const step of steps) {
        if (step.freeFirst && live.length > 0) expect(heap.free(live.shift()!.from)).toBe(true);
        const from = heap.allocate(step.bytes);
        if (from === undefined) continue;
        expect(from % 128).toBe(0);
        expect(from).toBeGreaterThanOrEqual(4096);
        expect(from + step.bytes).toBeLessThanOrEqual(heap.to);
        for (const other of live) expect(from >= other.to || from + step.bytes <= other.from).toBe(true);
        live.push({ from, to: from + Math.max(1, step.bytes) });
      }
      for (const range of live) heap.free(range.from);
      expect(heap.usedBytes).toBe(0);
      expect(heap.largestFree()).toBe(65536 - 640);
    }),
  );
});

test('freeing twice or freeing a foreign address is refused', () => {
  const heap = new Heap(0, 65536);
  const address = heap.allocate(100)!;
  expect(heap.free(address + 128)).toBe(false);
  expect(heap.free(address)).toBe(true);
  expect(heap.free(address)).toBe(false);
});

test('the largest allocation that is reported to fit does, and no larger one', () => {
  fc.assert(
    fc.property(fc.integer({ min: 100, max: 3000 }), (units) => {
      const room = units * 128;
      const largest = new Heap(0, room).largestFree();
      expect(new Heap(0, room).allocate(largest)).toBe(0);
      expect(new Heap(0, room).allocate(largest + 128)).toBeUndefined();
    }),
  );
});

test('a large array and the next one are offset by at least half a page within their pages', () => {
  const heap = new Heap(0, 2 ** 24);
  for (const bytes of [65536, 2 ** 20, 2 ** 21]) {
    const first = heap.allocate(bytes)!;
    const second = heap.allocate(bytes)!;
    const ahead = (second - first) % 4096;
    expect(ahead).toBeGreaterThanOrEqual(2048);
    expect(ahead).toBeLessThan(2304);
  }
});
