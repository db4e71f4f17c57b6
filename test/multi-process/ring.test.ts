import { expect, test } from 'vitest';
import { runRanks } from './ranks.js';

const seed = Number(process.env['TCCL_TEST_SEED'] ?? Math.floor(Math.random() * 1e6));
const calls = process.env['TCCL_TEST_LONG'] === '1' ? 5000 : 100;

const media = { 'shared memory': { TCCL_ALGO: 'ring' }, sockets: { TCCL_SHM_DISABLE: '1' } };

for (const [medium, env] of Object.entries(media)) {
  test.each([2, 3, 5, 8])(`random calls on %i processes in a ring over ${medium} give what a naive reference gives`, async (nRanks) => {
    const { code, stdout, stderr } = await runRanks(nRanks, 'random-collectives.mjs', [String(seed), String(calls)], { env });
    expect(code, `seed ${seed}\n${stdout}\n${stderr}`).toBe(0);
    expect(stdout).toContain(`checked ${calls} calls with ring on ${nRanks} ranks`);
  });
}

test('ranks that fall back to sockets say so, and why, once', async () => {
  const { stderr } = await runRanks(3, 'random-collectives.mjs', ['1', '1'], { env: media.sockets });
  expect(stderr.match(/data goes through sockets: TCCL_SHM_DISABLE=1/g)).toHaveLength(1);
});

test('the algorithm direct is refused where ranks share no memory', async () => {
  const { code, stderr } = await runRanks(2, 'random-collectives.mjs', ['1', '1'], { env: { ...media.sockets, TCCL_ALGO: 'direct' } });
  expect(code).not.toBe(0);
  expect(stderr).toContain('TCCL_ALGO=direct needs');
});
