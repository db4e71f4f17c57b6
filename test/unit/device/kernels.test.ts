import fc from 'fast-check';
import { expect, test } from 'vitest';
import { instantiateKernels } from '../../../src/device/kernels/kernels.js';
import { dataTypes, float32, operatorCode, reductionOperators, type DataType } from '../../../src/device/types.js';
import { elementsOf, reduceElements } from './reference.js';

const memory = new WebAssembly.Memory({ shared: true, initial: 64, maximum: 64 });
const kernels = instantiateKernels(memory);
const SOURCES = 1024;
const DESTINATIONS = 2048;
const DATA = 4096;

const shape = fc.record({
  operator: fc.constantFrom(...reductionOperators),
  nSources: fc.integer({ min: 1, max: 9 }),
  nDestinations: fc.integer({ min: 1, max: 5 }),
  from: fc.nat(40),
  count: fc.nat(200),
  inPlace: fc.boolean(),
  seed: fc.nat(),
});

/** Numbers of all kinds: any bits at all, and for floats also numbers of similar size, whose sums are rounded. */
function fill(type: DataType, address: number, length: number, random: () => number): void {
  const array = new type.array(memory.buffer, address, length);
  const bytes = new Uint8Array(memory.buffer, address, length * type.bytes);
  for (let i = 0; i < bytes.length; i++) bytes[i] = random() >>> 24;
  if (!type.isFloat) return;
  for (let i = 0; i < length; i++) if (random() >>> 31) type.write(array, i, (random() / 2 ** 32 - 0.5) * 8);
}

test.each(dataTypes)('reduceCopy of $name equals the element-wise reference for every operator, number of sources and destinations, length and offset', (type) => {
  fc.assert(
    fc.property(shape, ({ operator, nSources, nDestinations, from, count, inPlace, seed }) => {
      const length = from + count + 3;
      const room = Math.ceil((length * type.bytes) / 16) * 16 + 16;
      const words = new Uint32Array(memory.buffer);
      const arrayAt = (address: number) => new type.array(memory.buffer, address, length);
      const sources = Array.from({ length: nSources }, (_, s) => DATA + s * room);
      const destinations = Array.from({ length: nDestinations }, (_, d) => (inPlace && d === 0 ? DATA : DATA + (nSources + d) * room));
      let state = seed;
      const random = () => (state = (Math.imul(state, 1664525) + 1013904223) >>> 0);
      for (const address of [...destinations, ...sources]) fill(type, address, length, random);
      const inputs = sources.map((address) => elementsOf(arrayAt(address)));
      const before = destinations.map((address) => elementsOf(arrayAt(address)));
      sources.forEach((address, s) => (words[SOURCES / 4 + s] = address));
      destinations.forEach((address, d) => (words[DESTINATIONS / 4 + d] = address));

      kernels.reduceCopy(type.code, operatorCode(operator), SOURCES, nSources, DESTINATIONS, nDestinations, from * type.bytes, count * type.bytes);

      destinations.forEach((address, d) => {
        const expected = before[d]!.map((value, i) =>
          i < from || i >= from + count ? value : reduceElements(type, operator, inputs.map((input) => input[i]!)),
        );
        expect(elementsOf(arrayAt(address))).toEqual(expected);
      });
    }),
    { numRuns: 300 },
  );
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
