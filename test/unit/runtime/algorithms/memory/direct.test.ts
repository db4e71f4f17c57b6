import fc from 'fast-check';
import { expect, test } from 'vitest';
import { encodeCall, type Algorithm, type CallKind } from '../../../../../src/runtime/algorithms/call.js';
import { DirectEngine } from '../../../../../src/runtime/algorithms/memory/direct-engine.js';
import { RemoteError } from '../../../../../src/errors.js';
import { callKinds, PENDING } from '../../../../../src/runtime/device/kernels/kernels.js';
import { loadLibc } from '../../../../../src/runtime/device/libc.js';
import { rankStates } from '../../../../../src/runtime/device/rank-lines.js';
import { Segment } from '../../../../../src/runtime/device/segment.js';
import { createMemory } from '../../../../../src/runtime/device/shared-memory.js';
import { Team } from '../../../../../src/runtime/device/team.js';
import { int32 } from '../../../../../src/runtime/device/types.js';
import { runs } from '../../../../runs.js';
import { operationOf, overtake, type Member, type Operation } from '../operations.js';

/** Pieces so small that little data go through many rounds; nine ranks have 128 bytes each. */
const STAGE_BYTES = 9 * 128;

const { libc } = loadLibc();

function openRanks(n: number, smallBytes: number): Member[] {
  const memory = createMemory(1024);
  const ranks = Array.from({ length: n }, (_, rank) => rank);
  return ranks.map((rank) => {
    const segment = Segment.ofThreads(memory, rank, n);
    segment.ranks.setState(rankStates.ready);
    const team = new Team(segment, segment.firstTeam, ranks, undefined, STAGE_BYTES);
    return { rank, segment, engine: new DirectEngine(team, ranks, rank % 2 === 0 ? libc : undefined, smallBytes) };
  });
}

const direct: readonly Algorithm[] = ['direct'];
const kinds = Object.keys(callKinds) as CallKind[];
const operation = (of: readonly CallKind[]) =>
  operationOf(Object.fromEntries(of.map((kind) => [kind, direct])) as Record<CallKind, readonly Algorithm[]>);

/** Runs random operations on random numbers of ranks and compares what they give. */
async function check(of: readonly CallKind[], smallBytes: number, nRanks: fc.Arbitrary<number>, numRuns: number): Promise<void> {
  await checkScripts(fc.array(operation(of), { minLength: 1, maxLength: 6 }), smallBytes, nRanks, numRuns);
}

async function checkScripts(
  scripts: fc.Arbitrary<Operation[]>,
  smallBytes: number,
  nRanks: fc.Arbitrary<number>,
  numRuns: number,
): Promise<void> {
  const opened = new Map<number, Member[]>();
  const ranksOf = (n: number): Member[] => {
    const members = opened.get(n) ?? openRanks(n, smallBytes);
    opened.set(n, members);
    return members;
  };
  await fc.assert(
    fc.asyncProperty(nRanks, scripts, fc.nat(), (n, operations, seed) => overtake(ranksOf(n), operations, seed)),
    { numRuns, seed: 7, endOnFailure: true },
  );
  for (const members of opened.values()) for (const { engine } of members) await expect(engine.close()).resolves.toBeUndefined();
}

test.each([0, 64, 512])(
  'any sequence of operations matches a naive reference, in any interleaving of ranks; up to %i bytes in one phase',
  async (smallBytes) => {
    await check(kinds, smallBytes, fc.integer({ min: 1, max: 9 }), runs(70, 120));
  },
);

test('a repeated large call, which goes forward and backward in turn, matches a naive reference each time', async () => {
  const repeated = operation(kinds).map((one) =>
    Array.from({ length: 4 }, (_, i) => ({ ...one, count: 40_001 + 3 * one.count, seed: one.seed + i })),
  );
  await checkScripts(repeated, 64, fc.integer({ min: 1, max: 3 }), runs(15, 30));
});

test('broadcasts of 8 MiB and more, which go in pieces or bypass the caches, match a naive reference', async () => {
  const broadcasts = operation(['broadcast']).map((one) =>
    [2 ** 20, 2 ** 21].map((more) => ({ ...one, count: more + one.count })),
  );
  await checkScripts(broadcasts, 64, fc.constant(2), runs(3, 6));
});

test('few ranks, some in place and some out of place, exchange parts with each other', async () => {
  await check(['allToAll'], 0, fc.integer({ min: 2, max: 3 }), runs(50, 80));
});

test.each(['allReduce', 'allGather'] as const)(
  '%s does not end with data of a rank that has given it up and changed its arrays',
  async (kind) => {
    const members = openRanks(3, 512);
    const count = 5000;
    const reduces = kind === 'allReduce';
    const arrays = members.map(({ rank, segment }) => ({
      send: segment.alloc(Int32Array, count).fill(rank + 1),
      recv: segment.alloc(Int32Array, reduces ? count : 3 * count),
    }));
    const code = encodeCall({ kind, type: int32, operator: 'sum', root: 0, count, algorithm: 'direct' });
    const begun = members.map(({ engine }, rank) => engine.begin({ code, type: int32, root: 0, ...arrays[rank]!, count }, 0));
    const [first, ...others] = members;
    expect([...begun, first!.engine.progress(0)]).toEqual([PENDING, PENDING, PENDING, PENDING]);
    first!.engine.abort(new RemoteError('ABORTED', 'enough', { rank: 0 }));
    arrays[0]!.send.fill(99);
    for (const { engine } of others) {
      expect(engine.progress(0)).toBe(PENDING);
      expect(() => engine.check()).toThrow('enough');
    }
    await Promise.all(members.map(({ engine }) => engine.close()));
  },
);

test('a rank that waits while another finds that their parts differ names the same ranks', async () => {
  const members = openRanks(3, 512);
  const code = encodeCall({ kind: 'allToAllV', type: int32, operator: 'sum', root: 0, count: 0, algorithm: 'direct' });
  const begin = ({ rank, engine, segment }: Member) => {
    const sent = rank === 1 ? [2, 2, 3] : [2, 2, 2];
    const arrays = { send: segment.alloc(Int32Array, 7), recv: segment.alloc(Int32Array, 6) };
    const details = { counts: sent, displacements: [0, 2, 4], recvCounts: [2, 2, 2], recvDisplacements: [0, 2, 4] };
    return engine.begin({ code, type: int32, root: 0, ...arrays, count: 0, details }, 0);
  };
  const [first, second, waiting] = members as [Member, Member, Member];
  expect([begin(waiting), begin(second)]).toEqual([PENDING, PENDING]);
  const text = 'rank 1 sends 3 int32 to rank 2, which expects 2';
  let error: unknown;
  try {
    begin(first);
    first.engine.progress(0);
  } catch (thrown) {
    error = thrown;
  }
  expect(String(error)).toContain(text);
  first.engine.abort(error as RemoteError);
  expect(() => waiting.engine.check()).toThrow(text);
  await Promise.all(members.map(({ engine }) => engine.close()));
});
