import { gzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { packedWords } from '../../../scripts/packed-words.mjs';
import { unpackedWords } from '../../../src/studio/unpacked.js';

const names = Array.from({ length: 3000 }, (_, index) => `name${index.toString(36)}of${(index * 7919) % 3001}`);

test.each([
  ['', 'nothing'],
  ['let a = 1;', 'a text without frequent words'],
  [`${'parameters.environment '.repeat(20)}× … µ ߿ ࠀ 😀 \u0080`, 'characters that others stand for'],
  [`${'$& $1 $$ '.repeat(9)}\n\n  ${'undefined '.repeat(9)}\n`, 'marks of replace, lines and spaces'],
  [names.flatMap((name) => Array.from({ length: 8 }, () => name)).join(' '), 'more words than characters'],
])('a packed text comes back as it was: case %#, %s', (text) => {
  expect(unpackedWords(packedWords(text))).toBe(text);
});

test('words that are far apart take less room', () => {
  const text = Array.from({ length: 60_000 }, (_, index) => names[(index * 1013) % 1800]).join(' ');
  const packed = packedWords(text);
  expect(gzipSync(packed).length).toBeLessThan(gzipSync(text).length);
  expect(unpackedWords(packed)).toBe(text);
});
