import { callName, isMeeting, nameOf } from './call.js';
import type { WaitQueries } from '../bootstrap/wait-queries.js';
import { describeActivity, describeLate, describeReport, encodeActivity, type Activity } from './activity.js';
import { DONE, PENDING } from '../device/kernels/kernels.js';
import type { CallRecorder } from '../device/board.js';
import type { Libc } from '../device/libc.js';
import type { ParkedRanks } from '../device/parked-ranks.js';
import type { NumericArray } from '../device/types.js';
import { TcclError, TimeoutError } from '../../errors.js';
import { addCallerFrames, settlerOf } from '../caller-stack.js';
import type { End } from '../failure/ending.js';
import type { Engine } from './engine.js';
import { arraysOf, type QueuedCall } from './queued-call.js';
import { clockMs, setImmediate } from '../platform/platform.js';
import { isTurnDue, nextTurn } from '../progress/event-loop-turns.js';
import type { Progress, Waitable } from '../progress/progress.js';
import type { WakeSources } from '../progress/parking.js';
import {
  longWait,
  noLimits,
  ReportPace,
  shorterLimit,
  shorterOf,
  timeToLimit,
  limitSource,
  untilWarning,
  type WaitLimits,
} from '../progress/wait-limits.js';
import { WatchClock } from '../progress/watch-clock.js';

/** Parts that a queue uses. */
interface CallQueueParts {
  readonly engine: Engine;
  readonly rank: number;
  readonly libc: Libc | undefined;
  /** Number of unset flags to poll before the core is given away. */
  readonly spins: number;
  /** Number of times that a promise call gives its core away before it returns to the event loop. */
  readonly patience: number;
  /** Time that a call may wait for other ranks. */
  readonly limits: WaitLimits;
  /** Queries between ranks that share no memory about their waits. */
  readonly waitQueries?: WaitQueries | undefined;
  /** Called once for each call that takes long. */
  readonly warn: (text: string) => void;
  /** The messages of this communicator. */
  readonly messages: {
    /** Throws the error with which another rank of this host ended the communicator. */
    throwRecordedFailure(): void;
    /** Reports this rank's wait to ranks that may wait for its messages. */
    forwardReport(report: readonly number[]): void;
    /** Records the reports of those. */
    readReports(limitMs: number): void;
    /** Text of a rank's activity by its last report. */
    doing(rank: number): string | undefined;
  };
  /** Progress of this thread. */
  readonly progress: Progress;
  /** The ranks of this host that share memory with this rank and may be parked. */
  readonly parkedRanks: ParkedRanks;
  readonly recorder: CallRecorder;
  /** Called with the engine's steps when a waiting call has progressed. */
  readonly progressed?: (steps: number) => void;
  /** Ends the communicator for an error, of a call if one is given, and returns the error to throw. */
  readonly fail: (error: unknown, call?: string) => unknown;
  /** The end of the communicator. */
  readonly ending: End;
}

/** A call of the promise form that could not finish immediately. */
interface Request extends QueuedCall {
  begun: boolean;
  readonly settled: (error?: Error) => void;
}

/** Limit of the time of calls that block. */
interface CallLimit {
  readonly clock: WatchClock;
  /** End by the clock. */
  readonly endMs: number;
  readonly timeoutMs: number;
  /** The program's call. */
  readonly name: string;
}

const finished = Promise.resolve();

/**
 * The collectives of a communicator, in order; one runs at a time. Blocking calls wait in place. Promise calls that cannot
 * finish immediately are queued here and progress from the event loop.
 */
export class CallQueue implements Waitable {
  readonly #parts: CallQueueParts;
  readonly #engine: Engine;
  readonly #parkedRanks: ParkedRanks;
  readonly #recorder: CallRecorder;
  readonly #spins: number;
  /** Time that a call may wait here. */
  readonly #limits: WaitLimits;
  /** Clock of the running call, and the limit that it is for. */
  #clock: WatchClock;
  #clockMs: number;
  readonly #pace = new ReportPace();
  readonly #requests: Request[] = [];
  /** True while a blocking call runs. */
  #blocks = false;
  /** Limit of the time of the blocking calls that run, if they have one. */
  #limit: CallLimit | undefined;
  /** Steps of the engine at the last poll. */
  #steps = -1;
  /** Time since which the running call has made no progress, as far as checked; undefined until the first check. */
  #stillSinceMs: number | undefined;
  /** That duration at the last check. */
  #stillMs = 0;
  /** Number of calls begun so far, and the number of the last one that was warned about. */
  #begun = 0;
  #warnedOf = 0;
  /** Number of the last call whose wait was shown, since when, and the ranks that hold it up. */
  #shown = 0;
  #shownMs = 0;
  #late: readonly number[] = [];
  /** Called when no call is left, for drained(). */
  #idle: (() => void) | undefined;

