import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import * as formats from '../../../../src/runtime/device/formats.js';
import { smallFloat, type SmallFloat } from './reference.js';
import { runs } from '../../../runs.js';

const all: {
  name: SmallFloat;
  bits: number;
  to: (values: ArrayLike<number>) => Uint8Array | Uint16Array;
  from: (bits: ArrayLike<number>) => Float32Array;
}[] = [
  { name: 'float16', bits: 16, to: formats.toFloat16, from: formats.fromFloat16 },
  { name: 'bfloat16', bits: 16, to: formats.toBfloat16, from: formats.fromBfloat16 },
  { name: 'float8e4m3', bits: 8, to: formats.toFloat8e4m3, from: formats.fromFloat8e4m3 },
  { name: 'float8e5m2', bits: 8, to: formats.toFloat8e5m2, from: formats.fromFloat8e5m2 },
];

/** Elements that differ, with NaN equal to NaN and -0 not to 0, as for `toEqual`, which takes a hundred times as long. */
function differences(array: ArrayLike<number>, expected: readonly number[]): object[] {
  const wrong: object[] = array.length === expected.length ? [] : [{ length: array.length, expected: expected.length }];
  for (let at = 0; at < expected.length && wrong.length < 5; at++)
    if (!Object.is(array[at], expected[at])) wrong.push({ at, is: array[at], expected: expected[at] });
  return wrong;
}

describe.each(all)('$name', ({ name, bits, to, from }) => {
  const reference = smallFloat(name);
  const patterns = Array.from({ length: 2 ** bits }, (_, i) => i);
  const numbers = patterns.map((pattern) => reference.decode(pattern));
  const encode = (value: number) => reference.encode(reference.round(value));

  test('all bit patterns have the value that the format defines', () => {
    expect(differences(from(patterns), numbers)).toEqual([]);
  });

  test('all numbers of the format keep their bits; NaN has one pattern, and overflow gives infinity', () => {
    expect(differences(to(numbers), numbers.map(encode))).toEqual([]);
    const finite = patterns.filter((pattern) => Number.isFinite(numbers[pattern]));
    expect(differences(to(finite.map((pattern) => numbers[pattern]!)), finite)).toEqual([]);
  });

  test('numbers between two neighbours are rounded to the nearer one, halfway to the even one', () => {
    const finite = numbers.filter((number, pattern) => pattern < 2 ** (bits - 1) && Number.isFinite(number));
    const largest = finite.at(-1)!;
    const beyond = largest + (largest - finite.at(-2)!);
    const probes = finite.flatMap((below, i) => {
      const halfway = below / 2 + (finite[i + 1] ?? beyond) / 2;
      const near = halfway * 2 ** -50;
      return [halfway, halfway - near, halfway + near, -halfway, -halfway - near, -halfway + near];
    });
    const wrong = [...to(probes)].flatMap((element, i) =>
      element === encode(probes[i]!) ? [] : [{ of: probes[i], is: element, expected: encode(probes[i]!) }],
    );
    expect(wrong).toEqual([]);
  });

  test('any number is rounded as the reference rounds it', () => {
    fc.assert(
      fc.property(fc.oneof(fc.double(), fc.float(), fc.double({ min: -1e5, max: 1e5 })), (value) => {
        expect(to([value])[0]).toBe(encode(value));
      }),
      { numRuns: runs(5000, 20_000) },
    );
  });
});

test('conversions write into a given array', () => {
  const target = new Uint16Array(4);
  expect(formats.toFloat16(new Float32Array([1, -2]), target.subarray(1))).toHaveLength(3);
  expect([...target]).toEqual([0, 0x3c00, 0xc000, 0]);
  expect([...formats.fromBfloat16(Uint16Array.of(0x3f80, 0x7f80), new Float32Array(2))]).toEqual([1, Infinity]);
});

test('conversions refuse an array that is too short, rather than drop numbers', () => {
  const refused: unknown = expect.objectContaining({
    code: 'BUFFER_SIZE',
    message: '3 numbers do not fit into a target of 2 elements; pass one that is long enough, or none',
  });
  expect(() => formats.toFloat16([1, 2, 3], new Uint16Array(2))).toThrow(refused);
  expect(() => formats.fromFloat8e4m3([1, 2, 3], new Float32Array(2))).toThrow(refused);
});
