import { spawn } from '#platform/processes';
import type { Writable } from '#platform/streams';

/**
 * Ends the ranks when the launcher was killed with SIGKILL and cannot: a rank that spins in a collective would spin without end.
 *
 * A shell in a session of its own reads a pipe of the launcher: first the job's environment entry; if the pipe closes without a
 * second line, the shell kills all processes with that entry. Without /bin/sh or grep, ranks outlive such a launcher.
 *
 * Only the pipe and the shell's built-in `echo` carry the entry, which is a secret: every user can read the arguments of every
 * process.
 */
export interface Watchdog {
  /** Ends the watchdog because no process of the job is left. */
  dismiss(): void;
}

const SCRIPT = `read -r entry || exit
read -r dismissed || for file in $(echo "$entry" | grep -lszxF -f - /proc/[0-9]*/environ); do
  pid=\${file#/proc/}
  kill -KILL "\${pid%/environ}"
done`;

/** @param entry `NAME=value` in the environment of the job's processes only, in characters that `echo` does not change */
export function startWatchdog(entry: string): Watchdog {
  const shell = spawn('/bin/sh', ['-c', SCRIPT, 'tccl-run-watchdog'], { detached: true, stdio: ['pipe', 'ignore', 'ignore'] });
  // The job continues if the shell is missing or gets killed.
  shell.on('error', () => undefined);
  // Node creates no pipe when it cannot start the process for lack of file descriptors.
  const pipe = shell.stdin as Writable | undefined;
  pipe?.on('error', () => undefined);
  pipe?.write(`${entry}\n`);
  shell.unref();
  return { dismiss: () => void pipe?.end('dismissed\n') };
}
