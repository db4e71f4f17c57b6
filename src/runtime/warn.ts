import { writeSync } from 'node:fs';
import { printable } from '../printable.js';

const lineOf = (text: string): string => `tccl: ${printable(text)}\n`;

/** Writes one line to standard error, for warnings that no listener takes. */
export function warn(text: string): void {
  process.stderr.write(lineOf(text));
}

/** Writes a warning without the event loop, which may stand still and which process.stderr of a thread needs. */
export function warnNow(text: string): void {
  try {
    writeSync(2, lineOf(text));
  } catch {
    // Standard error is closed or full: the warning is lost.
  }
}

/** A text about a communicator, with its name unless the text has it. */
export function named(text: string, name: string | undefined): string {
  const which = ` (communicator ${JSON.stringify(name)})`;
  return name === undefined || text.includes(which) ? text : text + which;
}
