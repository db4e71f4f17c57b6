import { closeSync } from 'node:fs';
import type { FdWatch } from '../device/fd-watches.js';
import { POLLIN, POLLOUT, setPollEntry, type Libc } from '../device/libc.js';
import type { Segment } from '../device/segment.js';
import { inodeOf, noRanks, type Bell, type RankSet } from '../device/sleepers.js';
import type { Team } from '../device/team.js';
import { onExit } from '../exit.js';

/** Collects the sources that can wake a thread: everything that it waits for registers here before each sleep. */
export interface Bed {
  /** Wake when a descriptor is readable, or writable. */
  onFd(fd: number, readable: boolean, writable: boolean): void;
  /** Wake when any member of a team does something. */
  onTeam(team: Team): void;
  /** Wake when one member of a team does something. */
  onMember(team: Team, localRank: number): void;
  /** There is no source for this wait, so it has to be polled. */
  onNothing(): void;
  /** Other sources call this, in the event loop. */
  readonly wake: () => void;
}

/**
 * Parks a thread until there is news, in poll(2) or in its event loop. It is woken by descriptors, and by ranks that share
 * memory through a pipe.
 */
export class Sleeper implements Bed {
  readonly wake: () => void;
  readonly #libc: Libc | undefined;
  /** Descriptors, with the awaited events. */
  readonly #fds = new Map<number, number>();
  /** The awaited ranks, by segment. */
  readonly #awaited = new Map<Segment, RankSet>();
  #hasToLook = false;
  #pipe: { readonly readEnd: number; readonly bell: Bell; readonly watch: FdWatch } | undefined;
  #watches: FdWatch[] = [];
  #pollFds = new Int32Array(32);

  /** @param wake called when there is news in the event loop */
  constructor(libc: Libc | undefined, wake: () => void) {
    this.#libc = libc;
    this.wake = wake;
  }

  /** Forgets the sources of the last sleep. */
  make(): void {
    this.#fds.clear();
    this.#awaited.clear();
    this.#hasToLook = false;
  }

  onNothing(): void {
    this.#hasToLook = true;
  }

  onFd(fd: number, readable: boolean, writable: boolean): void {
    this.#fds.set(fd, (this.#fds.get(fd) ?? 0) | (readable ? POLLIN : 0) | (writable ? POLLOUT : 0));
  }

  onTeam(team: Team): void {
    for (let member = 0; member < team.nLocalRanks; member++) this.onMember(team, member);
  }

  onMember(team: Team, localRank: number): void {
    const { segment } = team;
    let ranks = this.#awaited.get(segment);
    if (ranks === undefined) this.#awaited.set(segment, (ranks = noRanks()));
    const rank = team.members[localRank] ?? 0;
    ranks[rank >> 5] = (ranks[rank >> 5] ?? 0) | (1 << (rank & 31));
  }

  /** True if every wait has a source that wakes this thread. */
  get wakes(): boolean {
    if (this.#hasToLook) return false;
    for (const { sleepers } of this.#awaited.keys()) if (!sleepers.canBeWoken) return false;
    return this.#libc !== undefined || this.#awaited.size === 0;
  }

  /** Asks other ranks to wake this thread. Afterwards, poll once more for what they did before. */
  lieDown(): void {
    if (this.#awaited.size === 0 || this.#libc === undefined) return;
    const { bell } = (this.#pipe ??= this.#openPipe(this.#libc));
    for (const [segment, ranks] of this.#awaited) segment.sleepers.lieDown(bell, ranks);
  }

  /** Blocks for at most `ms`. Returns true if a source woke the thread. */
  sleep(ms: number): boolean {
    const most = 1 + this.#fds.size;
    if (this.#pollFds.length < 2 * most) this.#pollFds = new Int32Array(4 * most);
    let count = 0;
    for (const [fd, events] of this.#fds) setPollEntry(this.#pollFds, count++, fd, events);
    const readEnd = this.#pipe?.readEnd ?? -1;
    if (this.#awaited.size > 0 && readEnd >= 0) setPollEntry(this.#pollFds, count++, readEnd, POLLIN);
    return (this.#libc?.pollFds(this.#pollFds, count, Math.ceil(ms)) ?? 0) > 0;
  }

  /** Lets news call `wake`, until getUp(). */
  watch(): void {
    const libc = this.#libc;
    if (libc === undefined) return;
    if (this.#awaited.size > 0) this.#pipe?.watch.start({ readable: true });
    for (const [fd, events] of this.#fds)
      this.#watches.push(libc.watchFd(fd, { readable: (events & POLLIN) !== 0, writable: (events & POLLOUT) !== 0 }, this.wake));
  }

  getUp(): void {
    if (this.#pipe !== undefined && this.#awaited.size > 0) {
      for (const segment of this.#awaited.keys()) segment.sleepers.getUp();
      this.#pipe.watch.stop();
      while ((this.#libc?.readFd(this.#pipe.readEnd) ?? 0) > 0);
    }
    for (const watch of this.#watches) watch.close();
    this.#watches = [];
  }

  #openPipe(libc: Libc): { readonly readEnd: number; readonly bell: Bell; readonly watch: FdWatch } {
    const { readEnd, writeEnd } = libc.pipe();
    const watch = libc.watchFd(readEnd, { readable: true }, this.wake);
    watch.stop();
    onExit(() => {
      watch.close();
      closeSync(readEnd);
      closeSync(writeEnd);
    });
    return { readEnd, bell: { fd: writeEnd, pid: process.pid, inode: inodeOf(writeEnd) }, watch };
  }
}
