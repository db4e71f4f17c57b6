import { expect, it } from 'vitest';
import { busyNote } from '../../../src/perf/tune.js';

it('other programs on half of the cores cause a note, fewer do not', () => {
  expect(busyNote(0.9, 2)).toBeUndefined();
  expect(busyNote(1.04, 2)).toMatch(/^in the minute before 1\.0 programs ran on average, on 2 cores: /);
});
