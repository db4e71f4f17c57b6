import { closeSync, openSync, readdirSync, readFileSync, readSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { InputError, InvalidArgumentError, SystemError } from '../../errors.js';

const FILE_LIMIT = 20_000;
const HEAD_BYTES = 65_536;
/** Limit of files that are read as a whole; larger ones are read line by line as logs, or not at all. */
const WHOLE_LIMIT = 512 * 2 ** 20;

/** The named files, and all files in named folders except hidden ones. */
export function filesOf(paths: readonly string[]): string[] {
  const files = paths.flatMap((path): string[] => {
    const status = statSync(path, { throwIfNoEntry: false });
    if (status === undefined) throw new InvalidArgumentError('FILE', 'there is no such file or folder', { file: path });
    if (!status.isDirectory()) return [path];
    return readdirSync(path, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && !entry.name.startsWith('.'))
      .map((entry) => join(entry.parentPath, entry.name))
      .sort();
  });
  if (files.length === 0) throw new InvalidArgumentError('FILE', 'the folder has no files', { file: paths.join(', ') });
  if (files.length > FILE_LIMIT)
    throw new InvalidArgumentError(
      'ARGUMENT_RANGE',
      `${files.length} files are too many (${FILE_LIMIT} at most): give the folder of one job`,
    );
  return [...new Set(files)];
}

/** The first bytes of a file, unpacked where it is compressed. */
export function headOf(file: string): Uint8Array {
  try {
    const descriptor = openSync(file, 'r');
    try {
      const bytes = Buffer.alloc(HEAD_BYTES);
      const head = bytes.subarray(0, readSync(descriptor, bytes, 0, HEAD_BYTES, 0));
      return isGzip(head) && statSync(file).size < WHOLE_LIMIT ? whole(file).subarray(0, HEAD_BYTES) : head;
    } finally {
      closeSync(descriptor);
    }
  } catch (error) {
    if (error instanceof InputError) throw error;
    throw new SystemError('FILE', `cannot be read: ${(error as Error).message}`, { file, cause: error });
  }
}

/** All of a file, unpacked where it is compressed. */
export function whole(file: string): Uint8Array {
  if (statSync(file).size > WHOLE_LIMIT)
    throw new InputError('TOO_LARGE', `has more than ${WHOLE_LIMIT / 2 ** 20} MiB`, { file });
  const bytes = readFileSync(file);
  if (!isGzip(bytes)) return bytes;
  try {
    return gunzipSync(bytes, { maxOutputLength: WHOLE_LIMIT });
  } catch (error) {
    throw new InputError('CONTENT', `cannot be unpacked: ${(error as Error).message}`, { file });
  }
}

function isGzip(bytes: Uint8Array): boolean {
  return bytes[0] === 0x1f && bytes[1] === 0x8b;
}
