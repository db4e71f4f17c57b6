import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { InvalidArgumentError } from '../../errors.js';

const FILE_LIMIT = 20_000;

/** A file to read, or a path that cannot be read with the reason. */
export interface GivenFile {
  readonly path: string;
  readonly refused?: string;
}

/** The named files (`-` for the standard input), and all files in named folders except hidden ones. */
export function filesOf(paths: readonly string[]): GivenFile[] {
  if (paths.filter((path) => path === '-').length > 1)
    throw new InvalidArgumentError('FILE', 'the standard input (-) is given twice; it can be read once');
  const files = new Map<string, GivenFile>();
  for (const path of paths) for (const file of walk(path, true)) files.set(file.path, file);
  if (files.size > FILE_LIMIT)
    throw new InvalidArgumentError(
      'ARGUMENT_RANGE',
      `${files.size} files are too many (${FILE_LIMIT} at most): give the folder of one job`,
    );
  const list = [...files.values()];
  if (list.length === 0) throw new InvalidArgumentError('FILE', 'the folder has no files', { file: paths.join(', ') });
  return list;
}

/** @param isGiven named by the user: it may be a pipe or a device */
function* walk(path: string, isGiven: boolean): Generator<GivenFile> {
  if (path === '-') {
    yield { path };
    return;
  }
  try {
    const status = statSync(path, { throwIfNoEntry: false });
    if (status === undefined) {
      yield { path, refused: isGiven ? 'there is no such file or folder' : 'is a link to a file that does not exist' };
    } else if (status.isDirectory()) {
      const entries = readdirSync(path, { withFileTypes: true }).sort((a, b) => (a.name < b.name ? -1 : 1));
      for (const entry of entries) {
        const inside = join(path, entry.name);
        // A link to a folder may lead back here.
        if (entry.name.startsWith('.') || (entry.isSymbolicLink() && isFolder(inside))) continue;
        yield* walk(inside, false);
      }
    } else if (status.isFile() || isGiven) yield { path };
  } catch (error) {
    yield { path, refused: `cannot be read: ${(error as Error).message}` };
  }
}

/** False for a link to nothing, and for one that leads back to itself. */
function isFolder(link: string): boolean {
  try {
    return statSync(link).isDirectory();
  } catch {
    return false;
  }
}
