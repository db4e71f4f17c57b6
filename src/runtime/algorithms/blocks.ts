/** Position in bytes of each rank's block in an array with one block for each rank. One object serves all calls. */
export class Blocks {
  readonly from: Float64Array;
  readonly bytes: Float64Array;
  /** Length of the longest block. */
  longest = 0;

  constructor(readonly nRanks: number) {
    this.from = new Float64Array(nRanks);
    this.bytes = new Float64Array(nRanks);
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
      const bytes = (counts[rank] ?? 0) * bytesPerElement;
      this.from[rank] = (displacements[rank] ?? 0) * bytesPerElement;
      this.bytes[rank] = bytes;
      this.longest = Math.max(this.longest, bytes);
    }
    return this;
  }
}
