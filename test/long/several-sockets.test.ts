import { describe, expect, test } from 'vitest';
import { expectDeathOfRank1, runRanks } from '../multi-process/ranks.js';

/** Of the random calls; TCCL_TEST_SEED repeats a run that failed. */
const seed = String(process.env['TCCL_TEST_SEED'] ?? Math.floor(Math.random() * 1e6));

describe('connections of three sockets', () => {
  const run = (nRanks: number, program: string, args: readonly string[], config: object = {}) =>
    runRanks(nRanks, program, args, {
      env: { TCCL_SHM_DISABLE: '1', TCCL_NSOCKS_PER_CONNECTION: '3', TCCL_TEST_CONFIG: JSON.stringify(config) },
      flags: ['--grace', '20'],
    });

  test.each([{}, { blocking: false }, { engine: 'thread' }])(
    'random collectives of %o match a naive reference',
    async (config) => {
      const flags = 'blocking' in config ? ['--promises'] : [];
      const { code, records, stderr } = await run(
        4,
        'random-collectives.mjs',
        ['--seed', seed, '--calls', '60', ...flags],
        config,
      );
      expect(code, `seed ${seed}\n${stderr}`).toBe(0);
      expect(records).toMatchObject([{ calls: 60, nRanks: 4 }]);
    },
  );

  test('messages, puts and communicators that are made and closed', async () => {
    const messages = await run(3, 'random-messages.mjs', [seed, '20']);
    expect(messages.code, `seed ${seed}\n${messages.stderr}`).toBe(0);
    const put = await run(3, 'windows.mjs', ['random', seed]);
    expect(put.code, `seed ${seed}\n${put.stderr}`).toBe(0);
    const split = await run(3, 'split.mjs', [seed, '12'], { blocking: true });
    expect(split.records, `seed ${seed}\n${split.stderr}`).toEqual([{ steps: 12, ok: true }]);
  });

  test.each(['killed', 'killedInMessages'])('a rank that dies (%s) is named on blocked ranks', async (scenario) => {
    expectDeathOfRank1(await run(4, 'blocking-over-sockets.mjs', [scenario]));
  });
});

test.each([
  ['0', /TCCL_NSOCKS_PER_CONNECTION=0.*a whole number from 1 to 16/],
  ['two', /TCCL_NSOCKS_PER_CONNECTION=two.*a whole number from 1 to 16/],
])('TCCL_NSOCKS_PER_CONNECTION=%s is refused', async (value, message) => {
  const { code, stderr } = await runRanks(2, 'sum.mjs', [], { env: { TCCL_NSOCKS_PER_CONNECTION: value } });
  expect(code).not.toBe(0);
  expect(stderr).toMatch(message);
});

test('sixteen sockets a connection need no warning', async () => {
  const env = { TCCL_SHM_DISABLE: '1', TCCL_NSOCKS_PER_CONNECTION: '16' };
  const { code, stderr } = await runRanks(2, 'sum.mjs', [], { env });
  expect({ code, stderr }).toEqual({
    code: 0,
    stderr: 'tccl: ranks of one host do not share memory, so their data goes through sockets: TCCL_SHM_DISABLE=1\n',
  });
});
