import { expect, test } from 'vitest';
import { runRanks } from './ranks.js';

const blocking = { TCCL_SHM_DISABLE: '1', TCCL_TEST_CONFIG: JSON.stringify({ blocking: true }) };
const engineThread = { TCCL_TEST_CONFIG: JSON.stringify({ engine: 'thread' }) };

test.each<[string, string[], Record<string, string>]>([
  ['in shared memory', [], {}],
  ['in shared memory, blocking', ['--sync'], {}],
  ['over sockets', [], { TCCL_SHM_DISABLE: '1', TCCL_RUNTIME_CONNECT: '1' }],
  ['over sockets, blocking', ['--sync'], blocking],
  ['on engine threads', [], engineThread],
])('arrays of types without operators are moved by every call that only moves data, %s', async (_, args, env) => {
  const { code, records, stderr } = await runRanks(2, 'moved-arrays.mjs', args, { env });
  expect(records, stderr).toHaveLength(2);
  for (const rank of [0, 1]) expect(records).toContainEqual({ rank, wrong: [], isInt16: true });
  expect(code).toBe(0);
});

test('three ranks pass such arrays around a ring, from and into shared arrays', async () => {
  const { code, records, stderr } = await runRanks(3, 'moved-arrays.mjs', [], {
    env: { TCCL_SHM_DISABLE: '1', TCCL_RUNTIME_CONNECT: '1' },
  });
  expect(records, stderr).toHaveLength(3);
  for (const rank of [0, 1, 2]) expect(records).toContainEqual({ rank, wrong: [], isInt16: true });
  expect(code).toBe(0);
});
