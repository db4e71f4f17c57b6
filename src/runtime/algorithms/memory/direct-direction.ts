import { callKinds } from '../../device/kernels/kernels.js';
import { CACHED_BYTES, streamedBytes } from '../../launch/copy-tunables.js';

/**
 * From this length of a rank's block on, calls on arrays in the segment alternate between forward and backward; smaller calls
 * stay in the caches anyway.
 */
const TURNED_BYTES = 128 * 1024;

/**
 * Direction of copies. Programs repeat the same call on more data than a cache holds, so every second call of a kind goes
 * backward and begins with the data that are still cached:
 *
 *      forward     | from itself | from rank + 1 | … | from rank - 1 |
 *      backward    | from rank - 1 | … | from rank + 1 | from itself |     each from its last bytes on
 */
export class CopyDirection {
  readonly #nRanks: number;
  #isBroadcast = false;
  /** One bit for each kind of call: set if the next large one goes backward. Other ranks may differ. */
  #turns = 0;
  #isBackward = false;

  constructor(nRanks: number) {
    this.#nRanks = nRanks;
  }

  /** Begins a call. @param blockBytes length of one block if all arrays are in the segment, otherwise 0 */
  start(kind: number, blockBytes: number): void {
    this.#isBroadcast = kind === callKinds.broadcast;
    this.#isBackward = false;
    if (blockBytes * this.#nRanks < TURNED_BYTES) return;
    this.#turns ^= 1 << kind;
    this.#isBackward = ((this.#turns >> kind) & 1) === 0;
  }

  /** True if the call goes backward. */
  get isBackward(): boolean {
    return this.#isBackward;
  }

  /**
   * True if these bytes are copied in pieces, the last one first: in every second call, unless the copy bypasses the caches. A
   * broadcast is copied in pieces if input and outputs fit the caches (8 MiB between two ranks: 0.5 to 0.85 of the time).
   */
  copiesBackward(bytes: number): boolean {
    if (bytes < streamedBytes(this.#nRanks)) return this.#isBackward;
    return this.#isBroadcast && bytes * (this.#nRanks + 1) <= CACHED_BYTES;
  }
}
