import { loadLibc, type Libc } from '#seam/device/libc';
import { Backoff } from './backoff.js';
import { SpinTrial } from './spin-trial.js';
import { Parking, type WakeSources } from './parking.js';
import { clearTimeout, clockMs, setImmediate, setTimeout, type Timer } from '../platform/platform.js';

/** An operation that waits for other ranks. */
export interface Waitable {
  /** True if any part of it is in flight. */
  readonly isPending: boolean;
  /** True if news is found by polling; otherwise only the event loop, or another thread, brings news. */
  readonly polled: boolean;
  /** Number of polls without news before the core is given away. */
  readonly spins: number;
  /** Time without progress after which a wait parks, milliseconds. */
  readonly parkAfterMs: number;
  /** Longest time until the next check(), milliseconds. */
  readonly checkEveryMs: number;
  /** Progresses as far as possible, with at most `spins` polls for missing data. Returns true after progress. */
  poll(spins: number): boolean;
  /** Checks liveness of the awaited ranks and the time limits. Throws the error that ends the wait. */
  check(): void;
  /** Ends it with the error that poll() or check() threw. */
  fail(error: unknown): void;
  /** Adds everything that can wake this thread for it. */
  wakeOn(sources: WakeSources): void;
  /** Blocks until there is news, at most for `ms`; absent if polling finds the news. */
  readonly rest?: ((ms: number) => void) | undefined;
}

/**
 * Time between checks of the others' health: the first and the longest, and the share of the time waited between them. In the
 * event loop the bootstrap network reports deaths by itself, and each check wakes the process, so they are rare.
 */
const health = { inPlace: { firstMs: 20, part: 1 / 4, longestMs: 200 }, inLoop: { firstMs: 50, part: 1 / 2, longestMs: 1000 } };
/** Waits that park sooner than this use sockets, whose polls cost most. */
const SHORT_MS = 1;
/** Processor time of a wake by an unrelated event: such wakes take at most SLEEP_PART of the time, beyond so much. */
const VAIN_WAKE_MS = 0.2;
const MOST_VAIN_MS = 4;
/** Shortest time between checks after wakes: a failure may be the news. */
const CHECK_AFTER_WAKE_MS = 10;
/** Sleep of a thread with a wait that has no wake source: the share of the time waited, and the longest. */
const SLEEP_PART = 1 / 32;
const LONGEST_SLEEP_MS = 100;

/**
 * Everything that this thread waits for: collectives, messages and signals of all its communicators. Any wait progresses all
 * of them. A wait spins for a while, then gives the core away between polls, then parks until there is news: blocking calls
 * in place, promise calls in the event loop.
 */
export class Progress {
  readonly #waitables: Waitable[] = [];
  readonly #backoff: Backoff;
  readonly #parking: Parking;
  /** Next run from the event loop: `soon` on its own, `parked` when news or a timer wakes it. */
  #scheduled: 'no' | 'soon' | 'parked' = 'no';
  #timer: Timer | undefined;
  readonly #spinTrial = new SpinTrial();
  #healthAtMs = 0;
  #checkedMs = 0;
  /** True if an event woke the thread, and nothing has progressed since. */
  #wokenInVain = false;
  /** Processor time of such wakes beyond their part of the time, as of the last. */
  #vainMs = 0;
  #vainAtMs = 0;

  /** @param libc without it, the thread cannot be woken and polls at intervals */
  constructor(libc: Libc | undefined) {
    this.#backoff = new Backoff(libc);
    this.#parking = new Parking(libc, this.wake);
  }

  /** True if this thread waits for nothing. */
  get isIdle(): boolean {
    return !this.#waitables.some(({ isPending }) => isPending);
  }

