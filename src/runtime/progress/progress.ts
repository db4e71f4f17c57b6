import { loadLibc, type Libc } from '../device/libc.js';
import { Backoff } from './backoff.js';
import { SpinTrial } from './spin-trial.js';
import { Sleeper, type Bed } from './sleeper.js';

/** An operation that waits for other ranks. */
export interface Waitable {
  /** True if any part of it is in flight. */
  readonly isPending: boolean;
  /** True if news is found by polling; otherwise only the event loop, or another thread, brings news. */
  readonly polled: boolean;
  /** Number of polls without news before the core is given away. */
  readonly spins: number;
  /** Time without progress after which a wait parks, milliseconds. */
  readonly sleepAfterMs: number;
  /** Longest time until the next check(), milliseconds. */
  readonly checkEveryMs: number;
  /** Progresses as far as possible, with at most `spins` polls of what has not arrived. Returns true after progress. */
  poll(spins: number): boolean;
  /** Checks liveness of the awaited ranks and the time limits. Throws the error that ends the wait. */
  check(): void;
  /** Ends it with the error that poll() or check() threw. */
  fail(error: unknown): void;
  /** Registers everything that can wake this thread for it. */
  sleepOn(bed: Bed): void;
  /** Blocks until there is news, at most for `ms`; absent if polling finds the news. */
  readonly rest?: ((ms: number) => void) | undefined;
}

/**
 * Time between checks of the others' health: the first, the share of the time waited, and the longest. In the event loop the
 * bootstrap network tells of deaths by itself, so that checks may be rare.
 */
const FIRST_HEALTH_MS = 20;
const HEALTH_PART = 1 / 8;
const longestHealthMs = { inPlace: 200, inLoop: 1000 };
/** Waits that park sooner than this use sockets, whose polls cost most. */
const SHORT_MS = 1;
/** Sleep of a thread without a wake source: the share of the time waited, and the longest. */
const NAP_PART = 1 / 32;
const LONGEST_NAP_MS = 100;

/**
 * Everything that this thread waits for: collectives, messages and signals of all its communicators. Any wait progresses all
 * of them. A wait spins for a while, then gives the core away between polls, then parks until there is news: blocking calls
 * in place, promise calls in the event loop.
 */
export class Progress {
  readonly #waitables: Waitable[] = [];
  readonly #backoff: Backoff;
  readonly #sleeper: Sleeper;
  /** Next run from the event loop: `soon` on its own, `asleep` after a sleep. */
  #scheduled: 'no' | 'soon' | 'asleep' = 'no';
  #timer: NodeJS.Timeout | undefined;
  readonly #spinTrial = new SpinTrial();
  #healthAtMs = 0;
  /** True if the last sleep was ended by an unrelated event: the next one then ignores its wake sources. */
  #wokenInVain = false;

  /** @param libc without it, the thread cannot be woken and polls at intervals */
  constructor(libc: Libc | undefined) {
    this.#backoff = new Backoff(libc);
    this.#sleeper = new Sleeper(libc, this.wake);
  }

