import { expect, it } from 'vitest';
import { formatRanks, nameRanks } from '../../../../src/runtime/bootstrap/rank-list.js';

it.each([
  [[], ''],
  [[4], '4'],
  [[0, 1], '0,1'],
  [[5, 3, 4, 1], '1,3-5'],
  [[2, 2, 2], '2'],
  [[10, 9, 1, 2, 3, 7], '1-3,7,9,10'],
])('%j is written %s', (ranks, text) => {
  expect(formatRanks(ranks)).toBe(text);
});

it('one rank is singular, more are plural', () => {
  expect(nameRanks([3])).toBe('rank 3');
  expect(nameRanks([3, 4])).toBe('ranks 3,4');
});