  /** Lets blocking waits progress it while it is pending. */
  enlist(waitable: Waitable): void {
    if (!this.#waitables.includes(waitable)) this.#waitables.push(waitable);
  }

  /** Progresses it from the event loop, too. */
  add(waitable: Waitable): void {
    this.enlist(waitable);
    this.#backoff.restart();
    if (this.#scheduled === 'parked') this.#unpark();
    this.#schedule();
  }

  /** Stops progressing it. */
  remove(waitable: Waitable): void {
    if (!this.#drop(waitable) || this.#scheduled !== 'parked') return;
    // Its wake sources may be closed next.
    this.#unpark();
    this.#schedule();
  }

  /** Reports news. */
  readonly wake = (): void => {
    if (this.#scheduled !== 'parked') return;
    this.#unpark();
    this.#woken();
    this.#pump();
  };

  /** Blocks until `isDone`, which must also become true when `own` fails. */
  runUntil(own: Waitable, isDone: () => boolean): void {
    this.enlist(own);
    this.#backoff.restart();
    if (this.#scheduled === 'parked') this.#unpark();
    try {
      while (!isDone()) {
        if (own.rest !== undefined && !this.#isPolled()) this.#rest(own.rest);
        else if (!this.#isTimeToPark()) this.#backoff.yield();
        else this.#parkInPlace(own);
        this.#turn(own);
      }
    } finally {
      if (!own.isPending) this.#drop(own);
      // The event loop continues with everything else that is in flight.
      this.#schedule();
    }
  }

  /** Progresses everything once, without waiting, for a thread that does not return to its event loop soon. */
  poll(): void {
    if (this.#waitables.length === 0) return;
    this.#backoff.readClock();
    // Without news it stays parked: to park again takes 20 µs.
    if (this.#turn() && this.#scheduled === 'parked') this.#unpark();
    this.#schedule();
  }

  /** Checks time limits within `ms`, if anything is in flight. */
  checkWithin(ms: number): void {
    this.#healthAtMs = Math.min(this.#healthAtMs, clockMs() + ms);
  }

  /** Progresses everything, beginning with `own`. Returns true if anything progressed. */
  #turn(own?: Waitable): boolean {
    const moved = this.#pollAll(own);
    if (moved) this.#moved();
    const { nowMs } = this.#backoff;
    if (nowMs >= this.#healthAtMs) {
      this.#checkAll();
      this.#checkedMs = nowMs;
      this.#healthAtMs = nowMs + this.#healthEveryMs(own === undefined ? 'inLoop' : 'inPlace');
    }
    return moved;
  }

  #moved(): void {
    this.#spinTrial.ended();
    this.#backoff.restart();
    this.#wokenInVain = false;
  }

  /** In vain, unless the next poll progresses. */
  #woken(): void {
    this.#wokenInVain = true;
    this.#healthAtMs = Math.min(this.#healthAtMs, this.#checkedMs + CHECK_AFTER_WAKE_MS);
  }

  /** Returns true if anything progressed. */
  #pollAll(own?: Waitable): boolean {
    const isFresh = !this.#isTimeToPark();
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
    // Usually the last one: every blocking wait is added and removed, and a splice takes 50 ns.
    if (at >= 0 && at === this.#waitables.length - 1) this.#waitables.pop();
    else if (at >= 0) this.#waitables.splice(at, 1);
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
    // Its wake sources may be closed next.
    if (this.#scheduled === 'parked') this.#unpark();
    this.#drop(waitable);
    waitable.fail(error);
  }

  #healthEveryMs(where: keyof typeof health): number {
    const { firstMs, part, longestMs } = health[where];
    let ms = Math.min(longestMs, Math.max(firstMs, this.#backoff.waitedMs * part));
    for (const { checkEveryMs } of this.#waitables) ms = Math.min(ms, checkEveryMs);
    return Math.max(1, ms);
  }

  #isTimeToPark(): boolean {
    const { waitedMs } = this.#backoff;
    const shortMs = this.#spinTrial.isDue ? 0 : SHORT_MS;
    for (let i = 0; i < this.#waitables.length; i++) {
      const waitable = this.#waitables[i];
      if (waitable?.polled === true && waitedMs <= waitable.parkAfterMs && waitable.parkAfterMs > shortMs) return false;
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
    this.#backoff.readClock();
  }

  #parkInPlace(own: Waitable): void {
    this.#spinTrial.parked();
    const wakes = this.#collectSources(true);
    const ms = this.#parkMs(wakes, 'inPlace');
    // poll(2) takes a millisecond at least.
    if (!wakes || ms < 1 || !this.#parking.canPark) {
      this.#parking.clear();
      this.#backoff.sleep(ms);
    } else {
      this.#parking.register();
      if (this.#pollAll(own)) this.#moved();
      else if (this.#parking.park(ms)) this.#woken();
      this.#parking.unregister();
    }
    this.#backoff.readClock();
  }

  // ── from the event loop ───────────────────────────────────────────────────────────────────────────────────────────

  #schedule(): void {
    if (this.#scheduled !== 'no' || this.#waitables.length === 0) return;
    if (this.#isPolled() && !this.#isTimeToPark()) this.#soon();
    else this.#parkInLoop();
  }

  #soon(): void {
    this.#scheduled = 'soon';
    setImmediate(this.#pump);
  }

  #parkInLoop(): void {
    this.#spinTrial.parked();
    const wakes = this.#collectSources(false);
    const ms = this.#parkMs(wakes, 'inLoop');
    if (wakes) {
      this.#parking.register();
      if (this.#pollAll()) {
        this.#parking.unregister();
        this.#moved();
        if (this.#waitables.length > 0) this.#soon();
        return;
      }
      this.#parking.watch();
    }
    this.#scheduled = 'parked';
    // node:net reads sockets before an immediate runs: received data count before a timeout.
    this.#timer = setTimeout(() => {
      this.#unpark();
      this.#soon();
    }, ms);
  }

  #unpark(): void {
    clearTimeout(this.#timer);
    this.#parking.unregister();
    this.#scheduled = 'no';
  }

  readonly #pump = (): void => {
    this.#scheduled = 'no';
    this.#backoff.readClock();
    // As in a blocking wait: ranks that share this core may have what this one waits for.
    this.#backoff.yield();
    this.#turn();
    this.#schedule();
  };

  // ── wake sources ─────────────────────────────────────────────────────────────────────────────────────────────────────────

  /** Returns true if the sources will wake this thread; false once after unrelated events woke it too often. */
  #collectSources(inPlace: boolean): boolean {
    const parking = this.#parking;
    parking.clear();
    for (let i = this.#waitables.length - 1; i >= 0; i--) {
      const waitable = this.#waitables[i];
      if (waitable === undefined) continue;
      // A blocked thread does not run its event loop.
      if (inPlace && !waitable.polled) parking.pollToo();
      else this.#wakeOn(waitable);
    }
    const ignoresSources = this.#wokenInVain && this.#isPolled() && this.#isVainTooOften();
    this.#wokenInVain = false;
    return !ignoresSources && parking.wakes;
  }

  /** Counts a wake in vain. */
  #isVainTooOften(): boolean {
    const { nowMs } = this.#backoff;
    this.#vainMs = Math.max(0, this.#vainMs - (nowMs - this.#vainAtMs) * SLEEP_PART) + VAIN_WAKE_MS;
    this.#vainAtMs = nowMs;
    return this.#vainMs > MOST_VAIN_MS;
  }

  /** Adds its wake sources. That fails if one of its connections is broken. */
  #wakeOn(waitable: Waitable): void {
    try {
      waitable.wakeOn(this.#parking);
    } catch (error) {
      this.#fail(waitable, error);
      this.#moved();
      this.#parking.pollToo();
    }
  }

  /** @param wakes true if news wakes this thread, apart from waits without a source */
  #parkMs(wakes: boolean, where: keyof typeof health): number {
    const ms = this.#healthEveryMs(where);
    if (wakes && !this.#parking.pollsToo) return ms;
    return Math.min(ms, LONGEST_SLEEP_MS, this.#backoff.waitedMs * SLEEP_PART);
  }
}

let ofThread: Progress | undefined;

/** Progress of this thread. */
export function progressHere(): Progress {
  return (ofThread ??= new Progress(loadLibc().libc));
}
