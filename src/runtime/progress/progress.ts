import { loadLibc, type Libc } from '../device/libc.js';
import { Backoff } from './backoff.js';
import { SpinTrial } from './spin-trial.js';
import { Sleeper, type Bed } from './sleeper.js';

/** Something under way that waits for other ranks. */
export interface Waitable {
  /** Whether anything of it is under way. */
  readonly isPending: boolean;
  /** Whether looking again tells what is new; otherwise only the event loop, or another thread, brings news. */
  readonly polled: boolean;
  /** How often a look that finds nothing is worth repeating at once. */
  readonly spins: number;
  /** How long a wait without progress looks again and again before it sleeps, in milliseconds. */
  readonly sleepAfterMs: number;
  /** How soon check() has to come again at the latest, in milliseconds. */
  readonly checkEveryMs: number;
  /** Goes on as far as it can, looking at most `spins` times at what has not come. True if it got further. */
  poll(spins: number): boolean;
  /** Looks whether those that are waited for can still come, and whether they have taken too long. Throws what ends it. */
  check(): void;
  /** Ends it, for what poll() or check() threw. */
  fail(error: unknown): void;
  /** Names all that wakes this thread for it. */
  sleepOn(bed: Bed): void;
  /** Blocks until there is news, at most for so long; absent where looking does. */
  readonly rest?: ((ms: number) => void) | undefined;
}

/** How long a wait goes on without a look at the others' health: at first, as a part of the time waited, and at most. */
const FIRST_HEALTH_MS = 20;
const HEALTH_PART = 1 / 8;
const LONGEST_HEALTH_MS = 200;
/** Waits that sleep sooner than this are those whose looks cost most: sockets. */
const SHORT_MS = 1;
/** How long a thread sleeps that nothing wakes, as a part of the time waited, and at most. */
const NAP_PART = 1 / 64;
const LONGEST_NAP_MS = 50;

/**
 * All that this thread waits for: collectives, messages and signals of all its communicators. Whoever waits goes on with all
 * of them. A wait looks again for a while, then gives the core away between looks, then sleeps until there is news. Blocking
 * calls do that in place, calls of the promise form from the event loop.
 */
export class Progress {
  readonly #waitables: Waitable[] = [];
  readonly #backoff: Backoff;
  readonly #sleeper: Sleeper;
  /** How the event loop comes back here: `soon` by itself, `asleep` after a sleep. */
  #scheduled: 'no' | 'soon' | 'asleep' = 'no';
  #timer: NodeJS.Timeout | undefined;
  readonly #spinTrial = new SpinTrial();
  #healthAtMs = 0;
  /** Whether the last sleep was ended by something that nothing here waited for: then the next one is deaf. */
  #wokenInVain = false;

  /** @param libc left out, a thread cannot be woken, and looks from time to time */
  constructor(libc: Libc | undefined) {
    this.#backoff = new Backoff(libc);
    this.#sleeper = new Sleeper(libc, this.wake);
  }

  /** From now on whoever blocks goes on with it, as long as it is pending. */
  enlist(waitable: Waitable): void {
    if (!this.#waitables.includes(waitable)) this.#waitables.push(waitable);
  }

  /** From now on goes on with it from the event loop, too. */
  add(waitable: Waitable): void {
    this.enlist(waitable);
    this.#backoff.restart();
    if (this.#scheduled === 'asleep') this.#getUp();
    this.#schedule();
  }

  /** It has ended, or has to be looked at no more. */
  remove(waitable: Waitable): void {
    if (!this.#drop(waitable) || this.#scheduled !== 'asleep') return;
    // What it named may be closed next.
    this.#getUp();
    this.#schedule();
  }

  /** There is news. */
  readonly wake = (): void => {
    if (this.#scheduled !== 'asleep') return;
    this.#getUp();
    this.#wokenInVain = true;
    this.#pump();
  };

  /** Blocks until `isDone`, which an error of `own` has to make true, too. */
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
      // What else is under way goes on from the event loop.
      this.#schedule();
    }
  }

  /** Goes on with everything. `own` is what is waited for first. */
  #turn(own?: Waitable): void {
    if (this.#pollAll(own)) this.#moved();
    const { nowMs } = this.#backoff;
    if (nowMs < this.#healthAtMs) return;
    this.#checkAll();
    this.#healthAtMs = nowMs + this.#healthEveryMs();
  }

  #moved(): void {
    this.#spinTrial.ended();
    this.#backoff.restart();
    this.#wokenInVain = false;
  }

  /** True if anything got further. */
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

  /** True if it was here. */
  #drop(waitable: Waitable): boolean {
    const at = this.#waitables.indexOf(waitable);
    if (at >= 0) this.#waitables.splice(at, 1);
    return at >= 0;
  }

  #checkAll(): void {
    for (const waitable of [...this.#waitables]) {
      // What came from a rank before it went counts, however late this one looks.
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

  #healthEveryMs(): number {
    let ms = Math.min(LONGEST_HEALTH_MS, Math.max(FIRST_HEALTH_MS, this.#backoff.waitedMs * HEALTH_PART));
    for (const { checkEveryMs } of this.#waitables) ms = Math.min(ms, checkEveryMs);
    return Math.max(1, ms);
  }

  /** Whether it is time to sleep. */
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
    rest(this.#healthEveryMs());
    this.#backoff.look();
  }

  #sleepInPlace(own: Waitable): void {
    this.#spinTrial.slept();
    const ms = this.#healthEveryMs();
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
    let ms = this.#healthEveryMs();
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
    // Sockets of node:net are read before an immediate runs: what lies there counts before time is over.
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

  /** Whether news will wake this thread. One that was just woken in vain is deaf for a nap. */
  #makeBed(inPlace: boolean): boolean {
    const sleeper = this.#sleeper;
    sleeper.make();
    for (const waitable of this.#waitables) {
      // In place, the event loop does not run.
      if (inPlace && !waitable.polled) sleeper.onNothing();
      else waitable.sleepOn(sleeper);
    }
    const isDeaf = this.#wokenInVain && this.#isPolled();
    this.#wokenInVain = false;
    return !isDeaf && sleeper.wakes;
  }

  #napMs(): number {
    return Math.min(LONGEST_NAP_MS, this.#backoff.waitedMs * NAP_PART);
  }
}

let ofThread: Progress | undefined;

/** This thread's. */
export function progressHere(): Progress {
  if (ofThread === undefined) {
    const loaded = loadLibc();
    ofThread = new Progress('libc' in loaded ? loaded.libc : undefined);
  }
  return ofThread;
}
