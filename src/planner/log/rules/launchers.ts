import type { LineRule } from './rule.js';

/** How jobs end: launchers, schedulers, signals. They say where to look, seldom why. */
export const launcherRules: readonly LineRule[] = [
  {
    code: 'time-limit', kind: 'fault', needles: ['due to time limit', 'time limit exceeded', 'activedeadlineseconds', 'deadlineexceeded'], pattern: /DUE TO TIME LIMIT|time limit exceeded|DeadlineExceeded|activeDeadlineSeconds/i, explains: ['exit-signal', 'exit-child', 'remote-closed', 'store-lost'],
    problem: 'the scheduler ended the job: its time was over', cause: 'the time limit of the job', remedy: 'ask for more time (sbatch --time), or checkpoint before the end',
  },
  {
    code: 'preempted', kind: 'fault', needles: ['due to preemption', 'preempted', 'evicted', 'the node was low on resource'], pattern: /DUE TO PREEMPTION|(?:job|pod|worker|node|instance)[^\n]{0,60}(?:was |been )?(?:preempted|evicted)|low on resource/i, explains: ['exit-signal', 'exit-child', 'remote-closed', 'store-lost'],
    problem: 'the scheduler took the job\'s hosts away', cause: 'preemption or eviction', remedy: 'restart from the last checkpoint; kubectl describe pod says why',
  },
  {
    code: 'node-failed', kind: 'fault', needles: ['due to node failure', 'node_fail', 'node failure on'], explains: ['exit-signal', 'exit-child', 'remote-closed', 'store-lost', 'ib-retry-exceeded', 'watchdog-timeout'],
    problem: 'a host of the job failed', cause: 'the scheduler lost it', remedy: 'scontrol show node <name>; its console and BMC log',
  },
  {
    code: 'exit-crash', kind: 'failure', needles: ['segmentation fault', 'sigsegv', 'sigabrt', 'signal 11', 'signal 6', 'signal: aborted', 'core dumped'], pattern: /(Segmentation fault|SIGSEGV|[Ss]ignal:? \(?11\b)/, explains: ['remote-closed', 'exit-child', 'store-lost', 'ib-retry-exceeded'],
    problem: 'a process crashed ($1)', cause: 'a bug, or libraries that do not fit together', remedy: 'look at the stack above the line or in the core (ulimit -c unlimited; gdb); LD_DEBUG=libs for the libraries',
  },
  {
    code: 'exit-signal', kind: 'outcome', needles: ['sigkill', 'sigterm', 'exited on signal', 'received signal', 'signal 9', 'signal 15', ': killed', 'exitcode  : -', 'exitcode: -'], pattern: /(SIGKILL|SIGTERM|exited on signal \d{1,2}|[Rr]eceived signal[^\n]{0,20}|[Ss]ignal (?:9|15)\b|task[^\n]{0,30}: Killed|exitcode {0,2}: -\d{1,2})/,
    problem: 'a process was killed ($1)', cause: 'by the out-of-memory killer, a scheduler, or the launcher after another rank failed', remedy: 'find what failed first; dmesg -T | grep -i oom on that host',
  },
  {
    code: 'exit-child', kind: 'outcome', needles: ['childfailederror', 'non-zero exit', 'nonzero exit', 'mpi_abort', 'exited with exit code', 'actordiederror', 'rayactorerror', 'workercrashederror', 'terminated by the following', 'root cause (first observed failure)'],
    problem: 'the launcher says that a rank failed', cause: 'that rank\'s own output says why', remedy: 'look at the log of the rank that it names as the first failure',
  },
];
