import { brainBits, brainValue, halfBits, halfValue } from './arithmetic.js';
import type { Block, Thread } from './block.js';
import { checkAccess, counterAt, MemoryError, type Region } from './memory.js';

export type Order = 'weak' | 'relaxed' | 'acquire' | 'release';

/** A place for the bytes of one element. */
const cell = new Uint8Array(8);
export const cellView = new DataView(cell.buffer);

/** Puts `bytes` bytes, as a thread sees them, into the cell. */
export function load(block: Block, thread: Thread, region: Region, offset: number, bytes: number, order: Order): void {
  const accesses = block.system.order();
  block.stores.load(thread.index, region, offset, cell.subarray(0, bytes), order !== 'weak');
  if (order === 'acquire') accesses.acquired(thread, region, offset);
  accesses.read(thread, region, offset, bytes, order !== 'weak');
}

/** Stores the first bytes of the cell. */
export function store(block: Block, thread: Thread, region: Region, offset: number, bytes: number, order: Order): void {
  block.system.nChanges++;
  const accesses = block.system.order();
  accesses.write(thread, region, offset, bytes, order !== 'weak');
  const contents = cell.slice(0, bytes);
  if (order !== 'release') {
    // A relaxed store publishes nothing, and ends what an earlier release of this place has published.
    const onVisible = order === 'weak' ? undefined : () => accesses.stored(region, offset, undefined);
    block.stores.store(thread.index, region, offset, contents, onVisible);
    return;
  }
  block.stores.releaseBy(thread.index);
  if (bytes === 8) Atomics.store(counterAt(region, offset), 0, new DataView(contents.buffer).getBigUint64(0, true));
  else region.bytes.set(contents, offset);
  accesses.stored(region, offset, thread.clock);
  thread.tick();
}

/** All members of a multicast object, each at the same offset. */
export function membersAt(region: Region, offset: number, bytes: number): readonly Region[] {
  if (region.members.length === 0) throw new MemoryError(`${region.name} is no multicast object`);
  checkAccess(region, offset, bytes);
  return region.members;
}

/** Changes a number that all see at once; nothing else is ordered. */
export function update(
  block: Block,
  thread: Thread,
  region: Region,
  offset: number,
  bytes: 4 | 8,
  change: (bits: bigint) => bigint,
): void {
  block.system.nChanges++;
  const accesses = block.system.order();
  accesses.write(thread, region, offset, bytes, true);
  const { view } = region;
  if (bytes === 8) view.setBigUint64(offset, change(view.getBigUint64(offset, true)), true);
  else view.setUint32(offset, Number(BigInt.asUintN(32, change(BigInt(view.getUint32(offset, true))))), true);
  accesses.stored(region, offset, undefined, true);
}

/** Adds to a counter of 64 bits in each member; a release publishes what the thread has stored and seen. */
export function addToAll(
  block: Block,
  thread: Thread,
  members: readonly Region[],
  offset: number,
  value: bigint,
  releases: boolean,
): void {
  block.system.nChanges++;
  const accesses = block.system.order();
  if (releases) block.stores.releaseBy(thread.index);
  for (const region of members) {
    accesses.write(thread, region, offset, 8, true);
    Atomics.add(counterAt(region, offset), 0, value);
    accesses.stored(region, offset, releases ? thread.clock : undefined, true);
  }
  if (releases) thread.tick();
}

/** Elements that a switch combines: how to read one from the cell, combine two, and write the result to the cell. */
interface Combiner {
  readonly bytes: 4 | 8;
  readonly combine: (values: readonly bigint[]) => bigint;
}

const extremes = { min: (a: number, b: number) => Math.min(a, b), max: (a: number, b: number) => Math.max(a, b) };

