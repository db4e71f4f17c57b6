import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { Job } from '../../../../src/runtime/launch/job.js';
import { JobOutput } from '../../../../src/runtime/launch/job-output.js';
import type { RankGroup, RunningRank } from '../../../../src/runtime/launch/rank-group.js';
import type { Ending } from '../../../../src/runtime/launch/rank-process.js';

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['performance'] });
});
afterEach(() => {
  vi.useRealTimers();
});

/** Ranks, and how to end them. */
function ranksOf(count: number): { readonly group: RankGroup; readonly end: (rank: number, code: number) => void } {
  const ends: ((ending: Ending) => void)[] = [];
  const ranks = Array.from({ length: count }, (_, rank): RunningRank => {
    const ended = new Promise<Ending>((resolve) => ends.push(resolve));
    return { rank, host: undefined, running: false, ended, delivered: Promise.resolve() };
  });
  const group = {
    ranks,
    isRemote: false,
    input: undefined,
    states: () => [],
    signal: () => undefined,
    finish: () => Promise.resolve(),
  };
  return { group, end: (rank, code) => ends[rank]?.({ kind: 'code', code }) };
}

// A rank that exits with 0 before it joins makes the others wait for it, and fail.
test.each([
  [60_000, 'rank 0 exited with code 1; rank 1 had ended before, with code 0'],
  [100, 'rank 0 exited with code 1'],
])('a failure %s ms after another rank ended: %s', async (laterMs, line) => {
  const { group, end } = ranksOf(2);
  const report = vi.fn();
  const job = new Job(
    { timeoutMs: undefined, graceMs: 1000, report },
    [group],
    new JobOutput({ kind: 'inherited' }, 0, 2),
  ).finished();
  end(1, 0);
  await Promise.resolve();
  await Promise.resolve();
  vi.advanceTimersByTime(laterMs);
  end(0, 1);
  expect(await job).toBe(1);
  expect(report.mock.calls).toEqual([[line]]);
});

test('ranks that fail alike after the first are reported in one line', async () => {
  const { group, end } = ranksOf(5);
  const report = vi.fn();
  const job = new Job({ graceMs: 1000, report }, [group], new JobOutput({ kind: 'inherited' }, 0, 5)).finished();
  for (const [rank, code] of [[2, 3], [4, 1], [0, 1], [1, 7], [3, 1]] as const) end(rank, code); // prettier-ignore
  expect(await job).toBe(3);
  expect(report.mock.calls).toEqual([
    ['rank 2 exited with code 3'],
    ['ranks 0,3,4 exited with code 1'],
    ['rank 1 exited with code 7'],
  ]);
});
