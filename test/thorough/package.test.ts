import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { needsNode, start } from '../multi-process/cli.js';

const repository = fileURLToPath(new URL('../..', import.meta.url));
const project = mkdtempSync(join(tmpdir(), 'tccl-package-'));
let packed: { filename: string; files: { path: string }[] };
/** Reason why npm could not install the package here, if any. */
let offline: string | undefined;

beforeAll(() => {
  const output = execFileSync('npm', ['pack', '--json', '--ignore-scripts', '--pack-destination', project], {
    cwd: repository,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  packed = (JSON.parse(output) as [typeof packed])[0];
  writeFileSync(join(project, 'package.json'), JSON.stringify({ name: 'empty', private: true, type: 'module' }));
  // What npm ci fetched is in npm's cache: no need to ask the registry.
  const install = spawnSync('npm', ['install', '--prefer-offline', '--no-audit', '--no-fund', `./${packed.filename}`], {
    cwd: project,
    encoding: 'utf8',
  });
  if (install.status !== 0) {
    if (!/ENOTCACHED|EAI_AGAIN|ECONNREFUSED|ETIMEDOUT|ENOTFOUND|E5\d\d|network/i.test(install.stderr))
      throw new Error(install.stderr);
    offline = 'npm cannot reach a registry';
  }
});

afterAll(() => rmSync(project, { recursive: true, force: true }));

test('packing builds first', () => {
  const { scripts } = JSON.parse(readFileSync(join(repository, 'package.json'), 'utf8')) as { scripts: Record<string, string> };
  expect(scripts['prepack']).toBe('npm run --silent build');
});

test('the public declarations are those of api/', () => {
  const { status, stderr } = spawnSync(process.execPath, ['scripts/api-report.mjs', '--check'], {
    cwd: repository,
    encoding: 'utf8',
  });
  expect(stderr).toBe('');
  expect(status).toBe(0);
});

test('the package has the program and its documentation, and nothing else', () => {
  const paths = packed.files.map((file) => file.path);
  for (const path of [
    'dist/index.js',
    'dist/types/index.d.ts',
    'dist/planner/index.js',
    'dist/ddp/index.js',
    'dist/webgpu/index.js',
    'dist/cuda/index.js',
    'dist/browser/webgpu.js',
    'dist/cli/main.js',
    'dist/runtime/pool/pool-rank.js',
    'dist/runtime/threads/direct-thread.js',
    'dist/runtime/threads/network-thread.js',
    'README.md',
    'LICENSE',
    'examples/sum.mjs',
  ]) {
    expect(paths).toContain(path);
  }
  // Pages that the README leads to, which nobody has at hand who only installed the package.
  for (const [, page = ''] of readFileSync(join(repository, 'README.md'), 'utf8').matchAll(
    /\]\(((?:docs|examples)\/[^)#]+\.md)/g,
  ))
    expect(paths).toContain(page);
  // Modules that only tests and benchmarks import by their own path stay at home.
  expect(paths).not.toContain('dist/runtime/device/kernels/kernels-wasm.js');
  expect(paths.length).toBeLessThan(300);
  expect(
    paths.filter((path) =>
      /node_modules|^(src|test|testing|build|bench|\.ci)\/|oracle|accuracy-page|\.map$|tsbuildinfo$/.test(path),
    ),
  ).toEqual([]);
});

/** Runs the example in the project, by the installed command. */
const sumOfTwoRanks = () =>
  start('npx', ['--no-install', '--prefix', project, 'tccl', 'run', '-n', '2', '--', 'node', join(project, 'sum.mjs')]).finished;

test('ranks of different builds of one version do not meet', async () => {
  const { BUILD: build, version } = (await import(join(repository, 'dist/version.js'))) as { BUILD: string; version: string };
  expect(build).toMatch(/^[0-9a-f]{8}$/);
  const other = join(project, 'other');
  cpSync(join(repository, 'dist'), join(other, 'dist'), { recursive: true });
  symlinkSync(join(repository, 'node_modules'), join(other, 'node_modules'));
  writeFileSync(join(other, 'package.json'), '{ "type": "module" }');
  for (const name of readdirSync(join(other, 'dist'))) {
    if (!name.startsWith('joined-')) continue;
    const file = join(other, 'dist', name);
    writeFileSync(file, readFileSync(file, 'utf8').replace(`"${build}"`, '"01234567"'));
  }
  const rank = (number: number, dist: string) =>
    start(
      process.execPath,
      ['--input-type=module', '-e', `import { init } from ${JSON.stringify(join(dist, 'dist/index.js'))}; await init();`],
      { env: { TCCL_RANK: String(number), TCCL_NRANKS: '2', TCCL_COMM_ID: '127.0.0.1:29871' } },
    ).finished;
  const ended = await Promise.all([rank(0, repository), rank(1, other)]);
  for (const { code, stderr } of ended) {
    expect(code).toBe(1);
    expect(stderr).toContain('the ranks have different versions of tccl: ');
    expect(stderr).toContain(`${version} (build ${build}) at rank 0`);
    expect(stderr).toContain(`${version} (build 01234567) at rank 1`);
  }
});

describe('installed into an empty project', () => {
  test('the command starts ranks that sum', async (context) => {
    if (offline !== undefined) return context.skip(offline);
    cpSync(join(repository, 'examples/sum.mjs'), join(project, 'sum.mjs'));
    const { stdout, stderr, code } = await sumOfTwoRanks();
    expect(stdout.split('\n').sort(), stderr).toEqual(['', '[0] rank 0 of 2: 3', '[1] rank 1 of 2: 3']);
    expect(code).toBe(0);
  });

  const compilers: readonly (readonly [string, { readonly lib: readonly string[]; readonly types: readonly string[] }])[] = [
    ['with the types of Node', { lib: ['es2022'], types: ['node'] }],
    ['with the DOM', { lib: ['es2022', 'dom'], types: [] }],
    ['with neither', { lib: ['es2022'], types: [] }],
  ];
  test.for(compilers)(
    'TypeScript finds the types of tccl and tccl/planner, and checks them, %s',
    ([, { lib, types }], context) => {
      if (offline !== undefined) return context.skip(offline);
      const platform = [
        'await init({ signal: AbortSignal.timeout(1000) });',
        "await spawnRanks(2, new URL('./job.js', import.meta.url), { signal: AbortSignal.timeout(1000) });",
        '// @ts-expect-error no signal',
        'await init({ signal: new URL(import.meta.url) });',
      ];
      const neither = types.length === 0 && lib.length === 1;
      writeFileSync(
        join(project, 'job.ts'),
        [
          "import { fromFloat16, init, spawnRanks, toFloat16, type Algorithm, type CallKind, type Communicator, TcclError } from 'tccl';",
          "import { describeError } from 'tccl/planner';",
          'const comm: Communicator = await init({ timeoutMs: 1000 });',
          'const x: Float32Array = comm.alloc(Float32Array, 3);',
          '// @ts-expect-error it is a SharedArrayBuffer',
          'const buffer: ArrayBuffer = comm.alloc(Float32Array, 3).buffer;',
          'toFloat16(fromFloat16(comm.alloc(Uint16Array, 3), x), new Uint16Array(buffer));',
          'await comm.allToAllV({ array: x, counts: Int32Array.of(3) }, { array: new Float32Array(3), counts: [3], displacements: undefined });',
          "const algorithm: Algorithm | undefined = comm.nRanks === 1 ? undefined : 'ring';",
          "const kind: CallKind = comm.explain('allReduce', 8).collective;",
          'const child = await comm.split(0, comm.rank, { name: undefined, algorithm, engine: undefined, timeoutMs: undefined });',
          'await comm.grow(comm.nRanks + 1, { commId: child.name }).catch(() => kind);',
          "await comm.allReduce(x, x, 'max');",
          '// @ts-expect-error no such operator',
          "await comm.allReduce(x, x, 'maximum').catch((error: unknown) => [error instanceof TcclError, describeError(error)]);",
          "await spawnRanks(2, './job.js');",
          ...(neither ? [] : platform),
        ].join('\n'),
      );
      const compilerOptions = {
        strict: true,
        exactOptionalPropertyTypes: true,
        skipLibCheck: false,
        noEmit: true,
        module: 'nodenext',
        target: 'es2022',
        lib,
        types,
        typeRoots: [join(repository, 'node_modules/@types')],
      };
      writeFileSync(join(project, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['job.ts'] }));
      const tsc = spawnSync(process.execPath, [join(repository, 'node_modules/typescript/bin/tsc'), '-p', project], {
        encoding: 'utf8',
      });
      expect(tsc.stdout).toBe('');
      expect(tsc.status).toBe(0);
    },
  );

  const noRequire = needsNode('20.19');
  test.skipIf(noRequire)(`CommonJS requires it${noRequire}`, (context) => {
    if (offline !== undefined) return context.skip(offline);
    writeFileSync(
      join(project, 'sum.cjs'),
      "const { init } = require('tccl');\nvoid init().then((comm) => { console.log(comm.nRanks); return comm.close(); });\n",
    );
    const { stdout, stderr } = spawnSync(process.execPath, [join(project, 'sum.cjs')], { encoding: 'utf8' });
    expect(stdout, stderr).toBe('1\n');
  });

  test('without koffi, which is optional, ranks use sockets and log it, and can use blocking calls', async (context) => {
    if (offline !== undefined) return context.skip(offline);
    const omit = spawnSync('npm', ['install', '--omit=optional', '--prefer-offline', '--no-audit', '--no-fund'], {
      cwd: project,
      encoding: 'utf8',
    });
    expect(omit.status, omit.stderr).toBe(0);
    const { stdout, stderr, code } = await sumOfTwoRanks();
    expect(stdout.split('\n').sort(), stderr).toEqual(['', '[0] rank 0 of 2: 3', '[1] rank 1 of 2: 3']);
    expect(stderr).toContain('data goes through sockets: the library koffi cannot be loaded');
    expect(code).toBe(0);

    writeFileSync(
      join(project, 'blocking.mjs'),
      [
        "import { init } from 'tccl';",
        'const comm = await init({ blocking: true });',
        'const x = comm.alloc(Float32Array, 1000).fill(comm.rank + 1);',
        'comm.allReduceSync(x);',
        'console.log(x[0], x[999]);',
        'await comm.close();',
      ].join('\n'),
    );
    const blocking = await start('npx', [
      '--no-install',
      '--prefix',
      project,
      'tccl',
      'run',
      '-n',
      '2',
      '--',
      'node',
      join(project, 'blocking.mjs'),
    ]).finished;
    expect(blocking.stdout.split('\n').sort(), blocking.stderr).toEqual(['', '[0] 3 3', '[1] 3 3']);
    expect(blocking.code).toBe(0);
  });
});