  /** Lets blocking waits progress it while it is pending. */
  enlist(waitable: Waitable): void {
    if (!this.#waitables.includes(waitable)) this.#waitables.push(waitable);
  }

  /** Progresses it from the event loop, too. */
  add(waitable: Waitable): void {
    this.enlist(waitable);
    this.#backoff.restart();
    if (this.#scheduled === 'asleep') this.#getUp();
    this.#schedule();
  }

  /** Stops progressing it. */
  remove(waitable: Waitable): void {
    if (!this.#drop(waitable) || this.#scheduled !== 'asleep') return;
    // Its wake sources may be closed next.
    this.#getUp();
    this.#schedule();
  }

  /** Reports news. */
  readonly wake = (): void => {
    if (this.#scheduled !== 'asleep') return;
    this.#getUp();
    this.#wokenInVain = true;
    this.#pump();
  };

  /** Blocks until `isDone`, which must also become true when `own` fails. */
  runUntil(own: Waitable, isDone: () => boolean): void {
    this.enlist(own);
    this.#backoff.restart();
    if (this.#scheduled === 'asleep') this.#getUp();
    try {
      while (!isDone()) {
        if (own.rest !== undefined && !this.#isPolled()) this.#rest(own.rest);
        else if (!this.#isLong()) this.#backoff.yield();
        else this.#sleepInPlace(own);
        this.#turn(own);
      }
    } finally {
      if (!own.isPending) this.#drop(own);
      // The event loop continues with everything else that is in flight.
      this.#schedule();
    }
  }

  /** Progresses everything, beginning with `own`. */
  #turn(own?: Waitable): void {
    if (this.#pollAll(own)) this.#moved();
    const { nowMs } = this.#backoff;
    if (nowMs < this.#healthAtMs) return;
    this.#checkAll();
    this.#healthAtMs = nowMs + this.#healthEveryMs(own === undefined ? 'inLoop' : 'inPlace');
  }

  #moved(): void {
    this.#spinTrial.ended();
    this.#backoff.restart();
    this.#wokenInVain = false;
  }

  /** Returns true if anything progressed. */
  #pollAll(own?: Waitable): boolean {
    const isFresh = !this.#isLong();
    let moved = false;
    for (let i = this.#waitables.length - 1; i >= 0; i--) {
      const waitable = this.#waitables[i];
      if (waitable === undefined) continue;
      try {
        const spins = isFresh && (own === undefined || own === waitable) ? waitable.spins : 0;
        if (waitable.poll(spins)) moved = true;
        if (!waitable.isPending && waitable !== own) this.#drop(waitable);
      } catch (error) {
        this.#fail(waitable, error);
        moved = true;
      }
    }
    return moved;
  }

  /** Returns true if it was registered. */
  #drop(waitable: Waitable): boolean {
    const at = this.#waitables.indexOf(waitable);
    if (at >= 0) this.#waitables.splice(at, 1);
    return at >= 0;
  }

  #checkAll(): void {
    for (const waitable of [...this.#waitables]) {
      // Data that a rank sent before it left are valid, however late this check is.
      if (!waitable.isPending) continue;
      try {
        waitable.check();
      } catch (error) {
        this.#fail(waitable, error);
      }
    }
  }

  #fail(waitable: Waitable, error: unknown): void {
    this.#drop(waitable);
    waitable.fail(error);
  }

  #healthEveryMs(where: keyof typeof longestHealthMs): number {
    let ms = Math.min(longestHealthMs[where], Math.max(FIRST_HEALTH_MS, this.#backoff.waitedMs * HEALTH_PART));
    for (const { checkEveryMs } of this.#waitables) ms = Math.min(ms, checkEveryMs);
    return Math.max(1, ms);
  }

  /** True if it is time to park. */
  #isLong(): boolean {
    const { waitedMs } = this.#backoff;
    const shortMs = this.#spinTrial.isDue ? 0 : SHORT_MS;
    for (let i = 0; i < this.#waitables.length; i++) {
      const waitable = this.#waitables[i];
      if (waitable?.polled === true && waitedMs <= waitable.sleepAfterMs && waitable.sleepAfterMs > shortMs) return false;
    }
    return true;
  }

  #isPolled(): boolean {
    for (let i = 0; i < this.#waitables.length; i++) if (this.#waitables[i]?.polled === true) return true;
    return false;
  }

  // ── in place ──────────────────────────────────────────────────────────────────────────────────────────────────────

  #rest(rest: (ms: number) => void): void {
    rest(this.#healthEveryMs('inPlace'));
    this.#backoff.look();
  }

  #sleepInPlace(own: Waitable): void {
    this.#spinTrial.slept();
    const ms = this.#healthEveryMs('inPlace');
    if (!this.#makeBed(true)) this.#backoff.nap(Math.min(ms, this.#napMs()));
    else {
      this.#sleeper.lieDown();
      if (this.#pollAll(own)) this.#moved();
      else this.#wokenInVain = this.#sleeper.sleep(ms);
      this.#sleeper.getUp();
    }
    this.#backoff.look();
  }

  // ── from the event loop ───────────────────────────────────────────────────────────────────────────────────────────

  #schedule(): void {
    if (this.#scheduled !== 'no' || this.#waitables.length === 0) return;
    if (this.#isPolled() && !this.#isLong()) this.#soon();
    else this.#sleepInLoop();
  }

  #soon(): void {
    this.#scheduled = 'soon';
    setImmediate(this.#pump);
  }

  #sleepInLoop(): void {
    this.#spinTrial.slept();
    let ms = this.#healthEveryMs('inLoop');
    if (this.#makeBed(false)) {
      this.#sleeper.lieDown();
      if (this.#pollAll()) {
        this.#sleeper.getUp();
        this.#moved();
        if (this.#waitables.length > 0) this.#soon();
        return;
      }
      this.#sleeper.watch();
    } else ms = Math.min(ms, this.#napMs());
    this.#scheduled = 'asleep';
    // node:net reads sockets before an immediate runs: received data count before a timeout.
    this.#timer = setTimeout(() => {
      this.#getUp();
      this.#soon();
    }, ms);
  }

  #getUp(): void {
    clearTimeout(this.#timer);
    this.#sleeper.getUp();
    this.#scheduled = 'no';
  }

  readonly #pump = (): void => {
    this.#scheduled = 'no';
    this.#backoff.look();
    this.#turn();
    this.#schedule();
  };

  // ── sleep ─────────────────────────────────────────────────────────────────────────────────────────────────────────

  /** Collects the wake sources. Returns true if news will wake this thread; false for a nap after an unrelated wake. */
  #makeBed(inPlace: boolean): boolean {
    const sleeper = this.#sleeper;
    sleeper.make();
    for (let i = this.#waitables.length - 1; i >= 0; i--) {
      const waitable = this.#waitables[i];
      if (waitable === undefined) continue;
      // A blocked thread does not run its event loop.
      if (inPlace && !waitable.polled) sleeper.onNothing();
      else this.#sleepOn(waitable);
    }
    const isDeaf = this.#wokenInVain && this.#isPolled();
    this.#wokenInVain = false;
    return !isDeaf && sleeper.wakes;
  }

  /** Registers what can wake this thread for it. That may fail: its connections are looked at, and one may have broken. */
  #sleepOn(waitable: Waitable): void {
    try {
      waitable.sleepOn(this.#sleeper);
    } catch (error) {
      this.#fail(waitable, error);
      this.#moved();
      this.#sleeper.onNothing();
    }
  }

  #napMs(): number {
    return Math.min(LONGEST_NAP_MS, this.#backoff.waitedMs * NAP_PART);
  }
}

let ofThread: Progress | undefined;

/** Progress of this thread. */
export function progressHere(): Progress {
  if (ofThread === undefined) {
    const loaded = loadLibc();
    ofThread = new Progress('libc' in loaded ? loaded.libc : undefined);
  }
  return ofThread;
}
