import type { WaitLine } from '../bootstrap/wait-line.js';
import { describeDeed, describeLate, describeReport, encodeDeed, type Deed } from './deed.js';
import { DONE, PENDING } from '../device/kernels/kernels.js';
import type { Libc } from '../device/libc.js';
import type { NumericArray } from '../device/types.js';
import { TcclError, TimeoutError } from '../../errors.js';
import { Backoff } from '../progress/backoff.js';
import { leadToCaller, settlerOf } from '../caller-stack.js';
import type { Engine } from './engine.js';
import type { QueuedCall } from './queued-call.js';
import { longWait, noLimits, SayPace, shorterLimit, type WaitLimits } from '../progress/wait-limits.js';
import { WatchClock } from '../progress/watch-clock.js';

/** What a queue works with. */
export interface CallQueueParts {
  readonly engine: Engine;
  readonly rank: number;
  readonly libc: Libc | undefined;
  /** How many unset flags are looked at before the core is given away. */
  readonly spins: number;
  /** How often a promise call gives its core away before it returns to the event loop. */
  readonly patience: number;
  /** How long a call may wait for other ranks. */
  readonly limits: WaitLimits;
  /** On which ranks that share no memory ask each other what they do. */
  readonly waitLine?: WaitLine | undefined;
  /** Told once of each call that waits for long. */
  readonly warn: (text: string) => void;
  /** The messages of this communicator, which go on while a call is waited for. `step` returns whether any got further. */
  readonly messages: {
    arePolled(): boolean;
    step(): boolean;
    throwLastWords(): void;
    /** Tells those that may wait for this rank's messages what it waits for. */
    tellWaits(report: readonly number[]): void;
  };
  /** Ends the communicator for an error of a call, and gives the error to throw. */
  readonly fail: (error: unknown) => unknown;
}

/** A call of the promise API that could not finish at once. */
interface Request extends QueuedCall {
  begun: boolean;
  readonly settled: (error?: Error) => void;
}

const finished = Promise.resolve();

/**
 * The collectives of a communicator, in their order: one is under way at a time. Blocking calls wait in place; calls of
 * the promise API that cannot finish at once wait here, and go on from the event loop.
 */
export class CallQueue {
  readonly #parts: CallQueueParts;
  readonly #engine: Engine;
  readonly #spins: number;
  /** How long a call may wait here. */
  readonly #limits: WaitLimits;
  /** See shorterLimit(). */
  readonly #shorterMs: number;
  readonly #clock: WatchClock;
  readonly #backoff: Backoff;
  readonly #pace = new SayPace();
  readonly #requests: Request[] = [];
  #scheduled = false;
  /** Looks how long news are waited for, where they come by themselves: */
  #watch: NodeJS.Timeout | undefined;
  /** since when the call under way has got no further, and how far it had got. */
  #stillSinceMs = 0;
  #stepsBefore = 0;
  /** Calls begun so far, and which of them a warning was about. */
  #begun = 0;
  #warnedOf = 0;
  /** Called when there is no call left, for drained(). */
  #idle: (() => void) | undefined;

  constructor(parts: CallQueueParts) {
    this.#parts = parts;
    this.#engine = parts.engine;
    this.#spins = parts.spins;
    this.#limits = parts.engine.keepsTime === true ? noLimits : parts.limits;
    this.#shorterMs = shorterLimit(this.#limits);
    this.#clock = new WatchClock(this.#shorterMs);
    this.#backoff = new Backoff(parts.libc, this.#clock);
  }

  get isPending(): boolean {
    return this.#requests.length > 0;
  }

  /** What calls of the promise API that have not ended use. */
  arrays(): NumericArray[] {
    return this.#requests.flatMap((request) => request.parts ?? [request]).flatMap(({ send, recv }) => [send, recv]);
  }

  // ── blocking calls ────────────────────────────────────────────────────────────────────────────────────────────────

