import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { rolldown } from 'rolldown';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { repository } from './dawn.js';
import { forEach, ranksOf, started } from './device-ranks.js';

const folder = fileURLToPath(new URL('../cuda', import.meta.url));
const built = mkdtempSync(join(tmpdir(), 'tccl-switch-'));
const fake = join(built, 'fake-driver.mjs');

beforeAll(async () => {
  const input = fileURLToPath(new URL('../../testing/cuda/fake-driver.ts', import.meta.url));
  const bundle = await rolldown({ input, platform: 'node' });
  await bundle.write({ file: fake, format: 'esm' });
  await bundle.close();
});
afterAll(() => rmSync(built, { recursive: true, force: true }));

type Environment = Readonly<Record<string, string>>;
const run = (nRanks: number, check: readonly string[], env: Environment = {}): readonly unknown[] =>
  started(ranksOf(nRanks, ['node', `${folder}/rank.mjs`, fake, ...check]), { ...process.env, FAKE_GPUS: 'switch', ...env });
const threads = (nRanks: number, ...check: readonly string[]): readonly unknown[] =>
  started([`${folder}/threads.mjs`, String(nRanks), fake, ...check], { ...process.env, FAKE_GPUS: 'switch' });

const nvls = { name: 'nvls', reason: 'each rank has a GPU of its own, and an NVSwitch combines the memory of all' };

