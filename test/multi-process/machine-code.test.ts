import { expect, test } from 'vitest';
import { spawnRanks } from '../../dist/index.js';
import { fixture } from './cli.js';
import { runRanks } from './ranks.js';

test.each([
  { way: 'by machine code', args: [], env: {} },
  { way: 'by WebAssembly', args: [], env: { TCCL_MACHINE_CODE_DISABLE: '1' } },
  { way: 'by WebAssembly on one rank', args: ['oneWithout'], env: {} },
  { way: 'on engine threads', args: ['thread'], env: {} },
  // A ring adds three inputs in an order of its own.
  { way: 'in a ring', nRanks: 2, args: [], env: { TCCL_ALGO: 'ring' } },
])('sums of every float16 are the same $way', async ({ nRanks = 3, args, env }) => {
  const { code, stdout, stderr } = await runRanks(nRanks, 'float16-sums.mjs', args, { env });
  expect(code, `${stdout}\n${stderr}`).toBe(0);
});

test('sums of every float16 are the same on ranks that are threads', async () => {
  await spawnRanks(3, fixture('float16-sums.mjs'));
});
