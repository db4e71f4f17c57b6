import fc from 'fast-check';
import { expect, test } from 'vitest';
import { algorithms, type Call, type CallKind } from '../../../../src/runtime/algorithms/call.js';
import {
  decodeDeed,
  describeLate,
  describeReport,
  encodeDeed,
  tellsOfWait,
  type Deed,
} from '../../../../src/runtime/algorithms/deed.js';
import { callKinds } from '../../../../src/runtime/device/kernels/kernels.js';
import { dataTypes, int32 } from '../../../../src/runtime/device/types.js';

const count = fc.oneof(fc.nat(), fc.integer({ min: 0, max: 2 ** 40 }));
const rank = fc.nat(10_000);
const type = fc.constantFrom(...dataTypes);
const call: fc.Arbitrary<Call> = fc.record({
  kind: fc.constantFrom(...(Object.keys(callKinds) as CallKind[]).filter((kind) => kind !== 'barrier')),
  type,
  operator: fc.constant('sum'),
  root: fc.integer({ min: 0, max: 2 ** 32 - 1 }),
  count,
  algorithm: fc.constantFrom(...algorithms),
});
const deeds: fc.Arbitrary<Deed> = fc.oneof(
  fc.record({ kind: fc.constantFrom('collective', 'last'), number: fc.nat(), call }),
  fc.record({ kind: fc.constantFrom('send', 'recv'), peer: rank, count, type }),
  fc.record({ kind: fc.constant('window'), peer: rank }),
  fc.record({ kind: fc.constant('outOfBand') }),
);

test('what a rank does is read as it was written, through words of 32 bits', () => {
  fc.assert(
    fc.property(deeds, (deed) => {
      const words = [...Int32Array.from(encodeDeed(deed))];
      expect(decodeDeed([...words, 1, 2, 3])).toEqual(deed);
      expect(tellsOfWait(words)).toBe(deed.kind !== 'last');
    }),
  );
});

test('a report without one tells nothing', () => {
  expect([describeReport([]), describeReport([0, 0, 0, 0, 0, 0, 1, 2, 3]), describeReport([99, 0, 0, 0, 0, 0])]).toEqual([
    undefined,
    undefined,
    undefined,
  ]);
});

test('ranks that do the same are told together', () => {
  const words = encodeDeed({ kind: 'recv', peer: 0, count: 4, type: int32 });
  const doing = (one: number): string | undefined => (one === 3 ? undefined : describeReport(words));
  expect(describeLate([1, 2, 3], doing)).toBe('ranks 1,2, waiting in recv of 4 int32 from rank 0; rank 3');
  expect(describeLate([], doing)).toBe('other ranks');
});