/** `.add.f32`, `.min.s64` …: what follows `multimem.ld_reduce.relaxed.sys.global`, without the vector. */
export const combiners: ReadonlyMap<string, Combiner> = new Map([
  ...(['u32', 's32', 'u64', 's64'] as const).flatMap((type) => {
    const bits = Number(type.slice(1));
    const wrap = (x: bigint): bigint => (type.startsWith('s') ? BigInt.asIntN(bits, x) : BigInt.asUintN(bits, x));
    const bytes = (bits / 8) as 4 | 8;
    const reduced = (f: (a: bigint, b: bigint) => bigint) => (values: readonly bigint[]) =>
      values.map(wrap).reduce((a, b) => wrap(f(a, b)));
    return [
      // PTX has no sum of s64.
      ...(type === 's64' ? [] : [[`add.${type}`, { bytes, combine: reduced((a, b) => a + b) }] as const]),
      [`min.${type}`, { bytes, combine: reduced((a, b) => (a < b ? a : b)) }] as const,
      [`max.${type}`, { bytes, combine: reduced((a, b) => (a > b ? a : b)) }] as const,
    ];
  }),
  [
    'add.f32',
    {
      bytes: 4,
      combine: floats(
        32,
        1,
        (bits) => float32Of(bits),
        (x) => bitsOf(x),
        Math.fround,
      ),
    },
  ],
  ['add.f64', { bytes: 8, combine: sumFloat64 }],
  ['add.acc::f32.f16x2', { bytes: 4, combine: floats(16, 2, halfValue, halfBits, Math.fround) }],
  ['add.acc::f32.bf16x2', { bytes: 4, combine: floats(16, 2, brainValue, brainBits, Math.fround) }],
  ...(['min', 'max'] as const).flatMap((name) => [
    [`${name}.f16x2`, { bytes: 4, combine: floats(16, 2, halfValue, halfBits, undefined, extremes[name]) }] as const,
    [`${name}.bf16x2`, { bytes: 4, combine: floats(16, 2, brainValue, brainBits, undefined, extremes[name]) }] as const,
  ]),
]);

function floats(
  bits: 16 | 32,
  count: 1 | 2,
  decode: (bits: number) => number,
  encode: (value: number) => number,
  round: ((value: number) => number) | undefined,
  combine: (a: number, b: number) => number = (a, b) => a + b,
) {
  return (values: readonly bigint[]): bigint => {
    let result = 0n;
    for (let i = 0; i < count; i++) {
      const elements = values.map((value) => decode(Number((value >> BigInt(bits * i)) & ((1n << BigInt(bits)) - 1n))));
      // Neither PTX nor CUDA says what a switch makes of NaN in a minimum: the interpreter does not either.
      if (round === undefined && elements.some(Number.isNaN))
        throw new MemoryError('a multicast minimum or maximum of NaN is not defined');
      const combined = elements.reduce((a, b) => (round ?? ((x: number) => x))(combine(a, b)));
      result |= BigInt(encode(combined)) << BigInt(bits * i);
    }
    return result;
  };
}

const number32 = new Float32Array(1);
const bits32 = new Uint32Array(number32.buffer);
const number64 = new Float64Array(1);
const bits64 = new BigUint64Array(number64.buffer);

function float32Of(bits: number): number {
  bits32[0] = bits;
  return number32[0] ?? NaN;
}

function bitsOf(value: number): number {
  number32[0] = value;
  return bits32[0] ?? 0;
}

function sumFloat64(values: readonly bigint[]): bigint {
  let sum: number | undefined;
  for (const value of values) {
    bits64[0] = BigInt.asUintN(64, value);
    sum = sum === undefined ? number64[0] : sum + (number64[0] ?? NaN);
  }
  number64[0] = sum ?? NaN;
  return bits64[0] ?? 0n;
}

/** One element of all members, combined in an order that PTX leaves open: the schedule's chance decides. */
export function loadCombined(
  block: Block,
  thread: Thread,
  members: readonly Region[],
  offset: number,
  combiner: Combiner,
): bigint {
  const values = members.map((region) => {
    load(block, thread, region, offset, combiner.bytes, 'relaxed');
    return combiner.bytes === 8 ? cellView.getBigUint64(0, true) : BigInt(cellView.getUint32(0, true));
  });
  for (let i = values.length - 1; i > 0; i--) {
    const j = block.system.random(i + 1);
    const swapped = values[i] ?? 0n;
    values[i] = values[j] ?? 0n;
    values[j] = swapped;
  }
  return combiner.combine(values);
}
