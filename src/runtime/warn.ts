import { printable } from '../printable.js';

/** Says one line on standard error, where nobody else was given to hear it. */
export function warn(text: string): void {
  process.stderr.write(`tccl: ${printable(text)}\n`);
}
