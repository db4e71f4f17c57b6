import fc from 'fast-check';
import { afterAll, describe, expect, test } from 'vitest';
import { encodeCall, partsHash, type Algorithm, type Call, type CallDetails, type CallKind } from '../../../src/collectives/call.js';
import { DONE } from '../../../src/device/kernels/kernels.js';
import { dataTypes, float32, float64, operatorNames, type DataType, type NumericArray, type OperatorName } from '../../../src/device/types.js';
import { elementsOf, reduceElements, scaledSum, type Element } from '../device/reference.js';
import { bytesOf, generator, openNetwork, type Member } from './networks.js';

/** Slices so small that little data go through many columns; PAT's messages have room for a line of nine ranks. */
const size = { steps: 4, slotBytes: 64 + 640 };
const SLICES_PER_CHUNK = size.steps / 2;

const networks = new Map<number, Promise<Member[]>>();
const networkOf = (n: number): Promise<Member[]> => {
  if (!networks.has(n)) networks.set(n, openNetwork('shm', n, size));
  return networks.get(n)!;
};
afterAll(async () => {
  for (const members of networks.values()) await Promise.all((await members).map(({ engine }) => engine.close()));
});

const algorithmsOf: Readonly<Record<CallKind, readonly Algorithm[]>> = {
  allReduce: ['ring', 'tree'], broadcast: ['ring', 'tree'], barrier: ['ring', 'tree'], reduce: ['ring', 'tree'],
  allGather: ['ring', 'pat'], reduceScatter: ['ring', 'pat'], allGatherV: ['ring'], reduceScatterV: ['ring'],
  allToAll: ['pairs'], gather: ['pairs'], scatter: ['pairs'], allToAllV: ['pairs'],
};

/** Types in which sums of a few small whole numbers are exact, so that their order does not matter. */
const exactTypes = dataTypes.filter(({ name }) => !name.startsWith('float8'));

/** An operation of all ranks, and where each has its arrays. */
interface Operation {
  readonly kind: CallKind;
  readonly algorithm: Algorithm;
  readonly type: DataType;
  readonly operator: OperatorName;
  readonly root: number;
  readonly count: number;
  readonly seed: number;
}

const operation: fc.Arbitrary<Operation> = fc
  .constantFrom(...(Object.keys(algorithmsOf) as CallKind[]))
  .chain((kind) => fc.record({
    kind: fc.constant(kind),
    algorithm: fc.constantFrom(...algorithmsOf[kind]),
    type: fc.constantFrom(...exactTypes),
    operator: fc.constantFrom(...operatorNames),
    root: fc.nat(8),
    count: fc.oneof(fc.nat(3), fc.nat(200), fc.nat(3000)),
    seed: fc.nat(),
  }));

/** A rank's part of an operation. */
interface Part {
  readonly send: NumericArray;
  readonly recv: NumericArray;
  /** What `recv` has to be in the end; undefined if it does not matter. */
  readonly expected: readonly Element[] | undefined;
  readonly call: Call;
  readonly details: CallDetails | undefined;
}

test('any sequence of operations gives what a naive reference gives, however ranks overtake each other', async () => {
  await fc.assert(
    fc.asyncProperty(fc.integer({ min: 2, max: 9 }), fc.array(operation, { minLength: 1, maxLength: 6 }), fc.nat(), async (n, script, seed) => {
      const members = await networkOf(n);
      const random = generator(seed);
      const parts = script.map((op) => makeParts(members, op));

      const position = members.map(() => -1);
      let turns = 1e6;
      while (position.some((at) => at < script.length)) {
        if (turns-- === 0) throw new Error(`no progress: ${position.join(' ')}`);
        const r = Math.floor(random() * n);
        if (position[r]! >= script.length) continue;
        const { engine } = members[r]!;
        const begins = position[r] === -1 || engine.progress(0) === DONE;
        if (!begins) {
          // Connections are being made.
          if (engine.whenReady !== undefined) await new Promise((resolve) => setImmediate(resolve));
          continue;
        }
        position[r]!++;
        const part = parts[position[r]!]?.[r];
        if (part !== undefined) begin(members[r]!, part);
      }

      for (const [i, all] of parts.entries()) {
        for (const [r, { recv, expected }] of all.entries()) {
          const place = `${JSON.stringify({ ...script[i], type: script[i]!.type.name })} rank ${r} of ${n}`;
          if (expected !== undefined) expect([place, firstDifference(recv, expected)]).toEqual([place, undefined]);
        }
      }
      for (const [r, member] of members.entries()) for (const all of parts) freePlaced(member, all[r]!);
    }),
    { numRuns: 150, seed: 7, endOnFailure: true },
  );
}, 60_000);

