import { expect, test } from 'vitest';
import { decodeCall } from '../../../../src/runtime/algorithms/call.js';
import { CheckedCall } from '../../../../src/runtime/communicator/checked-call.js';
import { group } from '../../../../src/runtime/communicator/group.js';
import { scalarCall, type Scalar } from '../../../../src/runtime/communicator/scalars.js';
import type { TimedCallOptions } from '../../../../src/runtime/algorithms/arguments.js';

function made(name: string, value: Scalar, operator?: unknown, options?: TimedCallOptions, root?: number) {
  const call = new CheckedCall(1, 3);
  call.name = name;
  return scalarCall(call, value, operator, root, options);
}

test('a number is combined in place as one float64, a bigint as one int64, or as the type that the caller names', () => {
  const typed = (value: Scalar, type?: 'int32' | 'uint64' | 'float16') => {
    const { call } = made('allReduceSync', value, 'max', type === undefined ? undefined : { type });
    const { kind, operator, count } = decodeCall(call.code, call.root, call.count);
    expect({ kind, operator, count, inPlace: call.send === call.recv }).toEqual({
      kind: 'allReduce',
      operator: 'max',
      count: 1,
      inPlace: true,
    });
    return [call.type.name, call.type.read(call.send, 0)];
  };
  expect(typed(2.5)).toEqual(['float64', 2.5]);
  expect(typed(-3n)).toEqual(['int64', -3n]);
  expect(typed(7, 'int32')).toEqual(['int32', 7]);
  expect(typed(7n, 'uint64')).toEqual(['uint64', 7n]);
  expect(typed(0.5, 'float16')).toEqual(['float16', 0.5]);
});

test('reduce gives its result to the root, exscan to all ranks but the first', () => {
  const resultOf = (name: string, root?: number): unknown => made(name, 4, undefined, undefined, root).result();
  expect([resultOf('reduce'), resultOf('reduce', 1), resultOf('scan'), resultOf('exscan')]).toEqual([null, 4, 4, 4]);
  const first = new CheckedCall(0, 3);
  first.name = 'exscan';
  expect(scalarCall(first, 4, undefined, undefined, undefined).result()).toBeNull();
});

test.each<[string, RegExp, () => unknown]>([
  [
    'a bigint that int64 cannot represent',
    /^allReduce of int64 takes a whole number that fits the type, not 9223372036854775808$/,
    () => made('allReduce', 2n ** 63n),
  ],
  ['a fraction as int32', /^allReduce of int32 takes a whole number/, () => made('allReduce', 0.5, 'sum', { type: 'int32' })],
  [
    'a number as int64',
    /a number is not combined as int64; pass a bigint for type int64/,
    () => made('allReduce', 1, 'sum', { type: 'int64' }),
  ],
  [
    'a bigint as float64',
    /a bigint is combined as int64 or uint64; pass a number for type float64/,
    () => made('allReduce', 1n, 'sum', { type: 'float64' }),
  ],
  ['bits of float64', /allReduce: bor combines integers, not float64/, () => made('allReduce', 1, 'bor')],
  ['a pair in one number', /allReduce: minloc combines pairs/, () => made('allReduce', 1, 'minloc')],
  [
    'options in the place of the operator',
    /^allReduce: \{ timeoutMs: 5 \} is where the operator belongs; pass the options so: allReduce\(x, undefined, \{ timeoutMs: 5 \}\)$/,
    () => made('allReduce', 1, { timeoutMs: 5 }),
  ],
  [
    'a root in the place of the operator',
    /^reduce: 2 is where the operator belongs; pass the root so: reduce\(x, undefined, 2\)$/,
    () => made('reduce', 1, 2),
  ],
  ['an unknown type', /no data type is called "int7"/, () => made('allReduce', 1, 'sum', { type: 'int7' as never })],
  ['an unknown operator', /allReduce: .*maximum/, () => made('allReduce', 1, 'maximum')],
])('%s is refused', (_, message, make) => {
  expect(make).toThrow(expect.objectContaining({ rank: 1, message: expect.stringMatching(message) as string }) as Error);
});

test('a reduction of a number is refused in a group, which gives no results', async () => {
  await expect(group(() => void made('allReduce', 1))).rejects.toMatchObject({
    code: 'UNSUPPORTED',
    message: expect.stringContaining('allReduce: a group gives no results') as string,
  });
});
