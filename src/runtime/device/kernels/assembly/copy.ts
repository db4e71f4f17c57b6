/** Below this length the loop is faster than the engine's own copy, which is the C library's. */
const LOOP_BYTES: usize = 128;

/** Copies between ranges that do not overlap. */
export function copy(destination: usize, source: usize, bytes: usize): void {
  if (bytes >= LOOP_BYTES) {
    memory.copy(destination, source, bytes);
    return;
  }
  let i: usize = 0;
  for (; i + 16 <= bytes; i += 16) v128.store(destination + i, v128.load(source + i));
  for (; i < bytes; i++) store<u8>(destination + i, load<u8>(source + i));
}

/** Length of pieces in a backward copy: shorter ones cost more calls, longer ones find less data in the cache (measured). */
const PIECE_BYTES: usize = 128 * 1024;

/** Like copy(), from the last bytes to the first: the data that were copied last before may still be in the cache. */
export function copyBackward(destination: usize, source: usize, bytes: usize): void {
  for (let end = bytes; end > 0; ) {
    const at = ((end - 1) / PIECE_BYTES) * PIECE_BYTES;
    copy(destination + at, source + at, end - at);
    end = at;
  }
}

/** Number of bytes that loops over blocks of 64 bytes write. */
@inline
export function storeFour(address: usize, v0: v128, v1: v128, v2: v128, v3: v128): void {
  v128.store(address, v0);
  v128.store(address, v1, 16);
  v128.store(address, v2, 32);
  v128.store(address, v3, 48);
}
