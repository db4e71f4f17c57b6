import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { type Activity, encodeActivity } from '../../../../src/runtime/algorithms/activity.js';
import type { WaitQueries } from '../../../../src/runtime/bootstrap/wait-queries.js';
import { OutOfBandWait } from '../../../../src/runtime/communicator/out-of-band-wait.js';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

const LIMIT_MS = 5000;

/** Rank 0 of three waits for rank 1, which does not answer its queries, and reports elsewhere that it waits for rank 2. */
function lateIn(call: 'window' | 'shrink', activity: Activity): number[] {
  const queries = {
    setDefaultAnswer: () => undefined,
    ask: () => undefined,
    awaited: () => [1],
    answer: () => undefined,
    close: () => undefined,
  } as unknown as WaitQueries;
  let count = 0;
  const report = () => ({ count: ++count, words: [...encodeActivity(activity), 2, 1, performance.now() | 0] });
  const reports = [
    { peer: 0, waitReport: () => undefined },
    { peer: 1, waitReport: report },
    { peer: 2, waitReport: () => undefined },
  ];
  const elsewhere = { report: () => undefined, show: () => undefined, ask: () => undefined, reports };
  const wait = new OutOfBandWait({ call, rank: 0, nRanks: 3, queries, elsewhere }, LIMIT_MS);
  vi.advanceTimersByTime(LIMIT_MS);
  try {
    return wait.late();
  } finally {
    wait.close();
  }
}

it('looks past a rank that still waits in the barrier with which the call begins', () => {
  expect(lateIn('window', { kind: 'outOfBand', call: 'window' })).toEqual([2]);
});

it('names a rank that waits in something else, or that has not called shrink', () => {
  expect(lateIn('window', { kind: 'window', peer: 2 })).toEqual([1]);
  expect(lateIn('shrink', { kind: 'outOfBand', call: 'window' })).toEqual([1]);
});
