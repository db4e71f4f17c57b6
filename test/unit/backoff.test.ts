import { afterEach, expect, test, vi } from 'vitest';
import { Backoff, SLEEP_AFTER_MS } from '../../src/runtime/communicator/backoff.js';
import { WatchClock } from '../../src/runtime/watch-clock.js';

afterEach(() => { vi.restoreAllMocks(); });

test('a wait that has just begun is short, however long the one before was', () => {
  let nowMs = 0;
  vi.spyOn(performance, 'now').mockImplementation(() => nowMs++);
  const backoff = new Backoff(undefined, new WatchClock(0));
  backoff.restart();
  while (backoff.waitedMs <= SLEEP_AFTER_MS) backoff.turn();
  backoff.restart();
  expect(backoff.waitedMs).toBe(0);
  for (let turn = 0; turn < 32; turn++) backoff.turn(false);
  expect(backoff.waitedMs).toBe(1);
});
