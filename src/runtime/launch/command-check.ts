import { accessSync, constants, existsSync } from '#platform/files';
import { basename, resolve } from '#platform/paths';
import { ownPath } from '../../own-module.js';
import { findExecutable } from './find-executable.js';
import { exitCodes } from './job.js';
import { isTypeScript, nodeFlagsFor, PROCESS_REMEDY } from './typescript-ranks.js';

/** tccl's own command line. */
const OWN_COMMAND = ownPath('cli/main.js');

/** A command that can be run, or the line and the exit code of one that cannot. */
type CommandCheck =
  | { readonly kind: 'runnable'; readonly command: readonly [string, ...string[]] }
  | { readonly kind: 'refused'; readonly message: string; readonly exitCode: number };

/**
 * Finds the command of the ranks, so that a missing one, or a missing directory, is refused before any rank starts. A file of
 * JavaScript or TypeScript that is no command itself is run by Node; `tccl` and `node` where PATH has none are those that run
 * this code.
 *
 * @param directory where the ranks start: a name with a slash is a path from there
 */
export function checkCommand(command: readonly [string, ...string[]], path: string, directory: string): CommandCheck {
  const [name, ...args] = command;
  const blocked = whyNotEntered(directory);
  if (blocked !== undefined) {
    const message = `the directory ${directory} cannot be entered (${blocked}): make it, or give one that all hosts have with --wdir`;
    return { kind: 'refused', message, exitCode: exitCodes.failed };
  }
  const executable = findExecutable(name.includes('/') ? resolve(directory, name) : name, path);
  if (executable.kind === 'found') {
    const missing = missingScript(name, args, directory);
    if (missing === undefined) return { kind: 'runnable', command: [executable.file, ...args] };
    return { kind: 'refused', message: `${missing}: there is no such file`, exitCode: exitCodes.notFound };
  }
  // npx adds the package's commands to PATH on its own host only.
  if (name === 'tccl' && executable.kind === 'missing' && existsSync(OWN_COMMAND))
    return { kind: 'runnable', command: [process.execPath, OWN_COMMAND, ...args] };
  // The Node that runs this code may have another name.
  if (name === 'node' && executable.kind === 'missing') return { kind: 'runnable', command: [process.execPath, ...args] };
  const refused = (why: string, exitCode: number): CommandCheck => ({ kind: 'refused', message: `${name}: ${why}`, exitCode });
  const script = resolve(directory, name);
  const isScript = /\.[cm]?[jt]s$/.test(name);
  if (isScript && existsSync(script)) {
    const flags = isTypeScript(script) ? nodeFlagsFor(script) : [];
    if (flags !== undefined) return { kind: 'runnable', command: [process.execPath, ...flags, script, ...args] };
    return refused(`Node ${process.versions.node} cannot run TypeScript; ${PROCESS_REMEDY}`, exitCodes.cannotRun);
  }
  return executable.kind === 'missing'
    ? refused(isScript ? 'there is no such file' : 'command not found', exitCodes.notFound)
    : refused('not executable', exitCodes.cannotRun);
}

/** Interpreters, and the names of their scripts. */
const interpreters = [
  [/^(?:node|bun|deno|tsx|ts-node)$/, /\.[cm]?[jt]sx?$/],
  [/^python[\d.]*$/, /\.py$/],
  [/^(?:ba|da|k|z)?sh$/, /\.sh$/],
] as const;

/** Options of interpreters that take no value from the next word. */
const FLAGS = /^-(?:u|-[\w-]+=.*|-(?:no|expose|enable|trace|inspect|preserve|harmony|experimental-(?!loader))[\w-]*)$/;

/**
 * The script of an interpreter, if there is no such file: the first word after its flags (and `run` of Bun and Deno). Behind
 * other options it is unknown.
 */
function missingScript(name: string, args: readonly string[], directory: string): string | undefined {
  const program = basename(name).replace(/\.exe$/i, '');
  const [, scripts] = interpreters.find(([names]) => names.test(program)) ?? [];
  const script = args.find((word, i) => !FLAGS.test(word) && !(word === 'run' && i === 0));
  if (scripts === undefined || script === undefined || script.startsWith('-') || !scripts.test(script)) return undefined;
  return /^\w{2,}:/.test(script) || existsSync(resolve(directory, script)) ? undefined : script;
}

/** Code of the system's error. Node would report a missing directory as a missing command. */
function whyNotEntered(directory: string): string | undefined {
  try {
    accessSync(`${directory}/.`, constants.X_OK);
    return undefined;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? '';
  }
}
