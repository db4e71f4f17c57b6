import type { Libc } from '../device/libc.js';
import type { WatchClock } from '../watch-clock.js';

/** After this long without progress a waiting rank sleeps between looks, so that the machine stays usable. */
export const SLEEP_AFTER_MS = 10;
/** How often a waiting rank looks whether the others still live. */
const HEALTH_EVERY_MS = 20;

/**
 * How often a rank looks in vain before it gives its core away. One that spins where ranks outnumber cores keeps the one that
 * it waits for from running.
 */
export function spinsFor(nThreads: number, nCores: number): number {
  return nThreads > nCores ? 20 : 4000;
}

/**
 * How a rank waits that has spun in vain: it gives its core away, and later sleeps for a small part of the time it
 * has waited already, so that sleeping never makes a wait noticeably longer. One a communicator, restarted at each
 * wait.
 */
export class Backoff {
  /** How long this wait has taken, as of the last turn that looked at the clock. */
  waitedMs = 0;
  #startedMs = 0;
  #healthAtMs = 0;
  #turns = 0;
  readonly #sleeper = new Int32Array(new SharedArrayBuffer(4));

  /** Without the C library (`undefined`) a rank sleeps where it would give its core away. */
  constructor(readonly libc: Libc | undefined, readonly clock: WatchClock) {}

  restart(): void {
    this.waitedMs = 0;
    this.#turns = 0;
    this.#startedMs = 0;
  }

  /**
   * Gives the core away once. Returns whether it is time to look after the others' health.
   *
   * @param sleeps whether it may also block for longer; the promise API leaves that to timers
   * @param rest blocks until there is news, at most for so long: where that can be done, it is done instead
   */
  turn(sleeps = true, rest?: (ms: number) => void): boolean {
    if (rest !== undefined) rest(HEALTH_EVERY_MS);
    else {
      if (this.libc !== undefined) this.libc.yieldCore();
      else Atomics.wait(this.#sleeper, 0, 0, 0.001);
      // The clock costs as much as a look at the flags: read it every few turns.
      if ((++this.#turns & 15) !== 0) return false;
    }

    const now = this.clock.look();
    if (this.#startedMs === 0) {
      this.#startedMs = now;
      this.#healthAtMs = now + HEALTH_EVERY_MS;
    }
    this.waitedMs = now - this.#startedMs;
    if (sleeps && rest === undefined && this.waitedMs > SLEEP_AFTER_MS) this.#sleep(Math.min(1, this.waitedMs / 64));
    if (now < this.#healthAtMs) return false;
    this.#healthAtMs = now + HEALTH_EVERY_MS;
    return true;
  }

  #sleep(ms: number): void {
    if (this.libc !== undefined) this.libc.sleep(ms * 1000);
    else Atomics.wait(this.#sleeper, 0, 0, ms);
  }
}
