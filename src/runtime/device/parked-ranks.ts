import { closeSync, constants, fstatSync, openSync, writeSync } from '#platform/files';
import { descriptorPath } from '../proc.js';

/** Index in a segment of the number of parked threads, on a cache line of its own; then of the number of lines of threads. */
const COUNT = 1984 / 4;
const THREAD_LINES = COUNT + 1;
/** Start of the ranks' lines (rank-lines.ts, whose words are 0, 1 and 7), and the words of a line for parking. */
const LINES = 2048;
const LINE = 64;
/** Lines of other threads of ranks follow those of the ranks, up to the first team. */
const FIRST_THREAD_LINE = 256;
const MOST_THREAD_LINES = 224;
/** Of a thread that nobody can wake, because all lines were taken. */
const NO_LINE = -1;
/** 1 if a line of a thread is in use. */
const TAKEN = 0;
const PARKED = 2;
const PID = 3;
const FD = 4;
const INODE = 5;
/** 1 if another rank could not wake this thread. */
const OUT_OF_REACH = 6;
/** Ranks that a parked thread waits for, one bit each. */
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

/** Takes the place of a pipe where all ranks are threads of one process: the thread waits on its word itself. */
export const onWord: WakePipe = { fd: -1, pid: 0, inode: 0 };

/** Ranks of a segment, one bit each. */
export type RankSet = Int32Array;

export function noRanks(): RankSet {
  return new Int32Array(AWAITED_WORDS);
}

