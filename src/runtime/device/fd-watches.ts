import { InternalError } from '../../errors.js';
import { setImmediate } from '../platform/platform.js';
import { defined } from '../../defined.js';

/** Events of a descriptor to wait for. */
export interface Readiness {
  readonly readable?: boolean;
  readonly writable?: boolean;
}

/** A descriptor watched in the event loop. Keeps the process alive while it is watched. */
export interface FdWatch {
  /** Watches until the descriptor is ready, broken or found closed, then calls back. */
  start(wanted: Readiness): void;
  stop(): void;
  /** Ends the watch for good. */
  close(): void;
}

/** Calls of the C library and of libuv that watching needs. */
interface EpollCalls {
  create(): number;
  /** Returns false if the descriptor was closed. */
  add(epoll: number, fd: number, event: Uint32Array): boolean;
  modify(epoll: number, fd: number, event: Uint32Array): void;
  /** Does nothing if the descriptor was closed. */
  remove(epoll: number, fd: number): void;
  /** Fills in the descriptors that are ready now, and returns their number. */
  wait(epoll: number, events: Uint32Array, most: number): number;
  close(fd: number): void;
  /** Calls back in each turn of the event loop in which the descriptor is readable. */
  pollReadable(fd: number, callback: () => void): LoopHandle;
}

/** Crashes on a call after `close`. */
interface LoopHandle {
  start(): void;
  stop(): void;
  close(): void;
}

const READABLE = 1;
const WRITABLE = 4;
const ONE_SHOT = 2 ** 30;
const MOST_EVENTS = 64;
/** Layout of struct epoll_event in words: `events` comes first, then the descriptor, after a gap except on x86-64. */
const [EVENT_WORDS, FD_WORD] = process.arch === 'x64' ? [3, 1] : [4, 2];

/**
 * Watches descriptors in a thread's event loop: one epoll instance contains all of them, and libuv watches the instance. libuv
 * refuses a second handle on a descriptor of node:net, and a duplicate would keep a connection open when the thread is
 * terminated.
 */
export class FdWatches {
  readonly #calls: EpollCalls;
  readonly #watches = new Map<number, Watch>();
  readonly #events = new Uint32Array(MOST_EVENTS * EVENT_WORDS);
  readonly #event = new Uint32Array(EVENT_WORDS);
  #epoll = -1;
  #handle: LoopHandle | undefined;
  #nWatching = 0;

  constructor(calls: EpollCalls) {
    this.#calls = calls;
  }

  /** Opens a watch. A descriptor has one watch at a time. */
  open(fd: number, wanted: Readiness, callback: () => void): FdWatch {
    if (this.#watches.has(fd)) throw new InternalError('INTERNAL', `descriptor ${fd} is watched already`);
    if (this.#handle === undefined) {
      this.#epoll = this.#calls.create();
      this.#handle = this.#calls.pollReadable(this.#epoll, this.#ready);
      this.#handle.stop();
    }
    const watch: Watch = { fd, callback, isRegistered: false, isWatching: false };
    this.#watches.set(fd, watch);
    try {
      this.#start(watch, wanted);
    } catch (error) {
      this.#close(watch);
      throw error;
    }
    return { start: (again) => this.#start(watch, again), stop: () => this.#stop(watch), close: () => this.#close(watch) };
  }

  #start(watch: Watch, { readable = false, writable = false }: Readiness): void {
    const { fd } = watch;
    if (this.#watches.get(fd) !== watch) return;
    this.#event[0] = (readable ? READABLE : 0) | (writable ? WRITABLE : 0) | ONE_SHOT;
    this.#event[FD_WORD] = fd;
    if (watch.isRegistered) this.#calls.modify(this.#epoll, fd, this.#event);
    else watch.isRegistered = fd !== this.#epoll && this.#calls.add(this.#epoll, fd, this.#event);
    // A poll may have closed it since the caller read its number, which the epoll instance may have got: report it as ready, like
    // a broken connection.
    if (!watch.isRegistered) setImmediate(() => this.#callBack(watch));
    if (watch.isWatching) return;
    watch.isWatching = true;
    if (++this.#nWatching === 1) this.#handle?.start();
  }

  #stop(watch: Watch): void {
    if (watch.isRegistered) this.#calls.remove(this.#epoll, watch.fd);
    watch.isRegistered = false;
    if (watch.isWatching) this.#unwatch(watch);
  }

  #unwatch(watch: Watch): void {
    watch.isWatching = false;
    if (--this.#nWatching === 0) this.#handle?.stop();
  }

  #close(watch: Watch): void {
    if (this.#watches.get(watch.fd) !== watch) return;
    this.#stop(watch);
    this.#watches.delete(watch.fd);
    if (this.#watches.size > 0) return;
    this.#handle?.close();
    this.#handle = undefined;
    this.#calls.close(this.#epoll);
  }

  /**
   * Koffi ends the process if this thread is terminated during one of its callbacks, so the callback only schedules an immediate.
   */
  readonly #ready = (): void => {
    setImmediate(this.#dispatch);
  };

  readonly #dispatch = (): void => {
    if (this.#handle === undefined) return;
    const nReady = this.#calls.wait(this.#epoll, this.#events, MOST_EVENTS);
    for (let i = 0; i < nReady; i++) {
      const watch = this.#watches.get(defined(this.#events[i * EVENT_WORDS + FD_WORD]));
      if (watch !== undefined) this.#callBack(watch);
    }
  };

  #callBack(watch: Watch): void {
    if (!watch.isWatching) return;
    this.#unwatch(watch);
    watch.callback();
  }
}

interface Watch {
  readonly fd: number;
  readonly callback: () => void;
  /** Stays true after the descriptor was ready, until the watch is stopped. */
  isRegistered: boolean;
  isWatching: boolean;
}
