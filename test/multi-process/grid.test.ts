import { expect, test } from 'vitest';
import { runRanks } from './ranks.js';

const ways: [string, string[], Record<string, string>][] = [
  ['in shared memory', [], {}],
  ['in shared memory, blocking', ['--sync'], {}],
  ['over sockets', [], { TCCL_SHM_DISABLE: '1', TCCL_RUNTIME_CONNECT: '1' }],
];

test.each(ways)('ranks of a grid exchange their borders, %s', async (_, args, env) => {
  const { code, records, stderr } = await runRanks(6, 'grid.mjs', args, { env });
  expect(records, stderr).toHaveLength(6);
  for (let rank = 0; rank < 6; rank++) expect(records).toContainEqual({ rank, wrong: [] });
  expect(code).toBe(0);
});

test.each(ways)('neighbours of graphs and grids exchange what each has for the other, %s', async (_, args, env) => {
  const { code, records, stderr } = await runRanks(4, 'graph.mjs', args, { env });
  expect(records, stderr).toHaveLength(4);
  for (let rank = 0; rank < 4; rank++) expect(records).toContainEqual({ rank, wrong: [] });
  expect(code).toBe(0);
});
