import { expect, test } from 'vitest';
import { spawnRanks } from '../../dist/index.js';
import { fixture } from '../multi-process/cli.js';
import { runRanks } from '../multi-process/ranks.js';

/** Of the random calls; TCCL_TEST_SEED repeats a run that failed. TCCL_TEST_LONG=1 makes the long form. */
const seed = Number(process.env['TCCL_TEST_SEED'] ?? Math.floor(Math.random() * 1e6));
const calls = process.env['TCCL_TEST_LONG'] === '1' ? 5000 : 100;

const ways = [
  { way: 'in one segment', algorithm: 'direct', env: {}, options: [] },
  { way: 'in one segment, reading no private memory', algorithm: 'direct', env: { TCCL_CMA_DISABLE: '1' }, options: [] },
  { way: 'around a ring in one segment', algorithm: 'ring', env: { TCCL_ALGO: 'ring' }, options: [] },
  { way: 'around a ring by LL in one segment', algorithm: 'ring', env: { TCCL_ALGO: 'ring', TCCL_PROTO: 'LL' }, options: [] },
  { way: 'by trees in one segment', algorithm: 'tree', env: { TCCL_ALGO: 'tree' }, options: [] },
  { way: 'by PAT in one segment', algorithm: 'ring', env: { TCCL_ALGO: 'pat' }, options: [] },
  { way: 'through a multicast object', algorithm: 'nvls', env: { TCCL_ALGO: 'nvls' }, options: [] },
  { way: 'over sockets', algorithm: 'ring', env: { TCCL_SHM_DISABLE: '1', TCCL_RUNTIME_CONNECT: '1' }, options: ['--promises'] },
];
const drawn = ['--seed', String(seed), '--calls', String(calls)];

for (const { way, algorithm, env, options } of ways) {
  test.each(way === 'in one segment' ? [1, 2, 3, 4, 5, 8, 9] : [2, 3, 5])(
    `random calls on %i processes ${way} match a naive reference`,
    async (nRanks) => {
      const { code, records, stdout, stderr } = await runRanks(nRanks, 'random-collectives.mjs', [...drawn, ...options], { env });
      expect(code, `seed ${seed}\n${stdout}\n${stderr}`).toBe(0);
      expect(records).toEqual([{ calls, algorithm, nRanks }]);
    },
  );
}

test('random calls on threads match a naive reference', async () => {
  await spawnRanks(3, fixture('random-collectives.mjs'), { args: drawn });
});

test.each([
  [2, []],
  [3, []],
  [4, []],
  [2, ['2']],
  [3, ['2']],
])(
  'of %i ranks, roots with their block in place copy the others’ blocks and write nothing else; channels %j',
  async (nRanks, channels) => {
    const { code, records, stderr } = await runRanks(nRanks, 'rooted.mjs', channels);
    expect(records, stderr).toHaveLength(nRanks);
    expect(new Set(records.map(({ calls }) => calls))).toEqual(new Set([nRanks * 4 * 3 * 2]));
    expect(code).toBe(0);
  },
);

test('a rank can have several communicators, one after the other and concurrently, as process and as thread', async () => {
  const { code, records, stderr } = await runRanks(3, 'several-communicators.mjs');
  expect(records, stderr).toEqual([0, 1, 2].map(() => ({ sums: [6, 60, 6, 6] })));
  expect(code).toBe(0);
  await spawnRanks(3, fixture('several-communicators.mjs'));
});

test('sockets refuse blocking calls, and stay usable', async () => {
  const { records, code, stderr } = await runRanks(2, 'failures.mjs', ['blocking'], {
    env: { TCCL_SHM_DISABLE: '1', TCCL_RUNTIME_CONNECT: '1' },
  });
  expect(records.map((record) => record['code']).sort(), stderr).toEqual(['UNSUPPORTED', 'UNSUPPORTED', 'none', 'none']);
  expect(code).toBe(0);
});

test('TCCL_ALGO that differs between ranks, or is no algorithm, is refused by name', async () => {
  const differing = await runRanks(2, 'algorithms-differ.mjs');
  expect(differing.stderr).toContain('TCCL_ALGO differs between ranks: auto on rank 0, ring on rank 1');
  const unknown = await runRanks(2, 'sum.mjs', [], { env: { TCCL_ALGO: 'rings' } });
  expect(unknown.stderr).toContain('did you mean ring?');
  const impossible = await runRanks(2, 'sum.mjs', [], {
    env: { TCCL_ALGO: 'direct', TCCL_SHM_DISABLE: '1', TCCL_RUNTIME_CONNECT: '1' },
  });
  expect(impossible.stderr).toContain('the algorithm direct (TCCL_ALGO) needs memory that all ranks share');
  const noProtocol = await runRanks(2, 'sum.mjs', [], {
    env: { TCCL_PROTO: 'LL', TCCL_SHM_DISABLE: '1', TCCL_RUNTIME_CONNECT: '1' },
  });
  expect(noProtocol.stderr).toContain('TCCL_PROTO=ll needs memory that all ranks share');
});
