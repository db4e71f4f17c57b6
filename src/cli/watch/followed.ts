import { statSync } from 'node:fs';
import { InvalidArgumentError } from '../../errors.js';
import { diagnoseJob, type Diagnosis } from '../../planner/log/verdict/diagnosis.js';
import { NcclLogReader } from '../../planner/log/job/read-log.js';
import { filesOf } from '../diagnose/files.js';
import { readExhibits } from '../log/read.js';
import { fileError } from '../output.js';

/** After a reading of this time, the next one is due after so many times as long: it takes a tenth of a core at most. */
const REST = 9;

/** Files that grow or appear while a job runs: logs, flight recordings and all else that `tccl diagnose` reads. */
export class FollowedFiles {
  readonly #paths: readonly string[];
  #seen = '';
  #dueMs = 0;
  #diagnosis: Diagnosis | undefined;

  /** @param paths files or folders; a file need not exist yet */
  constructor(paths: readonly string[]) {
    if (paths.includes('-'))
      throw new InvalidArgumentError('FILE', '--follow reads files again and again: the standard input (-) can be read once');
    this.#paths = paths;
  }

  /** The paths, for messages. */
  get title(): string {
    return this.#paths.join(', ');
  }

  /** The verdict of the last reading. */
  get diagnosis(): Diagnosis | undefined {
    return this.#diagnosis;
  }

  /** True if the verdict is that of a fault. */
  get isFault(): boolean {
    return this.#diagnosis?.outcome === 'fault';
  }

  /** The sentence of the verdict, and of a fault what to do. */
  get lines(): string[] {
    if (this.#diagnosis === undefined) return ['nothing that can be read so far'];
    const { outcome, verdict, open } = this.#diagnosis;
    const [cause] = verdict.causes;
    if (cause !== undefined) return [`${outcome}: ${cause.problem}`, cause.remedy];
    return [`${outcome}: ${open?.problem ?? 'all that began was seen to end'}`];
  }

  /** Reads all files again if one has changed. @throws SystemError where a path cannot be read */
  async update(): Promise<void> {
    const beganMs = performance.now();
    if (beganMs < this.#dueMs) return;
    const files = this.#paths.flatMap(filesAt);
    const seen = files.map(stateOf).join('\n');
    if (seen === this.#seen || files.length === 0) return;
    this.#seen = seen;
    const reader = new NcclLogReader();
    let isRead = false;
    for (const file of files)
      for (const { refused } of await readExhibits(file, reader, () => undefined)) isRead ||= refused === undefined;
    // A file that begins to be written may not be readable yet.
    if (isRead) this.#diagnosis = diagnoseJob(reader.finish());
    this.#dueMs = performance.now() + REST * (performance.now() - beganMs);
  }
}

/** The files that are there so far: a folder may be empty. */
function filesAt(path: string): string[] {
  try {
    return filesOf([path]).flatMap((file) => (file.refused === undefined ? [file.path] : []));
  } catch (error) {
    if (error instanceof InvalidArgumentError && error.code === 'FILE') return [];
    throw error;
  }
}

function stateOf(path: string): string {
  try {
    const { size, mtimeMs } = statSync(path);
    return `${path} ${size} ${mtimeMs}`;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return path; // it has been removed since
    throw fileError(error, path, 'read');
  }
}
