import { expect, test } from 'vitest';
import { spawnRanks } from '../../dist/index.js';
import { fixture, start } from '../multi-process/cli.js';
import { runRanks } from '../multi-process/ranks.js';

/** Of the random calls; TCCL_TEST_SEED repeats a run that failed. */
const seed = Number(process.env['TCCL_TEST_SEED'] ?? Math.floor(Math.random() * 1e6));

const config = (channels: number): Record<string, string> => ({
  TCCL_TEST_CONFIG: JSON.stringify({ engine: 'thread', channels }),
});

test.each([
  { nRanks: 1, channels: 1 },
  { nRanks: 2, channels: 2 },
  { nRanks: 3, channels: 1 },
  { nRanks: 3, channels: 3 },
])('random calls of $nRanks ranks on $channels engine threads each match a naive reference', async ({ nRanks, channels }) => {
  const { code, records, stdout, stderr } = await runRanks(
    nRanks,
    'random-collectives.mjs',
    ['--seed', String(seed), '--calls', '60'],
    { env: config(channels) },
  );
  expect(code, `seed ${seed}\n${stdout}\n${stderr}`).toBe(0);
  expect(records).toEqual([{ calls: 60, algorithm: 'direct', nRanks }]);
});

test('ranks that are threads can have engine threads of their own', async () => {
  await spawnRanks(2, fixture('random-collectives.mjs'), { args: ['--seed', String(seed), '--calls', '30'], env: config(2) });
});

test('a script on the command line can have engine threads and start ranks as threads', async () => {
  const script = `
    import { init, spawnRanks } from ${JSON.stringify(new URL('../../dist/index.js', import.meta.url).href)};
    const comm = await init({ engine: 'thread' });
    await comm.allReduce(Float32Array.of(7));
    await comm.close();
    await spawnRanks(2, ${JSON.stringify(fixture('random-collectives.mjs'))}, { args: ['--seed', '1', '--calls', '3'] });`;
  const { code, stderr } = await start(process.execPath, ['--input-type=module', '-e', script]).finished;
  expect(code, stderr).toBe(0);
});

test('children inherit engine threads, and end them when closed', async () => {
  const { code, records, stderr } = await runRanks(3, 'split.mjs', [String(seed), '20'], { env: config(2) });
  expect(code, `seed ${seed}\n${stderr}`).toBe(0);
  expect(records).toEqual([{ steps: 20, ok: true }]);
});

test('a call progresses while its rank computes without a pause', async () => {
  const { records, stderr } = await runRanks(2, 'engine-threads.mjs', ['busy']);
  expect(records, stderr).toEqual([0, 1].map(() => ({ first: 2, last: 2 })));
});

test('a stream progresses while the first queue waits', async () => {
  const { records, stderr } = await runRanks(2, 'engine-threads.mjs', ['stream']);
  expect(records, stderr).toEqual([0, 1].map(() => ({ order: ['second', 'first'], x: 2, y: 4 })));
});

test('queued calls keep their order when several threads share some of them', async () => {
  const { records, stderr } = await runRanks(3, 'engine-threads.mjs', ['order']);
  expect(records, stderr).toEqual([0, 1, 2].map(() => ({ right: true })));
});

test('calls that all threads share give the right results', async () => {
  const { records, stderr } = await runRanks(3, 'engine-threads.mjs', ['large']);
  expect(records, stderr).toEqual([0, 1, 2].map(() => ({ wrong: [] })));
});

test('engines that differ between ranks are refused, and threads for other algorithms in shared memory', async () => {
  const differing = await runRanks(3, 'engine-threads.mjs', ['differing']);
  expect(differing.records).toHaveLength(3);
  for (const record of differing.records)
    expect(record['message']).toContain('no engine thread on rank 0, 1 engine thread on rank 1');
  const ring = await runRanks(1, 'engine-threads.mjs', ['unsupported'], { env: { TCCL_ALGO: 'ring' } });
  expect(ring.records).toEqual([{ code: 'UNSUPPORTED' }]);
});

test('ranks that disagree about a part of an allToAllV get its whole length in the error, not that of a share', async () => {
  const { records, stderr } = await runRanks(3, 'failures.mjs', ['partsToAll', 'promise'], {
    env: config(2),
    flags: ['--grace', '20'],
  });
  expect(records, stderr).toHaveLength(6);
  for (const record of records) expect(record['message']).toContain('rank 1 sends 3 float32 to rank 2, which expects 2');
});

for (const form of ['promise', 'sync']) {
  test.each([
    ['killed', 'RANK_DIED', [0, 2, 3]],
    ['left', 'CLOSED', [0, 2, 3]],
    ['count', 'CALL_MISMATCH', [0, 0, 1, 1, 2, 2, 3, 3]],
  ])(`errors pass through engine threads: %s (${form})`, async (scenario, code, ranks) => {
    const { records, stderr } = await runRanks(4, 'failures.mjs', [scenario, form], { env: config(2), flags: ['--grace', '20'] });
    expect(records.map((record) => record['rank']).sort(), stderr).toEqual(ranks);
    for (const record of records) expect(record['code']).toBe(code);
  });
}
