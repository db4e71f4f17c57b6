import { describe, expect, test } from 'vitest';
import { SCALAR_BYTES, writeScalar } from '../../../../src/runtime/device/scalar.js';
import {
  bfloat16,
  dataTypeOf,
  dataTypes,
  float16,
  float8e4m3,
  int32,
  int64,
  movedTypeOf,
  operatorCode,
  operatorNames,
  reductionOperators,
  uint8,
  type DataTypeName,
  type NumericArray,
} from '../../../../src/runtime/device/types.js';
import { InvalidArgumentError } from '../../../../src/errors.js';

describe('the type of an array', () => {
  test('follows from its class, where the class holds one type', () => {
    for (const type of dataTypes.filter(({ name }) => !/^b?float(16|8)/.test(name))) {
      expect(dataTypeOf(new type.array(new ArrayBuffer(16), 0, 1))).toBe(type);
    }
    expect(dataTypeOf(Buffer.alloc(1))).toBe(uint8);
  });

  test('is that of the options, where the class can hold it', () => {
    for (const type of dataTypes) expect(dataTypeOf(new type.array(new ArrayBuffer(16), 0, 1), type.name)).toBe(type);
    expect(dataTypeOf(new Uint8Array(1), 'float8e4m3')).toBe(float8e4m3);
    expect(dataTypeOf(new Uint16Array(1), 'bfloat16')).toBe(bfloat16);
  });

  test.each<[string, unknown, string | undefined, string, RegExp]>([
    [
      'bits of no known type',
      new Uint16Array(1),
      undefined,
      'ARGUMENT_TYPE',
      /holds float16 or bfloat16, and nothing says which; pass \{ type: 'float16' \}/,
    ],
    [
      '16-bit integers',
      new Int16Array(1),
      undefined,
      'ARGUMENT_TYPE',
      /int16 can be moved \(broadcast, .* but not combined; pass an Int32Array$/,
    ],
    ['16-bit integers by name', new Uint16Array(1), 'uint16', 'ARGUMENT_TYPE', /uint16 can be moved .* or \{ type: 'float16' \}/],
    [
      'a buffer',
      new ArrayBuffer(1),
      undefined,
      'ARGUMENT_TYPE',
      /class ArrayBuffer cannot be exchanged; pass one of Int8Array, Uint8Array, Int32Array/,
    ],
    ['clamped bytes', new Uint8ClampedArray(1), undefined, 'ARGUMENT_TYPE', /Uint8ClampedArray cannot be exchanged/],
    ['an array of numbers', [1, 2], undefined, 'ARGUMENT_TYPE', /class Array cannot .*: Float64Array\.from\(x\)$/],
    ['an array of bigints', [1n], undefined, 'ARGUMENT_TYPE', /class Array cannot .*: BigInt64Array\.from\(x\)$/],
    ['a matrix', [[1], [2]], undefined, 'ARGUMENT_TYPE', /class Array cannot .*: Float64Array\.from\(x\.flat\(Infinity\)\)$/],
    ['an array of strings', ['1'], undefined, 'ARGUMENT_TYPE', /class Array cannot be exchanged; pass one of Int8Array/],
    ['nothing', undefined, undefined, 'ARGUMENT_TYPE', /^undefined cannot be exchanged/],
    [
      'a class that cannot hold the type',
      new Float32Array(1),
      'float16',
      'ARGUMENT_TYPE',
      /class Float32Array does not hold float16; pass one of class Uint16Array/,
    ],
    [
      'a type of the same size but another class',
      new Int32Array(1),
      'uint32',
      'ARGUMENT_TYPE',
      /does not hold uint32; pass one of class Uint32Array/,
    ],
    [
      'a misspelt type',
      new Uint16Array(1),
      'flaot16',
      'UNKNOWN_NAME',
      /no data type is called "flaot16"; did you mean float16\?; use one of int8, uint8/,
    ],
  ])('refuses %s', (_, array, name, code, message) => {
    const call = () => dataTypeOf(array as NumericArray, name as DataTypeName | undefined);
    expect(call).toThrow(message);
    expect(call).toThrow(expect.objectContaining({ code }) as Error);
  });
});

test.each([
  ['bf16', 'bfloat16'],
  ['half', 'float16'],
  ['fp16', 'float16'],
  ['float', 'float32'],
  ['Float64Array', 'float64'],
  ['uint8_t', 'uint8'],
  ['BigInt64Array', 'int64'],
  ['fp8_e5m2', 'float8e5m2'],
])('the name %s of another library is refused with a suggestion', (name, ours) => {
  expect(() => dataTypeOf(new Uint16Array(1), name as DataTypeName)).toThrow(`did you mean ${ours}?`);
});

test('data that are only moved have a type of their own, or that of their bytes', () => {
  const names = [new Int16Array(1), new Uint16Array(1), new Uint8ClampedArray(1), new Float32Array(1)].map(
    (array) => movedTypeOf(array as NumericArray).name,
  );
  expect(names).toEqual(['int16', 'uint16', 'uint8', 'float32']);
  expect(movedTypeOf(new Uint16Array(1), 'float16').name).toBe('float16');
  expect(() => movedTypeOf(new Int16Array(1) as unknown as NumericArray, 'uint16', 'send')).toThrow(
    /^send: .* does not hold uint16/,
  );
});

test('elements are read and written as numbers in every type', () => {
  for (const type of dataTypes) {
    const array = new type.array(new ArrayBuffer(16), 0, 2);
    type.write(array, 1, 3);
    expect(Number(type.read(array, 1))).toBe(3);
    expect(Number(type.read(array, 0))).toBe(0);
    expect(typeof type.read(array, 1)).toBe(type.bytes === 8 && !type.isFloat ? 'bigint' : 'number');
  }
});

test('codes of types and operators are different numbers below 16', () => {
  const codes = dataTypes.map(({ code }) => code).sort((a, b) => a - b);
  expect(codes).toEqual(dataTypes.map((_, i) => i));
  expect(reductionOperators.map((operator) => operatorCode(operator))).toEqual([0, 1, 2, 3, 4]);
  expect(operatorCode({ premulSum: 2 })).toBe(5);
  expect(operatorNames[5]).toBe('premulSum');
});

test.each([
  ['summ', /no reduction operator "summ"; did you mean sum\?/],
  ['mean', /did you mean avg\?/],
  ['product', /did you mean prod\?/],
  ['MPI_LAND', /did you mean land\?/],
  ['SUM', /did you mean sum\?/],
  [new Map(), /no reduction operator an object of class Map;/],
  ['premulSum', /use one of .* or \{ premulSum: scalar \}/],
  [7, /no reduction operator 7; use one of sum, prod/],
  [null, /operator null;/],
  [{ premul: 1 }, /operator \{"premul":1\};/],
])('refuses the operator %j', (operator, message) => {
  expect(() => operatorCode(operator as never)).toThrow(message);
});

describe('a scalar of premulSum', () => {
  const buffer = new ArrayBuffer(16);
  const bytesOf = () => [...new Uint8Array(buffer, 8, SCALAR_BYTES)];

  test('is one element, repeated as often as it fits', () => {
    writeScalar(float16, 1 / 3, buffer, 8);
    expect(bytesOf()).toEqual([0x55, 0x35, 0x55, 0x35, 0x55, 0x35, 0x55, 0x35]);
    writeScalar(int32, -2, buffer, 8);
    expect([...new Int32Array(buffer, 8, 2)]).toEqual([-2, -2]);
    writeScalar(int64, 2n ** 40n, buffer, 8);
    expect([...new BigInt64Array(buffer, 8, 1)]).toEqual([2n ** 40n]);
  });

  test.each<[DataTypeName, unknown, string]>([
    ['int32', 0.5, 'ARGUMENT_RANGE'],
    ['int8', 128, 'ARGUMENT_RANGE'],
    ['uint8', -1, 'ARGUMENT_RANGE'],
    ['uint64', 2n ** 64n, 'ARGUMENT_RANGE'],
    ['int32', NaN, 'ARGUMENT_RANGE'],
    ['float32', '2', 'ARGUMENT_TYPE'],
  ])('of %s cannot be %s', (name, scalar, code) => {
    const type = dataTypes.find((candidate) => candidate.name === name)!;
    const call = () => {
      writeScalar(type, scalar as number, buffer, 8);
    };
    expect(call).toThrow(InvalidArgumentError);
    expect(call).toThrow(expect.objectContaining({ code }) as Error);
  });
});
