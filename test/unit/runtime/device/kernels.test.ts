import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { instantiateKernels } from '../../../../src/runtime/device/kernels/kernels.js';
import {
  canCombine,
  combinesPairs,
  COMPARE,
  dataTypes,
  float32,
  operatorCode,
  operatorNames,
  PREMUL_SUM,
  reductionOperators,
  REPLACE,
  type DataType,
  type NumericArray,
} from '../../../../src/runtime/device/types.js';
import { writeScalar, SCALAR_BYTES } from '../../../../src/runtime/device/scalar.js';
import {
  divideElement,
  elementsOf,
  extremePair,
  reduceElements,
  scaledSum,
  type Element,
  type ElementOperator,
} from './reference.js';
import { runs } from '../../../runs.js';

const memory = new WebAssembly.Memory({ shared: true, initial: 64, maximum: 64 });
const kernels = instantiateKernels(memory);
const SOURCES = 1024;
const DESTINATIONS = 2048;
const SCALARS = 3072;
const DATA = 4096;
const BEFORE = 2 ** 20;

interface Shape {
  readonly nSources: number;
  readonly nDestinations: number;
  /** Elements before the first that is worked on. */
  readonly from: number;
  readonly count: number;
  readonly inPlace: boolean;
  readonly seed: number;
}

const shape: fc.Arbitrary<Shape> = fc.record({
  nSources: fc.integer({ min: 1, max: 9 }),
  nDestinations: fc.integer({ min: 1, max: 5 }),
  from: fc.nat(40),
  count: fc.nat(200),
  inPlace: fc.boolean(),
  seed: fc.nat(),
});

/** Integers of any bits. Floats of any bits, or numbers of similar size, whose sums are rounded, or both. */
function fill(type: DataType, address: number, length: number, random: () => number): void {
  const array = new type.array(memory.buffer, address, length);
  const bytes = new Uint8Array(memory.buffer, address, length * type.bytes);
  for (let i = 0; i < bytes.length; i++) bytes[i] = random() >>> 24;
  const numbers = type.isFloat ? (random() >>> 30) / 2 : 0;
  for (let i = 0; i < length; i++) if (random() / 2 ** 32 < numbers) type.write(array, i, (random() / 2 ** 32 - 0.5) * 8);
}

interface Arrays {
  readonly sources: number[];
  readonly destinations: number[];
  readonly arrayAt: (address: number) => NumericArray;
}

/** Lays arrays out, fills them, and writes the tables of their addresses. */
function layOut(type: DataType, { nSources, nDestinations, from, count, inPlace }: Shape, random: () => number): Arrays {
  const length = from + count + 3;
  const room = Math.ceil((length * type.bytes) / 16) * 16 + 16;
  const sources = Array.from({ length: nSources }, (_, s) => DATA + s * room);
  const destinations = Array.from({ length: nDestinations }, (_, d) =>
    inPlace && d === 0 ? DATA : DATA + (nSources + d) * room,
  );
  const words = new Uint32Array(memory.buffer);
  sources.forEach((address, s) => (words[SOURCES / 4 + s] = address));
  destinations.forEach((address, d) => (words[DESTINATIONS / 4 + d] = address));
  for (const address of [...destinations, ...sources]) fill(type, address, length, random);
  return { sources, destinations, arrayAt: (address) => new type.array(memory.buffer, address, length) };
}

/** Runs a kernel; its destinations must equal `expected` of the sources' elements, and nothing else may change. */
function check(
  { sources, destinations, arrayAt }: Arrays,
  { from, count }: Shape,
  run: () => void,
  expected: (elements: Element[], index: number) => Element,
): void {
  const inputs = sources.map((address) => elementsOf(arrayAt(address)));
  const before = destinations.map((address) => elementsOf(arrayAt(address)));
  run();
  destinations.forEach((address, d) => {
    const whole = before[d]!.map((value, i) =>
      i < from || i >= from + count
        ? value
        : expected(
            inputs.map((input) => input[i]!),
            i,
          ),
    );
    expectElements(elementsOf(arrayAt(address)), whole);
  });
}

