// Control block of a rank in the segment, which only that rank writes and all read. For its operation number s (1, 2, …) a
// rank *posts*: it writes the data that the others need and then, in one 64-bit store, a flag with s and the signature of the
// call. There are two posts, used in turn.
//
//     0      post of even operations  | flag: signature u32, sequence u32 | 56 bytes: inline data or descriptor |
//     4096   post of odd operations
//     8192   finished                 | sequence u32 of the last operation whose shared part is over |
//     12288  call of even operations  | kind, type, operator, algorithm u32 | root u32 | count f64 | scalar |
//     12352  call of odd operations
//     12544  tables (private)         | sources u32[256] | destinations u32[256] | scalars u64[256] |
//
// Words that others poll have pages of their own, so that prefetching does not bring a line that its owner is about to write
// into the poller's cache.
//
// Data of a small operation that do not fit into its post lie in memory that the rank allocates at first use (its room); the
// post contains the address.

const POST_STRIDE: usize = 4096;
const CALLED: usize = 12288;
const CALLED_STRIDE: usize = 64;

export const FINISHED: usize = 8192;
export const SOURCES: usize = 12544;
export const DESTINATIONS: usize = SOURCES + 1024;
export const SCALARS: usize = DESTINATIONS + 1024;

/** Data of a small operation that fit into the post itself. */
export const INLINE_BYTES: u32 = 56;
/** Distance between control blocks: not a multiple of a large power of two, so that blocks do not share cache sets. */
export const BLOCK_BYTES: i32 = 16384 + 7 * 128;

/** Address of the post for an operation. */
@inline
export function postIn(control: usize, sequence: u32): usize {
  return control + ((sequence & 1) as usize) * POST_STRIDE;
}

/** Address of the call of an operation: its code, root, count and scalar. */
@inline
export function calledIn(control: usize, sequence: u32): usize {
  return control + CALLED + ((sequence & 1) as usize) * CALLED_STRIDE;
}
