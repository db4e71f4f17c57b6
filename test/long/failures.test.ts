import { readdirSync } from 'node:fs';
import { beforeAll, describe, expect, it, test, vi } from 'vitest';
import { gone } from '../multi-process/cli.js';
import { AT_ONCE_MS, type Outcome, runRanks } from '../multi-process/ranks.js';

const forms = ['promise', 'sync'] as const;

const mismatches = {
  count: ['4 float32', '5 float32'],
  countLarge: ['4 float32', '100000 float32'],
  type: ['4 float32', '4 int32'],
  operator: ['sum', 'max'],
  kind: ['allReduce', 'broadcast'],
  root: ['from rank 0', 'from rank 1'],
  gatherRoot: ['gather of 4 float32 to rank 0', 'gather of 4 float32 to rank 1'],
  scatterCount: ['4 float32', '10000 float32'],
  gatherLarge: ['allGather of 10000 float32', 'allGather of 10001 float32'],
  parts: [
    'rank 1 called allGatherV of 5 float32 in parts of 2, 2, 1',
    'allGatherV of 5 float32 in parts of 1, 2, 2',
    'their counts differ first for rank 0: 1 on rank 0, 2 on rank 1',
  ],
  partsToAll: ['rank 1 sends 3 float32 to rank 2, which expects 2'],
};

test('ranks over sockets whose calls differ in a part of an allToAllV get its elements in the error', async () => {
  const flags = ['--grace', '20'];
  const { records, stderr } = await runRanks(3, 'failures.mjs', ['partsToAll', 'promise'], {
    env: { TCCL_SHM_DISABLE: '1' },
    flags,
  });
  const messages = records.map(({ message }) => String(message)).filter((message) => message.includes('allToAllV'));
  expect(messages.length, stderr).toBeGreaterThan(0);
  for (const message of messages)
    expect(message).toContain('rank 1 sends 3 float32 to rank 2, which expects 2 float32, in a message of allToAllV');
});

for (const form of forms) {
  test.each(Object.entries(mismatches))(
    `ranks whose calls differ in %s get an error that names both calls (${form})`,
    async (scenario, parts) => {
      const { records, stderr } = await runRanks(3, 'failures.mjs', [scenario, form], { flags: ['--grace', '20'] });
      expect(records, stderr).toHaveLength(6);
      for (const record of records) {
        expect(record).toMatchObject({ code: 'CALL_MISMATCH', name: 'InvalidUsageError', result: 5 });
        for (const part of parts) expect(record['message']).toContain(part);
      }
    },
  );
}

const refused = {
  small: 'BUFFER_SIZE',
  otherType: 'ARGUMENT_TYPE',
  noType: 'ARGUMENT_TYPE',
  noArray: 'ARGUMENT_TYPE',
  unknownOperator: 'UNKNOWN_NAME',
  rootRange: 'ROOT_RANGE',
  detached: 'BUFFER_DETACHED',
  resized: 'BUFFER_DETACHED',
  overlap: 'BUFFER_OVERLAP',
  overlapPlain: 'BUFFER_OVERLAP',
  freeTwice: 'ARGUMENT_TYPE',
  freeForeign: 'ARGUMENT_TYPE',
  freeLate: 'ARGUMENT_TYPE',
  freeNothing: 'ARGUMENT_TYPE',
  allocForeign: 'ARGUMENT_TYPE',
  allocName: 'ARGUMENT_TYPE',
  explainName: 'UNKNOWN_NAME',
  explainBytes: 'ARGUMENT_RANGE',
  memory: 'OUT_OF_MEMORY',
  negative: 'ARGUMENT_RANGE',
};

describe.each(forms)('wrong use is refused; the communicator stays usable (%s)', (form) => {
  let outcome: Outcome;
  beforeAll(async () => {
    outcome = await runRanks(2, 'failures.mjs', [Object.keys(refused).join(), form]);
  });

  test.each(Object.entries(refused))('"%s" with %s', (scenario, expected) => {
    const { code, stderr } = outcome;
    const records = outcome.records.filter((record) => record['scenario'] === scenario);
    expect(
      records.filter((record) => record['after'] !== true).map((record) => record['code']),
      stderr,
    ).toEqual([expected, expected]);
    expect(records.filter((record) => record['after'] === true).map((record) => record['code'])).toEqual(['none', 'none']);
    expect(code).toBe(0);
  });
});

test('a mistyped operator gets a suggestion', async () => {
  const { records } = await runRanks(1, 'failures.mjs', ['unknownOperator']);
  expect(records[0]?.['message']).toContain('did you mean sum?');
});

