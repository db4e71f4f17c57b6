import { expect, test } from 'vitest';
import { runs } from '../runs.js';
import { runRanks } from '../multi-process/ranks.js';

const configurations = [
  ['in shared memory', {}],
  ['over sockets', { TCCL_SHM_DISABLE: '1', TCCL_RUNTIME_CONNECT: '1' }],
  ['on engine threads', { TCCL_TEST_CONFIG: '{"engine":"thread"}' }],
] as const;

test.each([
  [1, 'in shared memory', 'promise', {}],
  [3, 'in shared memory', 'promise', {}],
  [3, 'in shared memory', 'sync', {}],
  [4, 'on engine threads', 'promise', { TCCL_TEST_CONFIG: '{"engine":"thread","channels":2}' }],
  [2, 'on engine threads', 'sync', { TCCL_TEST_CONFIG: '{"engine":"thread"}' }],
  [3, 'over sockets', 'promise', { TCCL_SHM_DISABLE: '1', TCCL_RUNTIME_CONNECT: '1' }],
  [2, 'over sockets', 'sync', { TCCL_SHM_DISABLE: '1' }],
] as const)("%i ranks %s combine in the order of ranks by the program's operators (%s)", async (nRanks, _, form, env) => {
  const { code, records, stdout, stderr } = await runRanks(nRanks, 'own-operators.mjs', [form, String(runs(60_002, 300_002))], {
    env,
  });
  expect(code, `${stdout}\n${stderr}`).toBe(0);
  expect(records).toHaveLength(nRanks);
});

/** Results of the calls of each rank in a case of own-operator-errors.mjs. */
async function outcomes(name: string, env: Record<string, string> = {}) {
  const { records, stderr } = await runRanks(2, 'own-operator-errors.mjs', [name], { env });
  expect(stderr).not.toContain('triggerUncaughtException');
  return records;
}

test.each(configurations)('an operator that throws ends the communicator on all ranks, with one line (%s)', async (_, env) => {
  for (const name of ['throws', 'throws in a long call']) {
    const records = await outcomes(name, env);
    const message = 'allReduce: the operator threw on rank 1: RangeError: no more';
    const failed = { name: 'InvalidUsageError', code: 'OPERATOR_FAILED', message, whose: 1 };
    // In a short call, rank 0 is done before rank 1 combines.
    const own = records.filter(({ rank }) => rank === 1);
    expect(own).toMatchObject([failed, failed]);
    expect(records.filter(({ rank }) => rank === 0).at(-1)).toMatchObject(failed);
  }
});

test('an operator that throws in a blocking call throws there', async () => {
  for (const { rank, code, message } of (await outcomes('throws while it blocks')).filter((_, i) => i < 1))
    expect([code, message]).toEqual([
      'OPERATOR_FAILED',
      `allReduceSync: the operator threw on rank ${String(rank)}: of rank ${String(rank)}`,
    ]);
});

test('an operator that gives something else than a number, or an array of its own, is named', async () => {
  const [nothing] = await outcomes('gives nothing');
  expect(nothing?.['message']).toMatch(
    /^allReduce: on rank \d, the operator gave undefined for 1 and 2; let it give a number, or pass \{ combine \} for one that takes arrays$/,
  );
  const [array] = await outcomes('gives an array');
  expect(array?.['message']).toMatch(
    /^allReduce: on rank \d, the operator gave an object of class Float64Array; let combine write the results to its first array, and give nothing$/,
  );
});

test("ranks whose reductions by the program's operators differ get an error that names both calls", async () => {
  for (const { code, message } of await outcomes('other counts')) {
    expect(code).toBe('CALL_MISMATCH');
    expect(message).toContain('rank 0 called allReduce of 100000 float64 (own operator, direct)');
    expect(message).toContain('rank 1 called allReduce of 100001 float64 (own operator, direct)');
  }
  for (const { message } of await outcomes('another operator')) {
    expect(message).toContain('allReduce of 4 float64 (own operator, direct)');
    expect(message).toContain('allReduce of 4 float64 (sum, direct)');
  }
});
