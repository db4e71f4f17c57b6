import { closeSync } from '#platform/files';
import { MAY_BLOCK, process } from '#platform/process';
import type { FdWatch } from '../device/fd-watches.js';
import { POLLIN, POLLOUT, setPollEntry, type Libc } from '#seam/device/libc';
import type { Segment } from '../device/segment.js';
import { inodeOf, noRanks, onWord, type WakePipe, type RankSet } from '../device/parked-ranks.js';
import type { Team } from '../device/team.js';
import { onExit } from '../exit.js';
import { defined } from '../../defined.js';

/** True if this engine can wait for a word in the event loop. */
const CAN_WAIT_ASYNC = 'waitAsync' in Atomics;

/** Collects the sources that can wake a thread: everything that it waits for registers here before each sleep. */
export interface WakeSources {
  /** Wake when a descriptor is readable, or writable. */
  addFd(fd: number, readable: boolean, writable: boolean): void;
  /** Wake when any member of a team does something. */
  addTeam(team: Team): void;
  /** Wake when one member of a team does something. */
  addMember(team: Team, localRank: number): void;
  /** Poll at intervals, too: this wait has no source. */
  pollToo(): void;
  /** Called by other sources, in the event loop. */
  readonly wake: () => void;
}

/**
 * Parks a thread until there is news, in poll(2) or in its event loop. It is woken by descriptors, and by ranks that share
 * memory through a pipe. Without the C library, ranks that share memory are threads of one process: they wait on a word of it.
 */
export class Parking implements WakeSources {
  readonly wake: () => void;
  readonly #libc: Libc | undefined;
  /** Descriptors, with the awaited events. */
  readonly #fds = new Map<number, number>();
  /** The awaited ranks, by segment. */
  readonly #awaited = new Map<Segment, RankSet>();
  #pollsToo = false;
  #pipe: { readonly readEnd: number; readonly pipe: WakePipe; readonly watch: FdWatch } | undefined;
  #watches: FdWatch[] = [];
  #pollFds = new Int32Array(32);

  /** @param wake called when there is news in the event loop */
  constructor(libc: Libc | undefined, wake: () => void) {
    this.#libc = libc;
    this.wake = wake;
  }

  /** Forgets all sources. */
  clear(): void {
    this.#fds.clear();
    this.#awaited.clear();
    this.#pollsToo = false;
  }

  pollToo(): void {
    this.#pollsToo = true;
  }

  /** True if a wait has no source. */
  get pollsToo(): boolean {
    return this.#pollsToo;
  }

  addFd(fd: number, readable: boolean, writable: boolean): void {
    this.#fds.set(fd, (this.#fds.get(fd) ?? 0) | (readable ? POLLIN : 0) | (writable ? POLLOUT : 0));
  }

  addTeam(team: Team): void {
    for (let member = 0; member < team.nLocalRanks; member++) this.addMember(team, member);
  }

  addMember(team: Team, localRank: number): void {
    const { segment } = team;
    let ranks = this.#awaited.get(segment);
    if (ranks === undefined) this.#awaited.set(segment, (ranks = noRanks()));
    const rank = defined(team.members[localRank]);
    ranks[rank >> 5] = defined(ranks[rank >> 5]) | (1 << (rank & 31));
  }

  /** True if all sources can wake this thread. */
  get wakes(): boolean {
    if (this.#libc?.watchesFds === false && this.#fds.size + this.#awaited.size > 0) return false;
    for (const { parkedRanks } of this.#awaited.keys()) if (!parkedRanks.canBeWoken) return false;
    return this.#libc !== undefined || this.#awaited.size === 0 || (this.#awaited.size === 1 && CAN_WAIT_ASYNC);
  }

  /** True if park() can block. */
  get canPark(): boolean {
    return this.#libc !== undefined || (this.#awaited.size === 1 && MAY_BLOCK);
  }

  /** Registers this thread with the ranks that can wake it. Poll once more afterwards: they may have acted before. */
  register(): void {
    if (this.#awaited.size === 0) return;
    const { pipe } = this.#libc === undefined ? { pipe: onWord } : (this.#pipe ??= this.#openPipe(this.#libc));
    for (const [segment, ranks] of this.#awaited) segment.parkedRanks.register(pipe, ranks);
  }

  /** Parks for at most `ms`. Returns true if a source woke the thread. */
  park(ms: number): boolean {
    if (this.#libc === undefined) {
      for (const { parkedRanks } of this.#awaited.keys()) return parkedRanks.sleep(ms);
      return false;
    }
    const most = 1 + this.#fds.size;
    if (this.#pollFds.length < 2 * most) this.#pollFds = new Int32Array(4 * most);
    let count = 0;
    for (const [fd, events] of this.#fds) setPollEntry(this.#pollFds, count++, fd, events);
    const readEnd = this.#pipe?.readEnd ?? -1;
    if (this.#awaited.size > 0 && readEnd >= 0) setPollEntry(this.#pollFds, count++, readEnd, POLLIN);
    return this.#libc.pollFds(this.#pollFds, count, Math.ceil(ms)) > 0;
  }

  /** Lets news call `wake`, until unregister(). */
  watch(): void {
    const libc = this.#libc;
    if (libc === undefined) {
      // Another park may have begun by then: `wake` is only a hint.
      for (const { parkedRanks } of this.#awaited.keys()) void (parkedRanks.whenAwake() ?? Promise.resolve()).then(this.wake);
      return;
    }
    if (this.#awaited.size > 0) this.#pipe?.watch.start({ readable: true });
    for (const [fd, events] of this.#fds)
      this.#watches.push(libc.watchFd(fd, { readable: (events & POLLIN) !== 0, writable: (events & POLLOUT) !== 0 }, this.wake));
  }

  /** Ends register() and watch(), empties the pipe, and forgets all sources, which would keep a closed communicator's memory. */
  unregister(): void {
    for (const segment of this.#awaited.keys()) segment.parkedRanks.unregister();
    if (this.#pipe !== undefined && this.#awaited.size > 0) {
      this.#pipe.watch.stop();
      while ((this.#libc?.readFd(this.#pipe.readEnd) ?? 0) > 0);
    }
    for (const watch of this.#watches) watch.close();
    this.#watches = [];
    this.clear();
  }

  #openPipe(libc: Libc): { readonly readEnd: number; readonly pipe: WakePipe; readonly watch: FdWatch } {
    const { readEnd, writeEnd } = libc.pipe();
    const watch = libc.watchFd(readEnd, { readable: true }, this.wake);
    watch.stop();
    onExit(() => {
      watch.close();
      closeSync(readEnd);
      closeSync(writeEnd);
    });
    return { readEnd, pipe: { fd: writeEnd, pid: process.pid, inode: inodeOf(writeEnd) }, watch };
  }
}
