import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { start } from '../multi-process/cli.js';

const soak = fileURLToPath(new URL('../../bench/soak.mjs', import.meta.url));

it('a short soak: random calls of changing ranks and algorithms', async () => {
  const { code, stdout, stderr } = await start(process.execPath, [soak, '--minutes', '0.1', '--calls', '20']).finished;
  expect(code, stderr).toBe(0);
  expect(stdout).toMatch(/^\d+ rounds of 20 random calls, seeds \d+ to \d+: every element right\n$/);
});

it('a soak of zero seconds is wrong use', async () => {
  expect(await start(process.execPath, [soak, '--minutes', 'x']).finished).toMatchObject({
    code: 2,
    stderr: "soak: --minutes 'x' must be a number above 0\n",
  });
});

it('a short soak with failures: the remaining ranks report them and continue', async () => {
  const { code, stdout, stderr } = await start(process.execPath, [soak, '--failures', '--rounds', '6', '--seed', '8']).finished;
  expect(code, stderr).toBe(0);
  expect(stdout).toContain('6 rounds of failures, seeds 8 to 13: all as promised\n');
}, 300_000);
