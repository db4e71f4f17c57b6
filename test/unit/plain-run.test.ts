import { Command } from 'commander';
import { expect, test } from 'vitest';
import { register } from '../../src/cli/commands/run.js';
import { plainRun } from '../../src/cli/run/plain.js';
import type { RunOptions } from '../../src/cli/run/run.js';

/** Result of commander for the same arguments, or undefined if it refuses them. */
function parsed(args: readonly string[]): { command: string[]; options: RunOptions } | undefined {
  const program = new Command('tccl').enablePositionalOptions();
  register(program);
  let result: { command: string[]; options: RunOptions } | undefined;
  program.commands[0]
    ?.exitOverride()
    .configureOutput({ writeErr: () => undefined })
    .action((command: string[], options: RunOptions) => void (result = { command, options }));
  try {
    program.parse(['node', 'tccl', ...args]);
  } catch {
    return undefined;
  }
  return result;
}

test.each([
  ['run', 'node', 'job.js'],
  ['run', '-n', '4', 'node', 'job.js', '-n', '3', '--', '--help'],
  ['run', '-n', '4', '--', 'node', 'job.js'],
  ['run', '--ranks', '2', '--no-prefix', '-n', '3', 'a', '--', 'b'],
  ['run', '--no-prefix', './a b', ''],
  ['run', '-n', '9999', '--', 'x'],
])('tccl %j gives the same options as with commander', (...args) => {
  const plain = plainRun(args);
  expect(plain).toBeDefined();
  expect(plain).toEqual(parsed(args));
});

test.each([
  ['plan', 'a'],
  ['run'],
  ['run', '-n', '4'],
  ['run', '-n', '0', 'node'],
  ['run', '-n', '2,1', 'node'],
  ['run', '-n', 'p', 'node'],
  ['run', '-n4', 'node'],
  ['run', '--help'],
  ['run', '--', '--help'],
  ['run', '-n', '2', '--bind-to', 'core', 'node'],
  ['run', '--hosts', 'a:2', 'node'],
])('tccl %j is left to commander', (...args) => {
  expect(plainRun(args)).toBeUndefined();
});
