import { expect, test } from 'vitest';
import type { CallDetails } from '../../../../src/runtime/algorithms/call.js';
import { callAt, engineThreadBuffer, EngineThreadMemory } from '../../../../src/runtime/threads/engine-thread-memory.js';
import { int32 } from '../../../../src/runtime/device/types.js';

/** Longer than a test may take. */
const LONG_MS = 10 ** 6;

/** The details that an engine thread gets of a call with these. */
function handedOver(details: CallDetails | undefined, nRanks = 2): CallDetails | undefined {
  const buffer = engineThreadBuffer(nRanks);
  new EngineThreadMemory(buffer).post({ code: 1, root: 0, send: 64, sendLength: 2, recv: 64, recvLength: 2, count: 2, details });
  return new EngineThreadMemory(buffer).take(0).details;
}

test.each([2.5, -0, 0, NaN, Infinity, -Infinity, 5e-324, Number.MAX_VALUE, 2n ** 63n - 1n, -(2n ** 63n)])(
  'an engine thread gets the scalar %s as it is',
  (scalar) => {
    expect(handedOver({ scalar })?.scalar).toBe(scalar);
  },
);

test('an engine thread gets the largest counts and displacements of many ranks', () => {
  const counts = Array.from({ length: 500 }, (_, rank) => Number.MAX_SAFE_INTEGER - rank);
  const details = { counts, displacements: counts, recvCounts: counts, recvDisplacements: counts };
  expect(handedOver(details, 500)).toEqual(details);
});

test('a call without details has none there', () => {
  expect(handedOver(undefined)).toBeUndefined();
});

test('a rank knows whom its engine thread waits for', () => {
  const buffer = engineThreadBuffer(5);
  const [rank, engine] = [new EngineThreadMemory(buffer), new EngineThreadMemory(buffer)];
  expect(rank.late()).toEqual([]);
  engine.setLate([1, 4]);
  expect(rank.late()).toEqual([1, 4]);
  engine.setLate([4]);
  expect(rank.late()).toEqual([4]);
});

test('an engine thread is told in which memory outside the segment arrays lie', () => {
  const buffer = engineThreadBuffer(2);
  const call = { code: 1, root: 0, send: 16, sendLength: 2, recv: 64, recvLength: 3, count: 2, details: undefined };
  const sendIn = { address: 2 ** 46 + 8, bytes: 2 ** 33 };
  const [rank, engine] = [new EngineThreadMemory(buffer), new EngineThreadMemory(buffer)];
  rank.post({ ...call, sendIn });
  const taken = engine.take(0);
  expect(taken).toMatchObject({ sendIn, recvIn: undefined });
  const memory = new SharedArrayBuffer(128);
  const outside = new ArrayBuffer(64);
  const { send, recv } = callAt(memory, { ...taken, code: int32.code << 4 }, () => outside);
  expect([send.buffer, send.byteOffset, send.length]).toEqual([outside, 16, 2]);
  expect([recv.buffer, recv.byteOffset, recv.length]).toEqual([memory, 64, 3]);
});

test('news of a thread end a rest and reach a listener, those that came before too', async () => {
  const buffer = engineThreadBuffer(2);
  const [rank, engine] = [new EngineThreadMemory(buffer), new EngineThreadMemory(buffer)];
  engine.tell();
  rank.rest(LONG_MS);
  engine.completed();
  rank.rest(LONG_MS);
  const heard = (): Promise<void> => new Promise((resolve) => rank.listen(resolve));
  await heard();
  const next = heard();
  engine.tell();
  await next;
  rank.listen(undefined);
});
