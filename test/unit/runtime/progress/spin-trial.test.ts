import { expect, test } from 'vitest';
import { SpinTrial } from '../../../../src/runtime/progress/spin-trial.js';

/** Number of the next waits that spin first, if spinning succeeds or not. */
function looksIn(trial: SpinTrial, waits: number, succeeds: boolean): number {
  let looks = 0;
  for (let wait = 0; wait < waits; wait++) {
    if (trial.isDue) looks++;
    if (!trial.isDue || !succeeds) trial.parked();
    trial.ended();
  }
  return looks;
}

test('if spinning always succeeds, every wait spins first', () => {
  expect(looksIn(new SpinTrial(), 1000, true)).toBe(1000);
});

test('if spinning always fails, fewer and fewer waits spin first', () => {
  const trial = new SpinTrial();
  expect(looksIn(trial, 1 + 1 + 1 + 3 + 1 + 7, false)).toBe(3);
  expect(looksIn(trial, 6400, false)).toBeLessThan(105);
});

test('after a single failure only the next wait parks immediately', () => {
  const trial = new SpinTrial();
  looksIn(trial, 100, true);
  looksIn(trial, 1, false);
  expect(looksIn(trial, 100, true)).toBe(99);
});

test('all waits spin again soon after cores are free again', () => {
  const trial = new SpinTrial();
  looksIn(trial, 10_000, false);
  looksIn(trial, 64, true);
  expect(looksIn(trial, 1000, true)).toBeGreaterThan(930);
});