describe('over sockets', () => {
  test('operations go from event to event, from arrays in and outside the segment', async () => {
    const members = await openNetwork('socket', 3, size, [0, 2, 1]);
    for (const op of fc.sample(operation, { numRuns: 60, seed: 3 })) {
      const parts = makeParts(members, op);
      await Promise.all(members.map((member, r) => finish(member, begin(member, parts[r]!))));
      for (const { recv, expected } of parts) if (expected !== undefined) expect([op.kind, firstDifference(recv, expected)]).toEqual([op.kind, undefined]);
    }
    expect(members[0]!.engine.blocking).toBe(false);
    await Promise.all(members.map(({ engine }) => engine.close()));
    expect(process.getActiveResourcesInfo().filter((resource) => resource.startsWith('TCP'))).toEqual([]);
  });
});

test.each<[Algorithm, CallKind]>([['ring', 'allReduce'], ['tree', 'allReduce'], ['tree', 'reduce'], ['ring', 'reduceScatter'], ['pat', 'reduceScatter']])(
  'sums by %s have the same bits however ranks overtake each other (%s)',
  async (algorithm, kind) => {
    const n = 7;
    const members = await networkOf(n);
    const outcomeOf = async (seed: number): Promise<string[]> => {
      const op: Operation = { kind, algorithm, type: float32, operator: 'sum', root: 3, count: 1000, seed: 5 };
      const parts = makeParts(members, op);
      for (const [r, { send }] of parts.entries()) {
        const value = generator(r);
        for (let i = 0; i < send.length; i++) send[i] = (value() - 0.5) * 10 ** (value() * 6 - 3);
      }
      await run(members, parts, generator(seed));
      return parts.filter(({ expected }) => expected !== undefined).map(({ recv }) => bytesOf(recv).toString('hex'));
    };
    const first = await outcomeOf(1);
    expect(await outcomeOf(2)).toEqual(first);
    if (kind === 'allReduce') expect(new Set(first).size).toBe(1);
  },
);

test('all-reduce by ring adds in the order of the ring, from the rank that the chunk is named after', async () => {
  const n = 5;
  const count = 4000;
  const members = await networkOf(n);
  const op: Operation = { kind: 'allReduce', algorithm: 'ring', type: float32, operator: 'sum', root: 0, count, seed: 5 };
  const parts = makeParts(members, op);
  const random = generator(1);
  for (const { send } of parts) for (let i = 0; i < count; i++) send[i] = (random() - 0.5) * 10 ** (random() * 6 - 3);
  const inputs = parts.map(({ send }) => [...send].map(Number));
  await run(members, parts, random);
  for (const { recv } of parts) expect(firstDifference(recv, addedInRing(inputs))).toBeUndefined();
});

test.each(algorithmsOf.barrier)('no rank leaves a barrier by %s before the last has come', async (algorithm) => {
  const members = await networkOf(5);
  const parts = makeParts(members, { kind: 'barrier', algorithm, type: float32, operator: 'sum', root: 0, count: 0, seed: 0 });
  for (let late = 0; late < 5; late++) {
    const early = members.filter(({ rank }) => rank !== late);
    for (const member of early) begin(member, parts[member.rank]!);
    for (let turn = 0; turn < 20; turn++) expect(early.map(({ engine }) => engine.progress(0))).not.toContain(DONE);
    begin(members[late]!, parts[late]!);
    await finishAll(members);
  }
});

test.each<[string, Partial<Call>, RegExp]>([
  ['another count', { count: 99 }, /rank 1 called allReduce of 99 float32 \(sum, ring\) where rank 0 called allReduce of 100 float32 \(sum, ring\)/],
  ['another type', { type: float64 }, /rank 1 called allReduce of 100 float64/],
  ['another operator', { operator: 'max' }, /rank 1 called allReduce of 100 float32 \(max, ring\)/],
  ['another operation', { kind: 'broadcast', root: 2 }, /rank 1 called broadcast of 100 float32 from rank 2 \(ring\)/],
  ['a barrier', { kind: 'barrier', count: 0 }, /rank 1 called barrier \(ring\)/],
  ['an operation that needs other connections', { kind: 'allToAll', count: 25, algorithm: 'pairs' }, /rank 1 called allToAll of 25 float32 \(pairs\)/],
])('ranks hear of a rank that called %s', async (_, differs, message) => {
  const members = await openNetwork('shm', 4, size);
  const call: Call = { kind: 'allReduce', type: float32, operator: 'sum', root: 0, count: 100, algorithm: 'ring' };
  const errors = members.map((member, r): unknown => attempt(() => beginCall(member, r === 1 ? { ...call, ...differs } : call)));
  for (let turn = 0; turn < 20; turn++) members.forEach(({ engine }, r) => (errors[r] ??= attempt(() => engine.progress(0))));
  expect(errors[1]).toMatchObject({ name: 'InvalidUsageError', code: 'CALL_MISMATCH' });
  // Rank 1 and its next each found it; the others have heard from them.
  for (const error of errors) expect(error).toMatchObject({ code: 'CALL_MISMATCH' });
  expect((errors[1] as Error).message).toMatch(message);
});