for (const form of forms) {
  test(`a rank killed in the middle of an all-reduce is named immediately on all others (${form})`, async () => {
    const before = readdirSync('/dev/shm');
    const { records, code, stderr } = await runRanks(4, 'failures.mjs', ['killed', form], { flags: ['--grace', '20'] });
    expect(records.map((record) => record['rank']).sort(), stderr).toEqual([0, 2, 3]);
    for (const record of records) {
      expect(record).toMatchObject({ code: 'RANK_DIED', name: 'RemoteError', result: 6, about: 1 });
      expect(record['ms']).toBeLessThan(AT_ONCE_MS);
    }
    expect(stderr).toContain('SIGKILL');
    expect(code).toBe(128 + 9);
    await gone(records.map((record) => record['pid'] as number));
    // Files of other programs there, such as browsers, disappear quickly.
    await vi.waitFor(() => {
      expect(readdirSync('/dev/shm').filter((name) => !before.includes(name))).toEqual([]);
    }, 10_000);
  });

  test.each([
    'reduce',
    'broadcast',
    'allGather',
    'reduceScatter',
    'allToAll',
    'gather',
    'scatter',
    'allGatherV',
    'reduceScatterV',
    'allToAllV',
  ])(`a rank killed in the middle of %s is named immediately on all others (${form})`, async (kind) => {
    const { records, stderr } = await runRanks(3, 'failures.mjs', [`killedIn-${kind}`, form], { flags: ['--grace', '20'] });
    expect(records.map((record) => [record['rank'], record['code'], record['about']]).sort(), stderr).toEqual([
      [0, 'RANK_DIED', 1],
      [2, 'RANK_DIED', 1],
    ]);
    for (const record of records) expect(record['ms']).toBeLessThan(AT_ONCE_MS);
  });

  test(`a rank that throws is named on all others (${form})`, async () => {
    const { records, code, stderr } = await runRanks(3, 'failures.mjs', ['crashed', form], { flags: ['--grace', '20'] });
    expect(records.map((record) => [record['rank'], record['code'], record['about']]).sort()).toEqual([
      [0, 'RANK_DIED', 1],
      [2, 'RANK_DIED', 1],
    ]);
    expect(stderr).toContain('rank 1 has a bug');
    expect(code).toBe(1);
  });

  test.each(['left', 'closedEarly'])(`a rank that has %s is named on ranks that still call it (${form})`, async (scenario) => {
    const { records } = await runRanks(3, 'failures.mjs', [scenario, form], { flags: ['--grace', '20'] });
    expect(records.map((record) => [record['rank'], record['code'], record['about']]).sort()).toEqual([
      [0, 'CLOSED', 1],
      [2, 'CLOSED', 1],
    ]);
  });

  test(`an operation that exceeds the timeout names the missing ranks (${form})`, async () => {
    const { records } = await runRanks(3, 'failures.mjs', ['late', form], { flags: ['--grace', '20'] });
    expect(records).toHaveLength(2);
    for (const record of records) expect(record).toMatchObject({ code: 'TIMEOUT', name: 'TimeoutError', ranks: [1] });
  });

  test(`an abort ends the communicator on all ranks, also for later calls (${form})`, async () => {
    const { records } = await runRanks(3, 'failures.mjs', ['aborted', form]);
    expect(records).toHaveLength(6);
    for (const record of records)
      expect(record).toMatchObject({ code: 'ABORTED', about: 1, message: 'rank 1 aborted the communicator: enough' });
  });

  test(`a closed communicator refuses calls (${form})`, async () => {
    const { records, code } = await runRanks(2, 'failures.mjs', ['afterClose', form]);
    expect(records.map((record) => record['code'])).toEqual(['CLOSED', 'CLOSED', 'CLOSED', 'CLOSED']);
    expect(code).toBe(0);
  });
}

test.each([
  ['shared memory', {}],
  ['engine threads', { TCCL_TEST_CONFIG: '{"engine":"thread","channels":2}' }],
  ['ring', { TCCL_ALGO: 'ring' }],
  ['sockets', { TCCL_SHM_DISABLE: '1', TCCL_RUNTIME_CONNECT: '1' }],
  ['sockets of a thread', { TCCL_SHM_DISABLE: '1', TCCL_TEST_CONFIG: '{"engine":"thread"}' }],
  ['sockets, in place', { TCCL_SHM_DISABLE: '1', TCCL_TEST_CONFIG: '{"blocking":true}' }],
] as const)(
  'an array that is transferred away during a call ends it with BUFFER_DETACHED on all ranks, which name its rank (%s)',
  async (_, env) => {
    for (const scenario of ['transferred', 'transferredInQueue']) {
      const { records, stderr } = await runRanks(3, 'failures.mjs', [scenario], { env, flags: ['--grace', '20'] });
      expect(records.map((record) => record['rank']).sort(), stderr).toEqual([0, 1, 2]);
      for (const record of records) {
        expect(record).toMatchObject({
          code: 'BUFFER_DETACHED',
          about: 1,
          name: record['rank'] === 1 ? 'InvalidArgumentError' : 'RemoteError',
        });
        if (record['rank'] !== 1) expect(record['message']).toMatch(/^[a-zA-Z]+: rank 1: an array of this call was transferred/);
      }
    }
  },
);

