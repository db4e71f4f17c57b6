import { expect, test } from 'vitest';
import { runRanks } from './ranks.js';

test.each([
  ['in shared memory', {}],
  ['over sockets', { TCCL_SHM_DISABLE: '1', TCCL_RUNTIME_CONNECT: '1' }],
])('a list of ranks makes a communicator of these, in its order, %s', async (_, env) => {
  const { code, records, stderr } = await runRanks(4, 'subsets.mjs', [], { env });
  expect(records, stderr).toHaveLength(4);
  for (let rank = 0; rank < 4; rank++) expect(records).toContainEqual({ rank, wrong: [] });
  expect(code).toBe(0);
});
