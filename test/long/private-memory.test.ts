import { spawnSync } from 'node:child_process';
import { expect, test } from 'vitest';
import { spawnRanks } from '../../dist/index.js';
import { cliPath, fixture } from '../multi-process/cli.js';
import { runRanks } from '../multi-process/ranks.js';

async function outcomes(scenario: string, env: Record<string, string> = {}) {
  const { records, stderr } = await runRanks(2, 'private-memory.mjs', [scenario], { env, flags: ['--grace', '20'] });
  expect(records.length, stderr).toBeGreaterThan(0);
  return [...records].sort((a, b) => Number(a['rank']) - Number(b['rank'])).map(({ rank, code, about }) => [rank, code, about]);
}

for (const env of [{}, { TCCL_CMA_DISABLE: '1' }]) {
  const way = 'TCCL_CMA_DISABLE' in env ? ', by staging' : '';

  test(`a rank may change its array as soon as its call is over${way}`, async () => {
    expect(await outcomes('reused', env)).toEqual([
      [0, 'none', undefined],
      [1, 'none', undefined],
    ]);
  });

  test(`long reductions of arrays in and outside the segment are right${way}`, async () => {
    expect(await outcomes('reduced', env)).toEqual([
      [0, 'none', undefined],
      [1, 'none', undefined],
    ]);
  });

  test.each(['died', 'diedReducing', 'diedSending'])(
    `a rank that %s before its array was read is named on the reader${way}`,
    async (scenario) => {
      expect(await outcomes(scenario, env)).toEqual([[0, 'RANK_DIED', 1]]);
    },
  );

  test.each(['detached', 'detachedSending', 'resized'])(
    `an array that is %s before others have read it fails the call on its owner, then on the others${way}`,
    async (scenario) => {
      const [reader, owner] = await outcomes(scenario, env);
      expect(owner).toEqual([1, 'BUFFER_DETACHED', 1]);
      // A receive may see first that the sender has left.
      expect([[0, 'BUFFER_DETACHED', 1], ...(scenario === 'detachedSending' ? [[0, 'CLOSED', 1]] : [])]).toContainEqual(reader);
    },
  );
}

test('where one rank does not let others read its memory, all data go through shared memory', async () => {
  expect(await outcomes('oneRefuses')).toEqual([
    [0, 'none', undefined],
    [1, 'none', undefined],
  ]);
});

// A process that may trace all others could read it all the same, so root drops that capability for the test.
const asRoot = process.getuid?.() === 0;
const untraced = asRoot ? ['setpriv', '--bounding-set=-sys_ptrace', '--inh-caps=-sys_ptrace'] : [];
const canTest = !asRoot || spawnSync('setpriv', ['--version']).status === 0;

test.skipIf(!canTest)('where the kernel refuses one rank’s memory, both ranks use shared memory, and log it', () => {
  const job = [process.execPath, cliPath, 'run', '-n', '2', '--', process.execPath, fixture('undumpable.mjs')];
  const { status, stdout, stderr } = spawnSync('env', [...untraced, ...job], {
    encoding: 'utf8',
    env: { ...process.env, TCCL_DEBUG: 'INFO' },
  });
  expect(status, stderr).toBe(0);
  expect(stdout.match(/"right":true/g)).toHaveLength(2);
  expect(stdout).toMatch(
    /rank 0 ordinary arrays: copied through shared memory \(process_vm_readv from local rank 1 failed: EPERM\)/,
  );
  expect(stdout).toMatch(/rank 1 ordinary arrays: copied through shared memory \(another rank cannot read there\)/);
});

test('threads read each other’s arrays, and may change theirs as soon as a call is over', async () => {
  await spawnRanks(2, fixture('private-memory.mjs'), { args: ['reused'] });
  await spawnRanks(2, fixture('private-memory.mjs'), { args: ['reduced'] });
});
