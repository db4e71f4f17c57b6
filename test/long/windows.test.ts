import { describe, expect, test } from 'vitest';
import { spawnRanks } from '../../dist/index.js';
import { fixture } from '../multi-process/cli.js';
import { AT_ONCE_MS, runRanks } from '../multi-process/ranks.js';

/** TCCL_TEST_SEED repeats a run that failed. */
const seed = String(process.env['TCCL_TEST_SEED'] ?? Math.floor(Math.random() * 1e6));

describe.each([
  { way: 'in shared memory', env: {} },
  { way: 'over sockets', env: { TCCL_SHM_DISABLE: '1', TCCL_RUNTIME_CONNECT: '1' } },
  { way: 'over sockets, in place', env: { TCCL_SHM_DISABLE: '1' } },
])('windows $way', ({ way, env }) => {
  test.each([1, 2, 4])('all puts of %i ranks are complete once they were signalled', async (nRanks) => {
    const { records, code, stderr } = await runRanks(nRanks, 'windows.mjs', ['random', seed], { env });
    expect(code, `seed ${seed}\n${stderr}`).toBe(0);
    expect(records).toHaveLength(nRanks);
  });

  test('puts without a signal are complete after a flush; every window has signals of its own', async () => {
    const { code, stderr } = await runRanks(3, 'windows.mjs', ['flush'], { env });
    expect(code, stderr).toBe(0);
  });

  test.each([1, 3])("%i ranks get the others' data", async (nRanks) => {
    const { code, stderr } = await runRanks(nRanks, 'windows.mjs', ['get', seed], { env });
    expect(code, `seed ${seed}\n${stderr}`).toBe(0);
  });

  test('memory of a window is free when it is closed', async () => {
    const { code, stderr } = await runRanks(3, 'windows.mjs', ['memory'], { env });
    expect(code, stderr).toBe(0);
  });

  test('arrays of bits are of the type that the window was made of', async () => {
    const { code, stderr } = await runRanks(2, 'windows.mjs', ['types'], { env });
    expect(code, stderr).toBe(0);
  });

  test('wrong use is refused before anything is written', async () => {
    const { records, stderr } = await runRanks(2, 'windows.mjs', ['refused'], { env });
    const codes = [
      'ARGUMENT_TYPE',
      'BUFFER_SIZE',
      'ARGUMENT_TYPE',
      'BUFFER_SIZE',
      ...Array.from({ length: 5 }, () => 'ARGUMENT_RANGE'),
      'UNKNOWN_NAME',
      // get takes the signal that ends a call.
      'ARGUMENT_TYPE',
      'ARGUMENT_TYPE',
      'CLOSED',
      'ARGUMENT_TYPE',
      'none',
    ];
    expect(
      records.map((record) => record['codes']),
      stderr,
    ).toEqual([codes, codes]);
  });

  test('a wait for signals that never arrive ends with the window', async () => {
    const { records, code, stderr } = await runRanks(3, 'windows.mjs', ['waiting'], { env });
    expect(code, stderr).toBe(0);
    const message =
      'rank 0 waits for signals of ranks 1,2 in a window that all ranks have closed; close it when all signals have arrived';
    expect(records).toEqual([{ waits: ['met', { code: 'CLOSED', at: 0, message }] }]);
  });

  test('ranks that close while others access them give these an error', async () => {
    const { records, code, stderr } = await runRanks(3, 'windows.mjs', ['leaving'], { env });
    expect(code, stderr).toBe(0);
    expect(records).toHaveLength(3);
    for (const record of records) expect(['[]', '["CLOSED"]']).toContain(JSON.stringify(record['codes']));
  });

  test('a rank whose window is refused can open it later; one that makes another call is named', async () => {
    const { records, code, stderr } = await runRanks(3, 'windows.mjs', ['alone'], { env });
    expect(code, stderr).toBe(0);
    expect(records.map((record) => record['got']).sort()).toEqual([0, 1, 2]);
    for (const record of records) {
      expect(record).toMatchObject({
        code: 'CALL_MISMATCH',
        message: expect.stringMatching(
          /called (window where rank 1 called split|split where rank \d called window|window; rank 1 called split)/,
        ) as string,
      });
      expect(record['ms']).toBeLessThan(AT_ONCE_MS);
    }
  });

  test.each([
    ['killed', 'RANK_DIED'],
    ['closed', 'CLOSED'],
  ])('a rank that was %s is named on ranks that wait for its signals; earlier signals count', async (scenario, expected) => {
    const { records, stderr } = await runRanks(3, 'windows.mjs', [scenario], { env, flags: ['--grace', '20'] });
    expect(records.map((record) => record['rank']).sort(), stderr).toEqual([0, 2]);
    for (const record of records) {
      expect(record).toMatchObject({ code: expected, about: 1 });
      expect(record['ms']).toBeLessThan(AT_ONCE_MS);
    }
  });

  test('a rank that does not signal in time is named', async () => {
    const { records, stderr } = await runRanks(3, 'windows.mjs', ['late'], { env, flags: ['--grace', '20'] });
    expect(
      records.map((record) => record['code']),
      stderr,
    ).toContain('TIMEOUT');
    for (const record of records.filter((candidate) => candidate['ranks'] !== undefined)) expect(record['ranks']).toEqual([1]);
  });

  describe.skipIf(way === 'over sockets')('ranks that block for signals', () => {
    test.each([
      ['was killed', 'killedInPlace', 'RANK_DIED'],
      ['aborted', 'abortedInPlace', 'ABORTED'],
    ])('get an error that names the rank that %s', async (_, scenario, expected) => {
      const { records, stderr } = await runRanks(3, 'windows.mjs', [scenario], { env, flags: ['--grace', '20'] });
      expect(records.map((record) => [record['rank'], record['code'], record['about']]).sort(), stderr).toEqual([
        [0, expected, 1],
        [2, expected, 1],
      ]);
    });
  });

  test.skipIf(way === 'in shared memory')(
    'an array that is transferred away while it is to be filled fails the call',
    async () => {
      const { records, stderr } = await runRanks(2, 'windows.mjs', ['detached'], { env, flags: ['--grace', '20'] });
      expect(
        records.map((record) => record['code']),
        stderr,
      ).toEqual(['BUFFER_DETACHED', 'BUFFER_DETACHED']);
    },
  );

  test.skipIf(way === 'over sockets')('blocking forms', async () => {
    const { code, stderr } = await runRanks(2, 'windows.mjs', ['blocking'], { env });
    expect(code, stderr).toBe(0);
  });

  test.skipIf(way === 'over sockets')(
    'puts, gets and signals in both directions progress while their target is blocked',
    async () => {
      const { code, stderr } = await runRanks(3, 'windows.mjs', ['passive'], { env: { ...env, TCCL_TIMEOUT: '20' } });
      expect(code, stderr).toBe(0);
    },
  );
});

test('windows of threads', async () => {
  await spawnRanks(3, fixture('windows.mjs'), { args: ['random', seed] });
});
