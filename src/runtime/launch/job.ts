import { constants } from '#platform/system';
import { nameRanks } from '../bootstrap/rank-list.js';
import { clockMs, setImmediate } from '../platform/platform.js';
import { statOf } from '../proc.js';
import { afterWatching } from '../progress/watch-clock.js';
import { describeExit } from './exit-text.js';
import type { JobOutput } from './job-output.js';
import { watchForHolds } from './held-up-job.js';
import { nameRank, type RankGroup, type RunningRank } from './rank-group.js';
import type { Ending } from './rank-process.js';
import { addTo } from '../../add-to.js';

/** Time limits of a job, and a callback for problems. */
export interface JobOptions {
  /**
   * Time from the failure of the first rank to SIGTERM for the others, and from there, or from a signal to the launcher, to
   * SIGKILL; milliseconds.
   */
  readonly graceMs: number;
  /** Time limit for all ranks, milliseconds from the start; time during which the launcher was stopped does not count. */
  readonly timeoutMs?: number | undefined;
  /** Time after which what the job waits for is reported, milliseconds; 0 or none: never. */
  readonly warnAfterMs?: number | undefined;
  /** Called at the time limit: resolves to a text about the ranks that hold up the job, if there are any. */
  readonly holdOf?: (() => Promise<string | undefined>) | undefined;
  /** Number of times that a rank which fails is started again, while no rank has ended with code 0. Default 0. */
  readonly maxRankRestarts?: number | undefined;
  /** Called with one line for the user about each problem. */
  readonly report: (line: string) => void;
}

/** Exit codes of the launcher itself, like those of timeout(1), env(1) and a shell. */
export const exitCodes = { failed: 1, timedOut: 124, cannotRun: 126, notFound: 127 } as const;

/** A shorter grace time is not mentioned in messages. */
const SHORT_GRACE_MS = 1000;
/** Time for which failures after the first are gathered. */
const GATHERED_MS = 1000;
/** A rank that ended so long before another one failed may have been missed. */
const LONG_BEFORE_MS = 5000;

/** Waits for ranks that were started, on this host and others, and ends all when one fails. */
export class Job {
  readonly #options: JobOptions;
  readonly #groups: readonly RankGroup[];
  readonly #ranks: RunningRank[];
  /**
   * Cancels the timers of the timeout, SIGTERM and SIGKILL. Time during which the job, and this process with it, was stopped
   * does not count.
   */
  readonly #waits: (() => void)[] = [];
  #stopWatching: () => void = () => undefined;
  #exitCode = 0;
  #restarts = 0;
  /** Kind of end of the first rank that failed, if no signal to the launcher ended it. */
  #firstFailure: Ending['kind'] | undefined;
  /** The job is being ended: further failures of ranks are consequences. */
  #ending = false;
  /** The fatal signal that was forwarded: ranks that die of it did as asked. */
  #handedOn: NodeJS.Signals | undefined;
  /** A rank reads the launcher's terminal, where Ctrl-C may end a statement, not the rank. */
  readonly #isInteractive: boolean;
  /** Ranks that ended with code 0, with the time. */
  readonly #succeeded = new Map<number, number>();
  /** The losses of hosts that were reported. */
  readonly #losses = new Set<Ending>();
  /** Ranks that failed after the first and are not reported yet, by the words for it. */
  readonly #alike = new Map<string, number[]>();