/** Comparing one by one costs a hundredth of what `toEqual` does, which then shows what differs. */
function expectElements(elements: readonly Element[], expected: readonly Element[]): void {
  if (elements.length === expected.length && elements.every((element, i) => Object.is(element, expected[i]))) return;
  expect(elements).toEqual(expected);
}

function generator(seed: number): () => number {
  let state = seed;
  return () => (state = (Math.imul(state, 1664525) + 1013904223) >>> 0);
}

describe.each(dataTypes)('$name', (type) => {
  test('reduceCopy equals the element-wise reference for every operator, number of sources and destinations, length and offset', () => {
    fc.assert(
      fc.property(shape, fc.constantFrom(...reductionOperators), (shape, operator) => {
        const { nSources, nDestinations, from, count } = shape;
        check(
          layOut(type, shape, generator(shape.seed)),
          shape,
          () =>
            kernels.reduceCopy(
              type.code,
              operatorCode(operator),
              SOURCES,
              nSources,
              DESTINATIONS,
              nDestinations,
              from * type.bytes,
              count * type.bytes,
            ),
          (elements) => reduceElements(type, operator, elements),
        );
      }),
      { numRuns: runs(100, 300) },
    );
  });

  test('accumulate equals the reference for every operator, and gives what was there', () => {
    const operators = operatorNames.filter(
      (name) => name !== 'avg' && name !== 'premulSum' && !combinesPairs(name) && canCombine(name, type),
    ) as ElementOperator[];
    fc.assert(
      fc.property(shape, fc.constantFrom('replace' as const, ...operators), (shape, operator) => {
        const pair = { ...shape, nSources: 1, nDestinations: 1, inPlace: false };
        const arrays = layOut(type, pair, generator(shape.seed));
        const [source = 0] = arrays.sources;
        const [destination = 0] = arrays.destinations;
        const [from, bytes] = [shape.from * type.bytes, shape.count * type.bytes];
        const was = elementsOf(arrays.arrayAt(destination));
        const code = operator === 'replace' ? REPLACE : operatorCode(operator);
        check(
          arrays,
          pair,
          () => kernels.accumulate(type.code, code, destination + from, source + from, bytes, BEFORE),
          ([given = 0], i) => (operator === 'replace' ? given : reduceElements(type, operator, [was[i]!, given])),
        );
        expectElements(
          elementsOf(new type.array(memory.buffer, BEFORE, shape.count)),
          was.slice(shape.from, shape.from + shape.count),
        );
      }),
      { numRuns: runs(100, 300) },
    );
  });

  test('reduceCopy equals the reference for bits and truth values, and for pairs of a value and its place', () => {
    const operators = operatorNames.filter((name) => operatorNames.indexOf(name) > PREMUL_SUM && canCombine(name, type));
    fc.assert(
      fc.property(shape, fc.constantFrom(...operators), (one, operator) => {
        const isOfPairs = operator === 'minloc' || operator === 'maxloc';
        const shape = isOfPairs ? { ...one, from: 2 * one.from, count: 2 * one.count } : one;
        const { nSources, nDestinations, from, count } = shape;
        const arrays = layOut(type, shape, generator(shape.seed));
        // Random bits are seldom equal, or 0.
        for (const address of arrays.sources) {
          const array = arrays.arrayAt(address);
          const random = generator(shape.seed + address);
          for (let i = 0; i < array.length; i++) {
            const die = random() >>> 29;
            if (die < 4) type.write(array, i, die % 2);
            else if (die === 4 && type.isFloat && type.bytes >= 4) type.write(array, i, NaN);
          }
        }
        const run = () =>
          kernels.reduceCopy(
            type.code,
            operatorNames.indexOf(operator),
            SOURCES,
            nSources,
            DESTINATIONS,
            nDestinations,
            from * type.bytes,
            count * type.bytes,
          );
        if (!isOfPairs) check(arrays, shape, run, (elements) => reduceElements(type, operator as ElementOperator, elements));
        else {
          const inputs = arrays.sources.map((address) => elementsOf(arrays.arrayAt(address)));
          run();
          for (const address of arrays.destinations) {
            const output = elementsOf(arrays.arrayAt(address));
            for (let i = from; i < from + count; i += 2)
              expectElements(
                output.slice(i, i + 2),
                extremePair(
                  operator,
                  inputs.map((input) => [input[i]!, input[i + 1]!] as const),
                ),
              );
          }
        }
      }),
      { numRuns: runs(100, 300) },
    );
  });

  test('reduceScaled multiplies each source by its own scalar before it sums', () => {
    fc.assert(
      fc.property(shape, (shape) => {
        const { nSources, nDestinations, from, count, seed } = shape;
        const random = generator(seed);
        const arrays = layOut(type, shape, random);
        const scalars = Array.from({ length: nSources }, (_, s) => {
          const magnitude = type.isFloat ? random() / 2 ** 30 : random() % 100;
          writeScalar(
            type,
            (/^u/.test(type.name) || random() >>> 31 ? 1 : -1) * magnitude,
            memory.buffer,
            SCALARS + s * SCALAR_BYTES,
          );
          return elementsOf(new type.array(memory.buffer, SCALARS + s * SCALAR_BYTES, 1))[0]!;
        });
        check(
          arrays,
          shape,
          () =>
            kernels.reduceScaled(
              type.code,
              SCALARS,
              SOURCES,
              nSources,
              DESTINATIONS,
              nDestinations,
              from * type.bytes,
              count * type.bytes,
            ),
          (elements) => scaledSum(type, elements, scalars),
        );
      }),
      { numRuns: runs(70, 200) },
    );
  });

  test('divide equals the average of one sum', () => {
    fc.assert(
      fc.property(shape, fc.integer({ min: 2, max: 300 }), (shape, divisor) => {
        const one = { ...shape, nSources: 1, nDestinations: 1, inPlace: true };
        check(
          layOut(type, one, generator(shape.seed)),
          one,
          () => kernels.divide(type.code, DATA + one.from * type.bytes, one.count * type.bytes, divisor),
          ([element]) => divideElement(type, element!, divisor),
        );
      }),
      { numRuns: runs(50, 100) },
    );
  });
});

