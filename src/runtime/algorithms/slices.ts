/**
 * Longest slice that fits, with its headers, in one buffer of the kernel's TCP (64 KiB). The short rest of a slice that is a
 * little longer waits for its turn, which halves the throughput between hosts.
 */
export const BUFFER_SLICE_BYTES = 60 * 1024;

/** Longest slice that fits into `room` bytes and fills at most `buffers` such buffers; whole ones, if there is room for one. */
export function sliceOfBuffers(buffers: number, room = Infinity): number {
  return room < BUFFER_SLICE_BYTES ? room : Math.min(buffers, Math.floor(room / BUFFER_SLICE_BYTES)) * BUFFER_SLICE_BYTES;
}
