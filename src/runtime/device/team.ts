import type { Kernels } from './kernels/kernels.js';
import type { Segment } from './segment.js';
import { ABORT, FAILURE, headerBytes, LEFT, LINE, REPORT, teamBytes } from './team-layout.js';
import { WaitWords, type WaitReport } from './wait-report.js';
import { defined } from '../../defined.js';
import type { TcclError } from '../../errors.js';
import { died } from '../failure/reasons.js';
import { unpackPacked } from '../failure/transfer.js';

/** States in a member's line. */
const STAYS = 0;
const LEAVES = 1;
const FORGETS = 2;

/** Longest recorded failure. */
const FAILURE_BYTES = LEFT - FAILURE - 64;

/**
 * If any rank's arrays are outside the segment, rounds move at most this much of each array: about the size of a core's cache,
 * because lines arrive faster once they have left the writer's cache (256 KiB takes 1.2 to 1.8 times as long).
 */
const STAGE_BYTES = 1024 * 1024;

/** Reasons of a failure in the abort word. */
const abortReasons = ['none', 'died', 'aborted', 'closed', 'mismatch', 'timedOut', 'failed'] as const;
export type AbortReason = (typeof abortReasons)[number];

export class Team {
  readonly localRank: number;
  readonly nLocalRanks: number;
  /** This rank's kernels, attached to the team's control blocks. */
  readonly kernels: Kernels;
  /** Start of the memory after the control blocks, and its words. */
  readonly #header: number;
  readonly #words: Int32Array;
  /** This rank's memory that other members may use until they have left. */
  readonly #kept = new Set<number>();
  /** Each member's report of a wait. */
  readonly #reports: readonly WaitWords[];
  /** True if all members have left, so that the team's memory may be reused. */
  #isForgotten = false;

  /**
   * @param address of `teamBytes` bytes of zeros, known to all members
   * @param members the segment's local rank of each member; this segment's rank is one of them
   * @param owns true if the memory at `address` is in this rank's heap (Team.reserve)
   * @param stageBytes see STAGE_BYTES; a multiple of 128 for each member, the same on all
   */
  constructor(
    readonly segment: Segment,
    readonly address: number,
    readonly members: readonly number[],
    readonly owns = false,
    readonly stageBytes = STAGE_BYTES,
  ) {
    this.localRank = members.indexOf(segment.localRank);
    this.nLocalRanks = members.length;
    this.kernels = segment.instantiateKernels();
    this.#header = address + members.length * segment.blockBytes;
    this.#words = new Int32Array(segment.buffer, this.#header, headerBytes(members.length) / 4);
    this.#reports = members.map((_, rank) => new WaitWords(this.#words, this.#lineOf(rank) + REPORT, LINE / 4 - REPORT));
    this.kernels.attach(address, this.localRank, this.nLocalRanks, stageBytes);
    // Other members' memory of earlier teams waits for this rank, which may never allocate.
    segment.settleSome();
  }

  /** The team of all ranks of a segment, at its fixed address. */
  static ofAll(segment: Segment): Team {
    return new Team(
      segment,
      segment.firstTeam,
      Array.from({ length: segment.nLocalRanks }, (_, rank) => rank),
    );
  }

  /**
   * Allocates zeroed memory for a team of `nRanks` in this rank's heap. The team there frees it when all members have left.
   * Throws `OUT_OF_MEMORY`.
   */
  static reserve(segment: Segment, nRanks: number): number {
    const bytes = teamBytes(nRanks, segment.blockBytes);
    const address = segment.allocateBytes(bytes, 'control');
    new Uint8Array(segment.buffer, address, bytes).fill(0);
    return address;
  }

