import { expect, test } from 'vitest';
import { runs } from '../runs.js';
import { tccl } from '../multi-process/cli.js';
import { runRanks } from '../multi-process/ranks.js';

const seed = Number(process.env['TCCL_TEST_SEED'] ?? Math.floor(Math.random() * 1e6));
const restartsOf = (which: 'job' | 'rank', most: number) => ['--max-restarts', String(most), '--restart', which];
const byRank = (records: readonly Record<string, unknown>[]) =>
  [...records].sort((a, b) => Number(a['rank']) - Number(b['rank']));

test.each([
  ['in one memory', {}],
  ['over sockets', { TCCL_SHM_DISABLE: '1', TCCL_RUNTIME_CONNECT: '1' }],
])('a loop that loses random ranks ends with the weights of an undisturbed one, %s', async (_, env) => {
  const undisturbed = await runRanks(4, 'restarts.mjs', ['60', '0', '0'], { env });
  expect(undisturbed.records, undisturbed.stderr).toHaveLength(4);
  const weights = undisturbed.records[0]?.['weights'];
  for (let round = 0; round < runs(2, 10); round++) {
    const { records, code, stderr } = await runRanks(4, 'restarts.mjs', ['60', String(seed + round), '4'], {
      env,
      flags: restartsOf('rank', 4),
    });
    const text = `seed ${seed + round}\n${stderr}`;
    expect(code, text).toBe(0);
    expect(byRank(records), text).toMatchObject([0, 1, 2, 3].map((rank) => ({ rank, nRanks: 4, step: 60, weights })));
    expect(stderr.match(/was killed by SIGKILL; starting it again/g)?.length, text).toBeGreaterThan(0);
  }
});

test('a rank that dies too often ends the job', async () => {
  const { code, stderr } = await runRanks(3, 'restarts.mjs', ['60', '1', '5'], { flags: restartsOf('rank', 1) });
  expect(code, stderr).not.toBe(0);
  expect(stderr).toContain('starting it again (1 of 1)');
  expect(stderr).toContain('was killed by SIGKILL; ending the other ranks');
});

test('a job is started again as a whole, until it succeeds', async () => {
  const { code, records, stderr } = await runRanks(3, 'restarted-job.mjs', ['exit', '2'], { flags: restartsOf('job', 3) });
  expect(code, stderr).toBe(0);
  expect(byRank(records.filter(({ restarts }) => restarts === 2))).toEqual(
    [0, 1, 2].map((rank) => ({ rank, restarts: 2, sum: 3 })),
  );
  expect(stderr).toMatch(/rank 1 exited with code 3; .*\n(?:.*\n)*.*starting all ranks again \(2 of 3\)/);
  expect(stderr).not.toContain('(3 of 3)');
});

test.each([
  ['exit', 3],
  ['signal', 137],
] as const)('a job that always fails keeps its exit code (%s)', async (how, expected) => {
  const { code, stderr } = await runRanks(2, 'restarted-job.mjs', [how, '99'], { flags: restartsOf('job', 1) });
  expect(code, stderr).toBe(expected);
  expect(stderr.match(/starting all ranks again/g)).toHaveLength(1);
});

test('recover refuses to wait for successors that nobody starts', async () => {
  const { code, stderr } = await runRanks(2, 'restarts.mjs', ['60', '1', '1'], { flags: ['--grace', '20'] });
  expect(code).not.toBe(0);
  expect(stderr).toContain('start the job with tccl run --max-restarts N --restart rank');
});

test.each([
  [['--restart', 'rank'], '--restart needs --max-restarts'],
  [['--max-restarts', '1', '--nnodes', '2', '--node-rank', '0', '--rendezvous', '127.0.0.1:29555'], 'one host only'],
  [['--max-restarts', '1', '--hosts', 'localhost:2'], 'this host only'],
])('tccl run %j is refused', async (flags, words) => {
  const { code, stderr } = await tccl(['run', ...flags, '--', 'true']);
  expect(code).not.toBe(0);
  expect(stderr).toContain(words);
});
