import { expect, test } from 'vitest';
import { runs } from '../runs.js';
import { runRanks } from './ranks.js';

/** Jobs with five deaths each. */
const rounds = process.env['TCCL_TEST_LONG'] === '1' ? 10 : runs(1, 3);
/** Of the deaths; TCCL_TEST_SEED repeats a run that failed. */
const seed = Number(process.env['TCCL_TEST_SEED'] ?? Math.floor(Math.random() * 1e6));
const N_RANKS = 7;

const ways = [
  { way: 'in one memory', env: {} },
  { way: 'over sockets', env: { TCCL_SHM_DISABLE: '1', TCCL_RUNTIME_CONNECT: '1' } },
];

for (const { way, env } of ways) {
  test(
    `the loop of the guide survives random deaths of five ranks of seven, ${way}`,
    async () => {
      for (let round = 0; round < rounds; round++) {
        const args = [String(seed + round)];
        const { records, stderr } = await runRanks(N_RANKS, 'recovers.mjs', args, { env, flags: ['--grace', '120'] });
        const [first, second] = records;
        expect(records, `seed ${seed + round}\n${stderr}`).toHaveLength(2);
        expect(first?.['steps']).toBe(300);
        // A rank that dies within the last agreement may be one of it, on both.
        for (const same of ['sum', 'nRanks', 'ranks']) expect(first?.[same], `seed ${seed + round}`).toEqual(second?.[same]);
        for (const record of records) expect(record['told']).toBeGreaterThan(0);
      }
    },
    rounds > 1 ? 900_000 : undefined,
  );

  test(`agree, revoke and failed, ${way}`, async () => {
    const { records, code, stderr } = await runRanks(3, 'agrees.mjs', [], { env, flags: ['--grace', '120'] });
    expect(code, stderr).not.toBe(null);
    const byRank = [...records].sort((a, b) => Number(a['rank']) - Number(b['rank']));
    expect(byRank, stderr).toEqual(
      [0, 1]
        .map((rank) => ({
          rank,
          all: { flag: true, ranks: [0, 1, 2] },
          one: { flag: false, ranks: [0, 1, 2] },
          mismatch: 'CALL_MISMATCH',
          wrong: 'ARGUMENT_TYPE',
          // Rank 2 has died: the promise resolves on ranks that make no call, too.
          failed: { code: 'RANK_DIED', rank: 2 },
          left: { flag: true, ranks: [0, 1] },
          revoked: { code: 'REVOKED', rank: 0 },
          recovered: 2,
          missing: { code: 'RANK_MISSING', ranks: [1] },
        }))
        .map((record) => (record.rank === 0 ? record : { ...record, missing: null })),
    );
  });
}
