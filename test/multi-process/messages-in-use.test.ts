import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { tccl } from './cli.js';
import { runRanks } from './ranks.js';

/** The programs of docs/p2p.md, in order, and what they print on three ranks. */
const printed = [
  ['rank 0 got 2', 'rank 1 got 0', 'rank 2 got 1'],
  ['rank 0: 0 … 1, loss 1', 'rank 1: 0 … 2, loss 1', 'rank 2: 1 … 2, loss 1'],
  ['rank 0: 0 10 20', 'rank 1: 0 10 20', 'rank 2: 0 10 20'],
];

test('the programs of docs/p2p.md do what the page says', async () => {
  const page = readFileSync(new URL('../../docs/p2p.md', import.meta.url), 'utf8');
  const programs = [...page.matchAll(/```js\n([\s\S]*?)```/g)].map((match) => match[1]!);
  expect(programs).toHaveLength(printed.length);
  // In this folder, so that the package finds itself by its name.
  const folder = mkdtempSync(fileURLToPath(new URL('./fixtures/docs-', import.meta.url)));
  try {
    for (const [index, program] of programs.entries()) {
      const file = `${folder}/program-${index}.mjs`;
      writeFileSync(file, program);
      const { stdout, stderr } = await tccl(['run', '-n', '3', '--no-prefix', '--', process.execPath, file], { env: {} });
      expect(stdout.trim().split('\n').sort(), stderr).toEqual(printed[index]);
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test('a heat equation in rows that neighbours exchange gives the same bits on any number of ranks', async () => {
  const outcomes: unknown[] = [];
  for (const [nRanks, args, env] of [
    [1, [], {}], [2, [], {}], [2, ['sync'], {}], [3, [], {}], [5, ['sync'], {}], [3, [], { TCCL_SHM_DISABLE: '1' }],
  ] as const) {
    const { records, stderr } = await runRanks(nRanks, 'heat.mjs', ['100', ...args], { env });
    expect(records, stderr).toHaveLength(1);
    outcomes.push(records[0]);
  }
  expect((outcomes[0] as { middle: number }).middle).toBeGreaterThan(0);
  for (const outcome of outcomes) expect(outcome).toEqual(outcomes[0]);
});
