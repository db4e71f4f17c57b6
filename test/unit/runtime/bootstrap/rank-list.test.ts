import { expect, it } from 'vitest';
import { formatRanks, nameRanks, oddRanks, oddRanksOf } from '../../../../src/runtime/bootstrap/rank-list.js';

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

it('a mismatch is about the ranks that differ from most, or about all that differ', () => {
  expect(oddRanks([[0, 3], [1]])).toEqual([1]);
  expect(oddRanks([[4], [1]])).toEqual([1, 4]);
  expect(oddRanks([[3, 0], [1], [2]])).toEqual([0, 1, 2, 3]);
  expect(oddRanksOf(['a', 'b', 'a', 'a', 'c'])).toEqual([1, 4]);
  expect(oddRanksOf(['b', 'a'])).toEqual([0, 1]);
});
