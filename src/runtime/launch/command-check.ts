import { resolve } from 'node:path';
import { findExecutable } from './find-executable.js';
import { exitCodes } from './job.js';

/** A command that can be run, or the line and the exit code of one that cannot. */
export type CommandCheck =
  | { readonly kind: 'runnable'; readonly command: readonly [string, ...string[]] }
  | { readonly kind: 'refused'; readonly message: string; readonly exitCode: number };

/**
 * Looks the command of the ranks up, so that it is refused before any rank starts.
 *
 * @param directory where the ranks start: a name with a slash is a path from there
 */
export function checkCommand(
  command: readonly [string, ...string[]],
  path: string,
  nRanks: number,
  directory: string,
): CommandCheck {
  const [name, ...args] = command;
  const executable = findExecutable(name.includes('/') ? resolve(directory, name) : name, path);
  switch (executable.kind) {
    case 'found':
      return { kind: 'runnable', command: [executable.file, ...args] };
    case 'missing':
      return { kind: 'refused', message: `${name}: command not found`, exitCode: exitCodes.notFound };
    case 'not-executable': {
      const hint = /\.[cm]?[jt]s$/.test(name) ? `; start it with node: tccl run -n ${nRanks} node ${command.join(' ')}` : '';
      return { kind: 'refused', message: `${name}: not executable${hint}`, exitCode: exitCodes.cannotRun };
    }
  }
}
