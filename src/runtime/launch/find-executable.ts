import { accessSync, constants, statSync } from '#platform/files';
import { delimiter, join } from '#platform/paths';

/** Path of a command, or the reason why it cannot run, with the exit codes of shells: 127 and 126. */
type Executable =
  | { readonly kind: 'found'; readonly file: string }
  | { readonly kind: 'missing' }
  | { readonly kind: 'not-executable'; readonly file: string };

/**
 * Finds a command like execvp(3): a name with a slash is a path, any other name is searched in `path`; folders that this user
 * may not enter are skipped.
 */
export function findExecutable(command: string, path: string): Executable {
  const isWindows = process.platform === 'win32';
  const isPath = command.includes('/') || (isWindows && command.includes('\\'));
  const candidates = (isPath ? [command] : path.split(delimiter).map((directory) => join(directory, command))).flatMap((file) =>
    isWindows ? [`${file}.exe`, `${file}.com`, file] : [file],
  );
  let notExecutable: string | undefined;
  for (const file of candidates) {
    if (!isFile(file)) continue;
    if (isExecutable(file)) return { kind: 'found', file };
    notExecutable ??= file;
  }
  return notExecutable === undefined ? { kind: 'missing' } : { kind: 'not-executable', file: notExecutable };
}

function isFile(file: string): boolean {
  try {
    return statSync(file).isFile();
  } catch {
    return false;
  }
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
