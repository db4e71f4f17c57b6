import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { rolldown } from 'rolldown';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { repository } from './dawn.js';

const project = mkdtempSync(join(tmpdir(), 'tccl-cuda-example-'));

/** Packages for a program that would load the driver: tccl with the fake one, and a koffi whose driver is the same. */
const packages = {
  'fake/index.js': `import { FakeDriver } from './fake-driver.js';
    export const driver = new FakeDriver({ devices: 2, seed: 1 + Number(process.env.TCCL_RANK) });`,
  'tccl/index.js': `export * from '${repository}/dist/index.js';`,
  'tccl/cuda.js': `import { openCuda } from '${repository}/dist/cuda/open.js';
    import { driver } from 'fake';
    export const cuda = (comm, options) => openCuda(comm, options, () => driver);`,
  'koffi/index.js': `import { driver } from 'fake';
    const bytes = (view) => new Uint8Array(view.buffer, view.byteOffset, view.byteLength);
    // Parameters of a launch, one after the other at multiples of their size, as the driver finds them by their kernel.
    function joined(views) {
      let end = 0;
      const places = views.map((view) => (end = Math.ceil(end / view.byteLength) * view.byteLength + view.byteLength) - view.byteLength);
      const whole = new Uint8Array(end);
      views.forEach((view, i) => whole.set(bytes(view), places[i]));
      return BigUint64Array.of(1n, driver.addressOf(whole), 2n, driver.addressOf(BigUint64Array.of(BigInt(end))), 0n);
    }
    function func(prototype) {
      const name = /^int (\\w+)/.exec(prototype)[1];
      return (...values) => {
        if (name === 'cuLaunchKernel') return driver.cuLaunchKernel(...values.slice(0, 9), 0n, joined(values[9]));
        return driver[name](...values.map((value) => value ?? new Uint8Array(0)));
      };
    }
    export default { load: () => ({ func }) };`,
};

beforeAll(async () => {
  const modules = join(project, 'node_modules');
  for (const [path, text] of Object.entries(packages)) {
    const [name = ''] = path.split('/');
    mkdirSync(join(modules, name), { recursive: true });
    const exports = { '.': './index.js', './cuda': './cuda.js' };
    writeFileSync(join(modules, name, 'package.json'), JSON.stringify({ name, type: 'module', exports }));
    writeFileSync(join(modules, path), text);
  }
  const bundle = await rolldown({ input: join(repository, 'testing/cuda/fake-driver.ts'), platform: 'node' });
  await bundle.write({ file: join(modules, 'fake/fake-driver.js'), format: 'esm' });
  await bundle.close();
  for (const file of ['train.mjs', 'kernels.ptx']) cpSync(join(repository, 'examples/cuda', file), join(project, file));
});
afterAll(() => rmSync(project, { recursive: true, force: true }));

it('examples/cuda trains on two ranks with the losses of one', () => {
  const losses = (nRanks: number): readonly number[] => {
    const words = [join(repository, 'dist/cli/main.js'), 'run', '-n', String(nRanks), '--no-prefix', '--', 'node', 'train.mjs'];
    const env = { ...process.env, POINTS: '12', EPOCHS: '10' };
    const { stdout, stderr } = spawnSync(process.execPath, words, { cwd: project, env, encoding: 'utf8' });
    expect(stderr).toBe('');
    return [...stdout.matchAll(/^epoch \d+: loss (.*)$/gm)].map(([, loss]) => Number(loss));
  };
  const one = losses(1);
  expect(one).toHaveLength(5);
  expect(one).toEqual([...one].sort((a, b) => b - a));
  expect(new Set(one).size).toBe(5);
  expect(losses(2)).toEqual(one.map((loss) => expect.closeTo(loss, 3) as number));
});
