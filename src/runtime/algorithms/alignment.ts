/**
 * Data are divided among ranks, or moved in pieces, in whole pairs of cache lines, and therefore in whole elements of any type.
 */
export const ALIGNMENT = 128;

/** Length of every part but the last when a block is divided into `nShares` parts that are as equal as possible. */
export function alignedShare(bytes: number, nShares: number): number {
  return Math.ceil(bytes / nShares / ALIGNMENT) * ALIGNMENT;
}

/** Longest piece of which `nPieces` fit into `bytes`. */
export function alignedPiece(bytes: number, nPieces: number): number {
  return Math.floor(bytes / nPieces / ALIGNMENT) * ALIGNMENT;
}
