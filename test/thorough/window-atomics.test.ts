import { describe, expect, test } from 'vitest';
import { spawnRanks } from '../../dist/index.js';
import { fixture } from '../multi-process/cli.js';
import { runRanks } from '../multi-process/ranks.js';

describe.each([
  { way: 'in shared memory', env: {} },
  { way: 'over sockets', env: { TCCL_SHM_DISABLE: '1', TCCL_RUNTIME_CONNECT: '1' } },
  { way: 'over sockets, in place', env: { TCCL_SHM_DISABLE: '1' } },
])('changes of elements of a window $way', ({ way, env }) => {
  test('of several ranks at the same time are not lost', async () => {
    const { records, code, stderr } = await runRanks(3, 'windows.mjs', ['atomics'], { env });
    expect(code, stderr).toBe(0);
    expect(records).toHaveLength(3);
  });

  test.skipIf(way === 'over sockets')('by blocking forms', async () => {
    const { records, code, stderr } = await runRanks(2, 'windows.mjs', ['atomicsBlocking'], { env });
    expect(code, stderr).toBe(0);
    expect(records).toHaveLength(2);
  });

  test.each([{}, { blocking: true }])('progress the other windows of a rank that spins for a lock (%j)', async (config) => {
    const settings = { ...env, TCCL_TIMEOUT: '10', TCCL_TEST_CONFIG: JSON.stringify(config) };
    // Connections at first use need the event loop.
    if (config.blocking === true) delete (settings as Record<string, string>)['TCCL_RUNTIME_CONNECT'];
    const { records, code, stderr } = await runRanks(2, 'windows.mjs', ['atomicsLock'], { env: settings });
    expect(code, stderr).toBe(0);
    expect(records).toHaveLength(2);
  });

  test.each([{}, { blocking: false }])('end when the rank that has a lock dies (%j)', async (config) => {
    const settings = { ...env, TCCL_TEST_CONFIG: JSON.stringify(config) };
    const { records, stderr } = await runRanks(2, 'windows.mjs', ['atomicsLockLost'], {
      env: settings,
      flags: ['--grace', '20'],
    });
    expect(records, stderr).toEqual([{ rank: 0, code: 'RANK_DIED', about: 1 }]);
  });

  test.skipIf(way === 'in shared memory')('end with the rank that has them', async () => {
    const { records, stderr } = await runRanks(3, 'windows.mjs', ['atomicsKilled'], { env, flags: ['--grace', '20'] });
    expect(records.map(({ rank, code, about }) => [rank, code, about]).sort(), stderr).toEqual([
      [0, 'RANK_DIED', 1],
      [2, 'RANK_DIED', 1],
    ]);
  });
});

test.each([
  ['in shared memory', {}],
  ['over sockets', { TCCL_SHM_DISABLE: '1' }],
])('the end of a window is no barrier and no end of another one, %s', async (_, env) => {
  const { records, stderr } = await runRanks(3, 'windows.mjs', ['closesDiffer'], { env });
  expect(records, stderr).toHaveLength(9);
  for (const [kind, other] of [
    ['barrier', /called barrier/],
    ['allReduce', /called allReduce/],
    ['close', /called window close \(window 2\)/],
  ] as const) {
    const errors = records.filter((record) => record['kind'] === kind);
    for (const { code } of errors) expect(code).toBe('CALL_MISMATCH');
    const text = errors.map(({ message }) => message).join('\n');
    expect(text).toMatch(/called window close \(window 1\)/);
    expect(text).toMatch(other);
  }
});

test.each([
  ['in shared memory', {}],
  ['over sockets', { TCCL_SHM_DISABLE: '1' }],
])('calls that cannot be part of a group are refused with it, %s', async (_, env) => {
  const { records, code, stderr } = await runRanks(2, 'group-refuses.mjs', [], { env });
  expect(records, stderr).toHaveLength(2);
  for (const record of records) expect(record['wrong']).toEqual([]);
  expect(code, stderr).toBe(0);
});

test('changes that a window refuses are named in one line', async () => {
  const { records, code, stderr } = await runRanks(2, 'windows.mjs', ['atomicsRefused']);
  expect(code, stderr).toBe(0);
  const operators = 'use one of sum, prod, min, max, band, bor, bxor, land, lor, replace';
  expect(records).toEqual([
    {
      avg: `UNKNOWN_NAME accumulate: a window has no operator "avg"; ${operators}`,
      add: `UNKNOWN_NAME accumulate: a window has no operator "add"; did you mean sum?; ${operators}`,
      mpi: `UNKNOWN_NAME accumulate: a window has no operator "MPI_MINIMUM"; did you mean min?; ${operators}`,
      pairs: `UNKNOWN_NAME fetchAndOp: a window has no operator "minloc"; ${operators}`,
      bits: 'ARGUMENT_TYPE accumulate: band combines integers, not float32; make a window of integers, such as an Int32Array',
      floats: 'ARGUMENT_TYPE compareAndSwap: it compares integers, but the window is of float32; make one of integers beside it',
      type: 'ARGUMENT_TYPE accumulate: an object of class Int32Array does not hold float32; pass one of class Float32Array',
      moved:
        'ARGUMENT_TYPE fetchAndOp: elements of a window of int16 can be replaced but not combined; make one of an Int32Array',
      large: 'ARGUMENT_RANGE fetchAndOp of uint8 takes a whole number that fits the type, not 256',
      text: 'ARGUMENT_TYPE compareAndSwap: the value is a number, such as 1, not "1"',
      array:
        'ARGUMENT_TYPE fetchAndOp: the value is a number, such as 1, not an object of class Float32Array; pass one element, or call accumulate, which takes an array',
      place: 'BUFFER_SIZE compareAndSwap: 1 element at offset 4 is not within the 4 elements that rank 1 has in the window',
      rank: 'ARGUMENT_RANGE fetchAndOp: there is no rank 2; ranks go from 0 to 1',
    },
  ]);
});

test('threads change elements at the same time', async () => {
  await spawnRanks(3, fixture('windows.mjs'), { args: ['atomics'] });
});
