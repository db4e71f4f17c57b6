import { describe, expect, test } from 'vitest';
import { loadUcx } from '../../dist/runtime/transport/ucx/library.js';
import { expectDeathOfRank1, runRanks } from '../multi-process/ranks.js';

/** Of the random calls; TCCL_TEST_SEED repeats a run that failed. */
const seed = String(process.env['TCCL_TEST_SEED'] ?? Math.floor(Math.random() * 1e6));
const missing = 'reason' in loadUcx();

/** TCCL_TEST_NET=ucx runs any other test of ranks that share no memory over UCX. */
describe.skipIf(missing)('over UCX by TCP', () => {
  const env = { UCX_TLS: 'tcp,self' };
  const run = (nRanks: number, program: string, args: readonly string[], config: object = {}) =>
    runRanks(nRanks, program, args, {
      env: { TCCL_SHM_DISABLE: '1', TCCL_NET: 'ucx', TCCL_TEST_CONFIG: JSON.stringify(config), ...env },
      flags: ['--grace', '20'],
    });

  test.each([{ blocking: true }, { engine: 'thread' }])('random collectives of %o match a naive reference', async (config) => {
    const { code, records, stderr } = await run(3, 'random-collectives.mjs', ['--seed', seed, '--calls', '60'], config);
    expect(code, `seed ${seed}\n${stderr}`).toBe(0);
    expect(records).toMatchObject([{ calls: 60, nRanks: 3 }]);
    expect(stderr).toBe('tccl: ranks of one host do not share memory, so their data goes through UCX: TCCL_SHM_DISABLE=1\n');
  });

  test('all puts arrive at their places while communicators are made and closed', async () => {
    const put = await run(3, 'windows.mjs', ['random', seed]);
    expect(put.code, `seed ${seed}\n${put.stderr}`).toBe(0);
    const split = await run(3, 'split.mjs', [seed, '12'], { blocking: true });
    expect(split.code, `seed ${seed}\n${split.stderr}`).toBe(0);
    expect(split.records).toEqual([{ steps: 12, ok: true }]);
  });

  test.each(['killed', 'killedInMessages'])('a rank that dies (%s) is named on blocked ranks', async (scenario) => {
    expectDeathOfRank1(await run(4, 'blocking-over-sockets.mjs', [scenario]));
  });

  test.each(['killed', 'killedInPlace', 'closed'])(
    'ranks that wait for signals get an error that names a rank that leaves (%s)',
    async (scenario) => {
      const { records, stderr } = await run(3, 'windows.mjs', [scenario], { blocking: true });
      const code = scenario === 'closed' ? 'CLOSED' : 'RANK_DIED';
      expect(records.map((record) => [record['rank'], record['code'], record['about']]).sort(), stderr).toEqual([
        [0, code, 1],
        [2, code, 1],
      ]);
    },
  );
});

// UCX reports no dead ranks in its shared memory, so it does not connect there.
test.each(['nothing', 'sm,self'])(
  'ranks that cannot use UCX (UCX_TLS=%s) give the reason before anything is sent',
  async (devices) => {
    const env = { TCCL_SHM_DISABLE: '1', TCCL_NET: 'ucx', UCX_TLS: devices };
    const { code, stderr } = await runRanks(2, 'sum.mjs', [], { env });
    expect(code).not.toBe(0);
    expect(stderr).toMatch(
      missing
        ? /init: rank 0 cannot use TCCL_NET=ucx: UCX cannot be loaded/
        : new RegExp(`rank \\d.*UCX.*failed: .*; UCX_TLS=${devices} restricts it; UCX_LOG_LEVEL=info shows more`),
    );
  },
);

test('ranks with different values of TCCL_NET get an error', async () => {
  const { records, stderr } = await runRanks(2, 'nets-differ.mjs', [], {
    env: { TCCL_SHM_DISABLE: '1', TCCL_RUNTIME_CONNECT: '1' },
  });
  expect(records, stderr).toHaveLength(2);
  for (const { message } of records)
    expect(message).toMatch(
      missing ? /rank 1 cannot use TCCL_NET=ucx/ : /TCCL_NET differs between ranks: socket on rank 0, ucx on rank 1/,
    );
});
