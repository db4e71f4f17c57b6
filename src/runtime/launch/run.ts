import { JobOutput, type RankOutput } from './job-output.js';
import { Job, type JobOptions } from './job.js';
import { LocalRanks } from './local-ranks.js';
import { localMeetingPoint, type MeetingPoint } from './meeting-point.js';

export interface LaunchOptions extends JobOptions {
  readonly nRanks: number;
  /** The command of a rank and its arguments. */
  readonly command: (localRank: number) => readonly [string, ...string[]];
  /** Environment of the ranks, beside the variables of their placement. */
  readonly env: NodeJS.ProcessEnv;
  readonly output: RankOutput;
  /** The place of this host's ranks in a job of several hosts, each with a launcher of its own. */
  readonly part?: { readonly first: number; readonly total: number; readonly meetingPoint: MeetingPoint } | undefined;
  readonly directory?: string | undefined;
  /** Number of times that ranks which fail are started again: alone, or all ranks of the job together. */
  readonly restart?: { readonly scope: 'rank' | 'job'; readonly most: number } | undefined;
  /** The rank that has this process's own input and output, a terminal for example. Default: rank 0 has its input. */
  readonly attached?: number | undefined;
}

/**
 * Starts ranks as child processes of this one, on this host, and waits until all have ended.
 *
 * The first rank gets this process's standard input, the others none. Signals are forwarded; the grace time after one that ends
 * ranks, and a second SIGINT, kill. When a
 * rank fails (exits non-zero or dies by a signal), the others get SIGTERM after the grace time, and SIGKILL after the same
 * time again; each with all processes that it started. No rank outlives the launcher, even if the launcher is killed.
 *
 * @returns the exit code of the first rank that failed (128 + its number for a signal, as in shells), or 0
 * @throws SystemError `FILE` when the directory or files for the output cannot be made, `NETWORK` without a free port
 */
export async function launchRanks(options: LaunchOptions): Promise<number> {
  const { nRanks, part, restart, attached, report } = options;
  const output = new JobOutput(options.output, part?.first ?? 0, nRanks, attached);
  const most = restart?.scope === 'job' ? restart.most : 0;
  for (let restarts = 0; ; restarts++) {
    const job = await startJob(options, output, restarts);
    const code = await job.finished();
    if (restarts < most && job.failedByItself) {
      report(`starting all ranks again (${restarts + 1} of ${most})`);
      continue;
    }
    output.close();
    return code;
  }
}

async function startJob(options: LaunchOptions, output: JobOutput, restarts: number): Promise<Job> {
  const { nRanks, command, directory, part, restart, graceMs, timeoutMs, attached } = options;
  const { first, total, meetingPoint } = part ?? { first: 0, total: nRanks, meetingPoint: await localMeetingPoint() };
  const maxRankRestarts = restart?.scope === 'rank' ? restart.most : 0;
  const env = maxRankRestarts > 0 ? { ...options.env, TCCL_MAX_RESTARTS: String(maxRankRestarts) } : options.env;
  const ranks = new LocalRanks({
    ranks: { first, count: nRanks, total },
    command,
    env,
    directory,
    meetingPoint,
    output,
    input: 'inherit',
    reader: attached,
    graceMs,
    timeoutMs,
    restarts,
  });
  return new Job({ ...options, maxRankRestarts }, [ranks], output);
}
