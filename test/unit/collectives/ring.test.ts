import fc from 'fast-check';
import { afterAll, describe, expect, test } from 'vitest';
import { encodeCall, type Call } from '../../../src/collectives/call.js';
import type { Ring } from '../../../src/collectives/ring.js';
import { DONE } from '../../../src/device/kernels/kernels.js';
import { dataTypes, float32, float64, reductionOperators, type DataType, type NamedOperator, type NumericArray } from '../../../src/device/types.js';
import { elementsOf, reduceElements, type Element } from '../device/reference.js';
import { bytesOf, generator, openRing } from './rings.js';

/** Slices so small that little data go through many blocks. */
const size = { steps: 4, slotBytes: 64 + 256 };
const SLICES_PER_CHUNK = size.steps / 2;

const rings = new Map<string, Promise<Ring[]>>();
const ringOf = (n: number): Promise<Ring[]> => {
  const key = `${n}`;
  if (!rings.has(key)) rings.set(key, openRing('shm', n, size));
  return rings.get(key)!;
};
afterAll(async () => {
  for (const ring of rings.values()) await Promise.all((await ring).map((rank) => rank.close()));
});

/** An operation of all ranks, and where each has its arrays. */
interface Operation {
  readonly kind: Call['kind'];
  readonly type: DataType;
  readonly operator: NamedOperator;
  readonly root: number;
  readonly count: number;
  readonly seed: number;
}

const operation: fc.Arbitrary<Operation> = fc.record({
  kind: fc.constantFrom<Call['kind']>('allReduce', 'allReduce', 'broadcast', 'barrier'),
  type: fc.constantFrom(...dataTypes),
  operator: fc.constantFrom(...reductionOperators),
  root: fc.nat(8),
  count: fc.oneof(fc.nat(3), fc.nat(200), fc.nat(3000)),
  seed: fc.nat(),
});

interface Arrays {
  readonly send: NumericArray;
  readonly recv: NumericArray;
}

test('any sequence of operations gives what a naive reference gives, in the same bits at every rank, however ranks overtake each other', async () => {
  await fc.assert(
    fc.asyncProperty(fc.integer({ min: 1, max: 9 }), fc.array(operation, { minLength: 1, maxLength: 5 }), fc.nat(), async (n, script, seed) => {
      const ranks = await ringOf(n);
      const random = generator(seed);
      const arrays = script.map((op) => ranks.map((rank) => makeArrays(rank, op, generator(op.seed + rank.ring.rank))));
      const inputs = arrays.map((all) => all.map(({ send }) => elementsOf(send)));

      const position = ranks.map(() => -1);
      let turns = 1e6;
      while (position.some((at) => at < script.length)) {
        if (turns-- === 0) throw new Error(`no progress: ${position.join(' ')}`);
        const r = Math.floor(random() * n);
        if (position[r]! >= script.length) continue;
        const begins = position[r] === -1 || ranks[r]!.progress(0) === DONE;
        if (!begins) continue;
        position[r]!++;
        const op = script[position[r]!];
        if (op !== undefined) begin(ranks[r]!, op, arrays[position[r]!]![r]!, n);
      }

      script.forEach((op, i) => {
        if (op.kind === 'barrier') return;
        const expected = op.kind === 'broadcast' ? inputs[i]![op.root % n]! : allReduced(inputs[i]!, op);
        const [first] = arrays[i]!;
        for (const { recv } of arrays[i]!) {
          expect(firstDifference(recv, expected)).toBeUndefined();
          expect(bytesOf(recv).equals(bytesOf(first!.recv))).toBe(true);
        }
      });
      for (const [r, rank] of ranks.entries()) for (const all of arrays) freePlaced(rank, all[r]!);
    }),
    { numRuns: 150, seed: 7, endOnFailure: true },
  );
});

