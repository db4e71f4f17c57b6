import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { ncclResults } from '../../src/errors.js';

const page = readFileSync('docs/reference/errors.md', 'utf8')
  .split('\n')
  .filter((line) => line.startsWith('| `'));
const firstCells = page.flatMap((line) => line.split('|')[1]?.match(/\w+/g) ?? []);

it('docs/reference/errors.md has a row for each code and each class, and for no other', () => {
  const codes = [...readFileSync('src/errors.ts', 'utf8').matchAll(/^ {2}\| '([A-Z_]+)'/gm)].map(([, code = '']) => code);
  expect(codes.length).toBeGreaterThan(30);
  expect(firstCells.sort()).toEqual([...codes, ...Object.keys(ncclResults)].sort());
});
