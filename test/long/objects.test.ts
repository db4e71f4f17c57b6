import { expect, test } from 'vitest';
import { spawnRanks } from '../../dist/index.js';
import { fixture } from '../multi-process/cli.js';
import { runRanks } from '../multi-process/ranks.js';

/** Of the random objects; TCCL_TEST_SEED repeats a run that failed. */
const seed = Number(process.env['TCCL_TEST_SEED'] ?? Math.floor(Math.random() * 1e6));
const rounds = process.env['TCCL_TEST_LONG'] === '1' ? 500 : 25;
const overSockets = { TCCL_SHM_DISABLE: '1', TCCL_RUNTIME_CONNECT: '1' };

test.each([
  [1, 'in shared memory', {}, []],
  [2, 'in shared memory', {}, []],
  [5, 'in shared memory', {}, []],
  [3, 'around a ring', { TCCL_ALGO: 'ring' }, []],
  [3, 'in a tree', { TCCL_ALGO: 'tree' }, []],
  [3, 'by nvls', { TCCL_ALGO: 'nvls' }, []],
  [3, 'over sockets', overSockets, ['promises']],
  [3, 'over sockets that a thread has', { ...overSockets, TCCL_TEST_CONFIG: '{"blocking":true}' }, []],
  [3, 'on engine threads', { TCCL_TEST_CONFIG: '{"engine":"thread","channels":2}' }, []],
  [3, 'with no memory of others read', { TCCL_CMA_DISABLE: '1' }, []],
])('random objects of %i ranks arrive complete and in order %s', async (nRanks, _, env, args) => {
  const outcome = await runRanks(nRanks, 'random-objects.mjs', [String(seed), String(rounds), ...args], { env });
  expect(outcome.code, `seed ${seed}\n${outcome.stdout}\n${outcome.stderr}`).toBe(0);
  expect(outcome.records).toEqual([{ rounds, nRanks }]);
});

test('random objects of ranks that are threads arrive complete and in order', async () => {
  await spawnRanks(3, fixture('random-objects.mjs'), { args: [String(seed), String(rounds)] });
});
