import fc from 'fast-check';
import { expect, test } from 'vitest';
import { instantiateKernels } from '../../../src/device/kernels/kernels.js';
import { dataTypes, operatorCode, reductionOperators, type NumericArray, type ReductionOperator } from '../../../src/device/types.js';

const memory = new WebAssembly.Memory({ shared: true, initial: 64, maximum: 64 });
const kernels = instantiateKernels(memory);
const SOURCES = 1024;
const DESTINATIONS = 2048;
const DATA = 4096;

/** The same reduction, an element at a time in the type's own arithmetic. */
function reference(operator: ReductionOperator, values: readonly number[], type: NumericArray): number {
  const round = (value: number): number => {
    const cell = new (type.constructor as new (n: number) => NumericArray)(1);
    cell[0] = value;
    return cell[0];
  };
  const multiply = type instanceof Int32Array ? Math.imul : (a: number, b: number) => a * b;
  const combine = { sum: (a: number, b: number) => a + b, avg: (a: number, b: number) => a + b, prod: multiply, min: Math.min, max: Math.max }[operator];
  const combined = values.reduce((a, b) => round(combine(a, b)));
  return operator === 'avg' ? round(combined / values.length) : combined;
}

const shape = fc.record({
  type: fc.constantFrom(...dataTypes),
  operator: fc.constantFrom(...reductionOperators),
  nSources: fc.integer({ min: 1, max: 9 }),
  nDestinations: fc.integer({ min: 1, max: 5 }),
  from: fc.nat(40),
  count: fc.nat(200),
  inPlace: fc.boolean(),
  seed: fc.nat(),
});

test('reduceCopy equals the element-wise reference for every type, operator, number of sources and destinations, length and offset', () => {
  fc.assert(
    fc.property(shape, ({ type, operator, nSources, nDestinations, from, count, inPlace, seed }) => {
      const length = from + count + 3;
      const room = Math.ceil((length * type.bytes) / 16) * 16 + 16;
      const words = new Uint32Array(memory.buffer);
      const arrayAt = (address: number) => new type.array(memory.buffer, address, length);
      const sources = Array.from({ length: nSources }, (_, s) => DATA + s * room);
      const destinations = Array.from({ length: nDestinations }, (_, d) => (inPlace && d === 0 ? DATA : DATA + (nSources + d) * room));
      let state = seed;
      for (const address of [...destinations, ...sources]) {
        const array = arrayAt(address);
        for (let i = 0; i < length; i++) {
          state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
          array[i] = type.name === 'int32' ? state : (state / 2 ** 32 - 0.5) * 8;
        }
      }
      const inputs = sources.map((address) => [...arrayAt(address)]);
      const before = destinations.map((address) => [...arrayAt(address)]);
      sources.forEach((address, s) => (words[SOURCES / 4 + s] = address));
      destinations.forEach((address, d) => (words[DESTINATIONS / 4 + d] = address));

      kernels.reduceCopy(type.code, operatorCode(operator), SOURCES, nSources, DESTINATIONS, nDestinations, from * type.bytes, count * type.bytes);

      const sample = arrayAt(DATA);
      destinations.forEach((address, d) => {
        const expected = before[d]!.map((value, i) =>
          i < from || i >= from + count ? value : reference(operator, inputs.map((input) => input[i]!), sample),
        );
        expect([...arrayAt(address)]).toEqual(expected);
      });
    }),
    { numRuns: 2000 },
  );
});

test('min and max keep NaN and the sign of zero', () => {
  const a = new Float32Array(memory.buffer, DATA, 8);
  const b = new Float32Array(memory.buffer, DATA + 64, 8);
  a.set([NaN, 1, 0, -0, Infinity, -1, 5, 2]);
  b.set([1, NaN, -0, 0, 1, -Infinity, 5, 3]);
  new Uint32Array(memory.buffer, SOURCES, 2).set([DATA, DATA + 64]);
  new Uint32Array(memory.buffer, DESTINATIONS, 1).set([DATA + 128]);
  kernels.reduceCopy(0, operatorCode('min'), SOURCES, 2, DESTINATIONS, 1, 0, 32);
  const result = [...new Float32Array(memory.buffer, DATA + 128, 8)];
  expect(result).toEqual([NaN, NaN, -0, -0, 1, -Infinity, 5, 2]);
});