test('min and max keep NaN and the sign of zero', () => {
  const a = new Float32Array(memory.buffer, DATA, 8);
  const b = new Float32Array(memory.buffer, DATA + 64, 8);
  a.set([NaN, 1, 0, -0, Infinity, -1, 5, 2]);
  b.set([1, NaN, -0, 0, 1, -Infinity, 5, 3]);
  new Uint32Array(memory.buffer, SOURCES, 2).set([DATA, DATA + 64]);
  new Uint32Array(memory.buffer, DESTINATIONS, 1).set([DATA + 128]);
  kernels.reduceCopy(float32.code, operatorCode('min'), SOURCES, 2, DESTINATIONS, 1, 0, 32);
  const result = [...new Float32Array(memory.buffer, DATA + 128, 8)];
  expect(result).toEqual([NaN, NaN, -0, -0, 1, -Infinity, 5, 2]);
});

test.each([0, 1, 127, 128, 131_071, 131_072, 131_073, 400_003])(
  '%i bytes are copied backward, and nothing else is written',
  (bytes) => {
    const [from, to] = [DATA + 5, DATA + 2 ** 20 + 3];
    const all = new Uint8Array(memory.buffer, DATA);
    const random = generator(bytes);
    for (let i = 0; i < all.length; i++) all[i] = random() >>> 24;
    const expected = all.slice();
    expected.copyWithin(to - DATA, from - DATA, from - DATA + bytes);
    kernels.copyBackward(to, from, bytes);
    expect(Buffer.compare(all, expected)).toBe(0);
  },
);

test.each(dataTypes.filter(({ isFloat }) => !isFloat))('accumulate stores $name where it is as expected', (type) => {
  const target = new type.array(memory.buffer, DATA, 1);
  const given = new type.array(memory.buffer, SOURCES, 16);
  const before = new type.array(memory.buffer, BEFORE, 1);
  type.write(target, 0, 5);
  type.write(given, 0, 7);
  const expect8 = 8 / type.bytes;
  for (const [expected, then] of [
    [6, 5],
    [5, 7],
  ] as const) {
    type.write(given, expect8, expected);
    const was = type.read(target, 0);
    kernels.accumulate(type.code, COMPARE, DATA, SOURCES, type.bytes, BEFORE);
    expect(before[0]).toBe(was);
    expect(Number(target[0])).toBe(then);
  }
});
