import { readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { InvalidArgumentError, SystemError } from '../../errors.js';
import { splitCount } from '../../planner/plan/cluster-text.js';
import { findMachine } from '../../planner/topology/catalogue/machines.js';
import { ownPath } from '../../own-module.js';
import { filesOf } from '../diagnose/files.js';
import { catalogueInput } from '../topo/input.js';

/** Bytes of files at most that a page carries; larger ones can be dropped on it. */
const MOST_BYTES = 64 * 2 ** 20;

/** The page of the studio with files in it, and the fragment of its address. */
export interface StudioPage {
  readonly html: string;
  /** `#machine=dgx-h100&nodes=4`, or the empty string. */
  readonly fragment: string;
}

/**
 * The page with these files, or with a machine of the catalogue.
 *
 * @param names files, folders, or one machine of the catalogue: `dgx-h100:4` is four of it
 * @throws InvalidArgumentError for a name that is neither, or files that are too large; SystemError where one cannot be read
 */
export function studioPage(names: readonly string[]): StudioPage {
  const machine = names.length === 1 ? splitCount(names[0] ?? '') : undefined;
  const page = readFileSync(ownPath('studio/tccl-studio.html'), 'utf8');
  if (machine !== undefined && findMachine(machine.name) !== undefined)
    return {
      html: page,
      fragment: `#${new URLSearchParams({ machine: machine.name, nodes: String(machine.count ?? 1) }).toString()}`,
    };
  let total = 0;
  const files = (names.length === 0 ? [] : filesOf(names)).map(({ path, refused }) => {
    if (refused !== undefined) {
      if (names.length === 1 && !/[/.]/.test(path)) catalogueInput(path); // throws with the nearest machine
      throw new InvalidArgumentError('FILE', refused, { file: path });
    }
    const bytes = read(path);
    total += bytes.length;
    if (total > MOST_BYTES)
      throw new InvalidArgumentError(
        'ARGUMENT_RANGE',
        `the files have more than ${MOST_BYTES / 2 ** 20} MiB: start tccl studio without them, and drop them on the page`,
        { file: path },
      );
    return {
      name: path === '-' ? 'standard input' : names.length === 1 && names[0] === path ? basename(path) : path,
      base64: bytes.toString('base64'),
    };
  });
  // The JSON is in an element of the page: `<` in a name could end it.
  const json = JSON.stringify(files).replaceAll('<', '\\u003c');
  return {
    html: page.replace(
      '<script type="application/json" id="files">[]<',
      () => `<script type="application/json" id="files">${json}<`,
    ),
    fragment: '',
  };
}

function read(path: string): Buffer {
  try {
    return readFileSync(path === '-' ? 0 : path);
  } catch (error) {
    throw new SystemError('FILE', `cannot be read: ${(error as Error).message}`, { file: path, cause: error });
  }
}
