import { isFromRoot } from '../call-traits.js';
import { callKinds } from '../../device/kernels/kernels.js';
import { alignedShare } from '../alignment.js';
import type { ExchangePlan } from './direct-plan.js';
import { CLOSED, HELPS, OPEN, type Posts, STAGED } from './direct-posts.js';
import type { Operand } from '../operand.js';
import { defined } from '../../../defined.js';

/**
 * Shortest block with which the root helps, among more than two ranks: with shorter ones, waiting for it costs more (measured).
 */
const HELPED_BYTES = 256 * 1024;

/**
 * Divides the copies of a broadcast, scatter or gather. Each rank except the root copies its block; the root copies its own,
 * unless it is in place, as in every broadcast with MPI's semantics. In that case the root *helps*: of each block between two
 * places in the segment it copies the last n-th, so that each of n ranks copies n - 1 n-ths of a block.
 *
 *      block of rank 1    | rank 1                   | root |
 *      block of rank 2    | rank 2                   | root |
 *      block of rank 3    | rank 3                   | root |
 */
export class RootedCopies {
  readonly #rank: number;
  readonly #nRanks: number;
  readonly #plan: ExchangePlan;
  readonly #posts: Posts;
  readonly #source: Operand;
  readonly #destination: Operand;
  #kind = 0;
  /** -1 in calls of other kinds. */
  #root = -1;

  /** @param source this rank's input, and @param destination its output */
  constructor(rank: number, nRanks: number, plan: ExchangePlan, posts: Posts, source: Operand, destination: Operand) {
    this.#rank = rank;
    this.#nRanks = nRanks;
    this.#plan = plan;
    this.#posts = posts;
    this.#source = source;
    this.#destination = destination;
  }

  /** Begins a call that the plan has begun. */
  start(kind: number, root: number): void {
    this.#kind = kind;
    this.#root = isFromRoot(kind) || kind === callKinds.gather ? root : -1;
  }

  /** Flags of this rank's post: set if it is a root that helps. */
  helpFlags(): number {
    if (this.#rank !== this.#root) return 0;
    const { takeBytes, takeFrom, takeTo } = this.#plan;
    const isWorthIt = this.#nRanks === 2 || defined(takeBytes[this.#rank]) >= HELPED_BYTES;
    if (!isWorthIt || !this.#source.placed || !this.#destination.placed) return 0;
    const isThere =
      this.#destination.address(defined(takeTo[this.#rank])) === this.#source.address(defined(takeFrom[this.#rank]));
    return isThere ? HELPS : 0;
  }

  /** True if the root copies a part of a rank's block. */
  helps(rank: number): boolean {
    return (
      this.#root >= 0 &&
      this.#posts.has(this.#root, HELPS) &&
      !this.#posts.has(rank, isFromRoot(this.#kind) ? CLOSED : STAGED | OPEN)
    );
  }

  /** Number of bytes of its own block that this rank copies. */
  ownPart(bytes: number): number {
    return this.helps(this.#rank) ? this.#upToHelp(bytes) : bytes;
  }

  /** The root's work: copies the last part of all blocks with which it helps. */
  help(): void {
    const bytes = defined(this.#plan.takeBytes[this.#rank]);
    const done = this.#upToHelp(bytes);
    for (let i = 1; i < this.#nRanks; i++) {
      const r = (this.#rank + i) % this.#nRanks;
      if (!this.helps(r)) continue;
      if (isFromRoot(this.#kind)) this.#give(r, done, bytes - done);
      else this.#fetch(r, done, bytes - done);
    }
  }

  /** A sender's work in a gather into an array in the segment: writes this rank's block. */
  put(): void {
    const { partFrom, partBytes } = this.#plan;
    if (this.#rank === this.#root) return;
    const bytes = this.ownPart(defined(partBytes[0]));
    if (bytes > 0)
      this.#source.copyTo(this.#posts.destination(this.#root) + defined(partFrom[this.#rank]), defined(partFrom[0]), bytes);
  }

  /** Writes a part of a rank's block to its output. All blocks are alike, so the offset is the same in all outputs. */
  #give(rank: number, from: number, bytes: number): void {
    const { partFrom, takeTo, divided } = this.#plan;
    const place = this.#posts.destination(rank) + defined(takeTo[this.#rank]);
    this.#source.copyTo(place + from, defined(partFrom[divided ? rank : 0]) + from, bytes);
  }

  /** Reads a part of a rank's block from its input. */
  #fetch(rank: number, from: number, bytes: number): void {
    const { takeFrom, takeTo } = this.#plan;
    this.#destination.write(defined(takeTo[rank]) + from, bytes, this.#posts.source(rank) + defined(takeFrom[rank]) + from);
  }

  #upToHelp(bytes: number): number {
    return Math.min((this.#nRanks - 1) * alignedShare(bytes, this.#nRanks), bytes);
  }
}
