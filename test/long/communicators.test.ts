import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { spawnRanks } from '../../dist/index.js';
import { fixture } from '../multi-process/cli.js';
import { runRanks, type Outcome } from '../multi-process/ranks.js';

/** Of the random splits; TCCL_TEST_SEED repeats a run that failed. */
const seed = Number(process.env['TCCL_TEST_SEED'] ?? Math.floor(Math.random() * 1e6));

const byRank = (records: Outcome['records']): Outcome['records'] =>
  [...records].sort((a, b) => Number(a['rank']) - Number(b['rank']));

const ways = [
  { way: 'in one segment', env: {}, promises: [] },
  { way: 'around rings in one segment', env: { TCCL_ALGO: 'ring' }, promises: [] },
  { way: 'over sockets', env: { TCCL_SHM_DISABLE: '1', TCCL_RUNTIME_CONNECT: '1' }, promises: ['promises'] },
];

for (const { way, env, promises } of ways) {
  test.each([1, 2, 3, 5])(`random splits, uses and closes on %i processes ${way}`, async (nRanks) => {
    const { code, records, stderr } = await runRanks(nRanks, 'split.mjs', [String(seed), '50', ...promises], { env });
    expect(code, `seed ${seed}\n${stderr}`).toBe(0);
    expect(records).toEqual([{ steps: 50, ok: true }]);
  });
}

test('random splits, uses and closes on threads', async () => {
  await spawnRanks(4, fixture('split.mjs'), { args: [String(seed), '60'] });
});

/** Descriptors that a thread keeps once it has slept: its pipe, what watches it, and the pipes of ranks that it woke. */
const ofSleep = (nRanks: number): number => 2 + 1 + (nRanks - 1);

test.each([
  { way: 'in one segment', env: {}, count: 2000 },
  { way: 'over sockets', env: { TCCL_SHM_DISABLE: '1', TCCL_RUNTIME_CONNECT: '1' }, count: 300 },
])('$count communicators made and closed leave no resources behind, $way', async ({ env, count }) => {
  const { records, code, stderr } = await runRanks(3, 'many-communicators.mjs', [String(count)], {
    env: { ...env, NODE_OPTIONS: '--expose-gc' },
  });
  expect(code, stderr).toBe(0);
  expect(records).toHaveLength(3);
  for (const record of records) {
    expect(record).toMatchObject({ used: 0 });
    expect(record['descriptors']).toBeLessThanOrEqual(ofSleep(3));
    // Less than a small array's worth each: no buffer, instance or socket stays.
    expect(record['growth']).toBeLessThan(8 * 2 ** 20);
  }
});

test('1,000 open children of 2 ranks take less than 64 KiB of memory each, and leave none', async () => {
  const { records, code, stderr } = await runRanks(2, 'open-children.mjs', ['1000']);
  expect(code, stderr).toBe(0);
  expect(records).toHaveLength(2);
  for (const record of records) {
    expect(record).toMatchObject({ left: 0 });
    expect(record['descriptors']).toBeLessThanOrEqual(ofSleep(2));
  }
  // The first rank gives what both share.
  expect(Math.max(...records.map((record) => Number(record['bytesEach'])))).toBeLessThan(64 * 1024);
});

for (const { way, env } of ways) {
  const run = (nRanks: number, scenario: string): Promise<Outcome> =>
    runRanks(nRanks, 'families.mjs', [scenario], { env, flags: ['--grace', '20'] });

  test(`after a rank was killed the others shrink, and keep their arrays, ${way}`, async () => {
    const { records, stderr } = await run(4, 'killed');
    expect(byRank(records), stderr).toEqual(
      [0, 1, 2].map((rank) => ({ failures: ['RANK_DIED 1', 'RANK_DIED 2 true'], sum: 3, rank, nRanks: 3 })),
    );
  });

  test(`a rank that dies while the others shrink is excluded too, ${way}`, async () => {
    const { records, stderr } = await run(5, 'killedTwice');
    expect(byRank(records), stderr).toEqual([0, 1, 2].map((rank) => ({ failures: ['RANK_DIED'], sum: 3, rank, nRanks: 3 })));
  });

  test(`live ranks can be excluded; calls in flight finish first, ${way}`, async () => {
    const { records, code, stderr } = await run(6, 'excluded');
    expect(code, stderr).toBe(0);
    expect(byRank(records.filter((record) => 'rank' in record))).toEqual(
      [0, 1, 2, 3].map((rank) => ({ after: 6, sum: 4, rank, nRanks: 4, name: 'smaller' })),
    );
  });

  test(`shrink with abort ends calls that wait for an excluded rank, ${way}`, async () => {
    const { records, stderr } = await run(3, 'stuck');
    expect(
      records.filter((record) => 'sum' in record),
      stderr,
    ).toEqual([1, 2].map(() => ({ failures: ['ABORTED'], sum: 2, nRanks: 2 })));
    expect(records).toHaveLength(3);
  });

  test(`shrink names the rank that did not call it, on all that did, ${way}`, async () => {
    const { records, stderr } = await run(3, 'missing');
    expect(records, stderr).toEqual([1, 2].map(() => ({ code: 'RANK_MISSING', ranks: [1] })));
  });

  test(`the abort of a child ends neither its parent nor its siblings, ${way}`, async () => {
    const { records, code, stderr } = await run(3, 'childAborted');
    expect(records, stderr).toEqual([0, 1, 2].map(() => ({ codes: ['ABORTED', 1], sums: [3, 3] })));
    expect(code).toBe(0);
  });

  test(`a child outlives its parent, closed or aborted, ${way}`, async () => {
    const { records, code, stderr } = await run(3, 'parentEnds');
    expect(records, stderr).toEqual([0, 1, 2].map(() => ({ sums: [3, 3, 3] })));
    expect(code).toBe(0);
  });

  test(`a split that fails gives the reason, ${way}`, async () => {
    expect((await run(3, 'gone')).records).toEqual([0, 2].map(() => ({ code: 'CLOSED', rank: 1 })));
    expect((await run(3, 'late')).records).toEqual([0, 2].map(() => ({ code: 'TIMEOUT', named: true })));
  });

  test(`new processes join by grow; the old communicator stays usable, ${way}`, async () => {
    const { records, code, stderr } = await run(2, 'grow');
    expect(code, stderr).toBe(0);
    expect(byRank(records)).toEqual([
      { rank: 0, nRanks: 4, sum: 4, old: 2 },
      { rank: 1, nRanks: 4, sum: 4, old: 2 },
      { rank: 2, nRanks: 4, sum: 4 },
      { rank: 3, nRanks: 4, sum: 4 },
    ]);
  });
}

