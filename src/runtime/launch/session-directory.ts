import { readFileSync, renameSync, rmSync, statSync, writeFileSync } from '#platform/files';
import { join } from '#platform/paths';
import { TimeoutError } from '../../errors.js';
import { randomBytes, sleep } from '../platform/platform.js';
import { WatchClock } from '../progress/watch-clock.js';
import type { WaitOptions, Placement } from './placement.js';

/** Interval of checks for rank 0's file, milliseconds. */
const POLL_MS = 5;

/** Number of texts that this process has passed so far. */
let passed = 0;
/** Files of rank 0, removed when the process ends. */
const written: string[] = [];

/**
 * Passes a text from rank 0 to the other ranks of one host through a file, in a directory that only this user can enter and
 * that the launcher removes with the job. The file appears under its name once it is complete, and is removed when rank 0's
 * process ends.
 *
 * @throws TimeoutError `RANK_MISSING` when rank 0 writes nothing in time
 */
export async function passThroughDirectory(
  directory: string,
  job: string,
  { rank }: Placement,
  make: () => Promise<string>,
  { timeoutMs, signal }: WaitOptions,
): Promise<string> {
  const file = join(directory, `tccl-${encodeURIComponent(job)}-${passed++}`);
  if (rank === 0) {
    const text = await make();
    const draft = `${file}.${randomBytes(4).toString('hex')}`;
    writeFileSync(draft, text, { flag: 'wx', mode: 0o600 });
    renameSync(draft, file);
    if (written.push(file) === 1) process.once('exit', removeWritten);
    return text;
  }
  const clock = new WatchClock(timeoutMs);
  const deadline = clock.look() + timeoutMs;
  for (;;) {
    const text = readIfThere(file);
    if (text !== undefined) return text;
    if (clock.look() > deadline) {
      throw new TimeoutError('RANK_MISSING', `rank ${rank} waited ${timeoutMs} ms for rank 0 to call init(), but it did not`, {
        ranks: [0],
      });
    }
    await sleep(POLL_MS, { signal });
  }
}

function removeWritten(): void {
  for (const file of written) rmSync(file, { force: true });
}

/** True if this is a directory of this user that nobody else may enter. */
export function isPrivate(directory: string): boolean {
  const stat = statSync(directory, { throwIfNoEntry: false });
  return stat !== undefined && stat.isDirectory() && stat.uid === process.getuid?.() && (stat.mode & 0o077) === 0;
}

function readIfThere(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}
