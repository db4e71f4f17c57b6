import { expect, test } from 'vitest';
import { runRanks } from './ranks.js';

test.each<[string, Record<string, string>]>([
  ['in shared memory', {}],
  ['over sockets', { TCCL_SHM_DISABLE: '1', TCCL_RUNTIME_CONNECT: '1' }],
  ['on engine threads', { TCCL_TEST_CONFIG: '{"engine":"thread"}' }],
])('a computation without awaits progresses its calls by poll(), %s', async (_, env) => {
  const { code, records, stderr } = await runRanks(2, 'poll.mjs', [], { env });
  expect(records, stderr).toHaveLength(2);
  for (const rank of [0, 1]) expect(records).toContainEqual({ rank, inTime: true });
  expect(code).toBe(0);
});
