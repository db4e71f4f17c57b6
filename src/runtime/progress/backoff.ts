import type { Libc } from '../device/libc.js';
import type { WatchClock } from './watch-clock.js';

/** After this long without progress a waiting rank sleeps between looks, so that the machine stays usable. */
const SLEEP_AFTER_MS = 10;
/** A rank sleeps for this part of the time that it has waited: so much longer, at most, sleeping makes a wait. */
const SLEEP_PART = 1 / 64;
/** Longest sleep. A wake takes 50 to 250 µs of a core, with what it looks at: 0.5 % at most (`npm run bench -- --only idle`). */
const LONGEST_SLEEP_MS = 50;
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
 * How a rank waits that has spun in vain: it gives its core away, and later sleeps between looks for a small part of the time
 * that it has waited. One a communicator, restarted at each wait.
 */
export class Backoff {
  /** How long this wait has taken, as of the last turn that looked at the clock. */
  waitedMs = 0;
  #startedMs = 0;
  #healthAtMs = 0;
  /** What `waitedMs` was when something else got further. */
  #stirredMs = 0;
  #turns = 0;
  readonly #sleeper = new Int32Array(new SharedArrayBuffer(4));

  /** Without the C library (`undefined`) a rank sleeps where it would give its core away. */
  constructor(
    readonly libc: Libc | undefined,
    readonly clock: WatchClock,
  ) {}

  restart(): void {
    this.waitedMs = 0;
    this.#turns = 0;
    this.#startedMs = 0;
    this.#stirredMs = 0;
  }

  /** Something else that goes on during this wait got further: looks at it come often again. The wait is as long as before. */
  stir(): void {
    this.#stirredMs = this.waitedMs;
  }

  /** How long to sleep before the next look; 0: not at all. */
  get sleepMs(): number {
    const stillMs = this.waitedMs - this.#stirredMs;
    return stillMs <= SLEEP_AFTER_MS ? 0 : Math.min(LONGEST_SLEEP_MS, stillMs * SLEEP_PART);
  }

  /**
   * Gives the core away once. Returns whether it is time to look after the others' health.
   *
   * @param sleeps whether it may also block for longer; the promise API leaves that to timers
   * @param rest blocks until there is news, at most for so long: where that can be done, it is done instead
   */
  turn(sleeps = true, rest?: (ms: number) => void): boolean {
    const { sleepMs } = this;
    if (rest !== undefined) rest(HEALTH_EVERY_MS);
    else if (sleepMs === 0) {
      this.#yield();
      // The clock costs as much as a look at the flags: read it every few turns.
      if ((++this.#turns & 15) !== 0) return false;
    } else if (sleeps) this.#sleep(sleepMs);

    const now = this.clock.look();
    if (this.#startedMs === 0) {
      this.#startedMs = now;
      this.#healthAtMs = now + HEALTH_EVERY_MS;
    }
    this.waitedMs = now - this.#startedMs;
    if (now < this.#healthAtMs) return false;
    this.#healthAtMs = now + HEALTH_EVERY_MS;
    return true;
  }

  #yield(): void {
    if (this.libc !== undefined) this.libc.yieldCore();
    else Atomics.wait(this.#sleeper, 0, 0, 0.001);
  }

  #sleep(ms: number): void {
    if (this.libc !== undefined) this.libc.sleep(ms * 1000);
    else Atomics.wait(this.#sleeper, 0, 0, ms);
  }
}
