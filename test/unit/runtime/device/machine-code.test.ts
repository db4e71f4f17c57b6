import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { instantiateKernels, type SumFloat16 } from '../../../../src/runtime/device/kernels/kernels.js';
import { loadLibc } from '../../../../src/runtime/device/libc.js';
import { MachineCode } from '../../../../src/runtime/device/machine-code/machine-code.js';
import { COPY_BLOCK_BYTES } from '../../../../src/runtime/device/machine-code/copy-twice.js';
import { addingOf, SUM_BLOCK_BYTES } from '../../../../src/runtime/device/machine-code/sum.js';
import { dataTypes, float16, operatorCode } from '../../../../src/runtime/device/types.js';

const memory = new WebAssembly.Memory({ shared: true, initial: 128, maximum: 128 });
const { libc } = loadLibc();
const machineCode = libc !== undefined ? new MachineCode(memory, libc) : undefined;
const refusal = machineCode === undefined ? 'the C library cannot be called' : machineCode.refusal;

/** Bytes that machine code summed since the last look. */
let summed = 0;
const sumFloat16: SumFloat16 = (...call) => {
  const done = machineCode?.sumFloat16(...call) ?? 0;
  summed += done;
  return done;
};
const webAssembly = instantiateKernels(memory);
const withMachineCode = instantiateKernels(memory, sumFloat16);

const SUM = operatorCode('sum');
const SOURCES = 1024;
const DESTINATIONS = 2048;
const DATA = 65536;
const words = new Uint32Array(memory.buffer);
const numbers = new Uint16Array(memory.buffer);

function setTables(sources: readonly number[], destinations: readonly number[]): void {
  words.set(sources, SOURCES / 4);
  words.set(destinations, DESTINATIONS / 4);
}

/** Zeros, the ends of the subnormal and of the normal numbers, ones, infinities, and NaNs of either sign, quiet or not. */
const special = [0, 1, 0x3ff, 0x400, 0x3c00, 0x3c01, 0x7bff, 0x7c00, 0x7c01, 0x7dff, 0x7e00, 0x7fff].flatMap((bits) => [
  bits,
  bits | 0x8000,
]);