test.each([
  ['shared memory', {}],
  ['ring', { TCCL_ALGO: 'ring' }],
  ['sockets', { TCCL_SHM_DISABLE: '1', TCCL_RUNTIME_CONNECT: '1' }],
] as const)('an unexpected error ends the communicator on all ranks, which name its rank (%s)', async (_, env) => {
  const { records, stderr } = await runRanks(3, 'failures.mjs', ['defect'], { env, flags: ['--grace', '20'] });
  expect(records.map((record) => record['rank']).sort(), stderr).toEqual([0, 1, 2]);
  for (const record of records) {
    expect(record).toMatchObject({ code: 'INTERNAL', about: 1, name: 'InternalError' });
    expect(record['message']).toContain('nobody expects this');
  }
});

test('an operation of engine threads that exceeds the timeout names the missing ranks', async () => {
  const { records } = await runRanks(3, 'failures.mjs', ['late', 'promise'], {
    env: { TCCL_TEST_CONFIG: '{"engine":"thread","channels":2}' },
    flags: ['--grace', '20'],
  });
  expect(records).toHaveLength(2);
  for (const record of records) expect(record).toMatchObject({ code: 'TIMEOUT', name: 'TimeoutError', ranks: [1] });
});

test('connections among many ranks cause no warning of Node.js', async () => {
  const { code, stderr } = await runRanks(
    7,
    'random-collectives.mjs',
    ['--seed', '1', '--calls', '3', '--promises', '--kinds', 'allToAll'],
    { env: { TCCL_SHM_DISABLE: '1', TCCL_RUNTIME_CONNECT: '1' } },
  );
  expect(stderr).not.toContain('MaxListeners');
  expect(code).toBe(0);
});

test.each([
  ['shared memory', {}],
  ['sockets', { TCCL_SHM_DISABLE: '1', TCCL_RUNTIME_CONNECT: '1' }],
  ['sockets of a thread', { TCCL_SHM_DISABLE: '1', TCCL_TEST_CONFIG: '{"engine":"thread"}' }],
] as const)(
  'a rank that exited with code 0 is named as closed on ranks that wait for it in a split or for a message (%s)',
  async (_, env) => {
    for (const scenario of ['leftBeforeSplit', 'leftBeforeMessage']) {
      const { records, stderr } = await runRanks(3, 'failures.mjs', [scenario], { env, flags: ['--grace', '20'] });
      expect(records.map((record) => [record['rank'], record['code'], record['about']]).sort(), stderr).toEqual([
        [0, 'CLOSED', 1],
        [2, 'CLOSED', 1],
      ]);
    }
  },
);

test('a rank whose call failed, because another has closed, is not waited for by a third', async () => {
  for (const form of forms) {
    const { records, stderr, code } = await runRanks(3, 'failures.mjs', ['closedForAnother', form], { flags: ['--grace', '20'] });
    expect(records.map((record) => [record['rank'], record['code'], record['about']]).sort(), stderr).toEqual([
      [0, 'CLOSED', 1],
      [2, 'CLOSED', 1],
    ]);
    expect(code, stderr).toBe(0);
  }
});

test('a window call that exceeds the timeout names the missing ranks', async () => {
  const { records } = await runRanks(3, 'failures.mjs', ['lateForWindow'], { flags: ['--grace', '20'] });
  expect(records).toHaveLength(2);
  for (const record of records) expect(record).toMatchObject({ code: 'TIMEOUT', name: 'TimeoutError', ranks: [1] });
});

describe.each([
  ['shared memory', {}],
  ['sockets', { TCCL_SHM_DISABLE: '1', TCCL_RUNTIME_CONNECT: '1' }],
])('over %s', (_, env) => {
  it.each([
    ['late', 'promise', 'TIMEOUT'],
    ['late', 'sync', 'TIMEOUT'],
    ['exit', 'promise', 'CLOSED'],
  ])('an error names the communicator once: %s, %s', async (fate, form, code) => {
    const { records, stderr } = await runRanks(3, 'named-failure.mjs', [fate, form], {
      env: { ...env, TCCL_TIMEOUT: '1' },
      flags: ['--grace', '20'],
    });
    const messages = records.map(({ message }) => String(message));
    expect(messages, stderr).toHaveLength(2);
    for (const message of messages) {
      expect(message).toMatch(new RegExp(`^${code}: `));
      expect(message.split('(communicator "second")')).toHaveLength(2);
      expect(message).not.toContain('has closed');
    }
    if (fate === 'exit') expect(messages.some((message) => message.includes('closed its communicator or exited'))).toBe(true);
  });
});
