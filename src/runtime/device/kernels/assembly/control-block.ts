// What a rank shows the others of its operations: a control block in the segment, which it alone writes and all read. For its
// operation number s (1, 2, …) it *posts*: it writes what the others need and then, in one 64-bit store, a flag that holds
// s and the signature of the call. There are two posts, used in turn.
//
//     0      post of even operations  | flag: signature u32, sequence u32 | 56 bytes: inline data or descriptor |
//     4096   post of odd operations                                  (what others poll has pages of its own: prefetching must
//     8192   finished                 | sequence u32 of the last operation whose shared part is over |   not fetch a line into the
//     12288  what was called          | kind, type, operator, algorithm u32 | root u32 | count f64 | scalar |   poller's cache that
//     12352  the same of odd operations                                                                its owner is about to write)
//     12544  tables (private)         | sources u32[256] | destinations u32[256] | scalars u64[256] |
//
// Data of a small operation that are too long for its post lie in memory that the rank takes when it first needs some (its
// room); the post tells where.

const POST_STRIDE: usize = 4096;
const CALLED: usize = 12288;
const CALLED_STRIDE: usize = 64;

export const FINISHED: usize = 8192;
export const SOURCES: usize = 12544;
export const DESTINATIONS: usize = SOURCES + 1024;
export const SCALARS: usize = DESTINATIONS + 1024;

/** Of the data of a small operation that lie in the post itself. */
export const INLINE_BYTES: u32 = 56;
/** Bytes between control blocks: not a multiple of a large power of two, or the blocks would share cache sets. */
export const BLOCK_BYTES: i32 = 16384 + 7 * 128;

/** The post for an operation. */
@inline
export function postIn(control: usize, sequence: u32): usize {
  return control + ((sequence & 1) as usize) * POST_STRIDE;
}

/** What was called as an operation: its code, root, count and scalar. */
@inline
export function calledIn(control: usize, sequence: u32): usize {
  return control + CALLED + ((sequence & 1) as usize) * CALLED_STRIDE;
}