describe('GPUs on a switch', () => {
  it.each([2, 3, 8])('exchange arrays of %i processes as arrays of the host are', (nRanks) => {
    expect(run(nRanks, ['collectives'])).toEqual(forEach(nRanks, () => ({ calls: 240, wrong: [] })));
  });

  it('exchange arrays of threads', () => {
    expect(threads(3, 'collectives')).toEqual(forEach(3, () => ({ calls: 240, wrong: [] })));
  });

  it('exchange memory of the program in place', () => {
    expect(run(2, ['wrapped'])).toEqual(forEach(2, () => ({ calls: 32, wrong: [] })));
  });

  it('add in any order, once, with the same bits on all ranks', () => {
    expect(run(3, ['switchSums'])).toEqual([[], [], []]);
  });

  it('combine what the switch does not as other GPUs do', () => {
    const seen = {
      allReduce: 'switch',
      reduceScatter: 'switch',
      allGather: 'switch',
      broadcast: 'switch',
      reduce: 'switch',
      'least of int32': 'switch',
      'greatest of float32': 'peers',
      'greatest of float16': 'peers',
      product: 'peers',
      gather: 'peers',
      allToAll: 'peers',
    };
    expect(run(2, ['switchCalls'])).toEqual([seen, seen]);
  });

  it.each([
    [2, 'all'],
    [3, 'some'],
  ] as const)('exchange arrays of %i processes by calls that are queued, on %s ranks', (nRanks, which) => {
    expect(run(nRanks, ['queued', which])).toEqual(forEach(nRanks, () => ({ calls: 32, wrong: [] })));
  });

  it('queue calls in the order of kernels of the program', () => {
    const [x, y] = [Int32Array.of(1, 2, 3), new Int32Array(3)];
    for (let i = 0; i < 20; i++) {
      const [from, to] = i % 2 ? [y, x] : [x, y];
      from.forEach((value, rank) => (from[rank] = value + rank + 1));
      to.fill(from.reduce((sum, value) => (sum + value) | 0));
    }
    // Two arrays, and the records of calls on the switch.
    const wanted = forEach(3, (rank) => ({ values: [x[rank], y[rank]], hasReturnedEarly: true, allocations: 3 }));
    expect(run(3, ['queuedOrder'])).toEqual(wanted);
  });

  it('leave nothing behind', () => {
    const beforeFree = { allocations: 1, contexts: 2 };
    const nothing = { allocations: 0, virtual: 0, opened: 0, locked: 0, handles: 0, contexts: 2, current: 0 };
    const left = { wasPinned: true, beforeFree, ...nothing };
    expect(run(2, ['released', 'short'])).toEqual([left, left]);
  });

  it.each([
    ['killed', { again: expect.stringMatching(/^RANK_DIED/) as string, values: 'nothing', opened: 0, stays: true }],
    // Kernels that wait for it give up, so that streams go on.
    ['killedQueued', { hasEnded: true, again: 'nothing' }],
  ])('a rank that is killed in a call ends kernels that wait for it: %s', (check, others) => {
    const words = ['dist/cli/main.js', 'run', '-n', '3', '--grace', '20', '--', 'node', `${folder}/rank.mjs`, fake, check];
    const { stdout } = spawnSync(process.execPath, words, {
      cwd: repository,
      env: { ...process.env, FAKE_GPUS: 'switch' },
      encoding: 'utf8',
    });
    const died = expect.stringMatching(/^RANK_DIED: rank 1 (\(process \d+ on .*\) )?died: /) as string;
    const said = check === 'killed' ? died : [died, died, 'nothing', 'nothing'];
    const lines = stdout.split('\n').filter((line) => /^\[\d\] \{/.test(line));
    expect(lines.sort().map((line) => [line.slice(0, 3), JSON.parse(line.slice(4)) as unknown])).toEqual(
      ['[0]', '[2]'].map((rank) => [rank, { said, ...others }]),
    );
  });

  it.each(['cuLaunchKernel,1', 'cuMemcpyHtoDAsync_v2,1', 'cuEventQuery,719'])('a %s that fails ends the communicators', (how) => {
    const [first, failed] = run(2, ['switchFailing', how]) as readonly (readonly string[])[];
    const name = how.replace(/(_v2)?,.*/, '');
    expect(failed?.[0]).toMatch(new RegExp(`^DEVICE_LOST: .*${name}: CUDA_ERROR_`));
    expect(first?.[1]).toMatch('ABORTED: rank 1 aborted the communicator');
  });
});

describe('without NVLS', () => {
  const peers = (reason: string) =>
    forEach(2, () => ({
      name: 'peers',
      reason: `the ranks are on one host, and their GPUs reach each other's memory; no NVLS: ${reason}`,
      virtual: 0,
    }));

  it('the reason says what is missing, on all ranks', () => {
    const check = ['switchTransport'];
    expect(run(2, check)).toEqual(forEach(2, () => ({ ...nvls, virtual: expect.any(Number) as number })));
    expect(run(2, check, { FAKE_GPUS: 'each' })).toEqual(peers('rank 0: GPU 0 has no multicast memory (attribute 132 is 0)'));
    expect(run(2, check, { TCCL_NVLS_ENABLE: '0' })).toEqual(peers('rank 0: TCCL_NVLS_ENABLE=0'));
    expect(run(2, check, { FAKE_GPUS: 'one-switch' })).toEqual(peers('ranks 0 and 1 share a GPU'));
    expect(run(1, check)).toEqual(peers('there is one rank').slice(1));
  });

  it.each([
    ['cuMulticastCreate,801', 0],
    ['cuMemExportToShareableHandle,801', 0],
    ['cuMemImportFromShareableHandle,1', 1],
    ['cuMulticastAddDevice,801', 1],
    ['cuMemCreate,2', 1],
    ['cuMulticastBindMem,802', 0],
    ['cuMemMap,1', 1],
    ['cuMemSetAccess,1', 1],
    ['cuMemHostRegister_v2,800', 1],
  ] as const)('a %s that fails on rank %i leaves nothing, and blocks no other rank', (how, rank) => {
    const name = how.replace(/(_v2)?,.*/, '');
    const said = run(2, ['switchTransport', `${rank},${how}`]) as readonly { reason: string }[];
    expect(said).toEqual(forEach(2, () => ({ name: 'peers', reason: said[0]?.reason, virtual: 0 })));
    expect(said[0]?.reason).toMatch(new RegExp(`; no NVLS: rank ${rank}: ${name}: CUDA_ERROR_`));
  });
});
