import type { JobResult } from './job.js';
import type { Call, Fault, Job } from './program.js';

/** Finds the fewest faults, calls and ranks with which a job still fails. */
export async function shrinkJob(
  failed: JobResult,
  run: (job: Job) => Promise<JobResult>,
  onStep: (job: Job) => void,
): Promise<JobResult> {
  let least = failed;
  for (let isSmaller = true; isSmaller;) {
    isSmaller = false;
    for (const job of smaller(least.job)) {
      const result = await run(job);
      if (result.broken.length === 0) continue;
      least = result;
      onStep(job);
      isSmaller = true;
      break;
    }
  }
  return least;
}

/** Jobs that are smaller than one, the smallest first. */
function* smaller(job: Job): Generator<Job> {
  const { calls, faults, nRanks } = job;
  for (let at = 0; at < faults.length; at++) yield { ...job, faults: faults.filter((_, index) => index !== at) };
  for (let length = calls.length >> 1; length > 0; length >>= 1)
    for (let from = 0; from < calls.length; from += length) yield without(job, from, Math.min(length, calls.length - from));
  if ((job.hosts ?? 1) > 1) yield { ...job, hosts: 1 };
  if (nRanks > 2 && faults.every((fault) => ranksOf(fault).every((rank) => rank < nRanks - 1)))
    yield { ...job, nRanks: nRanks - 1 };
  for (const [at, call] of calls.entries()) {
    for (const simpler of simplerCalls(call)) yield { ...job, calls: calls.with(at, simpler) };
  }
}

/** A job without some of its calls; another rank's odd call moves with those that are left. */
function without(job: Job, from: number, length: number): Job {
  const faults = job.faults.flatMap((fault): Fault[] => {
    if (fault.kind !== 'odd call' || fault.call < from) return [fault];
    return fault.call < from + length ? [] : [{ ...fault, call: fault.call - length }];
  });
  return { ...job, faults, calls: job.calls.toSpliced(from, length) };
}

function simplerCalls(call: Call): Call[] {
  return [
    ...(call.pauseMs > 0 ? [{ ...call, pauseMs: 0 }] : []),
    ...(call.count > 1 ? [{ ...call, count: 1 }] : []),
    ...(call.kind === 'barrier' ? [] : [{ ...call, kind: 'barrier' as const }]),
  ];
}

function ranksOf(fault: Fault): number[] {
  if (fault.kind === 'partition') return [fault.from, fault.to];
  return 'rank' in fault ? [fault.rank] : [];
}
