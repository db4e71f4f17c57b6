import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { runRanks } from './ranks.js';

const apart = { TCCL_SHM_DISABLE: '1', TCCL_RUNTIME_CONNECT: '1' };

test.each([
  ['in one segment', {}],
  ['over sockets', apart],
])('a rank that closes does not wait for one that computes and can still receive all that was sent: %s', async (_, env) => {
  const directory = mkdtempSync(join(tmpdir(), 'tccl-closing-'));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  const { records, stderr } = await runRanks(2, 'closing.mjs', ['3', '10000', 'closed', join(directory, 'closed')], { env });
  expect(records, stderr).toEqual([{ right: 3 }]);
});

test('messages that a rank sent before it closed reach one that computed for long, though the network could not hold them', async () => {
  const { records, stderr } = await runRanks(2, 'closing.mjs', ['7', '130000', 'ms', '3000'], { env: apart });
  expect(records, stderr).toEqual([{ right: 7 }]);
});

test.each([
  ['in one segment', {}],
  ['over sockets', apart],
])('a rank that ends in an await that nothing can end (exit code 13) is reported as dead: %s', async (_, env) => {
  const { records, stderr, code } = await runRanks(3, 'bereaved.mjs', ['promise', 'unsettled'], {
    env,
    flags: ['--grace', '20'],
  });
  expect(records, stderr).toEqual([
    { code: 'RANK_DIED', rank: 1 },
    { code: 'RANK_DIED', rank: 1 },
  ]);
  expect(code).toBe(13);
});

test('a rank that exits within a call is reported, also where it had begun its part', async () => {
  // The moment within the call is chance.
  for (const turns of [0, 0, 0, 0, 1, 1, 1, 1]) {
    const { records, stderr } = await runRanks(2, 'exits-within.mjs', [String(turns)], { env: { TCCL_TIMEOUT: '20' } });
    const codes = records.flatMap((record) => record['codes'] as string[]);
    expect(codes, stderr).toHaveLength(3);
    expect(codes.filter((code) => code !== 'none' && code !== 'CLOSED')).toEqual([]);
  }
});
