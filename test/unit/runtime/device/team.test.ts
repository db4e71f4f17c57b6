import { expect, test } from 'vitest';
import { callKinds, DONE, PENDING } from '../../../../src/runtime/device/kernels/kernels.js';
import { DirectEngine } from '../../../../src/runtime/algorithms/memory/direct-engine.js';
import { markDead, rankStates } from '../../../../src/runtime/device/rank-lines.js';
import { Segment } from '../../../../src/runtime/device/segment.js';
import { createMemory } from '../../../../src/runtime/device/shared-memory.js';
import { Team } from '../../../../src/runtime/device/team.js';
import { float32 } from '../../../../src/runtime/device/types.js';

function teams(nRanks: number): { readonly memory: WebAssembly.Memory; readonly segments: Segment[]; readonly teams: Team[] } {
  const memory = createMemory(1024);
  const segments = Array.from({ length: nRanks }, (_, rank) => Segment.ofThreads(memory, rank, nRanks));
  for (const segment of segments) segment.ranks.setState(rankStates.ready);
  return { memory, segments, teams: segments.map((segment) => Team.ofAll(segment)) };
}

test('the first abort is the one that all members see', () => {
  const [a, b] = teams(2).teams;
  expect(b!.abort()).toBeUndefined();
  a!.raiseAbort('died', 1);
  b!.raiseAbort('aborted', 0);
  for (const team of [a!, b!]) expect(team.abort()).toEqual({ reason: 'died', localRank: 1 });
});

test('an abort of a team that all members have left does not touch its memory, which may belong to another', () => {
  const { segments } = teams(2);
  const reserved = Team.reserve(segments[0]!, 2);
  const pair = [0, 1].map((local) => new Team(segments[local]!, reserved, [0, 1], local === 0));
  for (const team of pair) team.leave();
  // Each sees first that the other has left, then that it has released the team.
  for (const segment of [...segments, ...segments]) segment.settle();
  const array = segments[0]!.alloc(Uint8Array, 2 ** 16);
  expect(array.byteOffset).toBe(reserved);
  for (const team of pair) {
    team.raiseAbort('aborted', 0);
    team.recordFailure(Uint8Array.of(1, 2, 3));
  }
  expect(array.every((byte) => byte === 0)).toBe(true);
});

test('a member that exited without leaving is found; one that left first, and one of another team, are not', () => {
  const { memory, teams: all } = teams(4);
  const ranks = [5, 6, 7, 9];
  all[0]!.checkMembers(ranks);
  all[2]!.leave();
  markDead(memory, 2);
  expect(all[0]!.hasLeft(2)).toBe(true);
  all[0]!.checkMembers(ranks);
  markDead(memory, 3);
  expect(() => all[0]!.checkMembers(ranks)).toThrow(expect.objectContaining({ code: 'RANK_DIED', rank: 9 }));
});

test('two teams on one segment have separate operations in flight', () => {
  const { segments, teams: all } = teams(3);
  const address = segments[2]!.allocateBytes(2 ** 20);
  const pair = [2, 0].map((local) => new Team(segments[local]!, Math.ceil(address / 4096) * 4096, [2, 0]));
  expect(pair.map((team) => team.localRank)).toEqual([0, 1]);
  expect(pair[0]!.kernels.barrier(callKinds.barrier, 0, 5)).toBe(PENDING);
  expect(all[0]!.kernels.barrier(callKinds.barrier, 0, 5)).toBe(PENDING);
  expect(pair[1]!.kernels.barrier(callKinds.barrier, 0, 5)).toBe(DONE);
  expect(pair[0]!.kernels.progress(5)).toBe(DONE);
  expect(all[0]!.kernels.progress(5)).toBe(PENDING);
  expect(all[1]!.abort()).toBeUndefined();
});

test('teams and heaps do not overlap, however many ranks there are', () => {
  for (const nRanks of [1, 2, 63, 64, 100]) {
    const segment = Segment.ofThreads(createMemory(2048), 0, nRanks);
    const team = Team.ofAll(segment);
    const last = team.kernels.postAddress(nRanks - 1) + (team.kernels.BLOCK_BYTES.value as number);
    expect(last).toBeLessThanOrEqual(segment.heap.from);
    expect(team.kernels.postAddress(0) % 4096).toBe(0);
  }
});

