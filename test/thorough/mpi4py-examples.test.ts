import { mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync, mkdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { tccl } from '../multi-process/cli.js';

const repository = fileURLToPath(new URL('../..', import.meta.url));
const folder = join(repository, 'examples/mpi4py');
const project = mkdtempSync(join(tmpdir(), 'tccl-mpi4py-'));

/** Lines that each program prints with three ranks, in any order. */
const printed: Readonly<Record<string, readonly string[]>> = {
  objects: ['{ a: 7, b: 3.14 }'],
  'objects-nonblocking': ['{ a: 7, b: 3.14 }'],
  arrays: ['999 99'],
  broadcast: [0, 1, 2].map((rank) => `rank ${rank}: {"key1":[7,2.72,"x"],"key2":["abc","xyz"]}`),
  scatter: ['rank 0: 1', 'rank 1: 4', 'rank 2: 9'],
  gather: ['rank 0: [1,4,9]', 'rank 1: null', 'rank 2: null'],
  'broadcast-array': ['rank 0: 99', 'rank 1: 99', 'rank 2: 99'],
  'scatter-array': ['rank 0: 0 100', 'rank 1: 1 100', 'rank 2: 2 100'],
  'gather-array': ['0 1 2'],
  'matrix-vector': ['15 30 45 60 75 90'],
  file: ['0 1 2'],
  pi: ['pi is about 3.141593'],
  window: ['42 43 44 45 46 47 48 49 50 51'],
};

beforeAll(() => {
  mkdirSync(join(project, 'node_modules'));
  symlinkSync(repository, join(project, 'node_modules/tccl'));
  for (const name of readdirSync(folder)) {
    // Node.js 20 runs no TypeScript; only types are removed.
    const { outputText } = ts.transpileModule(readFileSync(join(folder, name), 'utf8'), {
      compilerOptions: { module: ts.ModuleKind.ESNext, target: ts.ScriptTarget.ES2022, verbatimModuleSyntax: true },
    });
    writeFileSync(join(project, name.replace(/\.ts$/, '.mjs')), outputText);
  }
});
afterAll(() => rmSync(project, { recursive: true }));

test('every program of the tutorial has its output here', () => {
  expect(Object.keys(printed).sort()).toEqual(
    readdirSync(folder)
      .map((name) => name.replace(/\.ts$/, ''))
      .sort(),
  );
});

test.each(Object.entries(printed))('examples/mpi4py/%s.ts prints what it computes', async (name, lines) => {
  const program = join(project, `${name}.mjs`);
  const { code, stdout, stderr } = await tccl(['run', '-n', '3', '--no-prefix', '--', process.execPath, program]);
  expect(code, stderr).toBe(0);
  expect(stdout.trim().split('\n').sort()).toEqual([...lines].sort());
});
