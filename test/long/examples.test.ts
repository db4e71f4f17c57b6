import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { tccl } from '../multi-process/cli.js';

/** A program of examples/. */
function example(path: string): string {
  return fileURLToPath(new URL(`../../examples/${path}`, import.meta.url));
}

/** Output of the example on rank 0 with a number of ranks. */
async function outputOf(ranks: number, path: string, env: NodeJS.ProcessEnv): Promise<string> {
  const { code, stdout, stderr } = await tccl(
    ['run', '-n', String(ranks), '--no-prefix', '--', process.execPath, example(path)],
    { env },
  );
  expect(code, stderr).toBe(0);
  return stdout;
}

describe('examples/mnist', () => {
  const missing = existsSync(example('mnist/node_modules')) ? '' : ' (needs: npm ci --prefix examples/mnist)';

  it.skipIf(missing)(`1 rank and 4 ranks end with the same loss${missing}`, async () => {
    const losses = async (ranks: number): Promise<number[]> => {
      const output = await outputOf(ranks, 'mnist/train.mjs', { EPOCHS: '1' });
      expect(output).toMatch(/^accuracy on 1000 other digits: [6-9]\d\.\d\d%$/m);
      return [...output.matchAll(/loss ([\d.]+)/g)].map(([, loss]) => Number(loss));
    };
    const alone = await losses(1);
    expect(alone).toHaveLength(1);
    const together = await losses(4);
    alone.forEach((loss, epoch) => expect(together[epoch]).toBeCloseTo(loss, 4));
  });
});

describe('examples/heat.mjs', () => {
  it('any number of ranks gives the same temperatures, to the bit', async () => {
    const env = { SIZE: '61', STEPS: '50' };
    const temperatures = async (ranks: number): Promise<string | undefined> =>
      /^temperatures ([0-9a-f]{16})$/m.exec(await outputOf(ranks, 'heat.mjs', env))?.[1];
    const alone = await temperatures(1);
    expect(alone).toBeDefined();
    for (const ranks of [2, 3, 6]) expect(await temperatures(ranks)).toBe(alone);
  });
});