describe('over sockets', () => {
  test('operations go from event to event, from arrays in and outside the segment', async () => {
    const ranks = await openRing('socket', 3, size, [0, 2, 1]);
    const script = fc.sample(operation, { numRuns: 20, seed: 3 });
    for (const op of script) {
      const arrays = ranks.map((rank) => makeArrays(rank, op, generator(op.seed + rank.ring.rank)));
      const inputs = arrays.map(({ send }) => elementsOf(send));
      await Promise.all(ranks.map((rank, r) => finish(rank, begin(rank, op, arrays[r]!, 3))));
      if (op.kind === 'barrier') continue;
      const places = [0, 2, 1];
      const expected = op.kind === 'broadcast' ? inputs[op.root % 3]! : allReduced(places.map((rank) => inputs[rank]!), op);
      for (const { recv } of arrays) expect(firstDifference(recv, expected)).toBeUndefined();
    }
    expect(ranks[0]!.blocking).toBe(false);
    await Promise.all(ranks.map((rank) => rank.close()));
    expect(process.getActiveResourcesInfo().filter((resource) => resource.startsWith('TCP'))).toEqual([]);
  });
});

test('no rank leaves a barrier before the last has come', async () => {
  const ranks = await ringOf(5);
  const barrier: Operation = { kind: 'barrier', type: float32, operator: 'sum', root: 0, count: 0, seed: 0 };
  const empty = { send: new Float32Array(0), recv: new Float32Array(0) };
  for (let late = 0; late < 5; late++) {
    const early = ranks.filter((rank) => rank.ring.rank !== late);
    for (const rank of early) begin(rank, barrier, empty, 5);
    for (let turn = 0; turn < 20; turn++) expect(early.map((rank) => rank.progress(0))).not.toContain(DONE);
    begin(ranks[late]!, barrier, empty, 5);
    const finished = ranks.map(() => false);
    while (finished.includes(false)) ranks.forEach((rank, r) => (finished[r] ||= rank.progress(0) === DONE));
  }
});

test.each<[string, Partial<Call>, RegExp]>([
  ['another count', { count: 99 }, /rank 1 called allReduce of 99 float32 \(sum, ring\) where rank 0 called allReduce of 100 float32 \(sum, ring\)/],
  ['another type', { type: float64 }, /rank 1 called allReduce of 100 float64/],
  ['another operator', { operator: 'max' }, /rank 1 called allReduce of 100 float32 \(max, ring\)/],
  ['another operation', { kind: 'broadcast', root: 2 }, /rank 1 called broadcast of 100 float32 from rank 2 \(ring\)/],
  ['a barrier', { kind: 'barrier', count: 0 }, /rank 1 called barrier \(ring\)/],
])('ranks hear of a rank that called %s', async (_, differs, message) => {
  const ranks = await openRing('shm', 4, size);
  const call: Call = { kind: 'allReduce', type: float32, operator: 'sum', root: 0, count: 100, algorithm: 'ring' };
  const errors = ranks.map((): unknown => undefined);
  ranks.forEach((rank, r) => {
    const mine = r === 1 ? { ...call, ...differs } : call;
    errors[r] = attempt(() => rank.begin(encodeCall(mine), mine.type, mine.root, new mine.type.array(new ArrayBuffer(800), 0, mine.count), new mine.type.array(new ArrayBuffer(800), 0, mine.count), mine.count, 0));
  });
  for (let turn = 0; turn < 20; turn++) ranks.forEach((rank, r) => (errors[r] ??= attempt(() => rank.progress(0))));
  expect(errors[1]).toMatchObject({ name: 'InvalidUsageError', code: 'CALL_MISMATCH' });
  // Rank 1 and its next each found it; the others have heard from them.
  for (const error of errors) expect(error).toMatchObject({ code: 'CALL_MISMATCH' });
  expect((errors[1] as Error).message).toMatch(message);
});

test.each([10, 5000])('ranks that name different roots for %i elements find out, even while all wait to send', async (count) => {
  const ranks = await openRing('shm', 2, size);
  const array = new Float32Array(count);
  const errors = ranks.map((rank, r) => attempt(() => rank.begin(encodeCall({ kind: 'broadcast', type: float32, operator: 'sum', root: r, count, algorithm: 'ring' }), float32, r, array, array, count, 0)));
  for (let turn = 0; turn < 5; turn++) ranks.forEach((rank, r) => (errors[r] ??= attempt(() => rank.progress(0))));
  for (const error of errors) expect(error).toMatchObject({ code: 'CALL_MISMATCH' });
});

