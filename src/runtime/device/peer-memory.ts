import type { Libc } from './libc.js';
import { type RankLines, reaches } from './rank-lines.js';
import { randomBytes } from '../platform/platform.js';
import { textOf } from '../proc.js';
import { defined } from '../../defined.js';

/** A word in a rank's private memory, with which others test whether they can read there. */
export interface ProbeWord {
  readonly pid: number;
  readonly address: number;
  /** Hexadecimal. */
  readonly word: string;
}

const WORD_BYTES = 16;

/**
 * Uses after which a long array is moved to huge pages (Linux 6.1 and later), where the kernel looks up fewer pages; the move
 * takes as long as six reads save (measured).
 */
const HUGE_PAGE_BYTES = 2 * 1024 * 1024;
const MOVE_BYTES = 256 * 1024;
const MOVE_AFTER_USES = 8;
/** Number of arrays whose uses are counted: programs use the same few repeatedly. */
const COUNTED_ARRAYS = 64;

/**
 * Private memory of the ranks of one segment, as read by other ranks. Arrays that are not from alloc() move from one rank to
 * another in one copy (Linux's cross memory attach), instead of two through shared memory. A rank *opens* an array: it posts
 * the address, and waits until nobody reads there any more.
 *
 *     rank 0  | meet: it lies at 0x7f…    |          wait         | goes on
 *     rank 1  | meet  | process_vm_readv into its own array | finish | goes on
 *
 * The kernel allows this between processes of one user, unless Yama, seccomp or namespaces forbid it. So each rank tries once
 * with all others and writes the result to the segment, which owners check before they open an array.
 *
 * The call never faults: if an array was freed or transferred, or its process has ended, read() returns false. So threads use it,
 * too; a plain copy from memory that another thread has freed would end the process.
 */
export class PeerMemory {
  readonly #ranks: RankLines;
  readonly #libc: Libc;
  readonly #pids: readonly number[];
  /** Number of uses of long arrays, by address; the most recent one is last. */
  readonly #uses = new Map<number, number>();
  #open: boolean | undefined;
  /** Reason why this rank cannot read from some other rank, or undefined. */
  readonly refusal: string | undefined;

  /**
   * Tries to read from all ranks of the segment, and publishes whether that works.
   * @param others by local rank
   */
  constructor(ranks: RankLines, libc: Libc, others: readonly ProbeWord[]) {
    this.#ranks = ranks;
    this.#libc = libc;
    this.#pids = others.map(({ pid }) => pid);
    this.refusal = others.map((other, rank) => tryReading(libc, other, rank)).find((reason) => reason !== undefined);
    ranks.setReach(this.refusal === undefined ? reaches.all : reaches.notAll);
  }

  /** True if every rank can read arrays that others open. False until all have tried. */
  get isOpen(): boolean {
    return (this.#open ??= this.#ask()) ?? false;
  }

  /** Address of an array in this process, valid until it is detached. */
  addressOf(view: Uint8Array): number {
    const address = Number(this.#libc.addressOf(view));
    if (view.length >= MOVE_BYTES) this.#count(address, view.length);
    return address;
  }

  /**
   * Copies from an address of another rank's memory. Returns false if it cannot be read (any more): the rank died, or freed
   * its array.
   */
  read(localRank: number, address: number, destination: Uint8Array): boolean {
    return this.#libc.readProcess(defined(this.#pids[localRank]), address, destination) === undefined;
  }

  #count(address: number, bytes: number): void {
    const uses = (this.#uses.get(address) ?? 0) + 1;
    this.#uses.delete(address);
    this.#uses.set(address, uses);
    const [oldest = address] = this.#uses.keys();
    if (this.#uses.size > COUNTED_ARRAYS) this.#uses.delete(oldest);
    if (uses !== MOVE_AFTER_USES) return;
    for (let page = address - (address % HUGE_PAGE_BYTES); page < address + bytes; page += HUGE_PAGE_BYTES)
      this.#libc.collapse(page, HUGE_PAGE_BYTES);
  }

  /** Undefined until all ranks have tried. */
  #ask(): boolean | undefined {
    let all = true;
    for (let rank = 0; rank < this.#pids.length; rank++) {
      const reach = this.#ranks.reachOf(rank);
      if (reach === reaches.notAll) return false;
      all &&= reach === reaches.all;
    }
    return all ? true : undefined;
  }
}

/** Reason why the word of a local rank cannot be read, or undefined. */
function tryReading(libc: Libc, { pid, address, word }: ProbeWord, localRank: number): string | undefined {
  const found = new Uint8Array(WORD_BYTES);
  const errno = libc.readProcess(pid, address, found);
  if (errno !== undefined) return `process_vm_readv from local rank ${localRank} failed: ${errno}`;
  return Buffer.from(found).toString('hex') === word ? undefined : `process ${pid} is not local rank ${localRank} to this one`;
}

/** This rank's word, which stays as long as the process lives. */
let here: { readonly word: Uint8Array; readonly probeWord: ProbeWord } | undefined;

/** This rank's word. Also permits other ranks to read this process, if it can. */
export function probeWord(libc: Libc): ProbeWord {
  if (here === undefined) {
    const word = new Uint8Array(new ArrayBuffer(4096), 0, WORD_BYTES);
    word.set(randomBytes(WORD_BYTES));
    here = {
      word,
      probeWord: { pid: process.pid, address: Number(libc.addressOf(word)), word: Buffer.from(word).toString('hex') },
    };
    // Only siblings: the launcher's other descendants, not all processes of this user.
    if (isRestricted() && process.ppid > 1) libc.admitDescendantsOf(process.ppid);
  }
  return here.probeWord;
}

/** True if Yama lets processes read only their descendants and processes that permit it. */
function isRestricted(): boolean {
  return textOf('/proc/sys/kernel/yama/ptrace_scope').trim() === '1';
}
