import { alignedShare } from '../alignment.js';
import { defined } from '../../../defined.js';

/** Position in bytes of each rank's block in an array with one block for each rank. One object serves all calls. */
export class Blocks {
  readonly from: Float64Array;
  readonly bytes: Float64Array;
  /** Distance of `from` from the start of the rank's whole block; 0 unless these are parts of blocks. */
  readonly within: Float64Array;
  /** Length of the longest block. */
  longest = 0;

  constructor(readonly nRanks: number) {
    this.from = new Float64Array(nRanks);
    this.bytes = new Float64Array(nRanks);
    this.within = new Float64Array(nRanks);
  }

  /** Blocks of one length, one after the other. */
  even(bytes: number): this {
    for (let rank = 0; rank < this.nRanks; rank++) {
      this.from[rank] = rank * bytes;
      this.bytes[rank] = bytes;
    }
    this.longest = bytes;
    return this;
  }

  /** Blocks of `counts` elements that begin at `displacements`. */
  uneven(counts: readonly number[], displacements: readonly number[], bytesPerElement: number): this {
    this.longest = 0;
    for (let rank = 0; rank < this.nRanks; rank++) {
      const bytes = defined(counts[rank]) * bytesPerElement;
      this.from[rank] = defined(displacements[rank]) * bytesPerElement;
      this.bytes[rank] = bytes;
      this.longest = Math.max(this.longest, bytes);
    }
    return this;
  }

  /** Part `part` of `nParts` parts, as equal as possible, of each block of `whole`. */
  partOf(whole: Blocks, part: number, nParts: number): this {
    this.longest = 0;
    for (let rank = 0; rank < this.nRanks; rank++) {
      const all = defined(whole.bytes[rank]);
      const share = alignedShare(all, nParts);
      const start = Math.min(part * share, all);
      const bytes = Math.min(share, all - start);
      this.from[rank] = defined(whole.from[rank]) + start;
      this.within[rank] = start;
      this.bytes[rank] = bytes;
      this.longest = Math.max(this.longest, bytes);
    }
    return this;
  }
}
