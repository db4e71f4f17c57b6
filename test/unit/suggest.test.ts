import { expect, test } from 'vitest';
import { didYouMean, nearestName } from '../../src/suggest.js';

test('a name with one wrong letter gets a suggestion', () => {
  expect(nearestName('rign', ['ring', 'tree', 'direct'])).toBe('ring');
  expect(didYouMean('Ringg', ['ring', 'tree'])).toBe('; did you mean ring?');
});

test('of two names as near, one that contains the word is suggested', () => {
  expect(nearestName('ranks', ['rank', 'nRanks'])).toBe('nRanks');
});

test('a word unlike all names gets no suggestion', () => {
  expect(nearestName('quantum', ['ring', 'tree'])).toBeUndefined();
  expect(didYouMean('', [])).toBe('');
});
