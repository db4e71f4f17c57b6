import { expect, test } from 'vitest';
import type { CallDetails } from '../../../../src/runtime/algorithms/call.js';
import { engineThreadBuffer, EngineThreadMemory } from '../../../../src/runtime/threads/engine-thread-memory.js';

/** The details that an engine thread gets of a call with these. */
function handedOver(details: CallDetails | undefined, nRanks = 2): CallDetails | undefined {
  const buffer = engineThreadBuffer(nRanks);
  new EngineThreadMemory(buffer).post({ code: 1, root: 0, send: 64, sendLength: 2, recv: 64, recvLength: 2, count: 2, details });
  return new EngineThreadMemory(buffer).take(0).details;
}

test.each([2.5, -0, 0, NaN, Infinity, -Infinity, 5e-324, Number.MAX_VALUE, 2n ** 63n - 1n, -(2n ** 63n)])(
  'an engine thread gets the scalar %s unchanged',
  (scalar) => {
    expect(handedOver({ scalar })?.scalar).toBe(scalar);
  },
);

test('an engine thread gets the largest counts and displacements of many ranks', () => {
  const counts = Array.from({ length: 500 }, (_, rank) => Number.MAX_SAFE_INTEGER - rank);
  const details = { counts, displacements: counts, recvCounts: counts, recvDisplacements: counts };
  expect(handedOver(details, 500)).toEqual(details);
});

test('a call without counts and displacements has none in the thread', () => {
  expect(handedOver(undefined)).toBeUndefined();
});

test('a rank reads which ranks its engine thread waits for', () => {
  const buffer = engineThreadBuffer(5);
  const [rank, engine] = [new EngineThreadMemory(buffer), new EngineThreadMemory(buffer)];
  expect(rank.late()).toEqual([]);
  engine.setLate([1, 4]);
  expect(rank.late()).toEqual([1, 4]);
  engine.setLate([4]);
  expect(rank.late()).toEqual([4]);
});
