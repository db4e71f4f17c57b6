import { expect, test } from 'vitest';
import { callKinds, DONE, PENDING } from '../../../src/device/kernels/kernels.js';
import { createMemory, markDead, rankStates, Segment } from '../../../src/device/segment.js';
import { Team } from '../../../src/device/team.js';

function teams(nRanks: number): { readonly memory: WebAssembly.Memory; readonly segments: Segment[]; readonly teams: Team[] } {
  const memory = createMemory(1024);
  const segments = Array.from({ length: nRanks }, (_, rank) => Segment.ofThreads(memory, rank, nRanks));
  for (const segment of segments) segment.setState(rankStates.ready);
  return { memory, segments, teams: segments.map((segment) => Team.ofAll(segment)) };
}

test('the first abort is the one that all members see', () => {
  const [a, b] = teams(2).teams;
  expect(b!.abort()).toBeUndefined();
  a!.raiseAbort('died', 1);
  b!.raiseAbort('aborted', 0);
  for (const team of [a!, b!]) expect(team.abort()).toEqual({ reason: 'died', localRank: 1 });
});

test('a member that ended without leaving is found; one that left first, and one of another team, are not', () => {
  const { memory, teams: all } = teams(4);
  expect(all[0]!.findDead()).toBe(-1);
  all[2]!.leave();
  markDead(memory, 2);
  expect(all[0]!.hasLeft(2)).toBe(true);
  expect(all[0]!.findDead()).toBe(-1);
  markDead(memory, 3);
  expect(all[0]!.findDead()).toBe(3);
});

test('two teams on one segment have operations under way that do not meet', () => {
  const { segments, teams: all } = teams(3);
  const address = segments[2]!.allocateBytes(2 ** 20);
  const pair = [2, 0].map((local) => new Team(segments[local]!, Math.ceil(address / 4096) * 4096, [2, 0]));
  expect(pair.map((team) => team.localRank)).toEqual([0, 1]);
  expect(pair[0]!.kernels.barrier(callKinds.barrier, 5)).toBe(PENDING);
  expect(all[0]!.kernels.barrier(callKinds.barrier, 5)).toBe(PENDING);
  expect(pair[1]!.kernels.barrier(callKinds.barrier, 5)).toBe(DONE);
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
