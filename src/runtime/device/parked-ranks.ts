import { closeSync, constants, fstatSync, openSync, writeSync } from 'node:fs';

/** Index in a segment of the number of parked ranks, on a cache line of its own. */
const COUNT = 1984 / 4;
/** Start of the ranks' lines (rank-lines.ts), and the words of a line for parking. */
const LINES = 2048;
const LINE = 64;
const PARKED = 2;
const PID = 3;
const FD = 4;
const INODE = 5;
/** 1 if another rank could not wake this one. */
const OUT_OF_REACH = 6;
/** Ranks that a parked rank waits for, one bit each. */
const AWAITED = 8;
const AWAITED_WORDS = 8;

const NEWS = Uint8Array.of(1);

/** A pipe that wakes its thread when another rank writes to it. */
export interface WakePipe {
  /** The end that others write to, in the process `pid`. */
  readonly fd: number;
  readonly pid: number;
  /** Inode of the pipe, which detects that the number belongs to another file by now. */
  readonly inode: number;
}

/** Ranks of a segment, one bit each. */
export type RankSet = Int32Array;

export function noRanks(): RankSet {
  return new Int32Array(AWAITED_WORDS);
}

/**
 * Parked ranks of a segment. A rank that has waited for long registers the ranks that it waits for, polls once more, and
 * parks; a rank that has done something wakes the ranks that wait for it:
 *
 *     waiting rank                         other rank
 *     register(): parked = 1, count + 1    does something that the waiting rank can see
 *     polls everything it waits for        wake(): count > 0? parked and waits for me? parked = 0, writes to its pipe
 *     parks
 *
 * All accesses are sequentially consistent, so one of the two sees the other's. If no rank is parked, wake() is one load of
 * a word that does not change.
 */
export class ParkedRanks {
  readonly #words: Int32Array;
  readonly #localRank: number;
  readonly #nLocalRanks: number;
  /** Opened ends of other ranks' pipes. */
  readonly #opened = new Map<number, { readonly inode: number; readonly fd: number }>();

  constructor(memory: WebAssembly.Memory, localRank: number, nLocalRanks: number) {
    this.#words = new Int32Array(memory.buffer);
    this.#localRank = localRank;
    this.#nLocalRanks = nLocalRanks;
  }

  /** Registers this rank as parked until one of `awaited` wakes it. Poll once more afterwards: they may have acted before. */
  register({ fd, pid, inode }: WakePipe, awaited: RankSet): void {
    const words = this.#words;
    const line = lineOf(this.#localRank);
    words[line + PID] = pid;
    words[line + FD] = fd;
    words[line + INODE] = inode;
    words.set(awaited, line + AWAITED);
    Atomics.add(words, COUNT, 1);
    Atomics.store(words, line + PARKED, 1);
  }

  /** Registers this rank as awake. */
  unregister(): void {
    if (Atomics.exchange(this.#words, lineOf(this.#localRank) + PARKED, 0) === 1) Atomics.sub(this.#words, COUNT, 1);
  }

  /** False once another rank could not open this rank's pipe, for example from another container. */
  get canBeWoken(): boolean {
    return Atomics.load(this.#words, lineOf(this.#localRank) + OUT_OF_REACH) === 0;
  }

  /** Wakes the ranks that wait for this one. */
  wake(): void {
    if (Atomics.load(this.#words, COUNT) !== 0) this.#wakeAll();
  }

  close(): void {
    for (const { fd } of this.#opened.values()) closeSync(fd);
    this.#opened.clear();
  }

  #wakeAll(): void {
    const words = this.#words;
    const me = this.#localRank;
    for (let rank = 0; rank < this.#nLocalRanks; rank++) {
      const line = lineOf(rank);
      if (rank === me || Atomics.load(words, line + PARKED) === 0) continue;
      if ((((words[line + AWAITED + (me >> 5)] ?? 0) >> (me & 31)) & 1) === 0) continue;
      if (Atomics.compareExchange(words, line + PARKED, 1, 0) !== 1) continue;
      Atomics.sub(words, COUNT, 1);
      this.#write(rank, words[line + PID] ?? 0, words[line + FD] ?? 0, words[line + INODE] ?? 0);
    }
  }

  #write(rank: number, pid: number, number: number, inode: number): void {
    const fd = this.#pipeOf(rank, pid, number, inode);
    if (fd === undefined) {
      // From now on that rank polls by itself, more often than a rank that others wake.
      Atomics.store(this.#words, lineOf(rank) + OUT_OF_REACH, 1);
      return;
    }
    try {
      writeSync(fd, NEWS);
    } catch {
      // The pipe is full, so the rank is awake; or the rank has ended.
    }
  }

  #pipeOf(rank: number, pid: number, number: number, inode: number): number | undefined {
    const opened = this.#opened.get(rank);
    if (opened?.inode === inode) return opened.fd;
    if (opened !== undefined) closeSync(opened.fd);
    this.#opened.delete(rank);
    let fd: number;
    try {
      fd = openSync(`/proc/${pid}/fd/${number}`, constants.O_WRONLY | constants.O_NONBLOCK);
    } catch {
      return undefined;
    }
    if (inodeOf(fd) !== inode) {
      closeSync(fd);
      return undefined;
    }
    this.#opened.set(rank, { inode, fd });
    return fd;
  }
}

/** 32 bits that identify a file of this host. */
export function inodeOf(fd: number): number {
  return fstatSync(fd).ino | 0;
}

function lineOf(localRank: number): number {
  return (LINES + localRank * LINE) / 4;
}
