import { appendFileSync } from 'node:fs';
import { counted } from '../../counted.js';
import { InvalidArgumentError, TcclError } from '../../errors.js';
import { type JobState, lateRankName, type WatchSample } from '../../planner/log/live/job-watch.js';
import { FinishedCalls } from '../../planner/log/live/finished.js';
import { Jobs, type WatchedJob } from '../../planner/log/live/jobs.js';
import type { RecordedReport } from '../../planner/log/live/recording.js';
import { compareVersions } from '../../planner/versions/version.js';
import { colorsFor, fileError, print, printJson } from '../output.js';
import { LiveBlock } from '../screen.js';
import { expectationOf } from './expectation.js';
import { FollowedFiles } from './followed.js';
import { InspectorFiles } from './inspector.js';
import { seconds } from '../times.js';
import { blockLines, changeLine, clock } from './lines.js';
import type { Metrics } from './metrics.js';
import { commandSource, type ReportSource, socketSource } from './source.js';
import { type ToolNews, type ToolOptions, Tools } from './tools.js';

/** Options of `tccl watch`; times are milliseconds. */
export interface WatchOptions extends ToolOptions {
  readonly command?: string;
  readonly every: number;
  readonly samples?: number;
  readonly stuckAfter: number;
  readonly untilStuck?: number;
  readonly timeout: number;
  readonly record?: string;
  readonly prometheus?: string;
  readonly inspector?: string;
  /** Files and folders of the job that grow. */
  readonly follow?: readonly string[];
  /** Machine or cluster file, for expected times. */
  readonly cluster?: string;
  readonly nodes?: string;
  readonly json?: boolean;
}

/** Reports of other jobs at the same port: RAS' sockets share it, and the kernel chooses who answers. */
const MOST_TRIES = 4;
/** The release of NCCL that has MONITOR. */
const EVENTS_SINCE = '2.29.2';
/** Events that stay on a terminal. */
const SHOWN_EVENTS = 5;
/** Lines of tools about a job that stay on a terminal. */
const SHOWN_NEWS = 16;
/** Rounds in which recordings that PyTorch was asked for may still appear. */
const ROUNDS_FOR_RECORDINGS = 3;
/** Rounds without any answer after which a job has ended. */
const ROUNDS_TO_END = 2;

/** `tccl watch`; returns the exit code. */
export async function watchJobs(targets: readonly string[], options: WatchOptions): Promise<number> {
  const sources = sourcesOf(targets, options);
  const stop = new AbortController();
  const end = () => stop.abort();
  for (const signal of signals) process.once(signal, end);
  const { prometheus } = options;
  const metrics = prometheus === undefined ? undefined : await (await import('./metrics.js')).Metrics.listen(prometheus);
  const expected = await expectationOf(options);
  const watch = new Watch(sources, options, metrics, expected, stop.signal);
  try {
    return await watch.run();
  } finally {
    stop.abort();
    watch.end();
    metrics?.close();
    for (const signal of signals) process.off(signal, end);
  }
}

const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

function sourcesOf(targets: readonly string[], { command, timeout, follow }: WatchOptions): ReportSource[] {
  if (targets.length === 0 && command === undefined && follow !== undefined) return [];
  const limit = Math.ceil(timeout / 1000);
  if (command !== undefined) {
    if (targets.length > 0 && !command.includes('{host}'))
      throw new InvalidArgumentError(
        'ARGUMENT_TYPE',
        "--command needs {host} where targets are given, as in 'ssh {host} ncclras -f json'",
      );
    if (targets.length === 0 && command.includes('{host}'))
      throw new InvalidArgumentError('ARGUMENT_TYPE', '--command has {host}, but no target is given');
    return (targets.length === 0 ? [''] : targets).map((target) => commandSource(command, target, limit));
  }
  const own = process.env['NCCL_RAS_ADDR'] ?? 'localhost';
  return (targets.length === 0 ? [own] : targets).map((target) => socketSource(target, limit));
}

