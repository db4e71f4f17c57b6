import { closeSync, existsSync, mkdirSync, openSync, readFileSync } from 'node:fs';
import { constants } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import type { Writable } from 'node:stream';
import { finished } from 'node:stream/promises';
import { nameRanks } from '../bootstrap/rank-list.js';
import { describeError, SystemError } from '../../errors.js';
import { afterWatching } from '../progress/watch-clock.js';
import { copyTunables } from './copy-tunables.js';
import { JobProcesses } from './job-processes.js';
import { LinePrefixer } from './line-prefixer.js';
import { localMeetingPoint, type MeetingPoint } from './meeting-point.js';
import { RankProcess, type Ending, type RankProcessOptions } from './rank-process.js';
import { startWatchdog, type Watchdog } from './watchdog.js';

/** Destination of the ranks' output. */
export type RankOutput =
  /** Lines of all ranks in one stream, each with its rank's prefix. */
  | {
      readonly kind: 'merged';
      readonly stdout: Writable;
      readonly stderr: Writable;
      readonly prefix: (rank: number, stream: 'stdout' | 'stderr') => string;
    }
  /** Directly to the launcher's own output, byte by byte: for a single rank. */
  | { readonly kind: 'inherited' }
  /** stdout and stderr of each rank in a file `rank-N.log` in a directory, which is created if necessary. */
  | { readonly kind: 'files'; readonly directory: string };

export interface LaunchOptions {
  readonly nRanks: number;
  /** The command of a rank and its arguments. */
  readonly command: (rank: number) => readonly [string, ...string[]];
  /** Environment of the ranks, beside the variables of their placement. */
  readonly env: NodeJS.ProcessEnv;
  readonly output: RankOutput;
  /** Time from the failure of the first rank to SIGTERM for the others, and from there to SIGKILL; milliseconds. */
  readonly graceMs: number;
  /** Time limit for all ranks, milliseconds from the start; time during which the launcher was stopped does not count. */
  readonly timeoutMs?: number | undefined;
  /** Called with one line for the user about each problem. */
  readonly report: (line: string) => void;
}

/** A shorter grace time is not mentioned in messages. */
const SHORT_GRACE_MS = 1000;

/** Exit codes of the launcher itself, like those of timeout(1), env(1) and a shell. */
export const exitCodes = { timedOut: 124, cannotRun: 126, notFound: 127 } as const;

/**
 * Starts ranks as child processes of this one, on this host, and waits until all have ended.
 *
 * The first rank gets this process's standard input, the others none. Signals are forwarded; a second SIGINT kills. When a
 * rank fails (exits non-zero or dies by a signal), the others get SIGTERM after the grace time, and SIGKILL after the same
 * time again; each with all processes that it started. No rank outlives the launcher, even if the launcher is killed.
 *
 * @returns the exit code of the first rank that failed (128 + its number for a signal, as in shells), or 0
 * @throws SystemError `FILE` when the directory or files for the output cannot be made, `NETWORK` without a free port
 */
export async function launchRanks(options: LaunchOptions): Promise<number> {
  return new Job(options, await localMeetingPoint()).finished();
}

class Job {
  readonly #options: LaunchOptions;
  readonly #meetingPoint: MeetingPoint;
  readonly #ranks: RankProcess[] = [];
  /** By rank: resolves when all its output has been passed on. */
  readonly #outputs: Promise<unknown>[] = [];
  readonly #watchdog: Watchdog;
  /**
   * Cancels the timers of the timeout, SIGTERM and SIGKILL. Time during which the job, and this process with it, was stopped
   * does not count.
   */
  readonly #waits: (() => void)[] = [];
  #exitCode = 0;
  /** The job is being ended: further failures of ranks are consequences. */
  #ending = false;
  /** The fatal signal that was forwarded: ranks that die of it did as asked. */
  #handedOn: NodeJS.Signals | undefined;

