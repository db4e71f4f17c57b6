import { expect, test } from 'vitest';
import { runRanks } from './ranks.js';

test.each([
  [1, 'in shared memory', 'promise', {}],
  [3, 'in shared memory', 'promise', {}],
  [3, 'in shared memory', 'sync', {}],
  [2, 'on engine threads', 'promise', { TCCL_TEST_CONFIG: '{"engine":"thread"}' }],
  [3, 'over sockets', 'promise', { TCCL_SHM_DISABLE: '1', TCCL_RUNTIME_CONNECT: '1' }],
  [2, 'over sockets', 'sync', { TCCL_SHM_DISABLE: '1' }],
] as const)('%i ranks %s combine numbers and objects in the order of ranks (%s)', async (nRanks, _, form, env) => {
  const { code, records, stdout, stderr } = await runRanks(nRanks, 'values.mjs', [form], { env });
  expect(code, `${stdout}\n${stderr}`).toBe(0);
  expect(records).toHaveLength(nRanks);
});
