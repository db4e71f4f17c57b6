import { expect, test } from 'vitest';
import { spawnRanks } from '../../dist/index.js';
import { fixture } from '../multi-process/cli.js';
import { runRanks } from '../multi-process/ranks.js';

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

test.each([
  { way: 'by machine code', args: [], env: {} },
  { way: 'by machine code, shared by engine threads', args: ['2'], env: {} },
  { way: 'by WebAssembly', args: [], env: { TCCL_MACHINE_CODE_DISABLE: '1' } },
  { way: 'by WebAssembly since one rank has nothing else', args: [], env: { TEST_WITHOUT: '1' } },
])('blocks too long for caches are written to both outputs, and nothing else is: $way', async ({ args, env }) => {
  const { records, stderr } = await runRanks(2, 'spread.mjs', args, { env });
  expect(
    [...records].sort((a, b) => Number(a['rank']) - Number(b['rank'])),
    stderr,
  ).toEqual([0, 1].map((rank) => ({ rank, checked: 20 })));
});

test.each([
  { way: 'where they lie', nRanks: 2, env: {} },
  { way: 'where they lie, on three ranks', nRanks: 3, env: {} },
  { way: 'with those of others in staging memory', nRanks: 2, env: { TCCL_CMA_DISABLE: '1' } },
  { way: 'by WebAssembly', nRanks: 2, env: { TCCL_MACHINE_CODE_DISABLE: '1' } },
])('ordinary arrays are summed $way', async ({ nRanks, env }) => {
  const { records, stderr } = await runRanks(nRanks, 'private-sums.mjs', [], { env });
  expect(records, stderr).toHaveLength(nRanks);
  for (const { checked } of records) expect(checked).toBeGreaterThan(500_000);
});

test('ranks that are threads sum ordinary arrays in place', async () => {
  await spawnRanks(2, fixture('private-sums.mjs'));
});
