import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { findExecutable } from './find-executable.js';
import { exitCodes } from './job.js';

/** A command that can be run, or the line and the exit code of one that cannot. */
type CommandCheck =
  | { readonly kind: 'runnable'; readonly command: readonly [string, ...string[]] }
  | { readonly kind: 'refused'; readonly message: string; readonly exitCode: number };

/**
 * Finds the command of the ranks, so that a missing one is refused before any rank starts.
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
  const script = scriptAt(name, directory);
  const executable = findExecutable(name.includes('/') ? resolve(directory, name) : name, path);
  switch (executable.kind) {
    case 'found':
      return { kind: 'runnable', command: [executable.file, ...args] };
    case 'missing':
      if (script !== undefined) return { kind: 'runnable', command: [process.execPath, script, ...args] };
      return { kind: 'refused', message: `${name}: command not found`, exitCode: exitCodes.notFound };
    case 'not-executable': {
      if (script !== undefined) return { kind: 'runnable', command: [process.execPath, script, ...args] };
      const hint = /\.[cm]?ts$/.test(name)
        ? `; start it with what runs TypeScript: tccl run -n ${nRanks} npx tsx ${command.join(' ')}`
        : '';
      return { kind: 'refused', message: `${name}: not executable${hint}`, exitCode: exitCodes.cannotRun };
    }
  }
}

/** The path of a file of JavaScript, which Node runs where it is no command itself. */
function scriptAt(name: string, directory: string): string | undefined {
  const path = resolve(directory, name);
  return /\.[cm]?js$/.test(name) && existsSync(path) ? path : undefined;
}