  /** Reports to all ranks that the communicator failed. Only the first failure counts. */
  raiseAbort(reason: AbortReason, localRank: number): void {
    // The memory may belong to an array by now.
    if (this.#isForgotten) return;
    if (Atomics.compareExchange(this.#words, ABORT / 4, 0, 1 + localRank) === 0) {
      Atomics.store(this.#words, ABORT / 4 + 1, abortReasons.indexOf(reason));
    }
    this.segment.parkedRanks.wake();
  }

  /** The failure that a rank reported, if any. */
  abort(): { readonly reason: AbortReason; readonly localRank: number } | undefined {
    const about = Atomics.load(this.#words, ABORT / 4);
    if (about === 0) return undefined;
    return { reason: abortReasons[Atomics.load(this.#words, ABORT / 4 + 1)] ?? 'none', localRank: about - 1 };
  }

  /** Shows all ranks that this one ends in the middle of an operation of *direct*: its arrays may change from now on. */
  giveUp(operation: number): void {
    if (this.#isForgotten) return;
    const place = ABORT / 4 + 2;
    const number = (operation + 1) | 0 || 1;
    for (;;) {
      const first = Atomics.load(this.#words, place);
      if (first !== 0 && ((number - first) | 0) >= 0) return;
      if (Atomics.compareExchange(this.#words, place, first, number) === first) return;
    }
  }

  /** 0, or 1 + the number of the first operation that a rank has given up. */
  get givenUp(): number {
    return Atomics.load(this.#words, ABORT / 4 + 2);
  }

  /**
   * Stores the error with which this rank ends the communicator, for ranks that wait for something else. Only the first counts.
   */
  recordFailure(words: Uint8Array): void {
    if (this.#isForgotten) return;
    const length = FAILURE / 4;
    if (Atomics.compareExchange(this.#words, length, 0, -1) !== 0) return;
    new Uint8Array(this.segment.buffer, this.#header + FAILURE + 64, FAILURE_BYTES).set(words);
    Atomics.store(this.#words, length, words.length);
  }

  /** The error that a rank stored before it ended the communicator, if any; the bootstrap network may report it later. */
  recordedFailure(): TcclError | undefined {
    const length = Atomics.load(this.#words, FAILURE / 4);
    if (length <= 0) return undefined;
    return unpackPacked(new Uint8Array(this.segment.buffer, this.#header + FAILURE + 64, length));
  }

  /** Address of the mailbox from one member to another, or 0. */
  mailbox(from: number, to: number): number {
    return Atomics.load(this.#words, this.#mailboxWord(from, to)) >>> 0;
  }

  setMailbox(from: number, to: number, address: number): void {
    Atomics.store(this.#words, this.#mailboxWord(from, to), address);
  }

  /** True if a member has left for good, or died. */
  isGone(localRank: number): boolean {
    return this.#hasDeparted(localRank) || this.segment.ranks.isDead(defined(this.members[localRank]));
  }

  /**
   * Throws `RANK_DIED` if the process or thread of a member has ended without leaving.
   * @param ranks the rank of each member
   */
  checkMembers(ranks: readonly number[]): void {
    for (let local = 0; local < this.nLocalRanks; local++) {
      if (this.#hasDeparted(local) || !this.segment.ranks.isDead(defined(this.members[local]))) continue;
      // It may have left in order between the two reads.
      if (!this.#hasDeparted(local)) throw died(defined(ranks[local]));
    }
  }

  /** Allocates memory of this rank's heap for the communicator; others may use it until all have left, when it is freed. */
  allocateBytes(bytes: number): number {
    const offset = this.segment.allocateBytes(bytes);
    this.keep(offset);
    return offset;
  }

  /** Frees the memory at `offset` of this rank's heap when all members have left. */
  keep(offset: number): void {
    this.#kept.add(offset);
  }

  /** Frees memory of allocateBytes() early. No other rank uses it. */
  freeBytes(offset: number): void {
    if (this.#kept.delete(offset)) this.segment.freeBytes(offset);
  }

  /** Declares that this rank has left. Memory goes back to heaps when all have declared that. */
  leave(): void {
    if (this.#departureOf(this.localRank) !== STAYS) return;
    this.#setDeparture(LEAVES);
    this.segment.parkedRanks.wake();
    this.segment.when(
      () => this.#all(LEAVES),
      () => {
        for (const offset of this.#kept) this.segment.freeBytes(offset);
        // Others read this memory until they have seen that all have left.
        this.#setDeparture(FORGETS);
        this.#isForgotten = true;
        if (this.owns)
          this.segment.when(
            () => this.#all(FORGETS),
            () => this.segment.freeBytes(this.address),
          );
      },
    );
    this.segment.settleSome();
  }

  /** Reports to the other members that this rank has waited for long, and for which ranks (algorithms/wait-chains.ts). */
  reportWait(report: readonly number[]): void {
    if (!this.#isForgotten) this.#reports[this.localRank]?.publish(report);
  }

  /** A member's last report of a wait. */
  waitReport(localRank: number): WaitReport | undefined {
    return this.#reports[localRank]?.latest();
  }

  /** True if a member has left, or, in a job of a pool, its function has returned: it makes no call for which others can wait. */
  hasLeft(localRank: number): boolean {
    return this.#hasDeparted(localRank) || this.segment.ranks.hasReturned(defined(this.members[localRank]));
  }

  /** True if a member has left. A member that ends while a communicator is being made leaves without declaring it here. */
  #hasDeparted(localRank: number): boolean {
    return this.#departureOf(localRank) !== STAYS || this.segment.ranks.hasClosed(defined(this.members[localRank]));
  }

  #departureOf(localRank: number): number {
    return Atomics.load(this.#words, this.#lineOf(localRank));
  }

  #setDeparture(word: number): void {
    Atomics.store(this.#words, this.#lineOf(this.localRank), word);
  }

  #all(word: number): boolean {
    const { ranks } = this.segment;
    return this.members.every(
      (member, rank) =>
        this.#departureOf(rank) >= word || ranks.isDead(member) || (rank !== this.localRank && ranks.hasClosed(member)),
    );
  }

  #lineOf(localRank: number): number {
    return (LEFT + localRank * LINE) / 4;
  }

  #mailboxWord(from: number, to: number): number {
    return (LEFT + this.nLocalRanks * LINE) / 4 + from * this.nLocalRanks + to;
  }
}
