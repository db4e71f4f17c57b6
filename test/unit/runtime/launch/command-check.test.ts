import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { checkCommand } from '../../../../src/runtime/launch/command-check.js';

const directory = mkdtempSync(join(tmpdir(), 'tccl-command-'));
afterAll(() => {
  rmSync(directory, { recursive: true });
});
beforeAll(() => {
  for (const name of ['node', 'bun', 'deno', 'python3', 'bash', 'other'])
    writeFileSync(join(directory, name), '', { mode: 0o755 });
  writeFileSync(join(directory, 'job.mjs'), '');
});

const check = (line: string) => checkCommand(line.split(' ') as [string], directory, directory);

describe('an interpreter whose script', () => {
  it.each([
    ['node nope.mjs', 'nope.mjs'],
    ['node --expose-gc --max-old-space-size=100 ./nope.js --epochs 3', './nope.js'],
    ['./node nope.ts', 'nope.ts'],
    ['bun run nope.tsx', 'nope.tsx'],
    ['deno run --allow-net=:80 nope.mts', 'nope.mts'],
    ['python3 -u nope.py', 'nope.py'],
    ['bash nope.sh', 'nope.sh'],
  ])('is missing is refused as a missing command is: %s', (line, script) => {
    expect(check(line)).toEqual({ kind: 'refused', message: `${script}: there is no such file`, exitCode: 127 });
  });

  it.each([
    'node job.mjs',
    'node --no-warnings job.mjs',
    'node',
    'node -e 1',
    'node --import nope.mjs job.mjs',
    'node -r nope.js job.mjs',
    'node nope',
    'node inspect nope.mjs',
    'bun run build',
    'deno run https://example.com/nope.ts',
    'python3 -m nope.py',
    'bash -c nope.sh',
    'other nope.mjs',
  ])('is there or unknown is run: %s', (line) => {
    expect(check(line)).toMatchObject({ kind: 'runnable' });
  });
});
