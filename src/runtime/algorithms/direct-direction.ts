import { callKinds } from '../device/kernels/kernels.js';
import { CACHED_BYTES, streamedBytes } from '../launch/copy-tunables.js';

/**
 * Calls on arrays in the segment in which the ranks' blocks have so many bytes go forward and backward in turn: of
 * less, caches keep all.
 */
const TURNED_BYTES = 128 * 1024;

/**
 * Programs make the same call again and again, on more data than a cache holds. Read from the first byte to the last each
 * time, nothing of it would be left when its turn comes; so every second call of a kind goes backward, and begins with what
 * the one before ended with:
 *
 *      forward     | from itself | from rank + 1 | … | from rank - 1 |
 *      backward    | from rank - 1 | … | from rank + 1 | from itself |     each from its last bytes on
 */
export class Direction {
  readonly #nRanks: number;
  #isBroadcast = false;
  /** By kind of call, a bit: whether the next large one goes backward. Other ranks may have it otherwise. */
  #turns = 0;
  #isBackward = false;

  constructor(nRanks: number) {
    this.#nRanks = nRanks;
  }

  /** Begins a call. @param blockBytes of one block, in arrays that are all in the segment, or 0 */
  start(kind: number, blockBytes: number): void {
    this.#isBroadcast = kind === callKinds.broadcast;
    this.#isBackward = false;
    if (blockBytes * this.#nRanks < TURNED_BYTES) return;
    this.#turns ^= 1 << kind;
    this.#isBackward = ((this.#turns >> kind) & 1) === 0;
  }

  /** Whether the call goes backward. */
  get isBackward(): boolean {
    return this.#isBackward;
  }

  /**
   * Whether so many bytes are to be copied in pieces, the last one first: every second time, but not if they are to be
   * stored around the caches, for nothing is left there then. Whole copies of such lengths are; but those of a
   * broadcast, one a rank, are better in pieces if input and outputs fit the caches: 8 MiB between two ranks take half
   * the time on cores that share a cache, and 0.85 on others.
   */
  copiesBackward(bytes: number): boolean {
    if (bytes < streamedBytes(this.#nRanks)) return this.#isBackward;
    return this.#isBroadcast && bytes * (this.#nRanks + 1) <= CACHED_BYTES;
  }
}
