import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { Backoff } from '../../../../src/runtime/progress/backoff.js';

let nowMs = 1;
beforeEach(() => {
  vi.spyOn(performance, 'now').mockImplementation(() => nowMs);
});
afterEach(() => {
  vi.restoreAllMocks();
});

test('the age of a wait starts at zero, however long the previous one was', () => {
  const backoff = new Backoff(undefined);
  backoff.readClock();
  nowMs += 1000;
  backoff.readClock();
  expect(backoff.waitedMs).toBe(1000);
  backoff.restart();
  expect(backoff.waitedMs).toBe(0);
  nowMs += 5;
  backoff.readClock();
  expect(backoff.waitedMs).toBe(0);
});

test('the clock is read every few turns, also if every wait is shorter than that', () => {
  const backoff = new Backoff(undefined);
  let looks = 0;
  vi.spyOn(performance, 'now').mockImplementation(() => ++looks);
  for (let wait = 0; wait < 100; wait++) {
    backoff.restart();
    backoff.yield();
    backoff.yield();
  }
  expect(looks).toBe(Math.floor(200 / 16));
});
