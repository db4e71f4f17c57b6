import { closeSync, fstatSync, openSync, readdirSync, readSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { InputError } from '../../errors.js';
import type { FinishedCalls } from '../../planner/log/live/finished.js';
import { readInspector } from '../../planner/readers/timeline.js';
import { fileError } from '../output.js';

/** Read at most of a file at a time: its end, where it has grown by more. */
const MOST_NEW_BYTES = 4 * 2 ** 20;
const MOST_FILES = 16_384;

/** Reads what NCCL Inspector has added to its files: a JSON record a line. */
export class InspectorFiles {
  readonly #path: string;
  readonly #calls: FinishedCalls;
  /** By file: the place up to which it has been read. */
  readonly #read = new Map<string, number>();

  constructor(path: string, calls: FinishedCalls) {
    this.#path = path;
    this.#calls = calls;
  }

  /** @throws SystemError where the path cannot be read */
  update(): void {
    for (const file of this.#files()) {
      const text = this.#news(file);
      try {
        if (text !== '') this.#calls.add(readInspector(text, 0).timed);
      } catch (error) {
        // Other files may be in the folder.
        if (!(error instanceof InputError)) throw error;
      }
    }
  }

  #files(): string[] {
    try {
      if (!statSync(this.#path).isDirectory()) return [this.#path];
      const entries = readdirSync(this.#path, { withFileTypes: true });
      return entries
        .filter((entry) => entry.isFile())
        .slice(0, MOST_FILES)
        .map((entry) => join(this.#path, entry.name));
    } catch (error) {
      throw fileError(error, this.#path, 'read');
    }
  }

  /** Whole lines that a file has got since the last time. */
  #news(file: string): string {
    const descriptor = openSync(file, 'r');
    try {
      const { size } = fstatSync(descriptor);
      const known = this.#read.get(file) ?? 0;
      // A file that became shorter was written anew.
      const from = Math.max(known <= size ? known : 0, size - MOST_NEW_BYTES);
      if (from >= size) return '';
      const bytes = Buffer.alloc(size - from);
      const length = readSync(descriptor, bytes, 0, bytes.length, from);
      const end = bytes.subarray(0, length).lastIndexOf(10) + 1;
      this.#read.set(file, from + end);
      const begin = from === known ? 0 : bytes.indexOf(10) + 1;
      return bytes.toString('utf8', begin, Math.max(begin, end));
    } finally {
      closeSync(descriptor);
    }
  }
}
