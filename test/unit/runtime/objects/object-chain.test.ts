import { expect, test } from 'vitest';
import { broadcastValue } from '../../../../src/runtime/objects/collective-objects.js';
import { ObjectChain } from '../../../../src/runtime/objects/object-chain.js';

/** The chain of the root that broadcasts an array of 64 KiB, and how many calls it has. */
function chainOf(weights: Float32Array): { chain: ObjectChain<unknown>; calls: number } {
  const begin = (): ObjectChain<unknown> =>
    new ObjectChain('broadcastObject', 0, 2, (members) => broadcastValue(members, { weights }, 0));
  const counted = begin();
  let calls = 1;
  while (counted.next() !== undefined) calls++;
  return { chain: begin(), calls };
}

function detach(array: Float32Array): void {
  structuredClone(array, { transfer: [array.buffer as ArrayBuffer] });
}

test('an array that is detached before all of it was sent is refused', () => {
  const weights = new Float32Array(16_384);
  const { chain } = chainOf(weights);
  detach(weights);
  expect(() => chain.next()).toThrow(expect.objectContaining({ code: 'BUFFER_DETACHED' }));
});

test('an array that is detached after all of it was sent concerns no rank', () => {
  const weights = new Float32Array(16_384);
  const { chain, calls } = chainOf(weights);
  expect(calls).toBeGreaterThan(1);
  for (let call = 1; call < calls; call++) chain.next();
  detach(weights);
  expect(chain.next()).toBeUndefined();
  expect(chain.result()).toEqual({ weights: expect.any(Float32Array) as Float32Array });
});
