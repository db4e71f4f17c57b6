import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';

const root = fileURLToPath(new URL('../..', import.meta.url));

it('every place in the code that the table of coverage names exists', () => {
  const rows = readFileSync(join(root, 'docs/learn/coverage.md'), 'utf8')
    .split('\n')
    .filter((row) => row.split('|').length === 6);
  const missing = rows.flatMap((row) => {
    let folder = '';
    return [...(row.split('|')[3] ?? '').matchAll(/`([^`]+)`/g)].flatMap(([, name = '']) => {
      const path = name.startsWith('src/') ? name : join(folder, name);
      folder = dirname(path.replace(/\/$/, ''));
      return existsSync(join(root, path)) ? [] : [path];
    });
  });
  expect(rows.length).toBeGreaterThan(50);
  expect(missing).toEqual([]);
});