  constructor(options: JobOptions, groups: readonly RankGroup[], output: JobOutput) {
    this.#options = options;
    this.#groups = groups;
    this.#ranks = groups.flatMap((group) => group.ranks);
    this.#isInteractive = output.sharesTerminal;
    output.onUnwritable = (error) => {
      this.#exitCode ||= error.code === 'EPIPE' ? 128 + constants.signals.SIGPIPE : exitCodes.failed;
      if (!this.#ending) this.#end();
    };
  }

  /** @returns the exit code of the first rank that failed (128 + its number for a signal, as in shells), or 0 */
  async finished(): Promise<number> {
    const { timeoutMs, report, graceMs, warnAfterMs = 0 } = this.#options;
    const stopForwarding = this.#forwardSignals();
    this.#waits.push((this.#stopWatching = watchForHolds(this.#groups, warnAfterMs, report)));
    if (timeoutMs !== undefined) this.#later(timeoutMs, () => void this.#timeOut(timeoutMs));
    await Promise.all(this.#ranks.map((rank) => this.#follow(rank)));
    this.#reportGathered();
    for (const stop of this.#waits) stop();
    await Promise.all(this.#groups.map((group) => group.finish(graceMs)));
    stopForwarding();
    return this.#exitCode;
  }

  /** True if a rank failed by itself, so that another start may help: no signal, time limit or missing program ended the job. */
  get failedByItself(): boolean {
    return this.#firstFailure === 'code' || this.#firstFailure === 'signal';
  }

  /** Waits for the end of a rank, and of those that are started in its place. */
  async #follow(rank: RunningRank): Promise<void> {
    const { report } = this.#options;
    const ending = await rank.ended;
    if (this.#takesReplacement(ending)) {
      const restarts = ++this.#restarts;
      // Until then, processes that it left behind may be ended.
      await rank.delivered;
      report(
        `${nameRank(rank.rank, rank.host)} ${describeEnding(ending)}; starting it again (${restarts} of ${this.#options.maxRankRestarts ?? 0})`,
      );
      const next = this.#groups.find((group) => group.ranks.includes(rank))?.restart?.(rank.rank, restarts);
      if (next === undefined) return;
      this.#ranks[this.#ranks.indexOf(rank)] = next;
      return this.#follow(next);
    }
    const failure = this.#judge(rank, ending);
    await rank.delivered;
    // Report a failure after the rank's own last output.
    if (typeof failure === 'string') report(failure);
    else if (failure !== undefined) this.#gather(rank, failure.what);
  }

  /** True if a rank that ended so is started again. */
  #takesReplacement(ending: Ending): ending is Extract<Ending, { kind: 'code' | 'signal' }> {
    if (ending.kind === 'code' ? ending.code === 0 : ending.kind !== 'signal') return false;
    const isEnding = this.#ending || this.#exitCode !== 0 || this.#handedOn !== undefined || this.#succeeded.size > 0;
    return !isEnding && this.#restarts < (this.#options.maxRankRestarts ?? 0);
  }

  /**
   * Records a rank's end. Returns a line for the user, if there is anything to report, or of a further failure the words that
   * other ranks may share.
   */
  #judge(rank: RunningRank, ending: Ending): string | { readonly what: string } | undefined {
    if (ending.kind === 'code' && ending.code === 0) {
      this.#succeeded.set(rank.rank, clockMs());
      return undefined;
    }
    if (this.#ending && ending.kind !== 'lost') return undefined;
    const first = this.#exitCode === 0;
    if (first) {
      this.#stopWatching();
      this.#exitCode = exitCodeOf(ending);
      if (this.#handedOn === undefined) this.#firstFailure = ending.kind;
      this.#later(ending.kind === 'unstarted' ? 0 : this.#options.graceMs, () => this.#end());
    }
    if (this.#handedOn !== undefined && ending.kind === 'signal') return undefined;
    const others = this.#ranks.some((other) => other.running);
    const outlook = first && others ? this.#outlook(ending) : '';
    if (ending.kind !== 'lost') {
      const what = describeEnding(ending);
      return first ? `${nameRank(rank.rank, rank.host)} ${what}${this.#before()}${outlook}` : { what };
    }
    if (this.#losses.has(ending)) return undefined;
    this.#losses.add(ending);
    return `${ending.reason}${outlook}`;
  }

  /** Reports ranks that failed alike in one line, a second later at most. */
  #gather({ rank, host }: RunningRank, what: string): void {
    if (this.#alike.size === 0) this.#later(GATHERED_MS, () => this.#reportGathered());
    const line = `${host === undefined ? '' : ` on ${host}`} ${what}`;
    addTo(this.#alike, line, rank);
  }

  #reportGathered(): void {
    for (const [line, ranks] of this.#alike) this.#options.report(`${nameRanks(ranks)}${line}`);
    this.#alike.clear();
  }

  /** Text about ranks that had ended long before: without an error, but others may have waited for them. */
  #before(): string {
    const since = clockMs() - LONG_BEFORE_MS;
    const early = [...this.#succeeded].flatMap(([rank, endedMs]) => (endedMs < since ? [rank] : []));
    return early.length === 0 ? '' : `; ${nameRanks(early)} had ended before, with code 0`;
  }

  /** Text about the other ranks, which end now or after the grace time. */
  #outlook(ending: Ending): string {
    const { graceMs } = this.#options;
    return ending.kind === 'unstarted' || graceMs <= SHORT_GRACE_MS
      ? '; ending the other ranks'
      : `; the other ranks have ${graceMs / 1000} s to end`;
  }

  async #timeOut(timeoutMs: number): Promise<void> {
    try {
      const hold = await this.#options.holdOf?.();
      const running = this.#ranks.filter((rank) => rank.running).map((rank) => rank.rank);
      if (running.length === 0) return; // they have ended meanwhile
      this.#exitCode ||= exitCodes.timedOut;
      const why = hold === undefined ? '' : `${hold}; `;
      this.#options.report(`not finished after ${timeoutMs / 1000} s: ${why}ending ${nameRanks(running)}`);
    } finally {
      this.#end();
    }
  }

  /** SIGTERM for all, SIGKILL for those that still run after the grace time. */
  #end(): void {
    this.#ending = true;
    this.#signal('SIGTERM');
    this.#later(this.#options.graceMs, () => this.#kill('SIGTERM'));
  }

  /** SIGKILL for those that still run so long after a signal that ends ranks. */
  #kill(after: NodeJS.Signals): void {
    this.#killNow(`did not end within ${this.#options.graceMs / 1000} s of ${after}`);
  }

  #killNow(why: string): void {
    const running = this.#ranks.filter((rank) => rank.running).map((rank) => rank.rank);
    if (running.length > 0) this.#options.report(`${nameRanks(running)} ${why}: killing`);
    this.#signal('SIGKILL');
  }

  /** Forwards signals until the returned function is called. Ctrl-Z and `fg` reach ranks of this host directly. */
  #forwardSignals(): () => void {
    const handlers = new Map<NodeJS.Signals, () => void>();
    for (const signal of ['SIGUSR1', 'SIGUSR2'] as const) handlers.set(signal, () => this.#signal(signal));
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
      handlers.set(signal, () => {
        const again = signal === 'SIGINT' && this.#handedOn === 'SIGINT';
        this.#handedOn = signal;
        if (again) {
          this.#killNow('did not end before a second SIGINT');
          return;
        }
        this.#signal(signal, { reachesThisHost: signal === 'SIGINT' && isForegroundJob() });
        if (signal !== 'SIGINT' || !this.#isInteractive) this.#later(this.#options.graceMs, () => this.#kill(signal));
      });
    }
    if (this.#groups.some((group) => group.isRemote)) {
      handlers.set('SIGTSTP', () => this.#stop());
      handlers.set('SIGCONT', () => this.#signal('SIGCONT'));
    }
    for (const [signal, handler] of handlers) process.on(signal, handler);
    return () => {
      for (const [signal, handler] of handlers) process.off(signal, handler);
    };
  }

  /** Stops the ranks of all hosts, then this process. */
  #stop(): void {
    this.#signal('SIGSTOP');
    setImmediate(() => process.kill(process.pid, 'SIGSTOP'));
  }

  #signal(signal: NodeJS.Signals, { reachesThisHost = false } = {}): void {
    for (const group of this.#groups) if (group.isRemote || !reachesThisHost) group.signal(signal);
  }

  #later(delayMs: number, action: () => void): void {
    this.#waits.push(afterWatching(delayMs, action));
  }
}

/** True if a terminal sends its Ctrl-C to this process and to the ranks of this host, which share its process group. */
export function isForegroundJob(): boolean {
  const self = statOf('/proc/self');
  return self === undefined ? process.stdin.isTTY : self.terminal !== 0 && self.foreground === self.group;
}

/** Text such as `exited with code 3` or `was killed by SIGKILL`. */
function describeEnding(ending: Exclude<Ending, { kind: 'lost' }>): string {
  switch (ending.kind) {
    case 'code':
      return describeExit(ending.code);
    case 'signal':
      return `was killed by ${ending.signal}`;
    case 'unstarted':
      return `could not be started: ${ending.message}`;
  }
}

function exitCodeOf(ending: Ending): number {
  switch (ending.kind) {
    case 'code':
      return ending.code;
    case 'signal':
      return 128 + constants.signals[ending.signal];
    case 'unstarted':
      return exitCodes.cannotRun;
    case 'lost':
      return exitCodes.failed;
  }
}
