import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { Libc } from './libc.js';
import { type RankLines, reaches } from './rank-lines.js';

/** Where others find a word of this rank's private memory, by which they learn whether they may read there. */
export interface Whereabouts {
  readonly pid: number;
  readonly address: number;
  /** Hexadecimal. */
  readonly word: string;
}

const WORD_BYTES = 16;

/**
 * The kernel looks up each page that it copies from, which for pages of 4 KiB takes as long as copying them. So arrays from
 * some length on that are opened again and again are moved into huge pages (Linux 6.1 and later). That takes as long as
 * six reads save (measured).
 */
const HUGE_PAGE_BYTES = 2 * 1024 * 1024;
const MOVE_BYTES = 256 * 1024;
const MOVE_AFTER_USES = 8;
/** Arrays whose uses are counted: programs use the same few again and again. */
const COUNTED_ARRAYS = 64;

/**
 * Private memory of the ranks of one segment as the others read it: arrays that are not from alloc() go from one rank to
 * the other in one copy (Linux's cross memory attach), where a way through shared memory takes two. A rank *opens* an
 * array: it says where it is, and stays until nobody reads there any more.
 *
 *     rank 0  | meet: it lies at 0x7f…    |          wait         | goes on
 *     rank 1  | meet  | process_vm_readv into its own array | finish | goes on
 *
 * The kernel allows it to processes of one user, unless something forbids that (Yama, seccomp, namespaces): so each
 * rank tries once with all others, and says in the segment whether it can. Whoever opens an array looks there first, which is
 * all the agreement that is needed: readers follow what the owner posts.
 *
 * The call never faults. An array that was freed or transferred away, or whose process has ended, is not read: read()
 * says so, and that its owner failed or died is learnt as ever. Hence threads use it, too: a plain copy from memory that
 * another thread has given back would end the process.
 */
export class PeerMemory {
  readonly #ranks: RankLines;
  readonly #libc: Libc;
  readonly #pids: readonly number[];
  /** Of long arrays, by address; the one that was seen last is the last. */
  readonly #uses = new Map<number, number>();
  #open: boolean | undefined;
  /** Why this rank cannot read from some other, if so. */
  readonly refusal: string | undefined;

  /**
   * Tries to read from all ranks of the segment, and tells them whether that works.
   * @param others by local rank
   */
  constructor(ranks: RankLines, libc: Libc, others: readonly Whereabouts[]) {
    this.#ranks = ranks;
    this.#libc = libc;
    this.#pids = others.map(({ pid }) => pid);
    this.refusal = others.map((other, rank) => tryReading(libc, other, rank)).find((reason) => reason !== undefined);
    ranks.setReach(this.refusal === undefined ? reaches.all : reaches.notAll);
  }

  /** True if every rank can read what others open. False, too, while some have not tried yet. */
  get isOpen(): boolean {
    return (this.#open ??= this.#ask()) ?? false;
  }

  /** Where an array lies in this process; it stays there as long as it is attached to its buffer. */
  addressOf(view: Uint8Array): number {
    const address = Number(this.#libc.addressOf(view));
    if (view.length >= MOVE_BYTES) this.#count(address, view.length);
    return address;
  }

  /**
   * Copies from an address of another rank's memory. False where nothing (more) can be read: the rank died, or gave its
   * array away.
   */
  read(localRank: number, address: number, destination: Uint8Array): boolean {
    return this.#libc.readProcess(this.#pids[localRank] ?? 0, address, destination) === undefined;
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

  /** Undefined while not all have said. */
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

/** Why the word of a local rank cannot be read, if so. */
function tryReading(libc: Libc, { pid, address, word }: Whereabouts, localRank: number): string | undefined {
  const found = new Uint8Array(WORD_BYTES);
  const errno = libc.readProcess(pid, address, found);
  if (errno !== undefined) return `process_vm_readv from local rank ${localRank} failed: ${errno}`;
  return Buffer.from(found).toString('hex') === word ? undefined : `process ${pid} is not local rank ${localRank} to this one`;
}

/** This rank's word, for as long as the process lives. */
let door: { readonly word: Uint8Array; readonly whereabouts: Whereabouts } | undefined;

/** What others need to read this rank's memory. Lets them, where that is this process's to decide. */
export function whereabouts(libc: Libc): Whereabouts {
  if (door === undefined) {
    const word = new Uint8Array(new ArrayBuffer(4096), 0, WORD_BYTES);
    word.set(randomBytes(WORD_BYTES));
    door = {
      word,
      whereabouts: { pid: process.pid, address: Number(libc.addressOf(word)), word: Buffer.from(word).toString('hex') },
    };
    // Siblings only: the launcher's other descendants, not everything that this user runs.
    if (isRestricted() && process.ppid > 1) libc.admitDescendantsOf(process.ppid);
  }
  return door.whereabouts;
}

/** True if Yama lets processes read their descendants only, unless those let them. */
function isRestricted(): boolean {
  try {
    return readFileSync('/proc/sys/kernel/yama/ptrace_scope', 'utf8').trim() === '1';
  } catch {
    return false;
  }
}