/**
 * Parked ranks of a segment. A rank that has waited for long registers the ranks that it waits for, polls once more, and
 * parks; a rank that has done something wakes the ranks that wait for it. A rank's engine threads park on lines of their own.
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
  /** Line of this thread, or NO_LINE. */
  readonly #own: number;
  /** Opened ends of the pipes of other lines. */
  readonly #opened = new Map<number, { readonly inode: number; readonly fd: number }>();

  /** @param own the line of this thread: the rank's, or that of an engine thread */
  constructor(memory: WebAssembly.Memory, localRank: number, nLocalRanks: number, own = localRank) {
    this.#words = new Int32Array(memory.buffer);
    this.#localRank = localRank;
    this.#nLocalRanks = nLocalRanks;
    this.#own = own;
  }

  /** Takes a line for an engine thread of this rank; NO_LINE if none is left. */
  takeLine(): number {
    const words = this.#words;
    for (let index = 0; index < MOST_THREAD_LINES; index++) {
      const word = wordOf(FIRST_THREAD_LINE + index);
      if (Atomics.compareExchange(words, word + TAKEN, 0, 1) !== 0) continue;
      Atomics.store(words, word + OUT_OF_REACH, 0);
      for (let lines = Atomics.load(words, THREAD_LINES); lines <= index; lines = Atomics.load(words, THREAD_LINES))
        Atomics.compareExchange(words, THREAD_LINES, lines, index + 1);
      return FIRST_THREAD_LINE + index;
    }
    return NO_LINE;
  }

  /** Gives a line back after the end of its thread, which may have been parked. */
  giveBack(line: number): void {
    if (line === NO_LINE) return;
    this.#awake(line);
    Atomics.store(this.#words, wordOf(line) + TAKEN, 0);
  }

  /** Registers this thread as parked until one of `awaited` wakes it. Poll once more afterwards: they may have acted before. */
  register({ fd, pid, inode }: WakePipe, awaited: RankSet): void {
    if (this.#own === NO_LINE) return;
    const words = this.#words;
    const line = wordOf(this.#own);
    words[line + PID] = pid;
    words[line + FD] = fd;
    words[line + INODE] = inode;
    words.set(awaited, line + AWAITED);
    Atomics.add(words, COUNT, 1);
    Atomics.store(words, line + PARKED, 1);
  }

  /** Registers this thread as awake. */
  unregister(): void {
    if (this.#own !== NO_LINE) this.#awake(this.#own);
  }

  /** Blocks a thread that registered `onWord`, until another wakes it, for at most `ms`. Returns true if one did. */
  sleep(ms: number): boolean {
    return Atomics.wait(this.#words, wordOf(this.#own) + PARKED, 1, ms) !== 'timed-out';
  }

  /** Resolves when such a thread is awake; undefined if it is already. */
  whenAwake(): Promise<unknown> | undefined {
    const { async, value } = Atomics.waitAsync(this.#words, wordOf(this.#own) + PARKED, 1);
    return async ? value : undefined;
  }

  /** False without a line, and once another rank could not open this thread's pipe, for example from another container. */
  get canBeWoken(): boolean {
    return this.#own !== NO_LINE && Atomics.load(this.#words, wordOf(this.#own) + OUT_OF_REACH) === 0;
  }

  /** Wakes the threads that wait for this rank. */
  wake(): void {
    if (Atomics.load(this.#words, COUNT) !== 0) this.#wakeAll();
  }

  close(): void {
    for (const { fd } of this.#opened.values()) closeSync(fd);
    this.#opened.clear();
  }

  #awake(line: number): void {
    const word = wordOf(line) + PARKED;
    if (Atomics.exchange(this.#words, word, 0) !== 1) return;
    Atomics.sub(this.#words, COUNT, 1);
    // Ends whenAwake().
    if (this.#words[wordOf(line) + FD] === onWord.fd) Atomics.notify(this.#words, word);
  }

  #wakeAll(): void {
    for (let rank = 0; rank < this.#nLocalRanks; rank++) if (rank !== this.#localRank) this.#wakeLine(rank);
    const lines = Atomics.load(this.#words, THREAD_LINES);
    // Also those of this rank: its engine threads wait for failures that it reports.
    for (let line = FIRST_THREAD_LINE; line < FIRST_THREAD_LINE + lines; line++) if (line !== this.#own) this.#wakeLine(line);
  }

  #wakeLine(line: number): void {
    const words = this.#words;
    const me = this.#localRank;
    const word = wordOf(line);
    if (Atomics.load(words, word + PARKED) === 0) return;
    if ((((words[word + AWAITED + (me >> 5)] ?? 0) >> (me & 31)) & 1) === 0) return;
    if (Atomics.compareExchange(words, word + PARKED, 1, 0) !== 1) return;
    Atomics.sub(words, COUNT, 1);
    if (words[word + FD] === onWord.fd) Atomics.notify(words, word + PARKED);
    else this.#write(line, words[word + PID] ?? 0, words[word + FD] ?? 0, words[word + INODE] ?? 0);
  }

  #write(line: number, pid: number, number: number, inode: number): void {
    const fd = this.#pipeOf(line, pid, number, inode);
    if (fd === undefined) {
      // From now on that thread polls by itself, more often than one that others wake; unless the line has a new one by now.
      if (this.#words[wordOf(line) + INODE] === inode) Atomics.store(this.#words, wordOf(line) + OUT_OF_REACH, 1);
      return;
    }
    try {
      writeSync(fd, NEWS);
    } catch {
      // The pipe is full, so the rank is awake; or the rank has ended.
    }
  }

  #pipeOf(line: number, pid: number, number: number, inode: number): number | undefined {
    const opened = this.#opened.get(line);
    if (opened?.inode === inode) return opened.fd;
    if (opened !== undefined) closeSync(opened.fd);
    this.#opened.delete(line);
    let fd: number;
    try {
      fd = openSync(descriptorPath(pid, number), constants.O_WRONLY | constants.O_NONBLOCK);
    } catch {
      return undefined;
    }
    if (inodeOf(fd) !== inode) {
      closeSync(fd);
      return undefined;
    }
    this.#opened.set(line, { inode, fd });
    return fd;
  }
}

/** 32 bits that identify a file of this host. */
export function inodeOf(fd: number): number {
  return fstatSync(fd).ino | 0;
}

/** Index of the first word of a line. */
function wordOf(line: number): number {
  return (LINES + line * LINE) / 4;
}
