import { process } from '#platform/process';
import { writeSync } from '#platform/files';
import { printable } from '../printable.js';

const lineOf = (text: string): string => `tccl: ${printable(text)}\n`;

/** Writes one line to standard error, for warnings without a listener. */
export function warn(text: string): void {
  process.stderr.write(lineOf(text));
}

/** Writes a warning without the event loop, which may be blocked and which a thread's process.stderr needs. */
export function warnNow(text: string): void {
  try {
    writeSync(2, lineOf(text));
  } catch {
    // Standard error is closed or full: the warning is lost.
  }
}

/** Adds a communicator's name to a text, unless it contains the name. */
export function named(text: string, name: string | undefined): string {
  const which = ` (communicator ${JSON.stringify(name)})`;
  return name === undefined || text.includes(which) ? text : text + which;
}