class Watch {
  readonly #sources: readonly ReportSource[];
  readonly #options: WatchOptions;
  readonly #metrics: Metrics | undefined;
  readonly #signal: AbortSignal;
  readonly #jobs: Jobs;
  readonly #finished = new FinishedCalls();
  readonly #inspector: InspectorFiles | undefined;
  readonly #files: FollowedFiles | undefined;
  readonly #expected: WatchSample['expected'];
  /** Sources whose events are followed, and the last events. */
  readonly #followed = new Set<string>();
  readonly #events: string[] = [];
  readonly #tools: Tools | undefined;
  /** By job: the last news of tools. */
  readonly #toolNews = new Map<number, string[]>();
  /** Rounds that a run without an end still waits for recordings that PyTorch was asked for. */
  #patience = 0;
  readonly #block: LiveBlock | undefined;
  /** By source: its problem, and the job that it answered for last. */
  readonly #problems = new Map<string, string>();
  /** Sources that have answered, those that gave no answer within the limit, and those said to be slow. */
  readonly #answered = new Set<string>();
  readonly #mute = new Set<string>();
  readonly #slow = new Set<string>();
  readonly #lastJob = new Map<string, number>();
  /** The last news about a job or a source. */
  readonly #said = new Map<string, string>();
  #rounds = 0;
  #silentRounds = 0;
  /** Begin of the first round of those in which no source answered, but one still held its connection open. */
  #muteSinceMs: number | undefined;