describe.skipIf(refusal !== undefined)(
  `float16 sums by machine code${refusal === undefined ? '' : ` (skipped: ${refusal})`}`,
  () => {
    test('every number with special partners gives the same bits as WebAssembly', () => {
      const [a, b, out, expected] = [0, 1, 2, 3].map((place) => DATA + place * 2 ** 17) as [number, number, number, number];
      for (let i = 0; i < 65536; i++) numbers[a / 2 + i] = i;
      for (const partner of special) {
        numbers.fill(partner, b / 2, b / 2 + 65536);
        for (const sources of [
          [a, b],
          [b, a],
        ]) {
          setTables(sources, [expected]);
          webAssembly.reduceCopy(float16.code, SUM, SOURCES, 2, DESTINATIONS, 1, 0, 2 ** 17);
          setTables(sources, [out]);
          summed = 0;
          withMachineCode.reduceCopy(float16.code, SUM, SOURCES, 2, DESTINATIONS, 1, 0, 2 ** 17);
          expect(summed).toBe(2 ** 17);
          expect(
            Buffer.compare(Buffer.from(memory.buffer, out, 2 ** 17), Buffer.from(memory.buffer, expected, 2 ** 17)),
            `partner ${partner}`,
          ).toBe(0);
        }
      }
    });

    test('any numbers of sources and destinations, lengths and places give the same bits as WebAssembly, and nothing else is written', () => {
      const shape = fc.record({
        nSources: fc.integer({ min: 2, max: 9 }),
        nDestinations: fc.integer({ min: 1, max: 5 }),
        from: fc.nat(100),
        count: fc.integer({ min: 2048, max: 6000 }),
        gap: fc.nat(64),
        inPlace: fc.boolean(),
        operator: fc.constantFrom('sum' as const, 'avg' as const),
        values: fc.uint16Array({ minLength: 1, maxLength: 300 }),
      });
      fc.assert(
        fc.property(shape, ({ nSources, nDestinations, from, count, gap, inPlace, operator, values }) => {
          const room = 2 * (from + count + gap);
          const places = Array.from({ length: nSources + nDestinations }, (_, place) => DATA + place * room);
          const fill = () => {
            for (let i = 0, state = 1; i < (places.length * room) / 2; i++) {
              state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
              numbers[DATA / 2 + i] = (values[i % values.length] ?? 0) ^ (state >>> 28);
            }
          };
          const run = (kernels: typeof webAssembly) => {
            fill();
            kernels.reduceCopy(
              float16.code,
              operatorCode(operator),
              SOURCES,
              nSources,
              DESTINATIONS,
              nDestinations,
              2 * from,
              2 * count,
            );
            return Buffer.from(memory.buffer, DATA, places.length * room).toString('latin1');
          };
          setTables(places.slice(0, nSources), inPlace ? places.slice(0, nDestinations) : places.slice(nSources));
          summed = 0;
          expect(run(withMachineCode) === run(webAssembly)).toBe(true);
          // Averages are made of sums of 8 KiB, and what is left may be too little.
          expect(summed).toBeGreaterThan(2 * count - (operator === 'sum' ? 128 : 4096));
        }),
        { numRuns: 200 },
      );
    });

    test('copies to two places are complete, and write nothing else', () => {
      const bytes = new Uint8Array(memory.buffer);
      const shape = fc.record({ shifts: fc.tuple(fc.nat(200), fc.nat(200)), length: fc.nat(3000), seed: fc.nat(255) });
      fc.assert(
        fc.property(shape, ({ shifts: [sourceShift, cachedShift], length, seed }) => {
          const [source, cached, streamed] = [DATA + sourceShift, DATA + 8192 + cachedShift, DATA + 16384 + COPY_BLOCK_BYTES];
          bytes.fill(seed, DATA, DATA + 32768);
          for (let i = 0; i < length; i++) bytes[source + i] = (seed ^ 255) + i * 7;
          const done = machineCode?.copyTwice(source, cached, streamed, length) ?? -1;
          expect(done).toBe(length - (length % COPY_BLOCK_BYTES));
          for (const place of [cached, streamed]) {
            expect(Buffer.from(memory.buffer, place, done).equals(Buffer.from(memory.buffer, source, done))).toBe(true);
            for (const beside of [place - 1, place + done]) expect(bytes[beside]).toBe(seed);
          }
        }),
        { numRuns: 200 },
      );
    });

    test('sums of arrays outside the memory have the same bits as WebAssembly, and nothing else is written', () => {
      if (machineCode === undefined) return;
      const shape = fc.record({
        type: fc.constantFrom(...dataTypes.filter(({ name }) => name in addingOf)),
        nSources: fc.integer({ min: 2, max: 9 }),
        blocks: fc.integer({ min: 1, max: 20 }),
        from: fc.nat(3),
        shift: fc.nat(40),
        inPlace: fc.boolean(),
        values: fc.uint8Array({ minLength: 1, maxLength: 300 }),
      });
      fc.assert(
        fc.property(shape, ({ type, nSources, blocks, from, shift, inPlace, values }) => {
          const sum = machineCode.sumOf(type.name);
          const bytes = blocks * SUM_BLOCK_BYTES;
          const end = from * SUM_BLOCK_BYTES + bytes;
          const arrays = Array.from({ length: nSources + 1 }, (_, a) =>
            Uint8Array.from({ length: end + shift + 64 }, (_, i) => (values[(i * 7 + a) % values.length] ?? 0) ^ (i * a)),
          );
          const [destination, ...sources] = arrays as [Uint8Array, ...Uint8Array[]];
          if (inPlace) sources[0] = destination;
          // The same by WebAssembly.
          const places = sources.map((source, s) => {
            const place = DATA + s * 8192;
            new Uint8Array(memory.buffer).set(source.subarray(shift, shift + end), place);
            return place;
          });
          setTables(places, [DATA + 9 * 8192]);
          webAssembly.reduceCopy(type.code, SUM, SOURCES, nSources, DESTINATIONS, 1, end - bytes, bytes);
          const expected = Uint8Array.from(destination);
          expected.set(new Uint8Array(memory.buffer, DATA + 9 * 8192 + end - bytes, bytes), shift + end - bytes);

          const addressOf = (array: Uint8Array): bigint => BigInt(machineCode.addressOfOutside(array)) + BigInt(shift);
          const table = BigUint64Array.from(sources, addressOf);
          const tableAt = machineCode.addressOfOutside(table);
          sum?.(tableAt, tableAt + table.byteLength, Number(addressOf(destination)), end, end - bytes);
          expect(Buffer.compare(destination, expected)).toBe(0);
        }),
        { numRuns: 300 },
      );
    });

    test('numbers that the processor does not add are left to WebAssembly', () => {
      expect(machineCode?.sumOf('bfloat16')).toBeUndefined();
      expect(machineCode?.sumOf('float8e4m3')).toBeUndefined();
    });

    test('an array that exceeds the memory is refused as by WebAssembly', () => {
      setTables([DATA, memory.buffer.byteLength - 8192], [DATA]);
      expect(() => withMachineCode.reduceCopy(float16.code, SUM, SOURCES, 2, DESTINATIONS, 1, 0, 16384)).toThrow(/out of bounds/);
      setTables([DATA, DATA], [0xffff_f000]);
      expect(() => withMachineCode.reduceCopy(float16.code, SUM, SOURCES, 2, DESTINATIONS, 1, 0, 16384)).toThrow(/out of bounds/);
    });

    test('a single source is copied unchanged', () => {
      numbers.fill(0xfe01, DATA / 2, DATA / 2 + 4096);
      setTables([DATA], [DATA + 8192]);
      withMachineCode.reduceCopy(float16.code, SUM, SOURCES, 1, DESTINATIONS, 1, 0, 8192);
      expect(numbers[(DATA + 8192) / 2]).toBe(0xfe01);
    });
  },
);
