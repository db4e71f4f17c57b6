import type { WakeSources } from '../../../../../src/runtime/progress/parking.js';
import fc from 'fast-check';
import { afterAll, describe, expect, test, vi } from 'vitest';
import { algorithms, encodeCall, type Algorithm, type Call, type CallKind } from '../../../../../src/runtime/algorithms/call.js';
import { callKinds, DONE } from '../../../../../src/runtime/device/kernels/kernels.js';
import { float32, float64, type NumericArray } from '../../../../../src/runtime/device/types.js';
import { isOfAggregators } from '../../../../../src/runtime/algorithms/choose-algorithm.js';
import type { Combiner } from '../../../../../src/runtime/algorithms/connections/combiner.js';
import type { Outputs } from '../../../../../src/runtime/algorithms/connections/exchange.js';
import { NetworkCall } from '../../../../../src/runtime/algorithms/connections/network-call.js';
import { ringInOrder } from '../../../../../src/runtime/algorithms/connections/channels.js';
import { networkAlgorithm } from '../../../../../src/runtime/algorithms/connections/registry.js';
import { isOverConnections, traits } from '../../../../../src/runtime/algorithms/traits.js';
import type { PeerConnections } from '../../../../../src/runtime/transport/peers.js';
import { LEAST_IN_PLACE_BYTES } from '../../../../../src/runtime/transport/transport.js';
import { bytesOf, generator, openNetwork, type Member } from './networks.js';
import { attempt, begin, firstDifference, makeParts, operationOf, overtake, type Operation, type Part } from '../operations.js';
import { runs } from '../../../../runs.js';

/** Slices so small that little data go through many columns; PAT's messages have room for a line of nine ranks. */
const size = { steps: 4, slotBytes: 64 + 640 };
const SLICES_PER_CHUNK = size.steps / 2;

/** Hosts of different sizes, by number of ranks. */
const ranksOfHosts = [[], [1], [1, 1], [2, 1], [3, 1], [1, 2, 2], [2, 2, 1, 1], [4, 3], [1, 1, 2, 1, 3], [1, 1, 1, 1, 1, 2, 2]];
function hostsOf(n: number): number[][] {
  let next = 0;
  return ranksOfHosts[n]!.map((count) => Array.from({ length: count }, () => next++));
}

const networks = new Map<number, Promise<Member[]>>();
const networkOf = (n: number): Promise<Member[]> => {
  if (!networks.has(n)) networks.set(n, openNetwork('shm', n, size, undefined, hostsOf(n)));
  return networks.get(n)!;
};
afterAll(async () => {
  for (const members of networks.values()) await Promise.all((await members).map(({ engine }) => engine.close()));
});

/** By kind of call, all algorithms over connections that carry it out. */
const algorithmsOf = {} as Record<CallKind, readonly Algorithm[]>;
for (const kind of Object.keys(callKinds) as CallKind[])
  algorithmsOf[kind] = algorithms.filter(
    (name) => isOverConnections(name) && !isOfAggregators(name) && traits[name].kinds.includes(kind),
  );

const anyOperation = operationOf(algorithmsOf);

test('any sequence of operations matches a naive reference, in any interleaving of ranks', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 2, max: 9 }),
      fc.array(anyOperation, { minLength: 1, maxLength: 6 }),
      fc.nat(),
      async (n, script, seed) => {
        await overtake(await networkOf(n), script, seed);
      },
    ),
    { numRuns: runs(70, 150), seed: 7, endOnFailure: true },
  );
});

test('blocks that senders write to the outputs of receivers match a naive reference, in any interleaving of ranks', async () => {
  const ofPairs = Object.entries(algorithmsOf).flatMap(([kind, names]) => (names.includes('pairs') ? [[kind, ['pairs']]] : []));
  const members = await openNetwork('shm', 4, { steps: 4, slotBytes: 64 + LEAST_IN_PLACE_BYTES });
  const random = generator(11);
  const operations = fc.sample(operationOf(Object.fromEntries(ofPairs) as typeof algorithmsOf), {
    numRuns: runs(40, 200),
    seed: 11,
  });
  const long = operations.map((op) => ({ ...op, count: Math.floor((random() * 3 * LEAST_IN_PLACE_BYTES) / op.type.bytes) }));
  for (let i = 0; i < long.length; i += 4) await overtake(members, long.slice(i, i + 4), i);
  await Promise.all(members.map(({ engine }) => engine.close()));
});

