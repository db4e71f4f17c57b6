import { isNarrow } from '../../src/runtime/device/ptx/element-types.js';
import { kernelName, type KernelDescription } from '../../src/runtime/device/ptx/kernels.js';
import type { Step } from '../../src/runtime/device/ptx/step-record.js';
import { SCALAR_BYTES, writeScalar } from '../../src/runtime/device/scalar.js';
import { dataTypes, type DataType } from '../../src/runtime/device/types.js';
import { generator } from '../ptx/run.js';

/** A piece of memory, which begins with these bytes at a multiple of 256. */
export interface Piece {
  readonly bytes: Uint8Array;
}

/** Work of a kernel on memory of its own, with the same alignment wherever it runs. */
export interface KernelCase {
  readonly pieces: readonly Piece[];
  /** Number of the piece with the result. */
  readonly result: number;
  readonly type: DataType;
  /** A list of steps for one block, or the step of a kernel that a stream orders. */
  readonly steps: (addresses: readonly bigint[]) => readonly Step[];
}

const MOST_BYTES = 700;
const LINE_FLAG = 7;

/** A reduction or copy of 1 to 4 sources, and a second step that takes the first one's result over flags or lines. */
export function kernelCase(kernel: KernelDescription, seed: number): KernelCase {
  const { arithmetic, protocol } = kernel;
  const random = generator(seed + kernelName(kernel).length * 1000);
  const moved = { 1: 'uint8', 2: 'float16', 4: 'uint32', 8: 'uint64' } as const;
  const named = arithmetic.type ?? moved[arithmetic.bytes];
  const type = dataTypes.find(({ name }) => name === named);
  if (type === undefined) throw new Error(`no type ${named}`);
  const { operator } = arithmetic;
  const count = 1 + random(Math.floor(MOST_BYTES / type.bytes));
  const bytes = count * type.bytes;
  const together = random(2) === 0;
  const skews = Array.from({ length: 6 }, () => type.bytes * random(16 / type.bytes));
  const skew = (i: number): number => skews[together ? 0 : i] ?? 0;
  const nSources = operator === undefined ? 1 : 1 + random(4);
  const pieces: Piece[] = [];
  const add = (length: number): number => pieces.push({ bytes: new Uint8Array(length) }) - 1;
  const array = (i: number): ((addresses: readonly bigint[]) => bigint) => {
    const piece = add(bytes + 16);
    fill(type, pieces[piece]?.bytes.subarray(skew(i), skew(i) + bytes) ?? new Uint8Array(), random);
    return (addresses) => (addresses[piece] ?? 0n) + BigInt(skew(i));
  };
  const sources = Array.from({ length: nSources }, (_, i) => array(i));
  const target = array(4);
  const result = pieces.length - 1;
  const own = {
    bytes,
    divisor: operator === 'avg' ? 1 + random(6) : 1,
    scalars: operator === 'premulSum' ? scalarsOf(type, nSources, random) : [],
  };
  const from = (addresses: readonly bigint[]): bigint[] => sources.map((source) => source(addresses));
  if (protocol === 'stream')
    return { pieces, result, type, steps: (at) => [{ ...own, sources: from(at), destinations: [target(at)] }] };
  const between = array(5);
  const flag = add(8);
  const lines = add(16 * Math.ceil(bytes / 8) + 16);
  const onFlags = (at: readonly bigint[]): Step[] => {
    const flags = [{ address: at[flag] ?? 0n, value: 3n }];
    return [
      { ...own, sources: from(at), destinations: [between(at)], posts: flags },
      { bytes, sources: [between(at)], destinations: [target(at)], waits: flags },
    ];
  };
  const onLines = (at: readonly bigint[]): Step[] => {
    const wire = { lineFlag: LINE_FLAG, bytes };
    return [
      { ...own, ...wire, sources: from(at), destinations: [at[lines] ?? 0n], nWireDestinations: 1 },
      { ...wire, sources: [at[lines] ?? 0n], nWireSources: 1, destinations: [target(at)] },
    ];
  };
  return { pieces, result, type, steps: protocol === 'lines' ? onLines : onFlags };
}

/** Any bits of integers; of floats numbers whose sums are rounded, and a few of any bits. */
function fill(type: DataType, bytes: Uint8Array, random: (below: number) => number): void {
  for (let i = 0; i < bytes.length; i++) bytes[i] = random(256);
  if (!type.isFloat) return;
  const elements = new type.array(bytes.slice().buffer, 0, bytes.length / type.bytes);
  for (let i = 0; i < elements.length; i++)
    if (random(8) > 0) type.write(elements, i, (random(1e6) / 1e6 - 0.5) * (isNarrow(type.name as never) ? 8 : 1000));
  bytes.set(new Uint8Array(elements.buffer));
}

function scalarsOf(type: DataType, count: number, random: (below: number) => number): bigint[] {
  const packed = new BigUint64Array(count);
  for (let i = 0; i < count; i++)
    writeScalar(type, type.isFloat ? (random(1000) - 500) / 100 : random(100), packed.buffer, SCALAR_BYTES * i);
  return [...packed];
}

/** The first element that differs; all NaN are alike. */
export function differing({ type }: KernelCase, actual: Uint8Array, expected: Uint8Array): string | undefined {
  const count = Math.floor(expected.length / type.bytes);
  const [own, other] = [actual, expected].map((bytes) => new type.array(bytes.slice().buffer, 0, count));
  if (own === undefined || other === undefined) return 'no result';
  for (let i = 0; i < other.length; i++) {
    const [value, wanted] = [type.read(own, i), type.read(other, i)];
    if (!Object.is(value, wanted)) return `element ${i} is ${value}, not ${wanted}`;
  }
  return undefined;
}
