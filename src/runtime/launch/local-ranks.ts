import type { Readable, Writable } from '#platform/streams';
import { describeError, SystemError } from '../../errors.js';
import { copyTunables } from './copy-tunables.js';
import { JobProcesses } from './job-processes.js';
import type { OutputSinks } from './job-output.js';
import type { MeetingPoint } from './meeting-point.js';
import type { RankGroup, RunningRank } from './rank-group.js';
import { RankProcess, type RankProcessOptions } from './rank-process.js';
import { stateOf, type RankState } from './rank-state.js';
import { startWatchdog, type Watchdog } from './watchdog.js';
import { randomBytes, wallClockMs } from '../platform/platform.js';

/** The ranks of a job on one host: consecutive numbers. */
export interface RankRange {
  readonly first: number;
  readonly count: number;
  /** Number of ranks of the whole job. */
  readonly total: number;
}

interface LocalRanksOptions {
  readonly ranks: RankRange;
  /** Command of the rank with this number on the host. */
  readonly command: (localRank: number) => readonly [string, ...string[]];
  /** Environment of the ranks, beside the variables of their placement. */
  readonly env: NodeJS.ProcessEnv;
  /** Directory in which they start; this process's if left out. */
  readonly directory?: string | undefined;
  readonly meetingPoint: MeetingPoint;
  readonly output: OutputSinks;
  /** The rank that has a standard input. Default 0. */
  readonly reader?: number | undefined;
  /** Standard input of that rank. */
  readonly input: 'inherit' | 'pipe';
  readonly graceMs: number;
  /** Time limit of the job. */
  readonly timeoutMs?: number | undefined;
  /** Number of times that the job has been started before. */
  readonly restarts?: number | undefined;
  readonly host?: string | undefined;
}

/**
 * Ranks as child processes of this one. No rank outlives this process, even if it is killed.
 *
 * @throws SystemError `LAUNCH` when the system refuses for a reason that the command's file has no part in
 */
export class LocalRanks implements RankGroup {
  readonly ranks: (RunningRank & { readonly pid: number | undefined })[];
  readonly isRemote = false;
  /** Standard input of rank 0, if it is a pipe and rank 0 is here. */
  readonly input: Writable | undefined;
  readonly #processes: RankProcess[];
  readonly #start: (localRank: number, restarts: number) => RankProcess;
  readonly #output: LocalRanksOptions['output'];
  readonly #host: string | undefined;
  readonly #first: number;
  readonly #job: JobProcesses;
  readonly #watchdog: Watchdog;

  constructor({
    ranks,
    command,
    env,
    directory,
    meetingPoint,
    output,
    reader = 0,
    input,
    graceMs,
    timeoutMs,
    restarts = 0,
    host,
  }: LocalRanksOptions) {
    // Not the job's secret: the user may have set that for other programs too.
    const job = { TCCL_JOB: randomBytes(16).toString('hex') };
    this.#job = new JobProcesses(job);
    this.#watchdog = startWatchdog(`TCCL_JOB=${job.TCCL_JOB}`);
    const reportAt =
      timeoutMs === undefined ? '' : String(Math.ceil(wallClockMs() + timeoutMs - Math.min(REPORT_MS, timeoutMs / 2)));
    const tunables = copyTunables(env, ranks.count);
    this.#first = ranks.first;
    this.#start = (localRank, count) => {
      const rank = ranks.first + localRank;
      const [file, ...args] = command(localRank);
      const out = output.stdio(rank);
      return startRank({
        rank,
        command: file,
        args,
        graceMs,
        directory,
        processes: new JobProcesses({ ...job, TCCL_RANK: String(rank) }),
        stdio: [rank === reader ? input : 'ignore', out, out],
        env: {
          ...env,
          GLIBC_TUNABLES: tunables,
          TCCL_RANK: String(rank),
          TCCL_NRANKS: String(ranks.total),
          TCCL_LOCAL_RANK: String(localRank),
          TCCL_LOCAL_NRANKS: String(ranks.count),
          ...job,
          TCCL_REPORT_AT: reportAt,
          TCCL_RESTARTS: String(count),
          ...meetingPoint,
        },
      });
    };
    const processes: RankProcess[] = [];
    this.#processes = processes;
    for (let localRank = 0; localRank < ranks.count; localRank++) {
      const started = this.#start(localRank, restarts);
      processes.push(started);
      if (started.pid === undefined) break;
    }
    this.input = processes.find(({ rank }) => rank === 0)?.stdin;
    this.#output = output;
    this.#host = host;
    this.ranks = processes.map((process) => this.#follow(process));
  }

  #follow(process: RankProcess): RunningRank & { readonly pid: number | undefined } {
    const sinks = (['stdout', 'stderr'] as const).map(async (stream) => {
      const source: Readable | undefined = process[stream];
      if (source !== undefined) await this.#output.take(process.rank, stream, source);
    });
    return {
      rank: process.rank,
      pid: process.pid,
      host: this.#host,
      get running() {
        return process.running;
      },
      ended: process.ended,
      delivered: process.closed.then(() => Promise.all(sinks)),
    };
  }

  restart(rank: number, restarts: number): RunningRank {
    const localRank = rank - this.#first;
    const started = this.#start(localRank, restarts);
    this.#processes[localRank] = started;
    return (this.ranks[localRank] = this.#follow(started));
  }

  states(): RankState[] {
    return this.#processes.flatMap(({ rank, pid, running }) => {
      const state = running && pid !== undefined ? stateOf(rank, pid) : undefined;
      return state === undefined ? [] : [state];
    });
  }

  signal(signal: NodeJS.Signals): void {
    for (const process of this.#processes) process.signal(signal);
  }

  async finish(graceMs: number): Promise<void> {
    await this.#job.end(graceMs);
    this.#watchdog.dismiss();
  }
}

/** Time before the end of a job in which ranks report what they wait for. */
const REPORT_MS = 2000;

/**
 * Starts a rank. Node throws synchronously when the system refuses for a reason other than the command's file, such as
 * arguments that are too long.
 */
function startRank(options: RankProcessOptions): RankProcess {
  try {
    return new RankProcess(options);
  } catch (error) {
    throw new SystemError('LAUNCH', `rank ${options.rank} could not be started: ${describeError(error)}`, { cause: error });
  }
}
