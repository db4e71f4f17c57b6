import { closeSync, openSync, writeSync } from '#platform/files';
import { describeError, SystemError } from '../../errors.js';
import { hostname } from '../platform/platform.js';
import { warn } from '../warn.js';

/** A file that this process appends to. */
export interface Appending {
  /**
   * Appends in one write. The first failure, as on a full disk, is reported on standard error and ends the file: a program's
   * calls do not fail because their log cannot be written.
   */
  append(text: string): void;
  /** Closes the file for this user. */
  close(): void;
}

/** Open files by path: all communicators of a process share one. */
const files = new Map<string, AppendedFile>();

/**
 * @param what the file is, for messages
 * @throws SystemError `FILE` when it cannot be opened
 */
export function appendTo(path: string, what: string): Appending {
  let file = files.get(path);
  if (file === undefined) {
    file = new AppendedFile(path, what);
    files.set(path, file);
  }
  file.users++;
  return file;
}

/** The path for a pattern of the user's: `%h` becomes the host's name, `%%` becomes `%`, and `marks` has further replacements. */
export function fileNamed(pattern: string, marks: Readonly<Record<string, string>> = {}): string {
  const meanings: Readonly<Record<string, string>> = { '%h': hostname(), '%%': '%', ...marks };
  return pattern.replace(/%./g, (mark) => meanings[mark] ?? mark);
}

export function notWritable(path: string, what: string, cause: unknown): SystemError {
  return new SystemError('FILE', `${what} cannot be written here: ${describeError(cause)}`, { file: path, cause });
}

class AppendedFile implements Appending {
  users = 0;
  readonly #file: number;
  #isWritable = true;

  constructor(
    readonly path: string,
    readonly what: string,
  ) {
    try {
      this.#file = openSync(path, 'a');
    } catch (cause) {
      throw notWritable(path, what, cause);
    }
  }

  append(text: string): void {
    if (!this.#isWritable) return;
    const bytes = Buffer.from(text);
    try {
      // A disk that becomes full takes as much as fits, and the next write fails.
      for (let written = 0; written < bytes.length;) written += writeSync(this.#file, bytes, written);
    } catch (error) {
      this.#isWritable = false;
      warn(`${this.what} ends here, because ${this.path} cannot be written any more: ${(error as Error).message}`);
    }
  }

  close(): void {
    if (--this.users > 0) return;
    this.#isWritable = false;
    files.delete(this.path);
    closeSync(this.#file);
  }
}
