import { expect, test } from 'vitest';
import { Backoff, SLEEP_AFTER_MS } from '../../src/communicator/backoff.js';
import { WatchClock } from '../../src/watch-clock.js';

test('a wait that has just begun is short, however long the one before was', () => {
  const backoff = new Backoff(undefined, new WatchClock(0));
  backoff.restart();
  while (backoff.waitedMs <= SLEEP_AFTER_MS) backoff.turn();
  backoff.restart();
  expect(backoff.waitedMs).toBe(0);
  for (let turn = 0; turn < 32; turn++) backoff.turn(false);
  expect(backoff.waitedMs).toBeLessThan(SLEEP_AFTER_MS * 10);
});
