import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { InvalidArgumentError, ncclResults } from '../../src/errors.js';

const page = readFileSync('docs/reference/errors.md', 'utf8')
  .split('\n')
  .filter((line) => line.startsWith('| `'));
const firstCells = page.flatMap((line) => line.split('|')[1]?.match(/\w+/g) ?? []);

it('docs/reference/errors.md has a row for each code and class, and no other', () => {
  const codes = [...readFileSync('src/errors.ts', 'utf8').matchAll(/^ {2}\| '([A-Z_]+)'/gm)].map(([, code = '']) => code);
  expect(codes.length).toBeGreaterThan(30);
  expect(firstCells.sort()).toEqual([...codes, ...Object.keys(ncclResults)].sort());
});

it('a message escapes control characters in the names that it quotes', () => {
  const error = new InvalidArgumentError('ARGUMENT_RANGE', 'TCCL_PROFILE names \u001b]52;c;YQ==\u0007\n\u202e');
  expect(error.message).toBe('TCCL_PROFILE names \\x1b]52;c;YQ==\\x07\\n\\u202e');
});
