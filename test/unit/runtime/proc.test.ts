import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { linkOf, namesIn, processIds, statOf, textOf } from '../../../src/runtime/proc.js';

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), 'tccl-proc-'));
  onTestFinished(() => rmSync(path, { recursive: true }));
  return path;
}

test("a process's name may look like what follows it", () => {
  const path = folder();
  writeFileSync(join(path, 'stat'), '4711 (a) R 1 (b) T 12 34 56 1025 78 4194304 1 2 3 4 150 25 7 8 20 0 1 0\n');
  expect(statOf(path)).toEqual({ state: 'T', parent: 12, group: 34, terminal: 1025, foreground: 78, cpuMs: 1750 });
});

test('this process runs, and has the parent that Node.js names', () => {
  expect(statOf('/proc/self')).toMatchObject({ parent: process.ppid });
  expect(processIds()).toContain(process.pid);
});

test('what has ended, or never was, reads as empty', () => {
  const path = folder();
  mkdirSync(join(path, '12'));
  mkdirSync(join(path, 'self'));
  expect(processIds(path)).toEqual([12]);
  const none = join(path, 'none');
  expect([textOf(none), namesIn(none), linkOf(none), statOf(none)]).toEqual(['', [], undefined, undefined]);
});
