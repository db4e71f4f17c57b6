import { expect, test } from 'vitest';
import { runs } from '../runs.js';
import { runRanks } from '../multi-process/ranks.js';

const overSockets = { TCCL_SHM_DISABLE: '1', TCCL_RUNTIME_CONNECT: '1' };

test.each([
  [1, 'in shared memory', 'promise', {}],
  [4, 'in shared memory', 'promise', {}],
  [3, 'in shared memory', 'sync', {}],
  [2, 'on engine threads', 'promise', { TCCL_TEST_CONFIG: '{"engine":"thread"}' }],
  [3, 'over sockets', 'promise', overSockets],
  [4, 'on two hosts', 'promise', { TCCL_TEST_HOSTS: '1' }],
  [3, 'over sockets', 'sync', { TCCL_SHM_DISABLE: '1' }],
] as const)('%i ranks %s receive messages of any rank, and by tag (%s)', async (nRanks, _, form, env) => {
  const { code, records, stdout, stderr } = await runRanks(nRanks, 'any-source.mjs', [form, String(runs(40, 400))], { env });
  expect(code, `${stdout}\n${stderr}`).toBe(0);
  expect(records).toHaveLength(nRanks);
});

const both = [
  ['in shared memory', {}],
  ['over sockets', overSockets],
] as const;

test.each(both)('the death of a possible source ends a receive from any rank (%s)', async (_, env) => {
  const { records, stderr } = await runRanks(3, 'any-source-failures.mjs', ['dies'], { env, flags: ['--grace', '20'] });
  expect(records.map(({ rank, code, about }) => [rank, code, about]).sort(), stderr).toEqual([
    [0, 'RANK_DIED', 1],
    [2, 'RANK_DIED', 1],
  ]);
});

test.each(both)('a rank that has closed is no source any more; without another, the receive ends (%s)', async (_, env) => {
  const { records, stderr } = await runRanks(3, 'any-source-failures.mjs', ['closes'], { env });
  expect(records, stderr).toMatchObject([{ got: { source: 2, tag: 0, count: 1 } }, { code: 'CLOSED' }]);
});

test.each(both)('ranks that all wait for any rank hear of the circle (%s)', async (_, env) => {
  const { records, stderr } = await runRanks(3, 'any-source-failures.mjs', ['circle'], { env: { ...env, TCCL_TIMEOUT: '2' } });
  expect(records, stderr).toHaveLength(3);
  for (const { code } of records) expect(code).toBe('TIMEOUT');
  const [first] = records.filter(({ message }) => /circle/.test(String(message)));
  expect(first?.['message'], stderr).toMatch(
    /recv of 1 int32 with tag 4 from any rank.*the ranks wait for each other in a circle/,
  );
});

test.each(both)('a message of another type than a receive from any rank awaits is a mismatch (%s)', async (_, env) => {
  const { records, stderr } = await runRanks(3, 'any-source-failures.mjs', ['type'], { env });
  expect(records, stderr).toMatchObject([
    {
      code: 'CALL_MISMATCH',
      message: expect.stringContaining('rank 1 sent 3 float32 to rank 0, which receives 1 int32 there') as string,
    },
  ]);
});
