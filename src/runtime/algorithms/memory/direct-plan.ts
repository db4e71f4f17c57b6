import { callKinds } from '../../device/kernels/kernels.js';
import { ALIGNMENT, alignedPiece, alignedShare } from '../alignment.js';
import { combines, divides, gathers, isFromRoot } from '../call-traits.js';
import type { CallDetails, Share } from '../call.js';

/**
 * Offsets of all data of a call: the bytes that this rank takes of the others' inputs, and the parts of its own input. The form
 * is the same for every kind of call; one object serves all calls.
 */
export class ExchangePlan {
  /**
   * By rank, the data that this rank takes: `takeBytes` bytes from offset `takeFrom` of that rank's input. They are written
   * to, or combined at, offset `takeTo` of its output.
   */
  readonly takeFrom: Float64Array;
  readonly takeTo: Float64Array;
  readonly takeBytes: Float64Array;
  /** By rank, the part of this rank's input for that rank; an undivided input is one part, the first. */
  readonly partFrom: Float64Array;
  readonly partBytes: Float64Array;
  /** Lengths of parts and of taken data in the whole call, of which this may be a share. */
  readonly wholeParts: Float64Array;
  readonly wholeTakes: Float64Array;
  /** True if the input has a part for each rank. */
  divided = false;
  /** True if the taken data are combined. */
  reduces = false;
  /** True if parts differ in length. */
  uneven = false;
  /** Length of the piece of each part that goes through staging memory in one round. */
  pieceBytes = 0;
  #share: Share | undefined;

  constructor(
    readonly rank: number,
    readonly nRanks: number,
    readonly stageBytes: number,
  ) {
    const perRank = (): Float64Array => new Float64Array(nRanks);
    this.takeFrom = perRank();
    this.takeTo = perRank();
    this.takeBytes = perRank();
    this.partFrom = perRank();
    this.partBytes = perRank();
    this.wholeParts = perRank();
    this.wholeTakes = perRank();
  }

  /** Number of parts that staging memory holds: one for each rank, or one. */
  get nParts(): number {
    return this.divided ? this.nRanks : 1;
  }

  /** Length of the longest part of this rank's input. */
  get longestPart(): number {
    return this.divided ? Math.max(...this.partBytes) : (this.partBytes[0] ?? 0);
  }

  /** @param count of the call, in elements (call.ts) */
  start(kind: number, root: number, count: number, elementBytes: number, details: CallDetails | undefined): void {
    this.divided = divides(kind);
    this.reduces = combines(kind);
    // Two pieces, so that one is read while the next is copied (measured: shorter ones arrive more slowly from the other
    // core's cache).
    const overlaps = kind === callKinds.broadcast && this.nRanks === 2;
    this.pieceBytes = alignedPiece(this.stageBytes, this.divided || overlaps ? this.nRanks : 1);
    this.uneven = details?.counts !== undefined;
    if (details?.counts === undefined) this.#planEven(kind, root, count * elementBytes);
    else this.#planUneven(kind, elementBytes, details);
    this.wholeParts.set(this.partBytes);
    this.wholeTakes.set(this.takeBytes);
    this.#share = details?.share;
    if (this.#share === undefined) return;
    this.#cut(this.takeBytes, this.takeFrom, this.takeTo);
    this.#cut(this.partBytes, this.partFrom);
  }

  /** Limits the length of pieces, and so the staging memory, when all ranks know that `bytes` suffice. */
  fitPieces(bytes: number): void {
    this.pieceBytes = Math.min(this.pieceBytes, Math.ceil(bytes / ALIGNMENT) * ALIGNMENT);
  }

  /** Length of this share of a block of `whole` bytes. */
  bytesOf(whole: number): number {
    return this.#share === undefined
      ? whole
      : Math.min(alignedShare(whole, this.#share.of), whole - shareFrom(whole, this.#share));
  }

  /** Reduces every block to this share of it. */
  #cut(bytes: Float64Array, ...places: readonly Float64Array[]): void {
    for (let r = 0; r < this.nRanks; r++) {
      const whole = bytes[r] ?? 0;
      bytes[r] = this.bytesOf(whole);
      for (const place of places) place[r] = (place[r] ?? 0) + (this.#share === undefined ? 0 : shareFrom(whole, this.#share));
    }
  }

  /** @param block the bytes of `count` elements */
  #planEven(kind: number, root: number, block: number): void {
    const { rank: me } = this;
    for (let r = 0; r < this.nRanks; r++) {
      const takes = isFromRoot(kind) ? r === root : kind === callKinds.exscan ? me > 0 : kind !== callKinds.gather || me === root;
      this.takeFrom[r] = divides(kind) ? me * block : 0;
      this.takeTo[r] = gathers(kind) ? r * block : 0;
      this.takeBytes[r] = takes ? block : 0;
      this.partFrom[r] = r * block;
      this.partBytes[r] = block;
    }
  }

  #planUneven(
    kind: number,
    elementBytes: number,
    { counts = [], displacements = [], recvCounts = [], recvDisplacements = [] }: CallDetails,
  ): void {
    const { rank: me } = this;
    const bytesOf = (list: readonly number[], rank: number): number => (list[rank] ?? 0) * elementBytes;
    for (let r = 0; r < this.nRanks; r++) {
      this.partFrom[r] = bytesOf(displacements, r);
      this.partBytes[r] = bytesOf(counts, r);
      switch (kind) {
        case callKinds.allGatherV:
          this.takeFrom[r] = 0;
          this.takeTo[r] = bytesOf(displacements, r);
          this.takeBytes[r] = bytesOf(counts, r);
          break;
        case callKinds.reduceScatterV:
          this.takeFrom[r] = bytesOf(displacements, me);
          this.takeTo[r] = 0;
          this.takeBytes[r] = bytesOf(counts, me);
          break;
        default:
          // allToAllV: the others' tables contain the offset of this rank's part.
          this.takeTo[r] = bytesOf(recvDisplacements, r);
          this.takeBytes[r] = bytesOf(recvCounts, r);
      }
    }
    if (!this.divided) {
      this.partFrom[0] = 0;
      this.partBytes[0] = bytesOf(counts, me);
    }
  }
}

/** Start of a share in a block of `whole` bytes. */
function shareFrom(whole: number, share: Share): number {
  return Math.min(share.index * alignedShare(whole, share.of), whole);
}
