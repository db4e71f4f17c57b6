import { spawn } from 'node:child_process';

/**
 * Ends the ranks when the launcher cannot: killed with SIGKILL it has no chance to clean up, and a rank that spins in
 * a collective would spin for ever.
 *
 * A shell in a session of its own holds the reading end of a pipe whose writing end only the launcher has. The
 * launcher writes the process groups that are alive, one list a line; when the pipe closes, whatever the reason, the
 * shell kills the groups on the last line. This works for every program, also for one that never loads tccl. Where
 * there is no /bin/sh, ranks outlive a launcher that is killed with SIGKILL.
 */
export interface Watchdog {
  /** Replaces the list of process groups to end. */
  watch(groups: readonly number[]): void;
  /** Nothing is left to end. */
  dismiss(): void;
}

const script = 'while read -r line; do groups=$line; done; for group in $groups; do kill -KILL "-$group"; done';

export function startWatchdog(): Watchdog {
  const shell = spawn('/bin/sh', ['-c', script, 'tccl-run-watchdog'], { detached: true, stdio: ['pipe', 'ignore', 'ignore'] });
  // Neither a missing shell nor one that somebody killed may end the job.
  shell.on('error', () => undefined);
  shell.stdin.on('error', () => undefined);
  shell.unref();
  return {
    watch: (groups) => shell.stdin.write(`${groups.join(' ')}\n`),
    dismiss: () => shell.stdin.end('\n'),
  };
}