  constructor(
    sources: readonly ReportSource[],
    options: WatchOptions,
    metrics: Metrics | undefined,
    expected: WatchSample['expected'],
    signal: AbortSignal,
  ) {
    this.#files = options.follow === undefined ? undefined : new FollowedFiles(options.follow);
    this.#expected = expected;
    this.#metrics = metrics;
    this.#sources = sources;
    this.#options = options;
    this.#signal = signal;
    this.#inspector = options.inspector === undefined ? undefined : new InspectorFiles(options.inspector, this.#finished);
    this.#jobs = new Jobs(options.untilStuck ?? options.stuckAfter);
    if (Tools.isAsked(options) && sources.length === 0)
      throw new InvalidArgumentError(
        'ARGUMENT_TYPE',
        '--gpus, --stacks and --torch-dump need a target: reports of RAS say which ranks to look at',
      );
    this.#tools =
      Tools.isAsked(options) || options.toolCommand !== undefined
        ? new Tools(options, (job, news) => this.#sayTool(job, news))
        : undefined;
    this.#block = options.json !== true && process.stdout.isTTY ? new LiveBlock() : undefined;
  }

  async run(): Promise<number> {
    const { every, samples, untilStuck } = this.#options;
    for (;;) {
      const beganMs = performance.now();
      const hasAnswer = await this.#round(beganMs);
      if (this.#signal.aborted) return this.#exitCode();
      this.#rounds++;
      // A process that is stopped keeps its port: its job has not ended.
      const isMute = !hasAnswer && this.#mute.size > 0;
      this.#muteSinceMs = isMute ? (this.#muteSinceMs ?? beganMs) : undefined;
      this.#silentRounds = hasAnswer || isMute ? 0 : this.#silentRounds + 1;
      if (this.#jobs.all.length === 0 && this.#sources.length > 0) throw this.#unanswered();
      this.#show();
      await this.#runTools(samples !== undefined && this.#rounds >= samples);
      if (this.#silentRounds >= ROUNDS_TO_END && this.#sources.length > 0) return this.#over();
      const isOver = this.#worst() === 'stuck' && this.#patience-- <= 0;
      const isMuteTooLong = performance.now() - (this.#muteSinceMs ?? Infinity) >= (untilStuck ?? Infinity);
      if (untilStuck !== undefined && (isOver || isMuteTooLong || this.#files?.isFault === true)) return 1;
      if (samples !== undefined && this.#rounds >= samples) return this.#exitCode();
      // Reports that take longer than the interval leave intervals out.
      await pause(every - ((performance.now() - beganMs) % every), this.#signal);
    }
  }

  #exitCode(): number {
    if (this.#files?.isFault === true) return 1;
    if (this.#sources.length === 0) return this.#files?.diagnosis?.outcome === 'healthy' ? 0 : 3;
    const worst = this.#worst();
    return worst === 'stuck' || worst === 'dead' ? 1 : worst === 'healthy' && this.#muteSinceMs === undefined ? 0 : 3;
  }

  end(): void {
    this.#block?.end();
  }

  /** Asks every source whose job has not been seen in this round; returns true if one answered. */
  async #round(beganMs: number): Promise<boolean> {
    const seen = new Set<number>();
    this.#inspector?.update();
    await this.#files?.update();
    // A source that keeps a connection open without an answer takes the whole limit, so it is asked last.
    const inTurn = [false, true].flatMap((isMute) => this.#sources.filter(({ name }) => this.#mute.has(name) === isMute));
    for (const source of inTurn) {
      const last = this.#lastJob.get(source.name);
      if (last !== undefined && seen.has(last)) continue;
      for (let tries = 0; tries < MOST_TRIES && (tries === 0 || this.#jobs.missing(source.name, beganMs).length > 0); tries++) {
        const job = await this.#ask(source);
        if (job === undefined) break;
        seen.add(job.number);
      }
    }
    return seen.size > 0;
  }

  async #ask(source: ReportSource): Promise<WatchedJob | undefined> {
    const beganMs = performance.now();
    try {
      const { text, report } = await source.ask(this.#signal);
      this.#sayIfSlow(source.name, performance.now() - beganMs);
      this.#sayIfOthers(source);
      this.#record(source.name, text);
      const job = this.#jobs.add(source.name, {
        report,
        atMs: performance.now(),
        finished: this.#finished,
        expected: this.#expected,
      });
      this.#lastJob.set(source.name, job.number);
      this.#problems.delete(source.name);
      this.#mute.delete(source.name);
      this.#follow(source, report.version);
      return job;
    } catch (error) {
      if (this.#signal.aborted) return undefined;
      if (!(error instanceof TcclError) || error.code === 'FILE') throw error;
      this.#problems.set(source.name, error.message);
      if (error.code === 'TIMEOUT') this.#mute.add(source.name);
      else this.#mute.delete(source.name);
      return undefined;
    }
  }

  #sayIfSlow(source: string, tookMs: number): void {
    const { every } = this.#options;
    if (tookMs <= every || this.#slow.has(source)) return;
    this.#slow.add(source);
    this.#sayEvent(source, `a report took ${seconds(tookMs)}, longer than --every ${seconds(every)}: reports come less often`);
  }

  /** Says once that another user's job answers: RAS of a second user on a host has no port. */
  #sayIfOthers(source: ReportSource): void {
    if (this.#answered.has(source.name)) return;
    this.#answered.add(source.name);
    const user = source.otherUser?.();
    if (user !== undefined)
      this.#sayEvent(
        source.name,
        `a job of ${user} answers; RAS of your own job has no port there, unless it was started with another one, as NCCL_RAS_ADDR=localhost:28029`,
      );
  }

  /** Follows the events of a process of a release that sends them; again, where the process that sent them ended. */
  #follow(source: ReportSource, version: string | undefined): void {
    if (source.follow === undefined || this.#followed.has(source.name)) return;
    if (version === undefined || compareVersions(version, EVENTS_SINCE) < 0) return;
    this.#followed.add(source.name);
    const again = () => void this.#followed.delete(source.name);
    source.follow((event) => this.#sayEvent(source.name, event), this.#signal).then(again, again);
  }

  async #runTools(isLast: boolean): Promise<void> {
    if (this.#tools === undefined) return;
    const { torchDump, follow } = this.#options;
    for (const job of this.#jobs.all) {
      if ((await this.#tools.update(job, isLast, this.#signal)) && torchDump !== undefined && follow !== undefined)
        this.#patience = ROUNDS_FOR_RECORDINGS;
    }
  }

  #sayTool({ number }: WatchedJob, { text, facts }: ToolNews): void {
    const time = new Date();
    const news = [...(this.#toolNews.get(number) ?? []), `${clock(time)} ${text}`].slice(-SHOWN_NEWS);
    this.#toolNews.set(number, news);
    if (this.#options.json === true) printJson({ time: time.toISOString(), job: number, ...facts });
    else if (this.#block === undefined) print(`${clock(time)} job ${number}: ${text}`);
  }

  #sayEvent(source: string, event: string): void {
    const time = new Date();
    this.#events.push(`${clock(time)} ${source}: ${event}`);
    if (this.#events.length > SHOWN_EVENTS) this.#events.shift();
    if (this.#options.json === true) printJson({ time: time.toISOString(), source, event });
    else if (this.#block === undefined) print(`${clock(time)} ${source}: ${event}`);
  }

  #record(source: string, text: string): void {
    const { record } = this.#options;
    if (record === undefined) return;
    try {
      const line: RecordedReport = { tcclWatch: 1, time: new Date().toISOString(), source, report: text };
      appendFileSync(record, `${JSON.stringify(line)}\n`);
    } catch (error) {
      throw fileError(error, record, 'written');
    }
  }

  #worst(): JobState {
    const order: readonly JobState[] = ['stuck', 'dead', 'suspect', 'unknown', 'healthy'];
    return order.find((state) => this.#jobs.all.some(({ status }) => status.state === state)) ?? 'unknown';
  }

  #show(): void {
    const { json, every } = this.#options;
    this.#metrics?.update(
      this.#jobs.all,
      this.#sources.map(({ name }) => ({ name, isUp: !this.#problems.has(name) })),
    );
    const time = new Date();
    if (json === true) {
      for (const job of this.#jobs.all) printJson({ time: time.toISOString(), ...jsonOf(job) });
      for (const [source, error] of this.#problems) printJson({ time: time.toISOString(), source, error });
      if (this.#files !== undefined) {
        const { title, diagnosis } = this.#files;
        printJson({
          time: time.toISOString(),
          followed: title,
          outcome: diagnosis?.outcome,
          findings: diagnosis?.findings ?? [],
        });
      }
      return;
    }
    if (this.#block !== undefined) {
      const head = `${counted(this.#rounds, 'report')}, one every ${seconds(every)}; Ctrl-C ends`;
      this.#block.draw((width) => [
        head,
        ...this.#jobs.all.flatMap((job) => [
          ...blockLines(job, width),
          ...(this.#toolNews.get(job.number) ?? []).map((line) => `  ${line}`),
        ]),
        ...this.#problems.values(),
        ...this.#filesLines(),
        ...this.#events,
      ]);
      return;
    }
    const files = this.#filesLines();
    if (files.length > 0) this.#sayOnce('files', files.join(), `${clock(time)} ${files.join('\n         ')}`);
    const colors = colorsFor(process.stdout);
    for (const job of this.#jobs.all) this.#sayOnce(`job ${job.number}`, newsOf(job), changeLine(job, time, colors));
    for (const source of this.#sources) {
      const problem = this.#problems.get(source.name);
      if (problem === undefined) this.#said.delete(source.name);
      else this.#sayOnce(source.name, problem, `${clock(time)} ${problem}`);
    }
  }

  /** The verdict on the followed files, and what to do. */
  #filesLines(): string[] {
    if (this.#files === undefined) return [];
    const [verdict = '', ...more] = this.#files.lines;
    return [`${this.#files.title}: ${verdict}`, ...more.map((line) => `→ ${line}`)];
  }

  #sayOnce(about: string, key: string, text: string): void {
    if (this.#said.get(about) === key) return;
    this.#said.set(about, key);
    print(...text.split('\n'));
  }

  /** Ends when no process answers any more. */
  #over(): number {
    const wasDead = this.#worst() === 'dead';
    const text = wasDead
      ? 'no process answers any more: the job ended after the death of a process'
      : 'no process answers any more: the job has ended (RAS ends with the processes of its job)';
    this.#block?.end();
    if (this.#options.json === true) printJson({ time: new Date().toISOString(), ended: true, state: this.#worst() });
    else print(`${clock(new Date())} ${text}`);
    return wasDead ? 1 : 0;
  }

  #unanswered(): TcclError {
    const [first = 'no target', ...others] = new Set(this.#problems.values());
    return new InvalidArgumentError('UNSUPPORTED', [first, ...others.slice(0, 3)].join('; '));
  }
}

/** The part of a job's status that makes a line of its own: another state, other late ranks; of an unknown state its reason. */
function newsOf({ status: { state, late, why } }: WatchedJob): string {
  return `${state} ${state === 'unknown' ? why : late.map(lateRankName).join()}`;
}

function jsonOf({ number, source, status }: WatchedJob): object {
  const { state, stateMs, stillMs, version, ranks, why, advice, late, communicators, findings } = status;
  return {
    job: number,
    source,
    state,
    stateSeconds: stateMs / 1000,
    stillSeconds: stillMs / 1000,
    ncclVersion: version,
    ranks,
    why,
    advice,
    late,
    communicators: communicators.map(({ stillMs: still, ...rest }) => ({ ...rest, stillSeconds: still / 1000 })),
    findings: findings.map(({ code, problem, cause, remedy }) => ({ code, problem, cause, remedy })),
  };
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(done, Math.max(0, ms));
    function done(): void {
      clearTimeout(timer);
      signal.removeEventListener('abort', done);
      resolve();
    }
    signal.addEventListener('abort', done);
    if (signal.aborted) done();
  });
}