test('an array that is taken away while the call is under way ends it for all', async () => {
  const ranks = await openRing('shm', 2, size);
  const mine = new Float32Array(5000);
  const op: Operation = { kind: 'allReduce', type: float32, operator: 'sum', root: 0, count: 5000, seed: 0 };
  begin(ranks[0]!, op, { send: mine, recv: mine }, 2);
  structuredClone(mine, { transfer: [mine.buffer] });
  const other = new Float32Array(5000);
  let error = attempt(() => begin(ranks[1]!, op, { send: other, recv: other }, 2));
  expect(attempt(() => ranks[0]!.progress(0))).toMatchObject({ code: 'BUFFER_DETACHED' });
  error ??= attempt(() => ranks[1]!.progress(0));
  expect(error).toMatchObject({ code: 'BUFFER_DETACHED' });
});

function begin(rank: Ring, { kind, type, operator, root, count }: Operation, { send, recv }: Arrays, n: number): number {
  const code = encodeCall({ kind, type, operator, root: 0, count, algorithm: 'direct' });
  return rank.begin(code, type, kind === 'broadcast' ? root % n : 0, send, recv, kind === 'barrier' ? 0 : count, 0);
}

/** Waits for the end of an operation as the promise API does. */
async function finish(rank: Ring, status: number): Promise<void> {
  while (status !== DONE) {
    await new Promise<void>((resolve) => rank.whenReady!(resolve));
    status = rank.progress(0);
  }
}

/** Arrays of random values, in the segment or outside, the same or two. Those who only receive may have a short input. */
function makeArrays(rank: Ring, op: Operation, random: () => number): Arrays {
  const { type, kind } = op;
  const make = (count: number): NumericArray => (random() < 0.5 ? rank.segment.alloc(type.array, count) : new type.array(new ArrayBuffer(count * type.bytes + 8), 8, count));
  const recv = make(op.count);
  const root = op.root % rank.ring.order.length;
  const send = random() < 0.4 ? recv : make(kind === 'broadcast' && root !== rank.ring.rank ? 0 : op.count);
  for (let i = 0; i < send.length; i++) {
    const sign = random() < 0.5 && (type.isFloat || type.name.startsWith('i')) ? -1 : 1;
    const magnitude = type.isFloat ? 10 ** (random() * 6 - 3) : Math.floor(random() * 2 ** (type.bytes * 8 - 1));
    type.write(send, i, sign * magnitude);
  }
  return { send, recv };
}

/** Comparing element by element costs a hundredth of what `toEqual` does. */
function firstDifference(array: NumericArray, expected: readonly Element[]): object | undefined {
  if (array.length !== expected.length) return { length: array.length, expected: expected.length };
  const i = expected.findIndex((value, at) => !Object.is(value, array[at]));
  return i < 0 ? undefined : { at: i, is: array[i], expected: expected[i] };
}

function freePlaced(rank: Ring, { send, recv }: Arrays): void {
  for (const array of new Set([send, recv])) if (array.buffer === rank.segment.buffer) rank.segment.free(array);
}

/** The reduction an element at a time, in the order of the ring: the chunk's own rank first, then those behind it. */
function allReduced(inputs: readonly Element[][], { type, operator, count }: Operation): Element[] {
  const n = inputs.length;
  const slice = size.slotBytes - 64;
  return Array.from({ length: count }, (_, i) => {
    const blockBytes = n * SLICES_PER_CHUNK * slice;
    const block = Math.floor((i * type.bytes) / blockBytes);
    const inBlock = i * type.bytes - block * blockBytes;
    const bytes = Math.min(blockBytes, count * type.bytes - block * blockBytes);
    const chunk = Math.floor(inBlock / (Math.ceil(bytes / n / 128) * 128));
    return reduceElements(type, operator, Array.from({ length: n }, (_, k) => inputs[(chunk + k) % n]![i]!));
  });
}

function attempt(call: () => unknown): unknown {
  try {
    call();
    return undefined;
  } catch (error) {
    return error;
  }
}
