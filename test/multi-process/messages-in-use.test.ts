import { expect, test } from 'vitest';
import { runRanks } from './ranks.js';

test('a heat equation in rows that neighbours exchange gives the same bits on any number of ranks', async () => {
  const outcomes: unknown[] = [];
  for (const [nRanks, args, env] of [
    [1, [], {}],
    [2, [], {}],
    [2, ['sync'], {}],
    [3, [], {}],
    [5, ['sync'], {}],
    [3, [], { TCCL_SHM_DISABLE: '1', TCCL_RUNTIME_CONNECT: '1' }],
  ] as const) {
    const { records, stderr } = await runRanks(nRanks, 'heat.mjs', ['100', ...args], { env });
    expect(records, stderr).toHaveLength(1);
    outcomes.push(records[0]);
  }
  expect((outcomes[0] as { middle: number }).middle).toBeGreaterThan(0);
  for (const outcome of outcomes) expect(outcome).toEqual(outcomes[0]);
});
