import { existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, it } from 'vitest';
import { openPool, spawnRanks } from '../../dist/index.js';
import { needsNode, start } from '../multi-process/cli.js';

const repository = fileURLToPath(new URL('../..', import.meta.url));
const installed = join(repository, 'test/typescript-ranks/node_modules');
const missing = existsSync(installed) ? '' : ' (needs: npm ci --prefix test/typescript-ranks)';
const newerNode = join(repository, 'test/nodes/node_modules/newest/bin/node');
const noNewerNode = existsSync(newerNode) ? '' : ' (needs: npm ci --ignore-scripts --prefix test/nodes, on x64)';
/** Empty where a program can register a loader of modules. */
const noLoader = needsNode('20.6');

const folder = mkdtempSync(join(tmpdir(), 'tccl-typescript-'));
afterAll(() => rmSync(folder, { recursive: true }));

const files = {
  'package.json': JSON.stringify({ type: 'module' }),
  'scale.ts': 'export const scale = (value: number, by: number): number => value * by;',
  'rank.ts': `
    import { parentPort } from 'node:worker_threads';
    import { init, type Communicator } from 'tccl';
    import { scale } from './scale.ts';
    const comm: Communicator = await init();
    const x: Float32Array = comm.alloc(Float32Array, 2).fill(scale(comm.rank + 1, 10));
    await comm.allReduce(x);
    parentPort!.postMessage(x[0]);
    await comm.close();`,
  'jobs.ts': `
    import type { Communicator } from 'tccl';
    import { scale } from './scale.ts';
    export async function scaled(comm: Communicator, value: number): Promise<number> {
      return scale(comm.rank, value);
    }`,
  'sum.ts': `
    import { init, type Communicator } from 'tccl';
    import { scale } from './scale.ts';
    const comm: Communicator = await init();
    const x: Float32Array = new Float32Array(1).fill(scale(comm.rank + 1, 10));
    await comm.allReduce(x);
    console.log(x[0]);
    await comm.close();`,
  'main.ts': `
    import { openPool, spawnRanks } from 'tccl';
    const sums: unknown[] = [];
    await spawnRanks(2, new URL('./rank.ts', import.meta.url), { onMessage: (sum: unknown, rank: number) => (sums[rank] = sum) });
    const pool = await openPool<typeof import('./jobs.ts')>({ ranks: 2, module: new URL('./jobs.ts', import.meta.url) });
    const scaled: number[] = await pool.run('scaled', 5);
    await pool.close();
    console.log(sums.join(), scaled.join());`,
};

/** A project with these files and tccl, and tsx if asked for. */
function project(name: string, modules: readonly string[]): string {
  const path = join(folder, name);
  mkdirSync(join(path, 'node_modules'), { recursive: true });
  symlinkSync(repository, join(path, 'node_modules/tccl'));
  for (const module of modules) symlinkSync(join(installed, module), join(path, 'node_modules', module));
  for (const [file, text] of Object.entries(files)) writeFileSync(join(path, file), text);
  return path;
}
const withTsx = project('with-tsx', ['tsx']);
const without = project('without', []);
const readsTypeScript = Boolean((process.features as { typescript?: unknown }).typescript);

describe('ranks in TypeScript', () => {
  it.skipIf(missing || noLoader)(`run under node --import tsx${missing}${noLoader}`, async () => {
    const { stdout, stderr, code } = await start(process.execPath, ['--import', 'tsx', 'main.ts'], { cwd: withTsx }).finished;
    expect({ stdout, stderr, code }).toEqual({ stdout: '30,30 0,5\n', stderr: '', code: 0 });
  });

  it.skipIf(missing || noLoader)(`run under tsx${missing}${noLoader}`, async () => {
    const tsx = join(installed, 'tsx/dist/cli.mjs');
    const { stdout, stderr, code } = await start(process.execPath, [tsx, 'main.ts'], { cwd: withTsx }).finished;
    expect({ stdout, stderr, code }).toEqual({ stdout: '30,30 0,5\n', stderr: '', code: 0 });
  });

  it.skipIf(noNewerNode)(`run under a Node that strips types${noNewerNode}`, async () => {
    const { stdout, stderr, code } = await start(newerNode, ['main.ts'], { cwd: without }).finished;
    expect({ stdout, stderr, code }).toEqual({ stdout: '30,30 0,5\n', stderr: '', code: 0 });
  });

  const run = (node: string, cwd: string) =>
    start(node, [join(repository, 'dist/cli/main.js'), 'run', '-n', '2', '--no-prefix', 'sum.ts'], { cwd }).finished;

  it.skipIf(missing || noLoader)(`are run by tccl run through tsx${missing}${noLoader}`, async () => {
    expect(await run(process.execPath, withTsx)).toMatchObject({ stdout: '30\n30\n', stderr: '', code: 0 });
  });

  it.skipIf(noNewerNode)(`are run by tccl run with a Node that strips types${noNewerNode}`, async () => {
    expect(await run(newerNode, without)).toMatchObject({ stdout: '30\n30\n', stderr: '', code: 0 });
  });

  it.skipIf(needsNode('22.6') === '')('are refused by tccl run where no loader can read them, with a remedy', async () => {
    const project = noLoader === '' ? without : withTsx;
    const { stdout, stderr, code } = await run(process.execPath, project);
    expect(stderr).toMatch(
      /^tccl run: sum\.ts: Node [\d.]+ cannot run TypeScript; install tsx in the project .*, use Node 22\.6 or newer, .*\n$/,
    );
    expect([stdout, code]).toEqual(['', 126]);
  });

  it.skipIf(missing)(`run in vitest${missing}`, async () => {
    const sums: unknown[] = [];
    await spawnRanks(2, join(withTsx, 'rank.ts'), { onMessage: (sum, rank) => (sums[rank] = sum) });
    expect(sums).toEqual([30, 30]);
    const pool = await openPool({ ranks: 2, module: join(withTsx, 'jobs.ts') });
    expect(await pool.run('scaled', 7)).toEqual([0, 7]);
    await pool.close();
  });

  it.skipIf(readsTypeScript)('that no loader can read are refused with a remedy', async () => {
    const message =
      /^spawnRanks: Node [\d.]+ cannot run \/.*\/rank\.ts, which is TypeScript; install tsx in the project \(.*, use Node 22\.18 or newer/;
    await expect(spawnRanks(2, join(without, 'rank.ts'))).rejects.toThrow(
      expect.objectContaining({ code: 'UNSUPPORTED', message: expect.stringMatching(message) as string }),
    );
    await expect(openPool({ ranks: 1, module: join(without, 'jobs.ts') })).rejects.toThrow(/^openPool: Node .* cannot run/);
    // A loader that does not read TypeScript is taken for one that does: the rank fails, with the same advice.
    await expect(spawnRanks(1, join(without, 'rank.ts'), { execArgv: ['--import', 'data:text/javascript,'] })).rejects.toThrow(
      /^rank 0 of 1 failed: Unknown file extension ".ts" .*; spawnRanks: install tsx/,
    );
  });
});