  constructor(options: LaunchOptions, meetingPoint: MeetingPoint) {
    const logs = options.output.kind === 'files' ? openLogs(options.output.directory, options.nRanks) : [];
    this.#options = options;
    this.#meetingPoint = meetingPoint;
    this.#watchdog = startWatchdog(`TCCL_COMM_SECRET=${meetingPoint.TCCL_COMM_SECRET}`);
    for (let rank = 0; rank < options.nRanks; rank++) {
      const started = this.#start(rank, logs[rank]);
      this.#ranks.push(started);
      if (started.pid === undefined) break;
    }
    for (const log of logs) closeSync(log);
  }

  async finished(): Promise<number> {
    const { timeoutMs, report } = this.#options;
    const stopForwarding = this.#forwardSignals();
    if (timeoutMs !== undefined) this.#later(timeoutMs, () => this.#timeOut(timeoutMs));
    await Promise.all(
      this.#ranks.map(async (rank) => {
        const ending = await rank.ended;
        const failure = this.#judge(rank, ending);
        await rank.closed;
        await this.#outputs[rank.rank];
        // Report a failure after the rank's own last output.
        if (failure !== undefined) report(failure);
      }),
    );
    for (const stop of this.#waits) stop();
    await new JobProcesses({ TCCL_COMM_SECRET: this.#meetingPoint.TCCL_COMM_SECRET }).end(this.#options.graceMs);
    stopForwarding();
    this.#watchdog.dismiss();
    return this.#exitCode;
  }

  #start(rank: number, log: number | undefined): RankProcess {
    const { nRanks, command, env, output, graceMs } = this.#options;
    const [file, ...args] = command(rank);
    const out = log ?? (output.kind === 'inherited' ? 'inherit' : 'pipe');
    const started = startRank({
      rank,
      command: file,
      args,
      graceMs,
      processes: new JobProcesses({ TCCL_COMM_SECRET: this.#meetingPoint.TCCL_COMM_SECRET, TCCL_RANK: String(rank) }),
      stdio: [rank === 0 ? 'inherit' : 'ignore', out, out],
      env: {
        ...env,
        GLIBC_TUNABLES: copyTunables(env, nRanks),
        TCCL_RANK: String(rank),
        TCCL_NRANKS: String(nRanks),
        TCCL_LOCAL_RANK: String(rank),
        TCCL_LOCAL_NRANKS: String(nRanks),
        ...this.#meetingPoint,
      },
    });
    if (output.kind === 'merged') this.#outputs.push(this.#merge(started, output));
    return started;
  }

  async #merge(rank: RankProcess, output: Extract<RankOutput, { kind: 'merged' }>): Promise<void> {
    await Promise.all(
      (['stdout', 'stderr'] as const).map(async (name) => {
        const source = rank[name];
        if (source === undefined) return;
        const lines = new LinePrefixer(output.prefix(rank.rank, name));
        // The pipe may be destroyed before its end is read; the last line must be printed nevertheless.
        source.pipe(lines, { end: false });
        source.once('close', () => lines.end());

        const destination = output[name].setMaxListeners(0);
        lines.pipe(destination, { end: false });
        destination.once('error', (error: NodeJS.ErrnoException) => {
          // The reader has closed the pipe, as `head` does after ten lines; or the disk is full, which the command reports.
          lines.resume();
          this.#exitCode ||= error.code === 'EPIPE' ? 128 + constants.signals.SIGPIPE : 1;
          if (!this.#ending) this.#end();
        });
        await finished(lines);
      }),
    );
  }

  /** Records a rank's end; returns a line for the user, if there is anything to report. */
  #judge(rank: RankProcess, ending: Ending): string | undefined {
    if (ending.kind === 'code' && ending.code === 0) return undefined;
    if (this.#ending) return undefined;
    const first = this.#exitCode === 0;
    if (first) {
      this.#exitCode = exitCodeOf(ending);
      this.#later(ending.kind === 'unstarted' ? 0 : this.#options.graceMs, () => this.#end());
    }
    if (this.#handedOn !== undefined && ending.kind === 'signal') return undefined;
    const others = this.#ranks.some((other) => other.running);
    return `rank ${rank.rank} ${describeEnding(ending)}${first && others ? this.#outlook(ending) : ''}`;
  }

  /** Ends the other ranks, or returns how much time they have to go on without the failed rank. */
  #outlook(ending: Ending): string {
    const { graceMs } = this.#options;
    return ending.kind === 'unstarted' || graceMs <= SHORT_GRACE_MS
      ? '; ending the other ranks'
      : `; the other ranks have ${graceMs / 1000} s to end`;
  }

  #timeOut(timeoutMs: number): void {
    const running = this.#ranks.filter((rank) => rank.running).map((rank) => rank.rank);
    this.#options.report(`not finished after ${timeoutMs / 1000} s: ending ${nameRanks(running)}`);
    this.#exitCode ||= exitCodes.timedOut;
    this.#end();
  }

  /** SIGTERM for all, SIGKILL for those that still run after the grace time. */
  #end(): void {
    this.#ending = true;
    this.#signal('SIGTERM');
    this.#later(this.#options.graceMs, () => this.#signal('SIGKILL'));
  }

  /** Forwards signals until the returned function is called. Ctrl-Z and `fg` reach ranks directly. */
  #forwardSignals(): () => void {
    const handlers = new Map<NodeJS.Signals, () => void>();
    for (const signal of ['SIGUSR1', 'SIGUSR2'] as const) handlers.set(signal, () => this.#signal(signal));
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
      handlers.set(signal, () => {
        const again = signal === 'SIGINT' && this.#handedOn === 'SIGINT';
        this.#handedOn = signal;
        if (again) this.#signal('SIGKILL');
        else if (signal !== 'SIGINT' || !isForegroundJob()) this.#signal(signal);
      });
    }
    for (const [signal, handler] of handlers) process.on(signal, handler);
    return () => {
      for (const [signal, handler] of handlers) process.off(signal, handler);
    };
  }

  #signal(signal: NodeJS.Signals): void {
    for (const rank of this.#ranks) rank.signal(signal);
  }

  #later(delayMs: number, action: () => void): void {
    this.#waits.push(afterWatching(delayMs, action));
  }
}

