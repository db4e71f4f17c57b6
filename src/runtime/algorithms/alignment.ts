/**
 * What is divided among ranks or moved piece by piece is so in whole pairs of cache lines, and so in whole elements of
 * any type.
 */
export const ALIGNMENT = 128;

/** How long all but the last are of so many parts, as equal as can be, of a block. */
export function alignedShare(bytes: number, nShares: number): number {
  return Math.ceil(bytes / nShares / ALIGNMENT) * ALIGNMENT;
}

/** How long so many pieces can be that are to have room in so many bytes. */
export function alignedPiece(bytes: number, nPieces: number): number {
  return Math.floor(bytes / nPieces / ALIGNMENT) * ALIGNMENT;
}
