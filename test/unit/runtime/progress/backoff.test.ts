import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { Backoff } from '../../../../src/runtime/progress/backoff.js';
import { WatchClock } from '../../../../src/runtime/progress/watch-clock.js';

let nowMs = 0;
beforeEach(() => {
  nowMs = 0;
  vi.spyOn(performance, 'now').mockImplementation(() => nowMs);
});
afterEach(() => {
  vi.restoreAllMocks();
});

/**
 * Waits in vain, a look every 10 µs where it does not sleep. Returns the sleeps, each with how long the wait had taken
 * before.
 */
function waitInVain(backoff: Backoff, ms: number): { readonly afterMs: number; readonly sleepMs: number }[] {
  const sleeps = [];
  for (const endMs = nowMs + ms; nowMs < endMs; backoff.turn(false)) {
    const { sleepMs, waitedMs } = backoff;
    if (sleepMs > 0) sleeps.push({ afterMs: waitedMs, sleepMs });
    nowMs += sleepMs === 0 ? 0.01 : sleepMs;
  }
  return sleeps;
}

test('a wait that has just begun is short, however long the one before was', () => {
  const backoff = new Backoff(undefined, new WatchClock(0));
  backoff.restart();
  waitInVain(backoff, 1000);
  expect(backoff.sleepMs).toBeGreaterThan(1);
  backoff.restart();
  expect([backoff.waitedMs, backoff.sleepMs]).toEqual([0, 0]);
});

test('a long wait takes few looks, none of them much too late', () => {
  const backoff = new Backoff(undefined, new WatchClock(0));
  backoff.restart();
  const sleeps = waitInVain(backoff, 10_000);
  expect(sleeps.length).toBeLessThan(520);
  expect(sleeps.filter(({ afterMs }) => afterMs <= 10)).toEqual([]);
  expect(sleeps.filter(({ afterMs, sleepMs }) => sleepMs > Math.min(50, afterMs / 64))).toEqual([]);
});

test('looks come often again when something else gets further, and the wait goes on', () => {
  const backoff = new Backoff(undefined, new WatchClock(0));
  backoff.restart();
  waitInVain(backoff, 1000);
  const { waitedMs } = backoff;
  backoff.stir();
  expect([backoff.waitedMs, backoff.sleepMs]).toEqual([waitedMs, 0]);
  waitInVain(backoff, 1000);
  expect(backoff.waitedMs).toBeGreaterThan(1990);
  expect(backoff.sleepMs).toBeGreaterThan(1);
});
