import type { LineRule } from './rule.js';

/** Words of launchers and schedulers about the end of a job. Those with a rank, a signal or an exit code are in deaths/. */
export const launcherRules: readonly LineRule[] = [
  {
    code: 'time-limit',
    kind: 'fault',
    needles: ['due to time limit', 'time limit exceeded', 'activedeadlineseconds', 'deadlineexceeded'],
    pattern: /DUE TO TIME LIMIT|time limit exceeded|DeadlineExceeded|activeDeadlineSeconds/i,
    explains: ['exit-signal', 'exit-child', 'remote-closed', 'store-lost'],
    problem: 'the scheduler ended the job: its time was over',
    cause: 'the time limit of the job',
    remedy: 'ask for more time (sbatch --time), or checkpoint before the end',
  },
  {
    code: 'evicted',
    kind: 'fault',
    needles: ['the node was low on resource'],
    pattern: /low on resource: ([\w-]{3,40})/i,
    explains: ['exit-signal', 'exit-child', 'remote-closed', 'store-lost', 'preempted'],
    problem: 'Kubernetes ended a pod because its host was low on $1',
    cause:
      'the pods of that host used more of it than they had asked for: logs, caches and checkpoints in the container, or memory',
    remedy: '`kubectl describe pod` shows how much each used; write to a volume, and request what the pod needs',
  },
  {
    code: 'preempted',
    kind: 'fault',
    needles: ['due to preemption', 'preempted', 'evicted'],
    pattern: /DUE TO PREEMPTION|(?:job|pod|worker|node|instance)[^\n]{0,60}(?:was |been )?(?:preempted|evicted)/i,
    explains: ['exit-signal', 'exit-child', 'remote-closed', 'store-lost'],
    problem: "the scheduler took the job's hosts away",
    cause: 'preemption or eviction',
    remedy:
      'restart from the last checkpoint: sbatch --requeue starts the job again, and --signal=B:USR1@120 asks for a warning before its end; `kubectl describe pod` says why in Kubernetes, `sacct -j` in Slurm',
  },
  {
    code: 'node-failed',
    kind: 'fault',
    needles: ['due to node failure', 'node_fail', 'node failure on'],
    explains: ['exit-signal', 'exit-child', 'remote-closed', 'store-lost', 'ib-retry-exceeded', 'watchdog-timeout'],
    problem: 'a host of the job failed',
    cause: 'the scheduler lost it',
    remedy: '`scontrol show node <name>`; its console and BMC log',
  },
  {
    code: 'exit-child',
    kind: 'outcome',
    needles: ['calledprocesserror'],
    pattern: /CalledProcessError: Command [^\n]{0,3000}--local[_-]rank[= ',]{1,4}(\d{1,4})\b/,
    problem:
      'the launcher says that a rank failed; local rank $1 in its command is the last one that it started, whichever failed',
    cause: 'torch.distributed.launch keeps one command, that of the last rank; the output of the failed rank says why',
    remedy: 'look for the first exception of any rank on that host; torchrun names the rank that failed first',
  },
  {
    code: 'exit-child',
    kind: 'outcome',
    needles: [
      'childfailederror',
      'non-zero exit',
      'nonzero exit',
      'actordiederror',
      'rayactorerror',
      'workercrashederror',
      'terminated by the following',
      'worker process has died',
      'a worker died or was killed',
      'engine core initialization failed',
    ],
    problem: 'the launcher says that a rank failed',
    cause: "that rank's own output says why",
    remedy: 'look at the log of the rank that it names as the first failure',
  },
];
