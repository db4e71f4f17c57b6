import { closeSync, constants, fstatSync, openSync, writeSync } from 'node:fs';

/** Where in a segment the number of ranks that sleep lies, on a line of its own. */
const COUNT = 1984 / 4;
/** Where the lines of the ranks begin (rank-lines.ts), and what of a line is about sleep. */
const LINES = 2048;
const LINE = 64;
const ASLEEP = 2;
const PID = 3;
const FD = 4;
const INODE = 5;
/** 1 where another rank could not wake it. */
const OUT_OF_REACH = 6;
/** The ranks that a sleeper waits for, a bit each. */
const AWAITED = 8;
const AWAITED_WORDS = 8;

const RING = Uint8Array.of(1);

/** A pipe that wakes a thread: whoever writes to it rings. */
export interface Bell {
  /** The end that others write to, in the process `pid`. */
  readonly fd: number;
  readonly pid: number;
  /** Of the pipe: tells it from another file that has the number by now. */
  readonly inode: number;
}

/** Ranks of a segment, a bit each. */
export type RankSet = Int32Array;

export function noRanks(): RankSet {
  return new Int32Array(AWAITED_WORDS);
}

/**
 * Ranks of a segment that sleep, and how the others wake them. A rank that has waited for long names those that it waits for,
 * looks a last time, and sleeps; a rank that has done something rings those that wait for it:
 *
 *     sleeper                              other rank
 *     lieDown(): asleep = 1, count + 1     does something that the sleeper can see
 *     looks at all it waits for            ring(): count > 0? asleep and waits for me? asleep = 0, writes to its pipe
 *     sleeps
 *
 * All these are sequentially consistent, so that one of the two sees what the other did. Where nobody sleeps, a ring is
 * one load of a word that nobody changes.
 */
export class Sleepers {
  readonly #words: Int32Array;
  readonly #localRank: number;
  readonly #nLocalRanks: number;
  /** Open ends of other ranks' pipes. */
  readonly #opened = new Map<number, { readonly inode: number; readonly fd: number }>();

  constructor(memory: WebAssembly.Memory, localRank: number, nLocalRanks: number) {
    this.#words = new Int32Array(memory.buffer);
    this.#localRank = localRank;
    this.#nLocalRanks = nLocalRanks;
  }

  /** Says that this rank is about to sleep until one of `awaited` rings. What they did before has to be looked for after this. */
  lieDown({ fd, pid, inode }: Bell, awaited: RankSet): void {
    const words = this.#words;
    const line = lineOf(this.#localRank);
    words[line + PID] = pid;
    words[line + FD] = fd;
    words[line + INODE] = inode;
    words.set(awaited, line + AWAITED);
    Atomics.add(words, COUNT, 1);
    Atomics.store(words, line + ASLEEP, 1);
  }

  /** The sleep is over. */
  getUp(): void {
    if (Atomics.exchange(this.#words, lineOf(this.#localRank) + ASLEEP, 0) === 1) Atomics.sub(this.#words, COUNT, 1);
  }

  /** False once another rank could not open this rank's pipe: it runs in another container, say. */
  get canBeWoken(): boolean {
    return Atomics.load(this.#words, lineOf(this.#localRank) + OUT_OF_REACH) === 0;
  }

  /** Wakes the ranks that sleep until this one has done something. */
  ring(): void {
    if (Atomics.load(this.#words, COUNT) !== 0) this.#ringAll();
  }

  close(): void {
    for (const { fd } of this.#opened.values()) closeSync(fd);
    this.#opened.clear();
  }

  #ringAll(): void {
    const words = this.#words;
    const me = this.#localRank;
    for (let rank = 0; rank < this.#nLocalRanks; rank++) {
      const line = lineOf(rank);
      if (rank === me || Atomics.load(words, line + ASLEEP) === 0) continue;
      if ((((words[line + AWAITED + (me >> 5)] ?? 0) >> (me & 31)) & 1) === 0) continue;
      if (Atomics.compareExchange(words, line + ASLEEP, 1, 0) !== 1) continue;
      Atomics.sub(words, COUNT, 1);
      this.#wake(rank, words[line + PID] ?? 0, words[line + FD] ?? 0, words[line + INODE] ?? 0);
    }
  }

  #wake(rank: number, pid: number, number: number, inode: number): void {
    const fd = this.#pipeOf(rank, pid, number, inode);
    if (fd === undefined) {
      // It looks for itself from now on, more often than one that others wake.
      Atomics.store(this.#words, lineOf(rank) + OUT_OF_REACH, 1);
      return;
    }
    try {
      writeSync(fd, RING);
    } catch {
      // The pipe is full, so the rank is awake, or it has ended.
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

/** What tells a file of this host from others, in 32 bits. */
export function inodeOf(fd: number): number {
  return fstatSync(fd).ino | 0;
}

function lineOf(localRank: number): number {
  return (LINES + localRank * LINE) / 4;
}
