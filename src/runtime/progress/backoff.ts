import type { Libc } from '../device/libc.js';

/** After so long without progress sleeps who waits, where some of it is for sockets. */
export function sleepAfterMs(hasSockets: boolean): number {
  return hasSockets ? SLEEP_AFTER_SOCKETS_MS : SLEEP_AFTER_MS;
}

/** How often such a wait looks at once: `spins` in shared memory. */
export function spinsAt(hasSockets: boolean, spins: number): number {
  return hasSockets ? Math.min(spins, SOCKET_SPINS) : spins;
}

/**
 * After so long without progress a rank sleeps that waits for others in shared memory: those that have no core of their own get
 * one when it gives its own away, and being woken costs more.
 */
export const SLEEP_AFTER_MS = 10;
/** After so long sleeps who waits for sockets, whose looks are system calls. */
const SLEEP_AFTER_SOCKETS_MS = 0.2;
/** As many looks at a socket take some 10 µs. */
const SOCKET_SPINS = 20;
/** The clock costs as much as a look: it is read every so many turns. */
const TURNS_PER_CLOCK = 16;

/**
 * How often a rank looks in vain before it gives its core away. One that spins where ranks outnumber cores keeps the one that
 * it waits for from running.
 */
export function spinsFor(nThreads: number, nCores: number): number {
  return nThreads > nCores ? 20 : 4000;
}

/** How long a thread has waited, and what it does between two looks. Restarted whenever something gets further. */
export class Backoff {
  /** How long this wait has taken, as of the last look at the clock, in milliseconds. */
  waitedMs = 0;
  /** The time of that look. */
  nowMs = 0;
  #startedMs = 0;
  #turns = 0;
  readonly #sleeper = new Int32Array(new SharedArrayBuffer(4));

  /** Without the C library (`undefined`) a thread sleeps a moment where it would give its core away. */
  constructor(readonly libc: Libc | undefined) {}

  restart(): void {
    this.waitedMs = 0;
    this.#startedMs = 0;
  }

  /** Gives the core to another thread that can run. */
  yield(): void {
    if (this.libc !== undefined) this.libc.yieldCore();
    else Atomics.wait(this.#sleeper, 0, 0, 0.001);
    if (++this.#turns % TURNS_PER_CLOCK === 0) this.look();
  }

  /** Blocks for so long. */
  nap(ms: number): void {
    if (this.libc !== undefined) this.libc.sleep(ms * 1000);
    else Atomics.wait(this.#sleeper, 0, 0, ms);
  }

  /** Looks at the clock. */
  look(): void {
    this.nowMs = performance.now();
    if (this.#startedMs === 0) this.#startedMs = this.nowMs;
    this.waitedMs = this.nowMs - this.#startedMs;
  }
}