  /** Short, as all that a call passes on its way to the kernels: V8 inlines 920 bytes of bytecode in all. */
  run(call: QueuedCall): void {
    try {
      if (this.#requests.length > 0) this.#finishRequests();
      this.#begun++;
      const status = this.#engine.begin(
        call.code,
        call.type,
        call.root,
        call.send,
        call.recv,
        call.count,
        this.#spins,
        call.details,
      );
      if (status !== DONE) this.#finish(status);
    } catch (error) {
      throw leadToCaller(this.#parts.fail(error));
    }
  }

  /** Operations keep their order: what the promise API started comes first. */
  #finishRequests(): void {
    while (this.#requests.length > 0) this.#finish(this.#stepFirst(), true);
  }

  /** @param isFirst whether it is the first of the requests, which then has to be told */
  #finish(status: number, isFirst = false): void {
    if (status === DONE) return;
    this.#backoff.restart();
    while (status === PENDING) {
      const { messages } = this.#parts;
      const looksAfterHealth = this.#backoff.turn(true, messages.arePolled() ? undefined : this.#engine.rest);
      if (messages.step()) this.#backoff.stir();
      const { steps } = this.#engine;
      status = isFirst ? this.#stepFirst() : this.#engine.progress(this.#looks);
      if (this.#engine.steps !== steps) this.#backoff.restart();
      // What came from a rank before it went counts, however late this one looks.
      else if (looksAfterHealth && status === PENDING) this.#checkHealth();
    }
  }

  // ── promise calls ─────────────────────────────────────────────────────────────────────────────────────────────────

  /** Finishes at once if nobody is late; else queues the call and goes on from the event loop. */
  start({ code, type, root, send, recv, count, details }: QueuedCall): Promise<void> {
    const engine = this.#engine;
    let begun = false;
    if (this.#requests.length === 0) {
      try {
        const { libc, patience } = this.#parts;
        this.#begun++;
        let status = engine.begin(code, type, root, send, recv, count, this.#spins, details);
        for (let turn = 0; status === PENDING && turn < patience; turn++) {
          libc?.yieldCore();
          status = engine.progress(this.#spins);
        }
        if (status === DONE) return finished;
        begun = true;
      } catch (error) {
        throw this.#parts.fail(error);
      }
      this.#backoff.restart();
    }
    return new Promise<void>((resolve) => {
      this.#requests.push({ code, type, root, send, recv, count, details, begun, settled: settlerOf(resolve) });
      this.#schedule();
    });
  }

  /** Queues a call, which `kick` starts with all that were added before. */
  add(call: QueuedCall, settled: (error?: Error) => void): void {
    this.#requests.push({ ...call, begun: false, settled });
  }

  kick(): void {
    if (!this.#scheduled && this.#requests.length > 0) this.#pump();
  }

  /** Goes on with the calls while something else is waited for. True if one got further. */
  step(): boolean {
    const { steps } = this.#engine;
    const { length } = this.#requests;
    while (this.#requests.length > 0 && this.#stepFirst() === DONE);
    if (this.#scheduled && this.#requests.length > 0 && this.#engine.whenReady !== undefined) this.#startWatch();
    return this.#requests.length !== length || this.#engine.steps !== steps;
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

  #schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    if (this.#engine.whenReady !== undefined) {
      this.#engine.whenReady(this.#pump);
      this.#startWatch();
    } else if (this.#backoff.sleepMs > 0) setTimeout(this.#pump, this.#backoff.sleepMs);
    else setImmediate(this.#pump);
  }

  /** How often to look now: once, where this rank sleeps between looks. */
  get #looks(): number {
    return this.#backoff.sleepMs > 0 ? 0 : this.#spins;
  }

  /** Goes on with the calls until one has to wait. */
  readonly #pump = (): void => {
    this.#scheduled = false;
    try {
      while (this.#requests.length > 0) {
        const status = this.#stepFirst();
        if (status === PENDING) {
          if (this.#engine.whenReady === undefined && this.#backoff.turn(false)) this.#checkHealth();
          this.#schedule();
          return;
        }
        this.#backoff.restart();
      }
      this.#idle?.();
    } catch (error) {
      this.#parts.fail(error);
    }
  };

  /** Starts or goes on with the first call; resolves and removes it when it is done. */
  #stepFirst(): number {
    const request = this.#requests[0];
    if (request === undefined) return DONE;
    const engine = this.#engine;
    let status: number;
    if (request.begun) {
      const { steps } = engine;
      status = engine.progress(this.#looks);
      if (engine.steps !== steps) this.#backoff.restart();
    } else {
      request.begun = true;
      request.before?.();
      this.#begun++;
      status = engine.begin(
        request.code,
        request.type,
        request.root,
        request.send,
        request.recv,
        request.count,
        this.#spins,
        request.details,
      );
    }
    if (status === DONE) {
      request.after?.();
      this.#endWatch();
      this.#requests.shift();
      request.settled();
    }
    return status;
  }

  // ── failure ───────────────────────────────────────────────────────────────────────────────────────────────────────

  /**
   * Throws where calls can no longer come to their end. Messages don't care whether a rank that they have nothing to do
   * with has closed.
   */
  checkForMessages(): void {
    try {
      this.#engine.check();
    } catch (error) {
      if (!(error instanceof TcclError && error.code === 'CLOSED')) throw error;
    }
  }

  /**
   * Throws why a call ends that has waited long enough: because time is over, or others have ended it by now and nobody
   * is late any more.
   */
  timeOut(): never {
    const {
      rank,
      limits: { timeoutMs },
    } = this.#parts;
    const late = this.#engine.late(this.#limitMs);
    this.#engine.check();
    throw new TimeoutError(
      'TIMEOUT',
      `rank ${rank} waited ${timeoutMs / 1000} s in ${this.#what()}, for ${describeLate(late, (one) => this.doing(one))} ` +
        '(TCCL_TIMEOUT sets the seconds, 0 waits for ever)',
      { ranks: late },
    );
  }

  /** Says, once a call, that it waits, and for whom, unless others have ended it by now. */
  warn(): void {
    if (this.#warnedOf === this.#begun) return;
    this.#warnedOf = this.#begun;
    const late = this.#engine.late(this.#limitMs);
    this.#engine.check();
    const {
      rank,
      limits: { warnAfterMs },
      warn,
    } = this.#parts;
    warn(
      longWait(
        rank,
        warnAfterMs,
        this.#what(),
        describeLate(late, (one) => this.doing(one)),
      ),
    );
  }

  /** Tells the others that a call gets no further here. */
  sayWaits(): void {
    const deed = this.#deed();
    if (deed === undefined || !this.#pace.isDue(this.#limitMs)) return;
    const report = this.#engine.sayWaits(this.#limitMs, deed);
    const { messages, waitLine } = this.#parts;
    if (report !== undefined) messages.tellWaits(report);
    const begun = this.#begun;
    const { steps } = this.#engine;
    waitLine?.say(report ?? encodeDeed(deed), () => this.isPending && this.#begun === begun && this.#engine.steps === steps);
    waitLine?.ask(this.#engine.late(this.#limitMs));
  }

  /** What is known of another rank; see Engine. */
  doing(rank: number): string | undefined {
    const answer = this.#parts.waitLine?.answer(rank);
    const isNew = answer !== undefined && performance.now() - answer.atMs < this.#limitMs / 2;
    return this.#engine.doing(rank) ?? (isNew ? describeReport(answer.words) : undefined);
  }

  /** The call that was begun last, for others that ask. */
  lastWords(): readonly number[] | undefined {
    const deed = this.#deed();
    return deed?.kind === 'collective' ? encodeDeed({ ...deed, kind: 'last' }) : undefined;
  }

  /** What looks at long waits go by, also where the engine keeps time. */
  get #limitMs(): number {
    return shorterLimit(this.#parts.limits);
  }

  #deed(): Deed | undefined {
    const call = this.#engine.underWay();
    return call === undefined ? undefined : { kind: 'collective', number: this.#begun - 1, call };
  }

  #what(): string {
    const deed = this.#deed();
    return deed === undefined ? 'a call' : describeDeed(deed);
  }

  /** Rejects all calls. */
  abort(error: TcclError): void {
    this.#endWatch();
    for (const request of this.#requests.splice(0)) request.settled(error);
    this.#idle?.();
  }

  /** Looks whether those that this rank waits for can still come, and whether it has waited long enough. */
  #checkHealth(): void {
    this.#parts.messages.throwLastWords();
    this.#engine.check();
    this.#lookAtTime(this.#backoff.waitedMs);
  }

  /** What comes of a call that has got no further for so long. */
  #lookAtTime(stillMs: number): void {
    if (this.#shorterMs === 0) return;
    const { timeoutMs, warnAfterMs } = this.#limits;
    if (timeoutMs > 0 && stillMs > timeoutMs) this.timeOut();
    if (stillMs > this.#clock.gapMs) this.sayWaits();
    if (warnAfterMs > 0 && stillMs > warnAfterMs) this.warn();
  }

  /** The call under way fails when it has got no further for too long. */
  #startWatch(): void {
    if (this.#shorterMs === 0 || this.#watch !== undefined) return;
    this.#startTime();
    this.#watch = this.#clock.every(this.#look);
  }

  #startTime(): void {
    this.#stillSinceMs = this.#clock.look();
    this.#stepsBefore = this.#engine.steps;
  }

  readonly #look = (): void => {
    if (this.#engine.steps !== this.#stepsBefore) {
      this.#startTime();
      return;
    }
    const stillMs = this.#clock.look() - this.#stillSinceMs;
    const { timeoutMs } = this.#limits;
    if (timeoutMs > 0 && stillMs > timeoutMs) {
      this.#endWatch();
      this.#expire();
      return;
    }
    try {
      this.#lookAtTime(stillMs);
    } catch (error) {
      this.#parts.fail(error);
    }
  };

  /**
   * Where this thread did something else all the time, the others may have come long ago: sockets are read before an
   * immediate runs.
   */
  #expire(): void {
    const [first] = this.#requests;
    const { steps } = this.#engine;
    setImmediate(() => {
      if (first === undefined || this.#requests[0] !== first) return;
      this.#pump();
      if (this.#requests[0] !== first || this.#engine.steps !== steps) return;
      try {
        this.timeOut();
      } catch (error) {
        this.#parts.fail(error);
      }
    });
  }

  #endWatch(): void {
    clearInterval(this.#watch);
    this.#watch = undefined;
  }
}
