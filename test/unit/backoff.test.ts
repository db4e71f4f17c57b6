import { expect, test } from 'vitest';
import { Backoff, SLEEP_AFTER_MS } from '../../src/communicator/backoff.js';

test('a wait that has just begun is short, however long the one before was', () => {
  const backoff = new Backoff(undefined);
  backoff.restart();
  while (backoff.waitedMs <= SLEEP_AFTER_MS) backoff.turn();
  backoff.restart();
  expect(backoff.waitedMs).toBe(0);
  for (let turn = 0; turn < 32; turn++) backoff.turn(false);
  expect(backoff.waitedMs).toBeLessThan(SLEEP_AFTER_MS * 10);
});
