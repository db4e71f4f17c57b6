import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { isThorough } from '../runs.js';
import { cliPath, needsNode, start } from '../multi-process/cli.js';

const repository = fileURLToPath(new URL('../..', import.meta.url));
const modules = join(repository, 'test/bundles/node_modules');
const isInstalled = existsSync(modules);
const missing = isInstalled ? '' : ' (needs: npm ci --ignore-scripts --prefix test/bundles)';

const project = mkdtempSync(join(tmpdir(), 'tccl-bundles-'));
afterAll(() => rmSync(project, { recursive: true }));

const files = {
  'package.json': JSON.stringify({ type: 'module', version: '7.7.7' }),
  'rank.mjs': `
    import { init, version } from 'tccl';
    async function main() {
      const comm = await init();
      const x = comm.alloc(Float32Array, 1000).fill(comm.rank + 1);
      await comm.allReduce(x);
      comm.allReduceSync(x);
      console.log(x[999], version);
      await comm.close();
    }
    void main();`,
  'jobs.mjs': `
    export const rankOf = (comm) => comm.rank;`,
  'main.mjs': `
    import { init, openPool, spawnRanks } from 'tccl';
    const [, , what, module] = process.argv;
    const jobs = {
      threads: () => spawnRanks(2, module),
      async pool() {
        const pool = await openPool({ ranks: 2, module });
        console.log((await pool.run('rankOf')).join());
        await pool.close();
      },
      async engine() {
        const comm = await init({ engine: 'thread' });
        const x = Float32Array.of(2);
        await comm.allReduce(x);
        console.log(x[0]);
        await comm.close();
      },
    };
    jobs[what]().catch(({ code, message }) => console.log(code, message));`,
};

/** Bundles the three programs into `folder`, with tccl or without. */
const bundlers: Record<string, (folder: string, external: boolean) => string> = {
  esbuild: (folder, external) => `
    import { build } from 'esbuild';
    await build({ entryPoints: ['main.mjs', 'rank.mjs', 'jobs.mjs'], bundle: true, platform: 'node', format: 'esm', logLevel: 'error',
      outdir: '${folder}', outExtension: { '.js': '.mjs' }, external: ${external ? "['tccl']" : '[]'} });`,
  'esbuild as CommonJS': (folder, external) => `
    import { build } from 'esbuild';
    await build({ entryPoints: ['main.mjs', 'rank.mjs', 'jobs.mjs'], bundle: true, platform: 'node', format: 'cjs', logLevel: 'error',
      outdir: '${folder}', outExtension: { '.js': '.cjs' }, external: ${external ? "['tccl']" : '[]'} });`,
  Rollup: (folder, external) => `
    import { rollup } from 'rollup';
    import { fileURLToPath } from 'node:url';
    const own = { resolveId: (id) => (${String(!external)} && id === 'tccl' ? ${JSON.stringify(join(repository, 'dist/index.js'))} : null) };
    const bundle = await rollup({ input: ['main.mjs', 'rank.mjs', 'jobs.mjs'], plugins: [own], onwarn() {},
      external: [/^node:/, 'saxes', ${external ? "'tccl'" : ''}] });
    await bundle.write({ dir: '${folder}', format: 'es', entryFileNames: '[name].mjs' });`,
  webpack: (folder, external) => `
    import webpack from 'webpack';
    const entry = Object.fromEntries(['main', 'rank', 'jobs'].map((name) => [name, './' + name + '.mjs']));
    await new Promise((resolve, reject) => webpack({
      mode: 'production', target: 'node20', entry, experiments: { outputModule: true },
      output: { path: process.cwd() + '/${folder}', filename: '[name].mjs', chunkFormat: 'module', library: { type: 'module' } },
      externals: ${external ? "{ tccl: 'module tccl' }" : '{}'},
    }, (error, stats) => (error ?? stats.hasErrors() ? reject(error ?? new Error(stats.toString('errors-only'))) : resolve())));`,
};

/** The developer's loop skips those that resemble others. */
const bundled = Object.keys(bundlers).filter((name) => isThorough || name === 'esbuild as CommonJS' || name === 'webpack');
describe.skipIf(!isInstalled).each(bundled)(`a bundle of %s${missing}`, (name) => {
  const ending = name.includes('CommonJS') ? 'cjs' : 'mjs';
  const folderOf = (external: boolean) => `${name.replace(/\W/g, '-')}-${external ? 'external' : 'whole'}`;
  beforeAll(() => {
    mkdirSync(join(project, 'node_modules'), { recursive: true });
    const ofTccl = (module: string) => join(repository, 'node_modules', module);
    const links = { tccl: repository, koffi: ofTccl('koffi'), saxes: ofTccl('saxes') };
    for (const [module, target] of Object.entries(links))
      if (!existsSync(join(project, 'node_modules', module))) symlinkSync(target, join(project, 'node_modules', module));
    for (const bundler of ['esbuild', 'rollup', 'webpack'])
      if (!existsSync(join(project, 'node_modules', bundler)))
        symlinkSync(join(modules, bundler), join(project, 'node_modules', bundler));
    for (const [file, text] of Object.entries(files)) writeFileSync(join(project, file), text);
    for (const external of [false, true]) {
      writeFileSync(join(project, 'build.mjs'), bundlers[name]!(folderOf(external), external));
      const { stdout, stderr, status } = spawnSync(process.execPath, ['build.mjs'], { cwd: project, encoding: 'utf8' });
      expect({ status }, stdout + stderr).toEqual({ status: 0 });
    }
  });

  const run = async (external: boolean, what: string, module = '') => {
    const file = (program: string) => join(project, folderOf(external), `${program}.${ending}`);
    const command =
      what === 'processes'
        ? [cliPath, 'run', '-n', '2', '--no-prefix', '--', process.execPath, file('rank')]
        : [file('main'), what, module === '' ? '' : file(module)];
    const { stdout, stderr } = await start(process.execPath, command, { cwd: project }).finished;
    return { stdout, stderr };
  };

  // A bundle in CommonJS requires tccl, which is an ES module.
  const noRequire = ending === 'cjs' ? needsNode('20.19') : '';
  it.skipIf(noRequire).each([false, true])(
    `runs ranks as processes and threads (tccl external: %s)${noRequire}`,
    async (external) => {
      const expected = { stdout: '6 0.1.0\n6 0.1.0\n', stderr: '' };
      expect(await run(external, 'processes')).toEqual(expected);
      expect(await run(external, 'threads', 'rank')).toEqual(expected);
    },
  );

  it.skipIf(noRequire)(`without tccl in it runs pools and engine threads${noRequire}`, async () => {
    expect(await run(true, 'pool', 'jobs')).toEqual({ stdout: '0,1\n', stderr: '' });
    expect(await run(true, 'engine')).toEqual({ stdout: '2\n', stderr: '' });
  });

  it('with tccl in it runs them, or gives a remedy in one line', async () => {
    const pool = (await run(false, 'pool', 'jobs')).stdout;
    const engine = (await run(false, 'engine')).stdout;
    if (name === 'webpack') expect({ pool, engine }).toEqual({ pool: '0,1\n', engine: '2\n' });
    else {
      const advice = (file: string) => `; a bundle has no ${file}: keep tccl out of it (esbuild --external:tccl, Rollup`;
      expect(pool).toContain(advice('pool-rank.js'));
      expect(engine).toContain(advice('direct-thread.js'));
      for (const text of [pool, engine]) expect(text.trimEnd()).not.toContain('\n');
    }
  });
});
