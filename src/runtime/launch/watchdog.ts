import { spawn } from 'node:child_process';

/**
 * Ends the ranks when the launcher cannot: killed with SIGKILL it has no chance to clean up, and a rank that spins in
 * a collective would spin for ever.
 *
 * A shell in a session of its own holds the reading end of a pipe whose writing end only the launcher has. When the
 * pipe closes without a word, whatever the reason, the shell kills all processes that have the job's secret in their
 * environment. This works for every program, also for one that never loads tccl. Where there is no /bin/sh or grep,
 * ranks outlive a launcher that is killed with SIGKILL.
 */
export interface Watchdog {
  /** Nothing is left to end. */
  dismiss(): void;
}

const script = 'read -r word || for file in $(grep -lszF -- "$1" /proc/[0-9]*/environ); do pid=${file#/proc/}; kill -KILL "${pid%/environ}"; done';

/** @param entry of the environment, `NAME=value`, that the job's processes have and no others */
export function startWatchdog(entry: string): Watchdog {
  const shell = spawn('/bin/sh', ['-c', script, 'tccl-run-watchdog', entry], { detached: true, stdio: ['pipe', 'ignore', 'ignore'] });
  // Neither a missing shell nor one that somebody killed may end the job.
  shell.on('error', () => undefined);
  shell.stdin.on('error', () => undefined);
  shell.unref();
  return { dismiss: () => shell.stdin.end('dismissed\n') };
}
