import { InvalidUsageError } from '../../errors.js';
import { bindRanks, type BindingUnit } from './binding.js';
import { findExecutable } from './find-executable.js';
import { defined } from '../../defined.js';

/**
 * The command of each rank of a host, by its number there: the user's, behind taskset(1) where ranks are bound.
 *
 * @throws InvalidUsageError `UNSUPPORTED` without taskset, or with more ranks than cores
 */
export function rankCommands(
  command: readonly [string, ...string[]],
  nRanks: number,
  bindTo: BindingUnit | 'none',
  path: string,
): (localRank: number) => readonly [string, ...string[]] {
  if (bindTo === 'none') return () => command;
  const taskset = findExecutable('taskset', path);
  if (taskset.kind !== 'found') {
    throw new InvalidUsageError(
      'UNSUPPORTED',
      '--bind-to needs the program taskset (Debian package util-linux), which is not there',
    );
  }
  const cpus = bindRanks(bindTo, nRanks);
  return (localRank) => [taskset.file, '-c', defined(cpus[localRank]), ...command];
}
