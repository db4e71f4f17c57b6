import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { pageSizes } from '../../scripts/page-size.mjs';

/** kB of each part in the table of the notes: what it may have at most. */
const budgets = new Map(
  [...readFileSync('docs/notes/performance.md', 'utf8').matchAll(/^\| ([^|]+) \| (\d+) \|$/gm)].map(([, part = '', kB]) => [
    part,
    Number(kB),
  ]),
);

it('a page loads no part of tccl/browser that is larger than the table of the notes says', async () => {
  const { start, rank, parts } = await pageSizes();
  const measured = { 'a page that starts ranks': start, "a rank's module": rank, ...parts };
  const over = Object.entries(measured).filter(([part, bytes]) => bytes / 1000 > (budgets.get(part) ?? 0));
  // Make it smaller, or correct the table with the reason: node scripts/page-size.mjs
  expect(over).toEqual([]);
  expect(Math.min(...Object.values(measured))).toBeGreaterThan(1000);
});
