import { describe, expect, test } from 'vitest';
import { AT_ONCE_MS, runRanks } from '../multi-process/ranks.js';

const seed = Number(process.env['TCCL_TEST_SEED'] ?? Math.floor(Math.random() * 1e6));
const isLong = process.env['TCCL_TEST_LONG'] !== undefined;
const flags = ['--grace', '20'];
const sockets = { TCCL_SHM_DISABLE: '1', TCCL_RUNTIME_CONNECT: '1' };

/** Runs ranks of which one fails in the first call of a kind, and expects the error on all others immediately. */
async function expectNews(kind: string, how: string, env: Record<string, string>, tries: number, code: string): Promise<void> {
  const {
    records,
    stderr,
    code: exitCode,
  } = await runRanks(4, 'first-call.mjs', [kind, how, String(seed), String(tries)], {
    env: { TCCL_TIMEOUT: '60', ...env },
    flags,
  });
  expect(records, `seed ${seed}\n${stderr}`).toHaveLength(3 * tries);
  for (const record of records) {
    expect(record, `seed ${seed}`).toMatchObject({ code });
    expect(record['ms'], `seed ${seed}: ${JSON.stringify(record)}`).toBeLessThan(AT_ONCE_MS);
  }
  if (how === 'abort') expect(exitCode, `seed ${seed}\n${stderr}`).toBe(0);
}

describe.each([
  ['over sockets', sockets],
  ['over sockets, in place', { ...sockets, TCCL_TEST_CONFIG: '{"blocking":true}' }],
])('%s', (_, env) => {
  test.each(['reduceScatter', 'allGather', 'allToAll', 'gather', 'exchange', 'window'])(
    'an abort while the connections of the first %s are being made reaches all ranks immediately, and they can end',
    (kind) => expectNews(kind, 'abort', env, isLong ? 100 : 8, 'ABORTED'),
  );
});

describe.each([
  ['in one segment', {}],
  ['over sockets', sockets],
])('%s', (_, env) => {
  test.each(['split', 'stream', 'shrink', 'grow'])(
    'a rank that exits with code 0 in %s is reported as closed on all ranks immediately',
    (kind) => expectNews(kind, 'exit0', env, 1, 'CLOSED'),
  );

  test('a rank that exits with code 1 in stream is reported as dead on all ranks immediately', () =>
    expectNews('stream', 'exit1', env, 1, 'RANK_DIED'));
});

test.each([
  ['in one segment', {}],
  ['over sockets', sockets],
  ['over sockets, in place', { ...sockets, TCCL_TEST_CONFIG: '{"blocking":true}' }],
  ['on an engine thread', { TCCL_TEST_CONFIG: '{"engine":"thread"}' }],
])('no public call leaves an unhandled rejection when its communicator ends (%s)', async (_, env) => {
  const { records, code, stderr } = await runRanks(3, 'unhandled.mjs', [String(seed), isLong ? '200' : '12'], {
    env: { TCCL_TIMEOUT: '60', ...env },
    flags,
  });
  expect(records, `seed ${seed}`).toEqual([]);
  expect(code, `seed ${seed}\n${stderr}`).toBe(0);
});

test('a group whose communicator has failed meanwhile rejects once', async () => {
  const env = { ...sockets, TCCL_TIMEOUT: '60', TCCL_TEST_CONFIG: '{"engine":"thread"}' };
  const { records, code } = await runRanks(3, 'unhandled.mjs', ['26', '1'], { env, flags });
  expect([records, code]).toEqual([[], 0]);
});

test('the error of a rank of this host that is killed right after reaches a rank that waits in a split', async () => {
  const { records, stderr } = await runRanks(2, 'killed-after-abort.mjs', [], { flags });
  expect(records, stderr).toEqual([{ code: 'ABORTED', about: 0, message: 'rank 0 aborted the communicator: enough' }]);
});

test('a rank found dead in a child ends the parent too, before its next call can mismatch', async () => {
  const { records, stderr } = await runRanks(3, 'death-in-child.mjs', [], { flags });
  expect(
    records.toSorted((a, b) => String([a['rank'], a['where']]).localeCompare(String([b['rank'], b['where']]))),
    stderr,
  ).toEqual([
    { rank: 1, where: 'child', code: 'RANK_DIED', about: 0 },
    { rank: 1, where: 'parent', code: 'RANK_DIED', about: 0 },
    { rank: 2, where: 'parent', code: 'RANK_DIED', about: 0 },
  ]);
});

test('a rank that exits because of another one is not taken for the cause', async () => {
  const { records, stderr } = await runRanks(3, 'exit-after-news.mjs', [], { env: sockets, flags });
  expect(records, stderr).toEqual([{ code: 'ABORTED', about: 2 }]);
});
