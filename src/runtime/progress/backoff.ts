import type { Libc } from '../device/libc.js';
import { clockMs } from '../platform/platform.js';

/** Time without progress after which a rank parks, with or without sockets. */
export function parkAfterMs(hasSockets: boolean): number {
  return hasSockets ? PARK_AFTER_SOCKETS_MS : PARK_AFTER_MS;
}

/** Number of polls before the core is given away; `spins` in shared memory. */
export function spinsAt(hasSockets: boolean, spins: number): number {
  return hasSockets ? Math.min(spins, SOCKET_SPINS) : spins;
}

/**
 * Time without progress after which a rank that waits in shared memory parks. Until then, ranks that share a core run when
 * this one gives its core away, which costs less than a wake.
 */
export const PARK_AFTER_MS = 5;
/** The same for ranks that wait for sockets, whose polls are system calls. */
const PARK_AFTER_SOCKETS_MS = 0.2;
/** Each poll asks every awaited socket with a system call, and giving the core away costs no more than one. */
const SOCKET_SPINS = 2;
/** Reading the clock costs as much as a poll, so it is read once in so many turns. */
const TURNS_PER_CLOCK = 16;

/**
 * Number of polls before a rank gives its core away. If ranks outnumber cores, a spinning rank keeps the rank that it waits
 * for from running.
 */
export function spinsFor(nThreads: number, nCores: number): number {
  return nThreads > nCores ? 20 : 4000;
}

/** The age of a wait, and the action between two polls. Restarted after each progress. */
export class Backoff {
  /** Age of this wait in milliseconds, as of the last reading of the clock. */
  waitedMs = 0;
  /** Time of that reading. */
  nowMs = 0;
  #startedMs = 0;
  #turns = 0;
  /** A word that nobody changes, to wait on. */
  readonly #never = new Int32Array(new SharedArrayBuffer(4));

  /** Without the C library (`undefined`) a thread sleeps briefly where it would give its core away. */
  constructor(readonly libc: Libc | undefined) {}

  restart(): void {
    this.waitedMs = 0;
    this.#startedMs = 0;
  }

  /** Gives the core to another runnable thread. */
  yield(): void {
    if (this.libc !== undefined) this.libc.yieldCore();
    else Atomics.wait(this.#never, 0, 0, 0.001);
    if (++this.#turns % TURNS_PER_CLOCK === 0) this.readClock();
  }

  /** Blocks for `ms`. */
  sleep(ms: number): void {
    if (this.libc !== undefined) this.libc.sleep(ms * 1000);
    else Atomics.wait(this.#never, 0, 0, ms);
  }

  /** Updates `nowMs` and `waitedMs`. */
  readClock(): void {
    this.nowMs = clockMs();
    if (this.#startedMs === 0) this.#startedMs = this.nowMs;
    this.waitedMs = this.nowMs - this.#startedMs;
  }
}
