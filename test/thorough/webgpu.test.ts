import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, describe, it } from 'vitest';
import { othersOf } from '../devices/expected.js';
import { webgpuRefusalsOf } from '../webgpu/expected.js';
import { environment, missing, repository, runtimes } from './dawn.js';
import { forEach, ranksOf, started } from './device-ranks.js';

const folder = fileURLToPath(new URL('../webgpu', import.meta.url));

type Run = (nRanks: number, check: readonly string[]) => readonly unknown[];

/** Runs ranks, each of them a process of `command`. Returns what each said, in the order of ranks. */
const runWith =
  (command: readonly string[]): Run =>
  (nRanks, check) =>
    started(ranksOf(nRanks, [...command, `${folder}/rank.mjs`, ...check]), environment);

const runThreads: Run = (nRanks, check) => started([`${folder}/threads.mjs`, String(nRanks), ...check], environment);

for (const { name, command, missing: absent, lost } of runtimes) {
  const run = runWith(command);
  describe.skipIf(absent)(`buffers of WebGPU in ${name}${absent}`, () => {
    it.each([2, 4])('are exchanged between %i processes as arrays of the host are', (nRanks) => {
      expect(run(nRanks, ['collectives'])).toEqual(forEach(nRanks, () => ({ calls: 240, wrong: [] })));
    });

    it('are exchanged in chunks, by calls that keep their order', () => {
      expect(run(3, ['inChunks'])).toEqual([[], [], []]);
    });

    it('are sent, and grouped with messages', () => {
      expect(run(3, ['others'])).toEqual(forEach(3, (rank) => othersOf(rank, 3)));
    });

    it('are refused with one line each, and calls go on', () => {
      expect(run(2, ['refusals'])).toEqual(forEach(2, () => webgpuRefusalsOf(2)));
    });

    it('a lost device ends the communicators of all ranks with its reason', () => {
      const own = `DEVICE_LOST: rank 1 lost its WebGPU device: ${lost}`;
      const reason = `rank 1 aborted the communicator: its WebGPU device was lost: ${lost}`;
      const others = `ABORTED: ${reason} (communicator "webgpu")`;
      expect(run(3, ['failures', 'lost'])).toEqual([
        [others, others, reason],
        [own, own, reason],
        [others, others, reason],
      ]);
    });

    it('a device that was lost before is refused on all ranks, with its reason', () => {
      const why = `the GPUDevice was lost before: ${lost}; pass a new one`;
      const others = `ABORTED: webgpu: rank 1 could not open its WebGPU device: ${why}`;
      expect(run(3, ['lostBefore'])).toEqual([
        [others, 3],
        [`DEVICE_LOST: webgpu: ${why}`, 3],
        [others, 3],
      ]);
    });

    it('a buffer that is destroyed during a call ends the communicators', () => {
      const [first, failed] = run(2, ['failures', 'destroyed']) as readonly (readonly string[])[];
      expect(failed?.slice(0, 2)).toEqual([
        expect.stringMatching('^BUFFER_DETACHED: allReduce: a GPUBuffer was destroyed or mapped while a call used it: '),
        'BUFFER_DETACHED: allReduce: the GPUBuffer was destroyed; pass one that is in use',
      ]);
      expect(first?.[1]).toMatch(/^ABORTED: rank 1 aborted the communicator: allReduce: a GPUBuffer was destroyed or mapped/);
    });

    it('lengths that differ in the number of chunks are found by all ranks', () => {
      const said = (count: number): string =>
        `CALL_MISMATCH: allReduce: ranks pass different lengths, from 1200000 to 2400000 elements a part, this rank ${count}; ` +
        'pass equal ones on all ranks';
      expect(run(2, ['failures', 'short']).map((lines) => (lines as readonly string[])[0])).toEqual([
        said(2_400_000),
        said(1_200_000),
      ]);
    });
  });
}

describe.skipIf(missing)(`buffers of WebGPU in threads of Node.js${missing}`, () => {
  it('are exchanged', () => {
    expect(runThreads(2, ['collectives'])).toEqual(forEach(2, () => ({ calls: 240, wrong: [] })));
  });

  it('are exchanged by ranks of one thread, which share a device', () => {
    const runInOneThread = (check: string): readonly unknown[] => started([`${folder}/one-thread.mjs`, check], environment);
    expect(runInOneThread('collectives')).toEqual(forEach(2, () => ({ calls: 240, wrong: [] })));
    expect(runInOneThread('others')).toEqual(forEach(2, (rank) => othersOf(rank, 2)));
  });
});

describe.skipIf(missing)(`examples/gpu${missing}`, () => {
  it('trains on two ranks with the losses of one', () => {
    const project = mkdtempSync(join(tmpdir(), 'tccl-gpu-'));
    mkdirSync(join(project, 'node_modules'));
    symlinkSync(repository, join(project, 'node_modules/tccl'));
    symlinkSync(join(folder, 'node_modules/webgpu'), join(project, 'node_modules/webgpu'));
    cpSync(join(repository, 'examples/gpu/train.mjs'), join(project, 'train.mjs'));
    const losses = (nRanks: number): readonly number[] => {
      const words = [join(repository, 'dist/cli/main.js'), 'run', '-n', String(nRanks), '--no-prefix', '--', 'node', 'train.mjs'];
      const { stdout, stderr } = spawnSync(process.execPath, words, { cwd: project, env: environment, encoding: 'utf8' });
      expect(stderr).toBe('');
      return [...stdout.matchAll(/^epoch \d+: loss (.*)$/gm)].map(([, loss]) => Number(loss));
    };
    const one = losses(1);
    expect(one).toHaveLength(5);
    expect(one).toEqual([...one].sort((a, b) => b - a));
    expect(losses(2)).toEqual(one.map((loss) => expect.closeTo(loss, 3) as number));
    rmSync(project, { recursive: true });
  });
});
