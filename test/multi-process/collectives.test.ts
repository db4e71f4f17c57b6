import { expect, test } from 'vitest';
import { runRanks } from './ranks.js';

/** Random calls on so many ranks; the seed is printed with a failure and can be given to repeat it. */
const seed = Number(process.env['TCCL_TEST_SEED'] ?? Math.floor(Math.random() * 1e6));
const calls = process.env['TCCL_TEST_LONG'] === '1' ? 5000 : 150;

test.each([1, 2, 3, 4, 5, 8, 9])('random calls on %i processes give what a naive reference gives', async (nRanks) => {
  const { code, stdout, stderr } = await runRanks(nRanks, 'random-collectives.mjs', [String(seed), String(calls)]);
  expect(code, `seed ${seed}\n${stdout}\n${stderr}`).toBe(0);
  expect(stdout).toContain(`checked ${calls} calls with direct on ${nRanks} ranks`);
});
