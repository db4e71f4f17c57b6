import { spawn } from 'node:child_process';
import type { Writable } from 'node:stream';

/**
 * Ends the ranks when the launcher cannot: killed with SIGKILL it has no chance to clean up, and a rank that spins in
 * a collective would spin for ever.
 *
 * A shell in a session of its own reads a pipe that only the launcher writes to. The first line is the job's entry; if
 * the pipe closes without a second line, the shell kills all processes with that entry in their environment. This works
 * for programs that never load tccl, too. Without /bin/sh or grep, ranks outlive a launcher that is killed with SIGKILL.
 *
 * The entry is a secret, and every user can read the arguments of every process: only the pipe and the shell's
 * built-in `echo` carry it.
 */
export interface Watchdog {
  /** Nothing is left to end. */
  dismiss(): void;
}

const SCRIPT = `read -r entry || exit
read -r dismissed || for file in $(echo "$entry" | grep -lszxF -f - /proc/[0-9]*/environ); do
  pid=\${file#/proc/}
  kill -KILL "\${pid%/environ}"
done`;

/** @param entry `NAME=value` in the environment of the job's processes and no others, in letters that `echo` leaves alone */
export function startWatchdog(entry: string): Watchdog {
  const shell = spawn('/bin/sh', ['-c', SCRIPT, 'tccl-run-watchdog'], { detached: true, stdio: ['pipe', 'ignore', 'ignore'] });
  // Neither a missing shell nor one that somebody killed may end the job.
  shell.on('error', () => undefined);
  // Node makes no pipe for a process that it could not start for want of file descriptors.
  const pipe = shell.stdin as Writable | undefined;
  pipe?.on('error', () => undefined);
  pipe?.write(`${entry}\n`);
  shell.unref();
  return { dismiss: () => void pipe?.end('dismissed\n') };
}