test('ranks whose calls use different connections find out, too', async () => {
  const members = await openNetwork('shm', 4, size);
  await Promise.all(members.map(({ engine }) => engine.open('tree')));
  const call: Call = { kind: 'allReduce', type: float32, operator: 'sum', root: 0, count: 100, algorithm: 'tree' };
  const errors = members.map((member, r): unknown => attempt(() => beginCall(member, r === 1 ? { ...call, count: 120, algorithm: 'ring' } : call)));
  for (let turn = 0; turn < 20; turn++) members.forEach(({ engine }, r) => (errors[r] ??= attempt(() => engine.progress(0))));
  for (const error of errors) expect(error).toMatchObject({ code: 'CALL_MISMATCH' });
});

test('ranks whose counts for each other differ find out from the length of what comes', async () => {
  const members = await openNetwork('shm', 2, size);
  const recv = new Float32Array(10);
  const errors = members.map(({ engine }, r): unknown => {
    const call: Call = { kind: 'allToAllV', type: float32, operator: 'sum', root: 0, count: 0, algorithm: 'pairs' };
    const details = { counts: [2, 2], displacements: [0, 2], recvCounts: r === 0 ? [2, 3] : [2, 2], recvDisplacements: [0, 2] };
    return attempt(() => engine.begin(encodeCall(call), float32, 0, new Float32Array(4), recv, 0, 0, details));
  });
  for (let turn = 0; turn < 50; turn++) {
    members.forEach(({ engine }, r) => (errors[r] ??= attempt(() => engine.progress(0))));
    await new Promise((resolve) => setImmediate(resolve));
  }
  expect(errors[0]).toMatchObject({ code: 'CALL_MISMATCH', message: expect.stringMatching(/^rank 1 sends 8 bytes to rank 0, which awaits 12 in allToAllV/) as string });
});

test.each([10, 5000])('ranks that name different roots for %i elements find out, even while all wait to send', async (count) => {
  const members = await openNetwork('shm', 2, size);
  const errors = members.map((member, root) => attempt(() => beginCall(member, { kind: 'broadcast', type: float32, operator: 'sum', root, count, algorithm: 'ring' })));
  for (let turn = 0; turn < 5; turn++) members.forEach(({ engine }, r) => (errors[r] ??= attempt(() => engine.progress(0))));
  for (const error of errors) expect(error).toMatchObject({ code: 'CALL_MISMATCH' });
});

test('an array that is taken away while the call is under way ends it for all', async () => {
  const members = await openNetwork('shm', 2, size);
  const mine = new Float32Array(5000);
  const code = encodeCall({ kind: 'allReduce', type: float32, operator: 'sum', root: 0, count: 5000, algorithm: 'ring' });
  members[0]!.engine.begin(code, float32, 0, mine, mine, 5000, 0);
  structuredClone(mine, { transfer: [mine.buffer] });
  const other = new Float32Array(5000);
  let error = attempt(() => members[1]!.engine.begin(code, float32, 0, other, other, 5000, 0));
  expect(attempt(() => members[0]!.engine.progress(0))).toMatchObject({ code: 'BUFFER_DETACHED' });
  error ??= attempt(() => members[1]!.engine.progress(0));
  expect(error).toMatchObject({ code: 'BUFFER_DETACHED' });
});

function begin({ engine }: Member, { call, send, recv, details }: Part): number {
  return engine.begin(encodeCall(call), call.type, call.root, send, recv, call.count, 0, details);
}

/** Begins a call on arrays of zeros outside the segment. */
function beginCall({ engine }: Member, call: Call): number {
  const make = (): NumericArray => new call.type.array(new ArrayBuffer(call.count * 4 * call.type.bytes), 0, call.count * 4);
  return engine.begin(encodeCall(call), call.type, call.root, make(), make(), call.count, 0);
}

