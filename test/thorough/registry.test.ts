import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { isThorough } from '../runs.js';
import { start } from '../multi-process/cli.js';

const repository = fileURLToPath(new URL('../..', import.meta.url));
const modules = (path: string) => join(repository, 'test', path);
const verdaccio = modules('registry/node_modules/verdaccio/bin/verdaccio');
/** The registry needs Node 22; the test may run under 20. */
const newest = modules('nodes/node_modules/newest/bin/node');
const reason = !isThorough
  ? ' (needs: TCCL_TEST_ALL=1)'
  : existsSync(verdaccio) && existsSync(newest)
    ? ''
    : ' (needs: npm ci --ignore-scripts --prefix test/registry, and test/nodes)';

/** Runtimes, how each installs a package into a project, and how it runs a rank. */
const runtimes = [
  { name: 'this Node', command: process.execPath, install: ['npm', 'install', '--no-audit', '--no-fund', 'tccl'], args: [] },
  {
    name: 'Node 20.0',
    command: modules('nodes/node_modules/oldest/bin/node'),
    install: ['npm', 'install', '--no-audit', '--no-fund', 'tccl'],
    args: [],
  },
  { name: 'the newest Node', command: newest, install: ['npm', 'install', '--no-audit', '--no-fund', 'tccl'], args: [] },
  {
    name: 'Bun',
    command: modules('bundles/node_modules/@oven/bun-linux-x64/bin/bun'),
    install: [modules('bundles/node_modules/@oven/bun-linux-x64/bin/bun'), 'add', 'tccl'],
    args: [],
  },
  {
    name: 'Deno',
    command: modules('bundles/node_modules/@deno/linux-x64-glibc/deno'),
    install: [modules('bundles/node_modules/@deno/linux-x64-glibc/deno'), 'add', '--minimum-dependency-age=0', 'npm:tccl'],
    args: ['run', '--allow-all'],
  },
];

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  const { port } = server.address() as AddressInfo;
  await new Promise((done) => server.close(done));
  return port;
}

describe.skipIf(reason !== '')(`published to a registry${reason}`, () => {
  const folder = mkdtempSync(join(tmpdir(), 'tccl-registry-'));
  let registry: string;
  let server: ChildProcess | undefined;
  /** Reason why nothing could be published or installed, if any. */
  let offline: string | undefined;
  let env: NodeJS.ProcessEnv;

  beforeAll(async () => {
    const port = await freePort();
    registry = `http://127.0.0.1:${port}/`;
    const upstream = execFileSync('npm', ['config', 'get', 'registry'], { encoding: 'utf8' }).trim();
    writeFileSync(
      join(folder, 'registry.yaml'),
      JSON.stringify({
        storage: join(folder, 'storage'),
        uplinks: { upstream: { url: upstream } },
        packages: { tccl: { access: '$all', publish: '$all', unpublish: '$all' }, '**': { access: '$all', proxy: 'upstream' } },
        log: { type: 'stdout', level: 'fatal' },
      }),
    );
    server = spawn(newest, [verdaccio, '--config', join(folder, 'registry.yaml'), '--listen', `127.0.0.1:${port}`], {
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    });
    // It sends a message to its parent when it listens.
    await new Promise<void>((done, fail) => {
      server?.once('message', () => {
        done();
      });
      server?.once('exit', (code) => {
        fail(new Error(`the registry ended with ${code}`));
      });
    });
    writeFileSync(join(folder, 'npmrc'), `registry=${registry}\n//127.0.0.1:${port}/:_authToken=nobody\n`);
    env = {
      NPM_CONFIG_USERCONFIG: join(folder, 'npmrc'),
      NPM_CONFIG_REGISTRY: registry,
      NPM_CONFIG_CACHE: join(folder, 'cache'),
      BUN_INSTALL_CACHE_DIR: join(folder, 'bun'),
      DENO_DIR: join(folder, 'deno'),
    };
    const packed = await start('npm', ['publish', '--ignore-scripts', '--provenance=false'], { cwd: repository, env }).finished;
    expect(packed.stderr).toContain(`Publishing to ${registry}`);
    expect(packed.code, packed.stderr).toBe(0);
    const dependency = await start('npm', ['view', 'commander', 'name'], { cwd: folder, env }).finished;
    if (dependency.code !== 0) offline = 'the registry reaches no other';
  });
  afterAll(() => {
    server?.kill();
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  });

  it.for(runtimes)(
    '$name installs it into an empty project and runs ranks',
    async ({ name, command, install, args }, context) => {
      const missing = existsSync(command) ? offline : `needs ${command}`;
      if (missing !== undefined) return context.skip(missing);
      const project = join(folder, name.replaceAll(' ', '-'));
      mkdirSync(project);
      writeFileSync(join(project, 'package.json'), JSON.stringify({ name: 'empty', private: true, type: 'module' }));
      writeFileSync(join(project, '.npmrc'), `registry=${registry}\n`);
      cpSync(join(repository, 'examples/sum.mjs'), join(project, 'sum.mjs'));
      const [tool = '', ...given] = install;
      const path = `${dirname(command)}:${process.env['PATH'] ?? ''}`;
      const installed = await start(tool, given, { cwd: project, env: { ...env, PATH: path } }).finished;
      expect(installed.code, installed.stderr).toBe(0);
      const { stdout, stderr, code } = await start(
        process.execPath,
        [join(project, 'node_modules/tccl/dist/cli/main.js'), 'run', '-n', '2', '--no-prefix', '--', command, ...args, 'sum.mjs'],
        { cwd: project, env: { ...env, PATH: path } },
      ).finished;
      expect(stdout.split('\n').sort(), stderr).toEqual(['', 'rank 0 of 2: 3', 'rank 1 of 2: 3']);
      expect(code).toBe(0);
    },
  );

  it('has no faults that publint and attw know', async () => {
    const tool = async (path: string, ...args: string[]) =>
      start(process.execPath, [modules(`registry/node_modules/${path}`), ...args, repository], { cwd: repository }).finished;
    const lint = await tool('publint/src/cli.js', '--strict');
    expect(lint.code, lint.stdout).toBe(0);
    const types = await tool('@arethetypeswrong/cli/dist/index.js', '--profile', 'esm-only', '--pack');
    expect(types.code, types.stdout).toBe(0);
  });
});
