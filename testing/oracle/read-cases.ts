import { readdirSync, readFileSync, statSync } from 'node:fs';
import { basename, join } from 'node:path';
import { InputError, InvalidArgumentError, SystemError } from '../../src/errors.js';
import type { OracleInput } from './oracle-case.js';

/**
 * Folders of cases, sorted by name. A directory with one folder per version of NCCL gives the cases of all versions.
 *
 * @param filter only cases whose name contains this text
 * @throws InvalidArgumentError if there is none, SystemError if the directory cannot be read
 */
export function caseFolders(directory: string, filter = ''): string[] {
  let entries: string[];
  try {
    entries = readdirSync(directory).sort();
  } catch (error) {
    throw new SystemError(
      'FILE',
      `cannot read the folder ${directory}: ${error instanceof Error ? error.message : String(error)}`,
      { cause: error },
    );
  }
  const isCase = (folder: string) => statSync(join(folder, 'case.json'), { throwIfNoEntry: false })?.isFile() === true;
  const isFolder = (folder: string) => statSync(folder, { throwIfNoEntry: false })?.isDirectory() === true;
  const versions = entries
    .filter((name) => /^[0-9]+\.[0-9]+\.[0-9]+$/.test(name))
    .map((name) => join(directory, name))
    .filter(isFolder);
  const candidates =
    versions.length === 0
      ? entries.map((name) => join(directory, name))
      : versions.flatMap((version) =>
          readdirSync(version)
            .sort()
            .map((name) => join(version, name)),
        );
  const folders = candidates.filter((folder) => basename(folder).includes(filter)).filter(isCase);
  if (folders.length === 0) {
    const inside =
      statSync(join(directory, 'cases'), { throwIfNoEntry: false }) === undefined ? '' : `; try ${join(directory, 'cases')}`;
    const which = filter === '' ? 'no folder with a case.json' : `no folder with a case.json and ${filter} in its name`;
    throw new InvalidArgumentError('FILE', `${which} in ${directory}${inside}`);
  }
  return folders;
}

/** @throws InputError if one of the files is not JSON. */
export function readCase(folder: string): OracleInput {
  const names = readdirSync(folder);
  const name = basename(folder);
  return {
    name,
    case: readJson(join(folder, 'case.json')),
    expected: readJson(join(folder, 'expected.json')),
    files: new Map(names.filter((file) => file.endsWith('.xml')).map((file) => [file, readFileSync(join(folder, file), 'utf8')])),
  };
}

function readJson(file: string): unknown {
  try {
    return JSON.parse(readFileSync(file, 'utf8'));
  } catch (error) {
    throw new InputError('SYNTAX', error instanceof Error ? error.message : String(error), { file, cause: error });
  }
}
