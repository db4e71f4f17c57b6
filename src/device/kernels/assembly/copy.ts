/** Below this the loop is faster than the engine's own copy, which is the C library's. */
const LOOP_BYTES: usize = 128;

/** Copies between places that do not overlap. */
export function copy(destination: usize, source: usize, bytes: usize): void {
  if (bytes >= LOOP_BYTES) {
    memory.copy(destination, source, bytes);
    return;
  }
  let i: usize = 0;
  for (; i + 16 <= bytes; i += 16) v128.store(destination + i, v128.load(source + i));
  for (; i < bytes; i++) store<u8>(destination + i, load<u8>(source + i));
}
