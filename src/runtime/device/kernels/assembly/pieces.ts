// The last bytes of an array, fewer than a vector: processed as vectors whose other elements are ignored.

/** Length of the next piece when `left` bytes remain: 16, 8, 4, 2 or 1. */
@inline
export function pieceBytes(left: usize): usize {
  return left >= 16 ? 16 : left >= 8 ? 8 : left >= 4 ? 4 : left >= 2 ? 2 : 1;
}

export function loadPiece(address: usize, bytes: usize): v128 {
  if (bytes == 16) return v128.load(address);
  if (bytes == 8) return v128.load64_splat(address);
  if (bytes == 4) return v128.load32_splat(address);
  if (bytes == 2) return v128.load16_splat(address);
  return v128.load8_splat(address);
}

export function storePiece(address: usize, bytes: usize, value: v128): void {
  if (bytes == 16) v128.store(address, value);
  else if (bytes == 8) v128.store64_lane(address, value, 0);
  else if (bytes == 4) v128.store32_lane(address, value, 0);
  else if (bytes == 2) v128.store16_lane(address, value, 0);
  else v128.store8_lane(address, value, 0);
}