test('a team in the upper half of the addresses works as any other', () => {
  const memory = createMemory();
  const segments = [0, 1, 2, 3].map((rank) => Segment.ofThreads(memory, rank, 4));
  for (const segment of segments) segment.ranks.setState(rankStates.ready);
  const reserved = Team.reserve(segments[3]!, 2);
  if (memory.buffer.byteLength === 2 ** 32) expect(reserved).toBeGreaterThan(2 ** 31);
  const engines = [3, 1].map((local) => new DirectEngine(new Team(segments[local]!, reserved, [3, 1]), [0, 1], undefined, 256));
  const arrays = [0, 1].map((rank) => new Float32Array(1000).fill(rank + 1));
  const run = (kind: number, root: number): void => {
    const code = kind | (float32.code << 4);
    const begin = (rank: number): number => {
      const array = arrays[rank]!;
      return engines[rank]!.begin({ code, type: float32, root, send: array, recv: array, count: 1000 }, 0);
    };
    const states = [begin(0), begin(1)];
    while (states.includes(PENDING))
      states.forEach((state, rank) => (states[rank] = state === PENDING ? engines[rank]!.progress(10) : state));
  };
  run(callKinds.allReduce, 0);
  expect(arrays.map((array) => array[999])).toEqual([3, 3]);
  arrays[1]!.fill(7);
  run(callKinds.broadcast, 1);
  expect(arrays.map((array) => array[999])).toEqual([7, 7]);
  // Posts of a rank are found there, too.
  const [array] = arrays as [Float32Array];
  engines[0]!.begin({ code: callKinds.barrier, type: float32, root: 0, send: array, recv: array, count: 0 }, 0);
  expect(engines[0]!.late(1000)).toEqual([1]);
});

test('where a heap has no room for a team, the error gives the number of open communicators and a remedy', () => {
  const segment = Segment.ofThreads(createMemory(1024), 0, 1);
  segment.communicators = 3;
  segment.alloc(Uint8Array, segment.memoryUse().largestFreeBytes - 20_000);
  expect(() => Team.reserve(segment, 2)).toThrow(
    /^\d+ bytes do not fit into this rank's part of the shared memory: at most \d+ are free of \d+ \(a host's ranks share 67108864\), with 3 communicators open; close communicators that are not needed, or free arrays$/,
  );
  expect(() => segment.alloc(Uint8Array, 2 ** 20)).toThrow(
    /with 3 communicators open; free arrays with comm.free or using \(.*\), or pass ordinary typed arrays, which need no room here$/,
  );
});

test('a rank that leaves hundreds of teams before the others do gets all their memory back once those have left', () => {
  const { segments } = teams(2);
  const [first, second] = segments as [Segment, Segment];
  const before = first.heap.usedBytes;
  const pairs = Array.from({ length: 500 }, () => {
    const address = Team.reserve(first, 2);
    return [new Team(first, address, [0, 1], true), new Team(second, address, [0, 1])] as const;
  });
  for (const [mine] of pairs) mine.leave();
  expect(first.heap.usedBytes).toBeGreaterThan(before);
  for (const [, other] of pairs) other.leave();
  for (let look = 0; look < 2; look++) for (const segment of segments) segment.settle();
  expect(first.heap.usedBytes).toBe(before);
});

test('memory of teams is freed although the members that do not provide it never allocate', () => {
  const { segments } = teams(4);
  const [owner] = segments as [Segment];
  const peak: number[] = [];
  for (let round = 0; round < 20; round++) {
    const address = Team.reserve(owner, 4);
    const members = segments.map((segment, local) => new Team(segment, address, [0, 1, 2, 3], local === 0));
    for (const team of members) team.leave();
    peak.push(owner.heap.usedBytes);
  }
  expect(Math.max(...peak)).toBeLessThan(4 * peak[0]!);
});