/** Whether a terminal sends its Ctrl-C to this process, and to the ranks, which are in the same process group. */
function isForegroundJob(): boolean {
  // After the name in brackets: state, parent, process group, session, terminal, the terminal's foreground group.
  const [, , group, , terminal, foreground] = readFileSync('/proc/self/stat', 'utf8')
    .replace(/^.*\) /s, '')
    .split(' ');
  return terminal !== '0' && foreground === group;
}

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

/** Text such as `exited with code 3` or `was killed by SIGKILL`. */
function describeEnding(ending: Ending): string {
  switch (ending.kind) {
    case 'code':
      return `exited with code ${ending.code}`;
    case 'signal':
      return `was killed by ${ending.signal}`;
    case 'unstarted':
      return `could not be started: ${ending.error.message}${remedyOf(ending.error)}`;
  }
}

function remedyOf({ code }: NodeJS.ErrnoException): string {
  if (code === 'EMFILE') return ': each rank takes two file descriptors of tccl run; raise the limit (ulimit -n)';
  if (code === 'EAGAIN') return ': this user may have no more processes (ulimit -u)';
  return '';
}

function exitCodeOf(ending: Ending): number {
  switch (ending.kind) {
    case 'code':
      return ending.code;
    case 'signal':
      return 128 + constants.signals[ending.signal];
    case 'unstarted':
      return exitCodes.cannotRun;
  }
}

/**
 * Creates a directory and its parents. Node's recursive mkdir never returns where a file system such as /proc reports that a
 * directory does not exist instead of refusing.
 */
function makeDirectory(directory: string): void {
  const missing: string[] = [];
  for (let path = resolve(directory); !existsSync(path); path = dirname(path)) missing.push(path);
  for (const path of missing.reverse()) mkdirSync(path);
}

function openLogs(directory: string, nRanks: number): number[] {
  try {
    makeDirectory(directory);
    return Array.from({ length: nRanks }, (_, rank) => openSync(join(directory, `rank-${rank}.log`), 'w'));
  } catch (error) {
    throw new SystemError('FILE', `cannot write the ranks' output to ${directory}: ${(error as Error).message}`, {
      cause: error,
    });
  }
}
