import type { EngineCall } from '../../../../src/runtime/algorithms/queued-call.js';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { CallDetails, CallKind } from '../../../../src/runtime/algorithms/call.js';
import { DirectEngine } from '../../../../src/runtime/algorithms/memory/direct-engine.js';
import type { PlacedCall } from '../../../../src/runtime/threads/engine-thread-memory.js';
import type { Engine } from '../../../../src/runtime/algorithms/engine.js';
import { sharesOf } from '../../../../src/runtime/threads/shared-calls.js';
import { callKinds, DONE, PENDING } from '../../../../src/runtime/device/kernels/kernels.js';
import { rankStates } from '../../../../src/runtime/device/rank-lines.js';
import { Segment } from '../../../../src/runtime/device/segment.js';
import { createMemory } from '../../../../src/runtime/device/shared-memory.js';
import { Team } from '../../../../src/runtime/device/team.js';
import { operationOf, overtake, type Member } from '../algorithms/operations.js';

const shared: readonly CallKind[] = [
  'allGather',
  'reduceScatter',
  'allToAll',
  'gather',
  'scatter',
  'allGatherV',
  'reduceScatterV',
  'allToAllV',
];

/** The engine threads' parts of one rank's calls, one after the other in the test's thread. */
class Lanes {
  steps = 0;
  readonly #done: boolean[];

  constructor(readonly engines: readonly DirectEngine[]) {
    this.#done = engines.map(() => true);
  }

  begin(call: EngineCall, spins: number): number {
    this.engines.forEach((engine, index) => {
      const share = { index, of: this.engines.length };
      this.#done[index] = engine.begin({ ...call, details: { ...call.details, share } }, spins) === DONE;
    });
    return this.#status();
  }

  progress(spins: number): number {
    this.engines.forEach((engine, index) => (this.#done[index] ||= engine.progress(spins) === DONE));
    return this.#status();
  }

  #status(): number {
    return this.#done.every((done) => done) ? DONE : PENDING;
  }
}

function openRanks(n: number, nLanes: number): Member[] {
  const memory = createMemory(1024);
  const ranks = Array.from({ length: n }, (_, rank) => rank);
  const segments = ranks.map((rank) => Segment.ofThreads(memory, rank, n));
  for (const segment of segments) segment.ranks.setState(rankStates.ready);
  const addresses = Array.from({ length: nLanes }, () => Team.reserve(segments[0]!, n));
  return segments.map((segment, rank) => {
    const engines = addresses.map(
      (address) => new DirectEngine(new Team(segment, address, ranks, undefined, 9 * 128), ranks, undefined, 512),
    );
    return { rank, segment, engine: new Lanes(engines) as Partial<Engine> as Engine };
  });
}

test.each([
  [2, 2],
  [3, 3],
  [5, 2],
])('%i ranks whose calls are shared by %i threads each match a naive reference', async (n, nLanes) => {
  const members = openRanks(n, nLanes);
  const operation = operationOf(Object.fromEntries(shared.map((kind) => [kind, ['direct'] as const])) as never);
  const script = fc.array(operation, { minLength: 1, maxLength: 4 });
  await fc.assert(
    fc.asyncProperty(script, fc.nat(), (operations, seed) => overtake(members, operations, seed)),
    { numRuns: 60, seed: 11, endOnFailure: true },
  );
});

const call = (kind: CallKind, count: number, details?: CallDetails): PlacedCall => ({
  code: callKinds[kind],
  root: 0,
  send: 4096,
  sendLength: count,
  recv: 8192,
  recvLength: count,
  count,
  details,
});

test.each(shared.filter((kind) => kind !== 'allToAllV'))(
  'a large %s is shared by all threads, a small one is carried out by the first',
  (kind) => {
    const details = kind.endsWith('V') ? { counts: [50_000, 50_000], displacements: [0, 50_000] } : undefined;
    const large = call(kind, 100_000, details);
    expect(sharesOf(large, 4, 3, 2)).toEqual(
      [0, 1, 2].map((index) => ({ ...large, details: { ...details, share: { index, of: 3 } } })),
    );
    expect(sharesOf(large, 4, 1, 2)).toEqual([large]);
    const small = call(kind, 100, details);
    expect(sharesOf(small, 4, 3, 2)).toEqual([small]);
  },
);

test.each(['allReduce', 'reduce', 'broadcast'] as const)(
  'the shares of a large %s are consecutive parts of both arrays',
  (kind) => {
    const shares = sharesOf(call(kind, 100_001), 4, 3, 2);
    expect(
      shares.map(({ send, recv, count, sendLength, recvLength }) => [send - 4096, recv - 8192, count, sendLength, recvLength]),
    ).toEqual([
      [0, 0, 33_344, 33_344, 33_344],
      [133_376, 133_376, 33_344, 33_344, 33_344],
      [266_752, 266_752, 33_313, 33_313, 33_313],
    ]);
  },
);

test('calls of unknown length are shared at any size, and empty ones are not', () => {
  const details = { counts: [1, 0], displacements: [0, 1], recvCounts: [1, 9], recvDisplacements: [0, 1] };
  const small = { ...call('allToAllV', 0, details), sendLength: 1 };
  expect(sharesOf(small, 4, 2, 2)).toEqual(
    [0, 1].map((index) => ({ ...small, details: { ...details, share: { index, of: 2 } } })),
  );
  expect(sharesOf(call('barrier', 0), 4, 2, 2)).toHaveLength(1);
});
