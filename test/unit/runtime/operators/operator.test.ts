import { expect, test } from 'vitest';
import { float16, float64, int64 } from '../../../../src/runtime/device/types.js';
import { foldOf } from '../../../../src/runtime/operators/fold.js';
import { checkOwnOperator, isOwnOperator } from '../../../../src/runtime/operators/operator.js';

const place = { call: 'allReduce', rank: 3 };

test('functions and { combine } are operators of the program, names and premulSum are not', () => {
  expect([(a: number) => a, { combine: () => undefined }].map(isOwnOperator)).toEqual([true, true]);
  expect(['sum', { premulSum: 2 }, null, 3].map(isOwnOperator)).toEqual([false, false, false, false]);
  expect(isOwnOperator({ reduce: () => undefined, unit: 2 })).toBe(true);
});

test('operators that cannot be called, or whose units do not fit, are refused by name', () => {
  const refusal = (operator: unknown, count = 8): string => {
    try {
      checkOwnOperator('scan', operator as never, count);
    } catch (error) {
      return `${(error as { code: string }).code} ${(error as Error).message}`;
    }
    return 'none';
  };
  expect(refusal({ combine: 3 })).toBe(
    'ARGUMENT_TYPE scan: an operator of your own is a function that is neither async nor a generator, not 3',
  );
  expect(refusal(async (a: number) => Promise.resolve(a))).toMatch(/not an async one$/);
  expect(refusal({ combine: () => undefined, units: 2 })).toMatch(
    /^UNKNOWN_NAME scan: there is no option "units"; did you mean unit\?/,
  );
  expect(refusal({ combine: () => undefined, unit: 0.5 })).toMatch(/^ARGUMENT_RANGE scan: the operator's unit is 0\.5/);
  expect(refusal({ combine: () => undefined, unit: 3 })).toBe(
    'BUFFER_SIZE scan: the operator combines units of 3 elements, of which 8 elements are no whole number',
  );
  expect(refusal({ combine: () => undefined, unit: 4 })).toBe('none');
  expect(refusal({ reduce: () => undefined, unit: 2 })).toBe(
    'ARGUMENT_TYPE scan: an operator of your own is a function of two numbers, or { combine } with one of two arrays; this one has reduce, unit',
  );
});

test('a function combines numbers of a class, bigints, and decoded numbers', () => {
  const fold = (operator: unknown, type: typeof float64) => foldOf(checkOwnOperator('scan', operator as never, 2), type, place);
  const numbers = Float64Array.of(7, 2);
  fold((a: number, b: number) => a - b, float64)(numbers, Float64Array.of(1, 5));
  expect([...numbers]).toEqual([6, -3]);
  const bigs = BigInt64Array.of(7n, 2n);
  fold((a: bigint, b: bigint) => a * b, int64)(bigs, BigInt64Array.of(2n, -1n));
  expect([...bigs]).toEqual([14n, -2n]);
  const half = Uint16Array.of(0x3c00, 0x4000); // 1, 2
  fold((a: number, b: number) => a + b, float16)(half, Uint16Array.of(0x4000, 0x4000));
  expect([...half]).toEqual([0x4200, 0x4400]); // 3, 4
});

test('an exception or wrong result of an operator is reported with the call and the rank', () => {
  const run = (operator: unknown) =>
    foldOf(checkOwnOperator('scan', operator as never, 1), float64, place)(Float64Array.of(1), Float64Array.of(2));
  const cause = new TypeError('no');
  expect(() =>
    run(() => {
      throw cause;
    }),
  ).toThrow(
    expect.objectContaining({ message: 'allReduce: the operator threw on rank 3: TypeError: no', rank: 3, cause }) as Error,
  );
  expect(() => run(() => 'three')).toThrow(/^allReduce: on rank 3, the operator gave "three" for 1 and 2; let it give a number/);
  expect(() => run({ combine: () => new Float64Array(1) })).toThrow(/let combine write the results to its first array/);
});
