import { expect, test } from 'vitest';
import { didYouMean, nearestName } from '../../src/suggest.js';

test('a name with one wrong letter finds its neighbour', () => {
  expect(nearestName('rign', ['ring', 'tree', 'direct'])).toBe('ring');
  expect(didYouMean('Ringg', ['ring', 'tree'])).toBe('; did you mean ring?');
});

test('a word that is near to nothing gets no suggestion', () => {
  expect(nearestName('quantum', ['ring', 'tree'])).toBeUndefined();
  expect(didYouMean('', [])).toBe('');
});