/** Waits for the end of an operation as the promise API does. */
async function finish({ engine }: Member, status: number): Promise<void> {
  while (status !== DONE) {
    await new Promise<void>((resolve) => engine.whenReady!(resolve));
    status = engine.progress(0);
  }
}

async function finishAll(members: readonly Member[]): Promise<void> {
  await run(members, [], () => 0);
}

/** Begins an operation, if any, and goes on with it in an order drawn by chance until all ranks are done. */
async function run(members: readonly Member[], parts: readonly Part[], random: () => number): Promise<void> {
  const statuses = members.map((member, r) => (parts[r] === undefined ? 0 : begin(member, parts[r])));
  while (statuses.some((status) => status !== DONE)) {
    const first = Math.floor(random() * members.length);
    members.forEach((_, i) => {
      const r = (first + i * (random() < 0.5 ? 1 : 3)) % members.length;
      if (statuses[r] !== DONE) statuses[r] = members[r]!.engine.progress(0);
    });
    await new Promise((resolve) => setImmediate(resolve));
  }
}

/** What each rank does in an operation, with arrays of values by which it can be seen where they come from. */
function makeParts(members: readonly Member[], op: Operation): Part[] {
  const { kind, type, operator, count } = op;
  const n = members.length;
  const root = op.root % n;
  const shared = generator(op.seed);
  const counts = members.map(() => (shared() < 0.2 ? 0 : Math.floor((shared() * 2 * count) / n)));
  const pairCounts = members.map(() => members.map(() => (shared() < 0.2 ? 0 : Math.floor((shared() * 2 * count) / n))));
  const total = counts.reduce((sum, part) => sum + part, 0);
  // Values repeat after 26 elements: making and adding them takes longest here.
  const values = members.map((_, rank) => {
    const period = new type.array(new ArrayBuffer(26 * type.bytes), 0, 26);
    for (let i = 0; i < 26; i++) {
      const small = operator === 'prod' ? 1 + ((i + rank) % 2) : ((i * 7 + rank * 3 + op.seed) % 13) - (type.name.startsWith('u') ? 0 : 6);
      type.write(period, i, small);
    }
    return elementsOf(period);
  });
  const value = (rank: number, i: number): Element => values[rank]![i % 26]!;
  const input = (rank: number, length: number): Element[] => Array.from({ length }, (_, i) => value(rank, i));
  const scalarOf = (rank: number): number => 1 + ((rank + op.seed) % 3);
  const scalars = members.map((_, rank) => {
    const cell = new type.array(new ArrayBuffer(8), 0, 1);
    type.write(cell, 0, scalarOf(rank));
    return elementsOf(cell)[0]!;
  });
  const combine = (elements: Element[]): Element => (operator === 'premulSum' ? scaledSum(type, elements, scalars) : reduceElements(type, operator, elements));
  const period = Array.from({ length: 26 }, (_, i) => combine(members.map((_, rank) => value(rank, i))));
  const reduced = (length: number): Element[] => Array.from({ length }, (_, i) => period[i % 26]!);
  const all = (lengths: readonly number[]): Element[] => lengths.flatMap((length, rank) => input(rank, length));
  const sum = (values: readonly number[]): number => values.reduce((a, b) => a + b, 0);
  const before = (values: readonly number[], rank: number): number => sum(values.slice(0, rank));
  const column = (rank: number): number[] => pairCounts.map((row) => row[rank]!);
  const displacementsOf = (values: readonly number[]): number[] => values.map((_, rank) => before(values, rank));
  const even = members.map(() => count);

  return members.map(({ rank, segment }): Part => {
    const own = generator(op.seed * 31 + rank);
    const make = (length: number): NumericArray => (own() < 0.5 ? segment.alloc(type.array, length) : new type.array(new ArrayBuffer(length * type.bytes + 8), 8, length));
    const isRoot = rank === root;
    const part = (send: NumericArray, recv: NumericArray, expected: Element[] | undefined, callCount: number, details?: CallDetails, hash = 0): Part => {
      const call: Call = { kind, type, operator, root: ['broadcast', 'reduce', 'gather', 'scatter'].includes(kind) ? root : hash, count: callCount, algorithm: op.algorithm };
      return { send, recv, expected, call, details: operator === 'premulSum' ? { ...details, scalar: scalarOf(rank) } : details };
    };
    const filled = (array: NumericArray): NumericArray => {
      for (let i = 0; i < array.length; i++) array[i] = value(rank, i);
      return array;
    };
    const inPlace = own() < 0.4;
    const slice = (array: NumericArray, from: number, length: number): NumericArray => array.subarray(from, from + length);
    switch (kind) {
      case 'barrier':
        return part(make(0), make(0), undefined, 0);
      case 'allReduce':
      case 'reduce': {
        const send = filled(make(count));
        const expected = kind === 'allReduce' || isRoot ? reduced(count) : undefined;
        return part(send, inPlace ? send : make(count), expected, count);
      }
      case 'broadcast': {
        const recv = make(count);
        const send = inPlace ? recv : make(isRoot ? count : 0);
        return part(filled(send), recv, input(root, count), count);
      }
      case 'allGather': {
        const recv = make(count * n);
        const send = inPlace ? slice(recv, rank * count, count) : make(count);
        return part(filled(send), recv, all(even), count);
      }
      case 'allGatherV': {
        const recv = make(total);
        const send = inPlace ? slice(recv, before(counts, rank), counts[rank]!) : make(counts[rank]!);
        return part(filled(send), recv, all(counts), total, { counts, displacements: displacementsOf(counts) }, partsHash(counts));
      }
      case 'reduceScatter': {
        const send = filled(make(count * n));
        return part(send, inPlace ? slice(send, rank * count, count) : make(count), reduced(count * n).slice(rank * count, (rank + 1) * count), count);
      }
      case 'reduceScatterV': {
        const send = filled(make(total));
        const from = before(counts, rank);
        const recv = inPlace ? slice(send, from, counts[rank]!) : make(counts[rank]!);
        return part(send, recv, reduced(total).slice(from, from + counts[rank]!), total, { counts, displacements: displacementsOf(counts) }, partsHash(counts));
      }
      case 'allToAll': {
        const send = filled(make(count * n));
        const expected = members.flatMap((_, other) => input(other, count * n).slice(rank * count, (rank + 1) * count));
        return part(send, inPlace ? send : make(count * n), expected, count);
      }
      case 'allToAllV': {
        const sent = pairCounts[rank]!;
        const received = column(rank);
        const expected = members.flatMap((_, other) => {
          const row = pairCounts[other]!;
          return input(other, sum(row)).slice(before(row, rank), before(row, rank) + row[rank]!);
        });
        const details = { counts: sent, displacements: displacementsOf(sent), recvCounts: received, recvDisplacements: displacementsOf(received) };
        return part(filled(make(sum(sent))), make(sum(received)), expected, 0, details);
      }
      case 'gather': {
        const recv = make(isRoot ? count * n : 0);
        const send = isRoot && inPlace ? slice(recv, rank * count, count) : make(count);
        return part(filled(send), recv, isRoot ? all(even) : undefined, count);
      }
      case 'scatter': {
        const send = filled(make(isRoot ? count * n : 0));
        const recv = isRoot && inPlace ? slice(send, rank * count, count) : make(count);
        return part(send, recv, input(root, count * n).slice(rank * count, (rank + 1) * count), count);
      }
    }
  });
}

