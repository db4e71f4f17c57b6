import { expect, test } from 'vitest';
import { expectDeathOfRank1, runRanks } from '../multi-process/ranks.js';

/** Of the random calls; TCCL_TEST_SEED repeats a run that failed. */
const seed = Number(process.env['TCCL_TEST_SEED'] ?? Math.floor(Math.random() * 1e6));
const apart = { TCCL_SHM_DISABLE: '1', TCCL_RUNTIME_CONNECT: '1' };
const run = (nRanks: number, ...args: string[]) =>
  runRanks(nRanks, 'blocking-over-sockets.mjs', args, { env: apart, flags: ['--grace', '20'] });

test.each([
  { nRanks: 2, config: { blocking: true }, algorithm: undefined },
  { nRanks: 5, config: { blocking: true }, algorithm: undefined },
  { nRanks: 3, config: { engine: 'thread', channels: 2 }, algorithm: undefined },
  { nRanks: 3, config: { blocking: true }, algorithm: 'tree' },
  { nRanks: 3, config: { blocking: true }, algorithm: 'pat' },
])(
  'random calls in both forms over sockets match a naive reference: $nRanks ranks, $config, algorithm $algorithm',
  async ({ nRanks, config, algorithm }) => {
    const env = {
      ...apart,
      TCCL_TEST_CONFIG: JSON.stringify(config),
      ...(algorithm === undefined ? {} : { TCCL_ALGO: algorithm }),
    };
    const { code, records, stdout, stderr } = await runRanks(
      nRanks,
      'random-collectives.mjs',
      ['--seed', String(seed), '--calls', '60'],
      { env },
    );
    expect(code, `seed ${seed}\n${stdout}\n${stderr}`).toBe(0);
    expect(records).toMatchObject([{ calls: 60, nRanks }]);
  },
);

test('blocking calls and promises keep their order', async () => {
  const { records, stderr } = await run(3, 'order');
  expect(records, stderr).toHaveLength(3);
  for (const record of records) expect(record).toMatchObject({ order: ['blocking', 'first', 'second', 'last'], right: true });
});

test.each([2, 3])(
  'messages in flight progress while their %i ranks are blocked, also for messages of another communicator',
  async (nRanks) => {
    const { records, code, stderr } = await run(nRanks, 'messages');
    expect(code, stderr).toBe(0);
    expect(records.map((record) => [record['rank'], record['y']]).sort()).toEqual(
      Array.from({ length: nRanks }, (_, rank) => [rank, (rank + nRanks - 1) % nRanks]),
    );
  },
);

test('blocking calls on ordinary arrays need no memory for copies of them', async () => {
  const { records, stderr } = await run(3, 'outside');
  expect(
    records.map((record) => record['wrong']),
    stderr,
  ).toEqual([[], [], []]);
});

test('a rank that is killed while all others are blocked is named on them immediately', async () => {
  const outcome = await run(4, 'killed');
  expectDeathOfRank1(outcome);
  expect(outcome.code).toBe(128 + 9);
});

test('a rank that is killed while others are blocked in a send or receive with it is named on them', async () => {
  expectDeathOfRank1(await run(4, 'killedInMessages'));
});

test.each([
  { lack: 'nothing', codes: ['none', 'none'], workers: 0, says: undefined },
  { lack: 'without-libc', codes: ['none', 'UNSUPPORTED'], workers: 1, says: 'koffi cannot be loaded' },
  { lack: 'without-descriptors', codes: ['UNSUPPORTED', 'UNSUPPORTED'], workers: 0, says: 'hides their descriptors' },
])('ranks with system calls block beside one $lack, without a thread', async ({ lack, codes, workers, says }) => {
  const { records, code, stderr } = await run(3, 'mixed', lack);
  expect(code, stderr).toBe(0);
  expect(records.map((record) => record['rank']).sort(), stderr).toEqual([0, 1, 2]);
  for (const { rank, sums, messages, ...record } of records) {
    const received = 2 * (((Number(rank) + 2) % 3) + 1);
    expect(sums).toEqual([12, received, 12, received]);
    expect(record).toEqual(rank === 1 ? { codes, workers } : { codes: ['none', 'none'], workers: 0 });
    if (rank === 1 && says !== undefined) expect(String(messages)).toContain(says);
  }
});

test('blocked ranks get an error that names the rank that ended the communicator, with its reason', async () => {
  const { records, stderr } = await run(3, 'aborted');
  expect(records.map((record) => record['rank']).sort(), stderr).toEqual([0, 2]);
  for (const record of records)
    expect(record).toMatchObject({ code: 'ABORTED', about: 1, message: expect.stringContaining('enough') as string });
});

test('children can use blocking calls', async () => {
  const { records, code, stderr } = await run(3, 'children');
  expect(records.map((record) => [record['rank'], record['x']]).sort(), stderr).toEqual([
    [0, 2],
    [1, 1],
    [2, 2],
  ]);
  expect(code).toBe(0);
});

test('communicators with blocking calls can be made and closed repeatedly', async () => {
  const { code, records, stderr } = await runRanks(3, 'split.mjs', [String(seed), '12'], {
    env: { ...apart, TCCL_TEST_CONFIG: '{"blocking":true}' },
  });
  expect(code, `seed ${seed}\n${stderr}`).toBe(0);
  expect(records).toEqual([{ steps: 12, ok: true }]);
});

test('ranks of which only some ask for blocking calls get an error', async () => {
  const { records, stderr } = await runRanks(2, 'engine-threads.mjs', ['differing'], { env: apart });
  expect(records, stderr).toHaveLength(2);
  for (const record of records)
    expect(record['message']).toContain(
      "blocking and engine differ between ranks: without blocking: true on rank 0, with blocking: true or engine: 'thread' on rank 1",
    );
});
