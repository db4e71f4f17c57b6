import { expect, test } from 'vitest';
import { runRanks } from './ranks.js';

test.each<[string, string[], Record<string, string>]>([
  ['in shared memory', [], {}],
  ['in shared memory, blocking', ['--sync'], {}],
  ['over sockets', [], { TCCL_SHM_DISABLE: '1', TCCL_RUNTIME_CONNECT: '1' }],
])('ranks of a grid exchange their borders, %s', async (_, args, env) => {
  const { code, records, stderr } = await runRanks(6, 'grid.mjs', args, { env });
  expect(records, stderr).toHaveLength(6);
  for (let rank = 0; rank < 6; rank++) expect(records).toContainEqual({ rank, wrong: [] });
  expect(code).toBe(0);
});
