import { expect, test } from 'vitest';
import { AT_ONCE_MS, runRanks } from '../multi-process/ranks.js';

const media = {
  'shared memory': { TCCL_ALGO: 'ring' },
  sockets: { TCCL_SHM_DISABLE: '1', TCCL_RUNTIME_CONNECT: '1' },
  'sockets, all connected': { TCCL_SHM_DISABLE: '1', TCCL_TEST_CONFIG: '{"blocking":true}' },
  'sockets of a thread': { TCCL_SHM_DISABLE: '1', TCCL_TEST_CONFIG: '{"engine":"thread"}' },
};

test('ranks that fall back to sockets warn once, with the reason', async () => {
  const { stderr } = await runRanks(3, 'sum.mjs', [], { env: media.sockets });
  expect(stderr.match(/data goes through sockets: TCCL_SHM_DISABLE=1/g)).toHaveLength(1);
});

const grace = ['--grace', '20'];

test.each([
  ['collective', 'shared memory'],
  ['collective', 'sockets'],
  ['message', 'shared memory'],
  ['message', 'sockets'],
] as const)('a %s that arrived while its rank computed for longer than its timeout is in time (%s)', async (what, medium) => {
  const { records, code, stderr } = await runRanks(2, 'busy.mjs', [what], { env: media[medium], flags: grace });
  expect(records, stderr).toHaveLength(2);
  for (const record of records) expect(record).toMatchObject({ x: 2 });
  expect(code).toBe(0);
});

for (const [medium, form] of [
  ['shared memory', 'sync'],
  ['sockets', 'promise'],
  ['sockets, all connected', 'sync'],
  ['sockets, all connected', 'promise'],
  ['sockets of a thread', 'sync'],
  ['sockets of a thread', 'promise'],
] as const) {
  const run = (scenario: string) => runRanks(3, 'failures.mjs', [scenario, form], { env: media[medium], flags: grace });

  test.each(['count', 'countLarge', 'type', 'operator', 'kind'])(
    `ranks whose calls differ in %s get an error that names the calls of two of them (${medium}, ${form})`,
    async (scenario) => {
      const { records, stderr } = await run(scenario);
      expect(records, stderr).toHaveLength(6);
      for (const record of records) {
        expect(record).toMatchObject({ code: 'CALL_MISMATCH', name: 'InvalidUsageError' });
        expect(record['message']).toMatch(/^\w+: rank \d called .* where rank \d called /);
      }
    },
  );

  test(`ranks whose counts of parts differ get an error that names the counts (${medium}, ${form})`, async () => {
    const { records, stderr } = await run('parts');
    expect(records, stderr).toHaveLength(6);
    for (const record of records) {
      expect(record).toMatchObject({ code: 'CALL_MISMATCH' });
      expect(record['message']).toMatch(/rank 1 called allGatherV of 5 float32 in parts of 2, 2, 1 \(ring\)/);
      expect(record['message']).toMatch(
        /their counts differ first for rank 0: (2 on rank 1, 1 on rank [02]|1 on rank [02], 2 on rank 1)/,
      );
    }
  });

  test(`a rank killed in the middle of an all-reduce is named immediately on all others (${medium}, ${form})`, async () => {
    const { records, code, stderr } = await run('killed');
    expect(records.map((record) => [record['rank'], record['code'], record['about']]).sort(), stderr).toEqual([
      [0, 'RANK_DIED', 1],
      [2, 'RANK_DIED', 1],
    ]);
    for (const record of records) expect(record['ms']).toBeLessThan(AT_ONCE_MS);
    expect(code).toBe(128 + 9);
  });

  test.each(['left', 'closedEarly'])(
    `a rank that has %s is named on ranks that still call it (${medium}, ${form})`,
    async (scenario) => {
      const { records, stderr } = await run(scenario);
      expect(records.map((record) => [record['rank'], record['code'], record['about']]).sort(), stderr).toEqual([
        [0, 'CLOSED', 1],
        [2, 'CLOSED', 1],
      ]);
    },
  );

  test(`an operation that exceeds the timeout ends on all ranks (${medium}, ${form})`, async () => {
    const { records, stderr } = await run('late');
    expect(records, stderr).toHaveLength(2);
    for (const record of records) expect(record).toMatchObject({ code: 'TIMEOUT' });
  });
}

test.each(['sync', 'promise'])('a call that begins after a failure is known is named in its error (%s)', async (form) => {
  const { records, stderr } = await runRanks(3, 'failures.mjs', ['countKnown', form], {
    env: media['shared memory'],
    flags: grace,
  });
  expect(records, stderr).toHaveLength(3);
  for (const record of records) expect(record['message']).toMatch(/^allReduce(Sync)?: rank \d called .* where rank \d called /);
});

test.each(['count', 'countLarge', 'type', 'operator'])(
  `ranks whose calls differ in %s get an error (multicast)`,
  async (scenario) => {
    const { records, stderr } = await runRanks(3, 'failures.mjs', [scenario, 'sync'], {
      env: { TCCL_ALGO: 'nvls' },
      flags: grace,
    });
    expect(records, stderr).toHaveLength(6);
    for (const record of records)
      expect(record).toMatchObject({
        code: 'CALL_MISMATCH',
        message: expect.stringMatching(/ranks? \d.* called .*nvls\); rank/) as string,
      });
  },
);

test('a rank killed in the middle of an all-reduce is named on all others (multicast)', async () => {
  const { records, stderr } = await runRanks(3, 'failures.mjs', ['killed', 'promise'], {
    env: { TCCL_ALGO: 'nvls' },
    flags: grace,
  });
  expect(records.map((record) => [record['rank'], record['code'], record['about']]).sort(), stderr).toEqual([
    [0, 'RANK_DIED', 1],
    [2, 'RANK_DIED', 1],
  ]);
});