describe('rings of several channels', () => {
  const several = new Map<number, Promise<Member[]>>();
  const withRings = (n: number): Promise<Member[]> => {
    const ascending = Array.from({ length: n }, (_, rank) => rank);
    const evenFirst = [...ascending.filter((rank) => rank % 2 === 0), ...ascending.filter((rank) => rank % 2 === 1)];
    if (!several.has(n)) several.set(n, openNetwork('shm', n, size, ascending, [ascending], [...ascending].reverse(), evenFirst));
    return several.get(n)!;
  };
  afterAll(async () => {
    for (const members of several.values()) await Promise.all((await members).map(({ engine }) => engine.close()));
  });

  test('share large calls, in any order, and match a naive reference', async () => {
    const kinds = Object.entries(algorithmsOf).flatMap(([kind, names]) => (names.includes('ring') ? [[kind, ['ring']]] : []));
    const byRing = operationOf({ ...algorithmsOf, ...(Object.fromEntries(kinds) as Partial<typeof algorithmsOf>) });
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 2, max: 6 }),
        fc.array(byRing, { minLength: 1, maxLength: 6 }),
        fc.nat(),
        async (n, script, seed) => {
          await overtake(await withRings(n), script, seed);
        },
      ),
      { numRuns: runs(70, 150), seed: 8, endOnFailure: true },
    );
  });

  test.each([
    ['allReduce', 1, 1],
    ['allReduce', 150, 2],
    ['allReduce', 3000, 3],
    ['broadcast', 3000, 3],
    ['reduceScatter', 3000, 3],
    ['allGather', 40, 1],
    ['allGather', 3000, 3],
    ['barrier', 0, 1],
  ] as const)('carry %s of %i elements in %i parts', (kind, count, nParts) => {
    const orders = [[0, 1, 2], [2, 1, 0], [0, 2, 1]]; // prettier-ignore
    const rings = orders.map((order) => ({ order, nics: [] }));
    const end = { size };
    const connections = { sends: [end, end, end], receives: [end, end, end] } as unknown as PeerConnections;
    const channels = { ...ringInOrder([[0, 1, 2]], ''), rings, ringOfChannel: [0, 1, 2] };
    const player = networkAlgorithm('ring').open({
      combiner: Object.create(null) as Combiner,
      outputs: Object.create(null) as Outputs,
      order: channels.order,
      channels,
      rank: 0,
      connections,
    });
    const call = new NetworkCall(0, 3);
    const array = new Float32Array(9000);
    const code = encodeCall({ kind, type: float32, operator: 'sum', root: 0, count, algorithm: 'ring' });
    call.begin({ code, type: float32, root: 0, send: array, recv: array, count });
    const tracks = player.start(call);
    expect(tracks).toHaveLength(nParts);
    expect(tracks.some(({ done }) => done)).toBe(false);
  });
});

describe('over sockets', () => {
  test('operations progress at events, with arrays in and outside the segment', async () => {
    const members = await openNetwork('socket', 3, size, [0, 2, 1]);
    for (const op of fc.sample(anyOperation, { numRuns: 60, seed: 3 })) {
      const parts = makeParts(members, op);
      await Promise.all(members.map((member, r) => finish(member, begin(member, parts[r]!))));
      for (const { recv, expected } of parts)
        if (expected !== undefined) expect([op.kind, firstDifference(recv, expected)]).toEqual([op.kind, undefined]);
    }
    expect(members[0]!.engine.blocking).toBe(false);
    await Promise.all(members.map(({ engine }) => engine.close()));
    expect(process.getActiveResourcesInfo().filter((resource) => resource.startsWith('TCP'))).toEqual([]);
  });

  test.each([2, 3, 5])('%i ranks that poll by system calls need nothing else to progress', async (n) => {
    // Eight slots, so that credits are withheld while ranks wait for slots.
    const members = await openNetwork('system calls', n, { ...size, steps: 8 }, undefined, hostsOf(n));
    for (const seed of [1, 2, 3]) await overtake(members, fc.sample(anyOperation, { numRuns: 20, seed }), seed);
    await Promise.all(members.map(({ engine }) => engine.close()));
  });
});

const sums = (['allReduce', 'reduce', 'reduceScatter', 'scan', 'exscan'] as const).flatMap((kind) =>
  algorithmsOf[kind].map((algorithm) => [algorithm, kind] as const),
);
test.each(sums)('sums by %s have the same bits in any interleaving of ranks (%s)', async (algorithm, kind) => {
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
});