test('wrong colors, keys, ranks and settings are refused immediately; the communicator stays usable', async () => {
  const { records, stderr } = await runRanks(2, 'families.mjs', ['wrong']);
  const refusals = [
    ...Array.from({ length: 3 }, () => 'ARGUMENT_RANGE'),
    'ARGUMENT_TYPE',
    'ARGUMENT_TYPE',
    'ARGUMENT_RANGE',
    'ARGUMENT_TYPE',
    'ARGUMENT_RANGE',
    'ARGUMENT_RANGE',
    'stream: there is no option "nam"',
    'UNSUPPORTED',
    'ARGUMENT_TYPE',
  ];
  expect(records, stderr).toEqual([0, 1].map(() => ({ refusals, sum: 2, zeroCopy: [true, true, false], arrays: true })));
  expect((await runRanks(2, 'families.mjs', ['growWithoutId'])).records).toEqual(
    [0, 1].map(() => ({ code: 'UNIQUE_ID', after: 2 })),
  );
});

test('each communicator may have an algorithm of its own, on the same memory', async () => {
  const trace = join(mkdtempSync(join(tmpdir(), 'tccl-algorithms-')), 'trace.json');
  const { code, records, stderr } = await runRanks(3, 'forced-algorithms.mjs', [], { env: { TCCL_TRACE: trace } });
  expect(code, stderr).toBe(0);
  const found = Object.fromEntries(
    ['direct', 'ring', 'tree', 'nvls'].map((algorithm, i) => [algorithm, [3 ** (i + 1), algorithm, algorithm]]),
  );
  expect(records).toEqual([found]);
  // What was carried out is what explain said.
  const events = JSON.parse(`${readFileSync(trace, 'utf8')}\n]`) as { name: string; ph: string; args?: { algorithm?: string } }[];
  const carriedOut = events
    .filter(({ name, ph, args }) => ph === 'B' && name === 'allReduce' && args?.algorithm !== undefined)
    .map(({ args }) => args?.algorithm);
  expect(carriedOut.sort()).toEqual(['direct', 'nvls', 'ring', 'tree'].flatMap((algorithm) => [algorithm, algorithm, algorithm]));
  rmSync(dirname(trace), { recursive: true });
});

test('a child on one host leaves out an inherited algorithm that its engine threads lack; one given for it is refused', async () => {
  const { code, records, stderr } = await runRanks(4, 'forced-algorithms.mjs', ['hosts']);
  expect(code, stderr).toBe(0);
  expect(records).toHaveLength(4);
  for (const record of records)
    expect(record).toEqual({
      code: 'UNSUPPORTED',
      message:
        "split: where all ranks share memory, engine threads carry out the direct algorithm only, not ring; leave out engine: 'thread' or the forced algorithm",
      sums: [
        [2, 'direct'],
        [2, 'ring'],
        [4, 'ring'],
      ],
    });
});

test('ranks that ask for different algorithms of a communicator are refused, and continue', async () => {
  const { code, records, stderr } = await runRanks(3, 'forced-algorithms.mjs', ['differ']);
  expect(code, stderr).toBe(0);
  expect(records.map((record) => record['code'])).toEqual(['ENVIRONMENT', 'ENVIRONMENT', 'ENVIRONMENT']);
  expect(records[0]?.['message']).toBe(
    'the algorithm differs between ranks: ring on rank 0, tree on rank 1; set the same value on all',
  );
});

test.each(['one', 'hosts'])(
  'after a rank dies in the last exchange of a shrink, the others have the same communicator, and none waits (%s)',
  async (hosts) => {
    const { records, stderr } = await runRanks(4, 'last-breath.mjs', [hosts], { flags: ['--grace', '30'] });
    expect(records.map(({ rank, members }) => [rank, members]).sort(), stderr).toEqual([
      [0, [0, 1]],
      [1, [0, 1]],
    ]);
    expect(records[0]?.['given'], stderr).toEqual(records[1]?.['given']);
  },
);

test('a rank that dies while a split makes its communicator is named by its number in the one that is split', async () => {
  const { records, stderr } = await runRanks(4, 'split-death.mjs', [], { flags: ['--grace', '30'] });
  expect(records.map(({ rank }) => rank).sort(), stderr).toEqual([0, 1, 3]);
  for (const record of records)
    expect(record, stderr).toMatchObject({ split: { code: 'RANK_DIED', about: 2 }, after: { code: 'RANK_DIED', about: 2 } });
});
