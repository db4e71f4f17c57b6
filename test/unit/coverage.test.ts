import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';

const root = fileURLToPath(new URL('../..', import.meta.url));
const page = readFileSync(join(root, 'docs/learn/coverage.md'), 'utf8');
const rows = page
  .split('\n')
  .map((row) => row.split('|').map((cell) => cell.trim()))
  .filter((cells) => cells.length >= 5 && !cells[1]?.startsWith('-') && cells[1] !== 'structure or step');

it('every row of the table of coverage names what a file exports, or the reason why there is none', () => {
  const faults = rows.flatMap((cells) => {
    const [where = '', state = ''] = cells.slice(-3);
    if (where === '') return state.startsWith('not here: ') ? [] : [`${cells[1] ?? ''}: no place`];
    const [, path = '', name = ''] = /^`(src\/[^`]+)` `(\w+)`$/.exec(where) ?? [];
    const file = join(root, path);
    if (path === '' || !existsSync(file)) return [`${where}: no such file`];
    const declares = new RegExp(`^export (abstract |async )*(class|function\\*?|const|interface|type) ${name}\\b`, 'm');
    return declares.test(readFileSync(file, 'utf8')) ? [] : [`${where}: not exported`];
  });
  expect(faults).toEqual([]);
});

it('counts the rows by state in its first lines', () => {
  const states = rows.filter((cells) => /^[A-E]$/.test(cells[2] ?? '')).map((cells) => cells[4] ?? '');
  const count = (is: (state: string) => boolean): number => states.filter(is).length;
  const follows = (state: string): boolean => state.startsWith('planned; ranks follow');
  const sentence =
    `Of ${states.length} rows ${count((state) => state.startsWith('runs') || state.startsWith('Simple'))} run, ` +
    `${count(follows)} are planned and ranks follow, ${count((state) => state.startsWith('planned') && !follows(state))} are planned, ` +
    `${count((state) => state.startsWith('not here'))} is not here.`;
  expect(states.length).toBeGreaterThan(90);
  expect(page.replaceAll('\n', ' ')).toContain(sentence);
});