test("all-reduce by ring adds in the order of the ring, from the rank after the chunk's number", async () => {
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

test.each(algorithmsOf.barrier)('no rank leaves a barrier by %s before the last has entered', async (algorithm) => {
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
  [
    'another count',
    { count: 99 },
    /rank 1 called allReduce of 99 float32 \(sum, ring\) where rank 0 called allReduce of 100 float32 \(sum, ring\)/,
  ],
  ['another type', { type: float64 }, /rank 1 called allReduce of 100 float64/],
  ['another operator', { operator: 'max' }, /rank 1 called allReduce of 100 float32 \(max, ring\)/],
  ['another operation', { kind: 'broadcast', root: 2 }, /rank 1 called broadcast of 100 float32 from rank 2 \(ring\)/],
  ['a barrier', { kind: 'barrier', count: 0 }, /rank 1 called barrier \(ring\)/],
  [
    'an operation that needs other connections',
    { kind: 'allToAll', count: 25, algorithm: 'pairs' },
    /rank 1 called allToAll of 25 float32 \(pairs\)/,
  ],
])('ranks hear of a rank that called %s', async (_, differs, message) => {
  const members = await openNetwork('shm', 4, size);
  const call: Call = { kind: 'allReduce', type: float32, operator: 'sum', root: 0, count: 100, algorithm: 'ring' };
  const errors = members.map((member, r): unknown => attempt(() => beginCall(member, r === 1 ? { ...call, ...differs } : call)));
  for (let turn = 0; turn < 20; turn++) members.forEach(({ engine }, r) => (errors[r] ??= attempt(() => engine.progress(0))));
  expect(errors[1]).toMatchObject({ name: 'InvalidUsageError', code: 'CALL_MISMATCH' });
  // Rank 1 and the next rank each detect it; the others get their error.
  for (const error of errors) expect(error).toMatchObject({ code: 'CALL_MISMATCH' });
  expect((errors[1] as Error).message).toMatch(message);
});

test('a rank that does not progress while others connect with it is named, and those that connect are not', async () => {
  let nowMs = 1000;
  const clock = vi.spyOn(performance, 'now').mockImplementation(() => nowMs);
  try {
    const members = await openNetwork('shm', 3, size);
    const call: Call = { kind: 'allToAll', type: float32, operator: 'sum', root: 0, count: 25, algorithm: 'pairs' };
    for (const member of members) beginCall(member, call);
    const [first, stopped, last] = members as [Member, Member, Member];
    const others = [first.engine, last.engine];
    // Nothing is polled while connections are made.
    while (others.some(({ polled }) => polled)) {
      for (const engine of others) engine.progress(0);
      if (others.some(({ polled }) => polled)) stopped.engine.progress(0);
    }
    expect(stopped.engine.polled).toBe(true);
    const limitMs = 400;
    for (let look = 0; look < 10; look++) {
      nowMs += 50;
      for (const engine of others) engine.reportWait(limitMs, { kind: 'collective', number: 0, call });
    }
    expect(others.map((engine) => engine.late(limitMs))).toEqual([[1], [1]]);
    for (const { engine } of members) engine.abort(new Error('the test is over'));
  } finally {
    clock.mockRestore();
  }
});

test('an error about a message whose call was damaged in transit names its sender', async () => {
  const [first, second] = (await openNetwork('shm', 2, size)) as [Member, Member];
  const call: Call = { kind: 'allReduce', type: float32, operator: 'sum', root: 0, count: 100, algorithm: 'ring' };
  beginCall(first, call);
  const words = new Uint32Array(first.segment.buffer);
  const signature = encodeCall(call);
  let at = words.indexOf(signature);
  while (at >= 0 && words[at + 2] !== call.count) at = words.indexOf(signature, at + 1);
  expect(at).toBeGreaterThan(0);
  words[at] = 0xffff_ffff;
  expect(attempt(() => beginCall(second, call))).toMatchObject({
    code: 'NETWORK',
    rank: 0,
    message: expect.stringMatching(/^a message from rank 0 to rank 1 was damaged on the way: 0xffffffff/) as string,
  });
});

test('ranks whose calls use different connections detect the mismatch, too', async () => {
  const members = await openNetwork('shm', 4, size);
  await Promise.all(members.map(({ engine }) => engine.openAll(['tree'])));
  const call: Call = { kind: 'allReduce', type: float32, operator: 'sum', root: 0, count: 100, algorithm: 'tree' };
  const errors = members.map((member, r): unknown =>
    attempt(() => beginCall(member, r === 1 ? { ...call, count: 120, algorithm: 'ring' } : call)),
  );
  for (let turn = 0; turn < 20; turn++) members.forEach(({ engine }, r) => (errors[r] ??= attempt(() => engine.progress(0))));
  for (const error of errors) expect(error).toMatchObject({ code: 'CALL_MISMATCH' });
});

test('ranks whose counts for each other differ detect it by the length of the received data', async () => {
  const members = await openNetwork('shm', 2, size);
  const recv = new Float32Array(10);
  const errors = members.map(({ engine }, r): unknown => {
    const call: Call = { kind: 'allToAllV', type: float32, operator: 'sum', root: 0, count: 0, algorithm: 'pairs' };
    const details = { counts: [2, 2], displacements: [0, 2], recvCounts: r === 0 ? [2, 3] : [2, 2], recvDisplacements: [0, 2] };
    return attempt(() =>
      engine.begin({ code: encodeCall(call), type: float32, root: 0, send: new Float32Array(4), recv, count: 0, details }, 0),
    );
  });
  for (let turn = 0; turn < 50; turn++) {
    members.forEach(({ engine }, r) => (errors[r] ??= attempt(() => engine.progress(0))));
    await new Promise((resolve) => setImmediate(resolve));
  }
  expect(errors[0]).toMatchObject({
    code: 'CALL_MISMATCH',
    message: expect.stringMatching(
      /^rank 1 sends 2 float32 to rank 0, which expects 3 float32, in a message of allToAllV/,
    ) as string,
  });
});

test.each([10, 5000])('ranks that name different roots for %i elements detect it, even while all wait to send', async (count) => {
  const members = await openNetwork('shm', 2, size);
  const errors = members.map((member, root) =>
    attempt(() => beginCall(member, { kind: 'broadcast', type: float32, operator: 'sum', root, count, algorithm: 'ring' })),
  );
  for (let turn = 0; turn < 5; turn++) members.forEach(({ engine }, r) => (errors[r] ??= attempt(() => engine.progress(0))));
  for (const error of errors) expect(error).toMatchObject({ code: 'CALL_MISMATCH' });
});

test('an array that is transferred away during a call ends it on all ranks', async () => {
  const members = await openNetwork('shm', 2, size);
  const mine = new Float32Array(5000);
  const code = encodeCall({ kind: 'allReduce', type: float32, operator: 'sum', root: 0, count: 5000, algorithm: 'ring' });
  members[0]!.engine.begin({ code, type: float32, root: 0, send: mine, recv: mine, count: 5000 }, 0);
  structuredClone(mine, { transfer: [mine.buffer] });
  const other = new Float32Array(5000);
  let error = attempt(() => members[1]!.engine.begin({ code, type: float32, root: 0, send: other, recv: other, count: 5000 }, 0));
  expect(attempt(() => members[0]!.engine.progress(0))).toMatchObject({ code: 'BUFFER_DETACHED' });
  error ??= attempt(() => members[1]!.engine.progress(0));
  expect(error).toMatchObject({ code: 'BUFFER_DETACHED' });
});

/** Begins a call on arrays of zeros outside the segment. */
function beginCall({ engine }: Member, call: Call): number {
  const make = (): NumericArray => new call.type.array(new ArrayBuffer(call.count * 4 * call.type.bytes), 0, call.count * 4);
  return engine.begin(
    { code: encodeCall(call), type: call.type, root: call.root, send: make(), recv: make(), count: call.count },
    0,
  );
}

/** Of a rank that only the event loop wakes. */
function sourcesOf(wake: () => void): WakeSources {
  const never = (): never => {
    throw new Error('nothing here is polled');
  };
  return { wake, addFd: never, addTeam: never, addMember: never, pollToo: never };
}

/** Waits for the end of an operation as the promise API does. */
async function finish({ engine }: Member, status: number): Promise<void> {
  while (status !== DONE) {
    await new Promise<void>((resolve) => engine.wakeOn(sourcesOf(resolve)));
    status = engine.progress(0);
  }
}

async function finishAll(members: readonly Member[]): Promise<void> {
  await run(members, [], () => 0);
}

/** Begins an operation, if any, and progresses it in random order until all ranks are done. */
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

/** Float32 sums an element at a time, in the order of the ring: the chunk's own rank first, then those behind it. */
function addedInRing(inputs: readonly number[][]): number[] {
  const n = inputs.length;
  const columnBytes = n * SLICES_PER_CHUNK * (size.slotBytes - 64 - 128);
  const total = inputs[0]!.length * 4;
  return inputs[0]!.map((_, i) => {
    const column = Math.floor((i * 4) / columnBytes) * columnBytes;
    const bytes = Math.min(columnBytes, total - column);
    const chunk = Math.floor((i * 4 - column) / (Math.ceil(bytes / n / 128) * 128));
    let value = inputs[(chunk + 1) % n]![i]!;
    for (let k = 2; k <= n; k++) value = Math.fround(value + inputs[(chunk + k) % n]![i]!);
    return value;
  });
}