/** Comparing element by element costs a hundredth of what `toEqual` does. */
function firstDifference(array: NumericArray, expected: readonly Element[]): object | undefined {
  if (array.length !== expected.length) return { length: array.length, expected: expected.length };
  const i = expected.findIndex((value, at) => value !== array[at]);
  return i < 0 ? undefined : { at: i, is: String(array[i]), expected: String(expected[i]) };
}

/** Gives back what came from the segment; of views of each other, the longer one did. */
function freePlaced({ segment }: Member, { send, recv }: Part): void {
  const overlap = send.buffer === recv.buffer && send.byteOffset < recv.byteOffset + recv.byteLength && recv.byteOffset < send.byteOffset + send.byteLength;
  const arrays = overlap ? [send.length > recv.length ? send : recv] : [send, recv];
  for (const array of arrays) if (array.buffer === segment.buffer) attempt(() => segment.free(array));
}

/** Float32 sums an element at a time, in the order of the ring: the chunk's own rank first, then those behind it. */
function addedInRing(inputs: readonly number[][]): number[] {
  const n = inputs.length;
  const columnBytes = n * SLICES_PER_CHUNK * (size.slotBytes - 64);
  const total = inputs[0]!.length * 4;
  return inputs[0]!.map((_, i) => {
    const column = Math.floor((i * 4) / columnBytes) * columnBytes;
    const bytes = Math.min(columnBytes, total - column);
    const chunk = Math.floor((i * 4 - column) / (Math.ceil(bytes / n / 128) * 128));
    let value = inputs[chunk]![i]!;
    for (let k = 1; k < n; k++) value = Math.fround(value + inputs[(chunk + k) % n]![i]!);
    return value;
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