  constructor(parts: CallQueueParts) {
    this.#parts = parts;
    this.#engine = parts.engine;
    this.#parkedRanks = parts.parkedRanks;
    this.#recorder = parts.recorder;
    this.#spins = parts.spins;
    this.#limits = parts.engine.keepsTime === true ? noLimits : parts.limits;
    this.#clockMs = shorterLimit(this.#limits);
    this.#clock = new WatchClock(this.#clockMs);
  }

  get isPending(): boolean {
    return this.#blocks || this.#requests.length > 0;
  }

  /** Name of the call that waits for other ranks, in its blocking form where it blocks; undefined if none does. */
  get waiting(): string | undefined {
    if (this.#blocks) {
      const call = this.#engine.underWay();
      return call === undefined ? undefined : `${nameOf(call)}Sync`;
    }
    const [request] = this.#requests;
    return request === undefined ? undefined : callName(request.code, request.root);
  }

  /** Arrays of the promise calls that have not ended. */
  arrays(): NumericArray[] {
    return this.#requests.flatMap((request) => [...arraysOf(request), ...(request.parts ?? []).flatMap(arraysOf)]);
  }

  // ── blocking calls ────────────────────────────────────────────────────────────────────────────────────────────────

  /** Short, like everything that a call passes on its way to the kernels: V8 inlines 920 bytes of bytecode in all. */
  run(call: QueuedCall): void {
    try {
      if (this.#requests.length > 0) this.#finishRequests();
      this.#recorder.begin(++this.#begun, call.code, call.root, call.count);
      const status = this.#engine.begin(call, this.#spins);
      this.#parkedRanks.wake();
      if (status !== DONE) this.#finish(call);
    } catch (error) {
      throw addCallerFrames(this.#parts.fail(error, `${callName(call.code, call.root)}Sync`));
    }
  }

  /** Runs a call and those that follow it in its chain. */
  runChain(first: QueuedCall): void {
    let next: QueuedCall | undefined = first;
    while (next !== undefined) {
      this.run(next);
      next = this.#nextOf(first);
    }
  }

  #nextOf({ chain }: QueuedCall): QueuedCall | undefined {
    try {
      return chain?.next();
    } catch (error) {
      throw addCallerFrames(this.#parts.fail(error));
    }
  }

  /**
   * Runs blocking calls that may take so long together.
   * @param name of the program's call
   */
  within(timeoutMs: number, name: string, run: () => void): void {
    const clock = new WatchClock(timeoutMs);
    this.#limit = { clock, endMs: clock.look() + timeoutMs, timeoutMs, name };
    this.#parts.progress.checkWithin(timeoutMs);
    try {
      run();
    } finally {
      this.#limit = undefined;
    }
  }

  /** Operations keep their order: queued promise calls come first. */
  #finishRequests(): void {
    this.#parts.progress.runUntil(this, () => this.#requests.length === 0);
    this.#parts.ending.throwIfEnded();
  }

  #finish(call: QueuedCall): void {
    this.#blocks = true;
    this.#stillSinceMs = undefined;
    this.#recorder.wait(this.#begun, call);
    this.#parts.progress.runUntil(this, this.#isUnblocked);
    this.#parts.ending.throwIfEnded();
    this.#recorder.end();
  }

  readonly #isUnblocked = (): boolean => !this.#blocks;

  // ── promise calls ─────────────────────────────────────────────────────────────────────────────────────────────────

