import fc from 'fast-check';
import { expect, test } from 'vitest';
import { algorithms, decodeCall, type Call, type CallKind } from '../../../../src/runtime/algorithms/call.js';
import {
  decodeActivity,
  describeLate,
  describeReport,
  encodeActivity,
  isWaitReport,
  type Activity,
} from '../../../../src/runtime/algorithms/activity.js';
import { deviceCallOf } from '../../../../src/runtime/algorithms/meeting-call.js';
import { callKinds } from '../../../../src/runtime/device/kernels/kernels.js';
import { dataTypes, float32, int32 } from '../../../../src/runtime/device/types.js';

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
const activities: fc.Arbitrary<Activity> = fc.oneof(
  fc.record({ kind: fc.constantFrom('collective', 'last'), number: fc.nat(), call }),
  fc.record({ kind: fc.constantFrom('send', 'recv'), peer: rank, count, type }),
  fc.record({ kind: fc.constantFrom('window', 'probe'), peer: rank }),
  fc.record({ kind: fc.constant('outOfBand'), call: fc.constantFrom('init', 'split', 'program') }),
);

test('an activity can be encoded in words of 32 bits and decoded', () => {
  fc.assert(
    fc.property(activities, (activity) => {
      const words = [...Int32Array.from(encodeActivity(activity))];
      expect(decodeActivity([...words, 1, 2, 3])).toEqual(activity);
      expect(isWaitReport(words)).toBe(activity.kind !== 'last');
    }),
  );
});

test('a report without an activity has no text', () => {
  expect([describeReport([]), describeReport([0, 0, 0, 0, 0, 0, 1, 2, 3]), describeReport([99, 0, 0, 0, 0, 0])]).toEqual([
    undefined,
    undefined,
    undefined,
  ]);
});

test('a probe reports as one', () => {
  expect(describeReport(encodeActivity({ kind: 'probe', peer: -1 }))).toBe('waiting in probe of a message from any rank');
});

test('ranks with the same activity are named together', () => {
  const words = encodeActivity({ kind: 'recv', peer: 0, count: 4, type: int32 });
  const doing = (one: number): string | undefined => (one === 3 ? undefined : describeReport(words));
  expect(describeLate([1, 2, 3], doing)).toBe('ranks 1,2, waiting in recv of 4 int32 from rank 0; rank 3');
  expect(describeLate([], doing)).toBe('other ranks');
});

test('a report of an exchange within a call on devices names that call', () => {
  const record = new Uint8Array(392);
  for (const [{ code, root, count }, text] of [
    [deviceCallOf('allReduce', float32, record, record), 'allReduce of float32 on devices'],
    [deviceCallOf('scatter', int32), 'scatter of int32 on devices'],
    [deviceCallOf('close', undefined), 'close of a device'],
  ] as const) {
    const words = encodeActivity({ kind: 'collective', number: 3, call: decodeCall(code, root, count) });
    expect(describeReport(words)).toBe(`waiting in ${text}, call 3`);
  }
});
