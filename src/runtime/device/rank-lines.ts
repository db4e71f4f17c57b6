import type { Libc } from './libc.js';

/**
 * Offset in a segment of its ranks' lines, one for each: words with state, reach, 5 for parking (parked-ranks.ts), and the job of
 * a pool; the other half is for parking.
 */
const LINES = 2048;
const LINE = 64;
/** Word with twice the number of the pool's job whose function runs, plus 1 once it has returned. */
const JOB = 7;

/** Byte of the segment's file, far behind its end, that rank 0 locks while it is alive; the other ranks' follow. */
const LOCK_BASE = 2 ** 41;

/** States of a rank in the segment. */
export const rankStates = { unknown: 0, ready: 1, closed: 2, dead: 3 } as const;

/** States of whether a rank can read the others' private memory (peer-memory.ts). */
export const reaches = { unknown: 0, all: 1, notAll: 2 } as const;

/** A mapped file, which the kernel releases however the process ends. */
export interface MemoryFile {
  readonly fd: number;
  readonly libc: Libc;
}

/** State of the ranks of a segment, each on a line of its own. */
export class RankLines {
  readonly #words: Int32Array;
  readonly #localRank: number;
  readonly #file: MemoryFile | undefined;

  /** @param file of the segment, if the ranks are processes */
  constructor(memory: WebAssembly.Memory, localRank: number, file: MemoryFile | undefined) {
    this.#words = new Int32Array(memory.buffer);
    this.#localRank = localRank;
    this.#file = file;
  }

  setState(state: number): void {
    Atomics.store(this.#words, lineOf(this.#localRank), state);
  }

  stateOf(localRank: number): number {
    return Atomics.load(this.#words, lineOf(localRank));
  }

  setReach(reach: number): void {
    Atomics.store(this.#words, lineOf(this.#localRank) + 1, reach);
  }

  reachOf(localRank: number): number {
    return Atomics.load(this.#words, lineOf(localRank) + 1);
  }

  /** Sets the number of the pool's job whose function this rank runs; 0 for none. */
  setJob(job: number): void {
    Atomics.store(this.#words, lineOf(this.#localRank) + JOB, 2 * job);
  }

  /** Sets the number of the last job whose function has returned here, without a call that goes on. */
  setReturned(job: number): void {
    Atomics.store(this.#words, lineOf(this.#localRank) + JOB, 2 * job + 1);
  }

  /** True if a rank's function of the job that runs here has returned: it makes no call of this job any more. */
  hasReturned(localRank: number): boolean {
    const job = Atomics.load(this.#words, lineOf(this.#localRank) + JOB);
    return job !== 0 && job % 2 === 0 && Atomics.load(this.#words, lineOf(localRank) + JOB) === job + 1;
  }

  /** True if a rank has closed all its communicators, or its process or thread has ended in order. */
  hasClosed(localRank: number): boolean {
    return this.stateOf(localRank) === rankStates.closed;
  }

  /**
   * True if a rank's process has ended without closing. Processes hold a lock on the file while they live, which the kernel
   * releases however they end; threads are reported by the thread that started them (markDead).
   */
  isDead(localRank: number): boolean {
    const state = this.stateOf(localRank);
    if (state === rankStates.dead) return true;
    const file = this.#file;
    if (file === undefined || localRank === this.#localRank || state !== rankStates.ready) return false;
    return !file.libc.isByteLocked(file.fd, LOCK_BASE + localRank) && this.stateOf(localRank) === rankStates.ready;
  }
}

/** Shows the other processes that this rank's process is alive, as long as it is. */
export function lockLine({ libc, fd }: MemoryFile, localRank: number): void {
  libc.lockByte(fd, LOCK_BASE + localRank);
}

/** Marks a thread's rank as dead; called by the thread that started it, which has no segment of its own. */
export function markDead(memory: WebAssembly.Memory, localRank: number): void {
  const words = new Int32Array(memory.buffer);
  const state = lineOf(localRank);
  if (Atomics.load(words, state) !== rankStates.closed) Atomics.store(words, state, rankStates.dead);
}

/** Index of the first word of a rank's line. */
function lineOf(localRank: number): number {
  return (LINES + localRank * LINE) / 4;
}