  /** Finishes immediately if no rank is late; otherwise queues the call, which progresses from the event loop. */
  start(call: QueuedCall): Promise<void> {
    const { code, type, root, send, recv, count, details } = call;
    const engine = this.#engine;
    let begun = false;
    if (this.#requests.length === 0) {
      try {
        const { libc, patience } = this.#parts;
        this.#recorder.begin(++this.#begun, code, root, count);
        let status = engine.begin(call, this.#spins);
        for (let turn = 0; status === PENDING && turn < patience; turn++) {
          libc?.yieldCore();
          status = engine.progress(this.#spins);
        }
        this.#parkedRanks.wake();
        if (status === DONE) return isTurnDue() ? nextTurn() : finished;
        this.#recorder.wait(this.#begun, call);
        begun = true;
        this.#stillSinceMs = undefined;
      } catch (error) {
        throw this.#parts.fail(error, callName(code, root));
      }
    }
    return new Promise<void>((resolve) => {
      this.#requests.push({ code, type, root, send, recv, count, details, begun, settled: settlerOf(resolve) });
      this.#parts.progress.add(this);
    });
  }

  /** Starts a call and those that follow it in its chain. */
  startChain(first: QueuedCall): Promise<void> {
    return new Promise<void>((resolve) => {
      const settle = settlerOf(resolve);
      this.add(first, (error) => {
        if (error === undefined && isTurnDue()) setImmediate(settle);
        else settle(error);
      });
      this.kick();
    });
  }

  /** Queues a call; `kick` starts it together with all that were added before. */
  add(call: QueuedCall, settled: (error?: Error) => void): void {
    this.#requests.push({ ...call, begun: false, settled });
  }

  kick(): void {
    if (this.#requests.length === 0) return;
    try {
      this.poll(this.#spins);
    } catch (error) {
      this.fail(error);
    }
    if (this.isPending) this.#parts.progress.add(this);
  }

  /** Resolves when no call is left. */
  drained(): Promise<void> {
    if (this.#requests.length === 0) return Promise.resolve();
    return new Promise((resolve) => {
      const next = this.#idle;
      this.#idle = () => {
        next?.();
        resolve();
      };
    });
  }

  // ── going on ──────────────────────────────────────────────────────────────────────────────────────────────────────

  get polled(): boolean {
    return this.#engine.polled;
  }

  get parkAfterMs(): number {
    return this.#engine.parkAfterMs;
  }

  get spins(): number {
    return this.#spins;
  }

  get rest(): Engine['rest'] {
    return this.#engine.rest;
  }

  get checkEveryMs(): number {
    const limitMs = this.#limit?.clock.lookEveryMs ?? Infinity;
    if (this.#checkedLimitMs === 0) return limitMs;
    return Math.min(limitMs, this.#clock.lookEveryMs, timeToLimit(this.#limits, this.#stillMs));
  }

  wakeOn(sources: WakeSources): void {
    this.#engine.wakeOn(sources);
  }

  poll(spins: number): boolean {
    const { length } = this.#requests;
    const before = this.#steps;
    const ended = this.#blocks ? this.#engine.progress(spins) === DONE : this.#goOn(spins);
    this.#steps = this.#engine.steps;
    if (ended) this.#blocks = false;
    else if (this.#steps === before && this.#requests.length === length) return false;
    this.#stillSinceMs = undefined;
    this.#parkedRanks.wake();
    this.#parts.progressed?.(this.#steps);
    return true;
  }

  fail(error: unknown): void {
    this.#parts.fail(error);
  }

  /** Progresses the queued calls until one has to wait. Returns true if none is left. */
  #goOn(spins: number): boolean {
    while (this.#requests.length > 0) if (this.#stepFirst(spins) !== DONE) return false;
    this.#idle?.();
    return true;
  }

  /** Starts or progresses the first call; resolves and removes it when it is done. */
  #stepFirst(spins: number): number {
    const request = this.#requests[0];
    if (request === undefined) return DONE;
    const engine = this.#engine;
    let status: number;
    if (request.begun) status = engine.progress(spins);
    else {
      request.begun = true;
      request.before?.();
      this.#recorder.begin(++this.#begun, request.code, request.root, request.count);
      status = engine.begin(request, this.#spins);
      if (status !== DONE) this.#recorder.wait(this.#begun, request);
    }
    if (status === DONE) {
      this.#recorder.end();
      request.after?.();
      const next = request.chain?.next();
      if (next === undefined) {
        this.#requests.shift();
        request.settled();
      } else this.#requests[0] = { ...next, chain: request.chain, begun: false, settled: request.settled };
    }
    return status;
  }

  // ── failure ───────────────────────────────────────────────────────────────────────────────────────────────────────

  /** Throws if calls can no longer complete. A rank that has closed matters only to messages with it. */
  checkForMessages(): void {
    try {
      this.#checkEngine();
    } catch (error) {
      if (!(error instanceof TcclError && error.code === 'CLOSED')) throw error;
    }
  }

  /** Throws the recorded failure first: it explains most, also if another rank records it during the engine's check. */
  #checkEngine(): void {
    this.#parts.messages.throwRecordedFailure();
    try {
      this.#engine.check();
    } catch (error) {
      this.#parts.messages.throwRecordedFailure();
      throw error;
    }
  }

  /**
   * Throws the error of a call whose time limit is over: a timeout, or the error with which another rank has ended it meanwhile.
   */
  timeOut(timeoutMs = this.#parts.limits.timeoutMs, whose = limitSource(this.#parts.limits)): never {
    const { rank } = this.#parts;
    const late = this.#engine.late(this.#limitMs);
    this.#engine.check();
    throw new TimeoutError(
      'TIMEOUT',
      `rank ${rank} waited ${timeoutMs / 1000} s in ${this.#what()}, for ${this.#describe(late)} ` + `(${whose})`,
      { ranks: late },
    );
  }

  #describe(late: readonly number[]): string {
    const beyond = late.length > 0 ? undefined : this.#engine.lateBeyondRanks?.(this.#limitMs);
    return beyond ?? describeLate(late, (one) => this.doing(one));
  }

  /** Warns once for each call that it waits, and for which ranks, unless another rank has ended it meanwhile. */
  warn(): void {
    if (this.#warnedOf === this.#begun) return;
    this.#warnedOf = this.#begun;
    const late = this.#engine.late(this.#limitMs);
    this.#engine.check();
    const { rank, limits, warn } = this.#parts;
    warn(longWait(rank, untilWarning(limits, this.#stillMs), this.#what(), this.#describe(late)));
  }

  /** Reports to the others that a call makes no progress here. */
  reportWait(): void {
    const activity = this.#activity();
    if (activity === undefined || !this.#pace.isDue(this.#limitMs)) return;
    const report = this.#engine.reportWait(this.#limitMs, activity);
    this.#late = this.#engine.late(this.#limitMs);
    const { messages, waitQueries } = this.#parts;
    if (report !== undefined) messages.forwardReport(report);
    messages.readReports(this.#limitMs);
    const begun = this.#begun;
    const { steps } = this.#engine;
    waitQueries?.setAnswer(
      report ?? encodeActivity(activity),
      () => this.isPending && this.#begun === begun && this.#engine.steps === steps,
    );
    waitQueries?.ask(this.#late);
  }

  /** Text of another rank's activity, if known; see Engine. */
  doing(rank: number): string | undefined {
    const answer = this.#parts.waitQueries?.answer(rank);
    const isNew = answer !== undefined && clockMs() - answer.atMs < this.#limitMs / 2;
    return this.#engine.doing(rank) ?? this.#parts.messages.doing(rank) ?? (isNew ? describeReport(answer.words) : undefined);
  }

  /** The last call that began, for ranks that ask. */
  lastCall(): readonly number[] | undefined {
    const activity = this.#activity();
    return activity?.kind === 'collective' ? encodeActivity({ ...activity, kind: 'last' }) : undefined;
  }

  /** Limit for checks of long waits, also if the engine keeps time itself: the running call's own, if that is shorter. */
  get #limitMs(): number {
    const ownMs = this.#blocks ? this.#limit?.timeoutMs : this.#requests[0]?.details?.limitMs;
    return shorterOf(ownMs ?? 0, shorterLimit(this.#parts.limits));
  }

  /** The limit by which this thread checks the running call; 0 if the engine does that, or there is none. */
  get #checkedLimitMs(): number {
    return this.#engine.keepsTime === true ? 0 : this.#limitMs;
  }

  #activity(): Activity | undefined {
    const call = this.#engine.underWay();
    return call === undefined ? undefined : { kind: 'collective', number: this.#begun - 1, call };
  }

  /** Shows the wait to other processes. */
  #showWait(): void {
    const activity = this.#activity();
    if (activity === undefined) return;
    if (this.#shown !== this.#begun) {
      this.#late = [];
      this.#shownMs = clockMs();
    }
    this.#shown = this.#begun;
    const stillMs = this.#stillSinceMs === undefined ? 0 : this.#stillMs;
    this.#recorder.report('collective', this.#shownMs, stillMs, encodeActivity(activity), this.#late);
  }

  #what(): string {
    const activity = this.#activity();
    return activity === undefined ? 'a call' : describeActivity(activity);
  }

  /** Rejects all calls. */
  abort(error: TcclError): void {
    this.#blocks = false;
    for (const request of this.#requests.splice(0)) request.settled(error);
    this.#parts.progress.remove(this);
    this.#idle?.();
  }

  check(): void {
    this.#showWait();
    this.#checkEngine();
    const limit = this.#limit;
    if (limit !== undefined && limit.clock.look() >= limit.endMs) this.timeOut(limit.timeoutMs, `timeoutMs of its ${limit.name}`);
    const checkedMs = this.#checkedLimitMs;
    if (checkedMs === 0) return;
    if (checkedMs !== this.#clockMs) {
      this.#clockMs = checkedMs;
      this.#clock = new WatchClock(checkedMs);
      this.#stillSinceMs = undefined;
    }
    const { timeoutMs } = this.#limits;
    const now = this.#clock.look();
    this.#stillSinceMs ??= now;
    const stillMs = (this.#stillMs = now - this.#stillSinceMs);
    // A meeting has a limit of its own, which may be longer.
    const isMet = this.#blocks || !isMeeting(this.#requests[0]?.code ?? 0);
    if (timeoutMs > 0 && stillMs > timeoutMs && isMet) this.timeOut();
    if (stillMs > this.#clock.gapMs) this.reportWait();
    const warnAfterMs = untilWarning(this.#limits, stillMs);
    if (warnAfterMs > 0 && stillMs > warnAfterMs) this.warn();
  }
}
