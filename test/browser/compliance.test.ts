import { rolldown } from 'rolldown';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { fixture } from '../multi-process/cli.js';
import { runs } from '../runs.js';
import { missing } from './chromium.js';
import { IsolatedPages } from './isolated.js';

/** TCCL_TEST_SEED repeats a run that failed. */
const seed = String(process.env['TCCL_TEST_SEED'] ?? Math.floor(Math.random() * 1e6));
const shims = fileURLToPath(new URL('node-shims.mjs', import.meta.url));

let pages: IsolatedPages;
beforeAll(async () => {
  if (missing === '') pages = await IsolatedPages.open();
});
afterAll(() => pages.close());

/** A program that runs in processes and threads of Node.js, as a module of a page. What it prints is posted. */
async function moduleOf(program: string, args: readonly string[]): Promise<string> {
  const bundle = await rolldown({
    input: fixture(program),
    platform: 'browser',
    plugins: [
      {
        name: 'page',
        resolveId: (id: string) => {
          if (id === 'tccl' || id.endsWith('dist/index.js')) return { id: '/dist/browser/index.js', external: true };
          return id.startsWith('node:') ? shims : null;
        },
      },
    ],
  });
  const { output } = await bundle.generate({
    intro: `globalThis.process = { argv: ${JSON.stringify(['node', program, ...args])}, env: {}, on() {} };
      globalThis.setImmediate = (action) => setTimeout(action, 0);
      console.log = (...said) => postMessage(said.join(' '));`,
  });
  await bundle.close();
  return output[0].code;
}

/** Runs a program in the ranks of a page. Returns the lines that they print. */
async function run(nRanks: number, program: string, args: readonly string[] = [], env = {}): Promise<readonly string[]> {
  const path = `/${program}-${args.join('-')}.js`;
  pages.files.set(path, await moduleOf(program, args));
  const page = await pages.page();
  const { said, error } = await page.evaluate<{ readonly said: readonly string[]; readonly error?: string }>(
    `(async () => {
      const { spawnRanks } = await import('/dist/browser/index.js');
      const said = [];
      const onMessage = (message) => said.push(typeof message === 'string' ? message : JSON.stringify(message));
      try {
        await spawnRanks(${nRanks}, ${JSON.stringify(path)}, { onMessage, env: ${JSON.stringify(env)} });
        return { said };
      } catch (error) {
        return { said, error: error.message + '\\n' + (error.cause?.stack ?? error.stack) };
      }
    })()`,
  );
  await page.context().close();
  expect(error, `seed ${seed}: ${[program, ...args].join(' ')}`).toBeUndefined();
  return said;
}

describe.skipIf(missing)(`programs of Node's ranks in a page${missing}`, () => {
  it.each([1, 2, 4])('all kinds, types and operators among %i ranks', async (nRanks) => {
    await run(nRanks, 'random-collectives.mjs', ['--seed', seed, '--calls', String(runs(40, 300))]);
    await run(nRanks, 'random-collectives.mjs', ['--seed', seed, '--calls', String(runs(40, 300)), '--promises']);
  });

  it('messages, in place and by promises', async () => {
    await run(3, 'random-messages.mjs', [seed, '10']);
    await run(3, 'random-messages.mjs', [seed, '10', 'promises']);
  });

  it('objects and values', async () => {
    await run(3, 'values.mjs', ['promise']);
    await run(3, 'values.mjs', ['sync']);
    await run(3, 'random-objects.mjs', [seed, '10']);
  });

  it('operators of the program', async () => {
    await run(3, 'own-operators.mjs', ['promise', '70000']);
    await run(2, 'own-operators.mjs', ['sync', '70000']);
  });

  it('windows', async () => {
    await run(4, 'windows.mjs', ['random', seed]);
    await run(3, 'windows.mjs', ['get', seed]);
  });

  it('split, and all that comes from it', async () => {
    await run(4, 'split.mjs', [seed, '20']);
    await run(4, 'split.mjs', [seed, '20', 'promises']);
  });

  it('grids, and lengths that only the receiver learns', async () => {
    await run(6, 'grid.mjs');
    await run(3, 'any-length.mjs');
  });

  it.each(['ring', 'tree', 'nvls'])('the algorithm %s', async (algorithm) => {
    await run(3, 'random-collectives.mjs', ['--seed', seed, '--calls', '30', '--kinds', 'allReduce,broadcast'], {
      TCCL_ALGO: algorithm,
    });
  });
});
