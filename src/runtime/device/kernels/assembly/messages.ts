// Pieces of messages in a mailbox: messages/p2p-mailbox.ts draws one and says how its posts are used. A short message takes one
// call on each side.

import { copy } from './copy';

const FIRST_POST: usize = 128;
const POSTS: u32 = 16;
const POST_BYTES: usize = 128;
const HEADER_BYTES: usize = 32;

// Offsets in a post.
const TYPE: usize = 4;
const COUNT: usize = 8;
const ADDRESS: usize = 16;
const BYTES: usize = 20;
const PLACE: usize = 24;

const PENDING: i32 = 0;
const DONE: i32 = 1;
/** The next post is not one that can be taken here. */
const OTHER: i32 = 2;

/**
 * Makes the post `number`: a piece of `bytes` bytes of a message of `count` elements. The piece is copied from `source` to
 * `address`, or into the post if that is 0; with a source of 0 it is there already.
 */
export function postPiece(mailbox: usize, number: u32, type: u32, count: f64, address: u32, bytes: u32, place: f64, source: usize): void {
  const post = postIn(mailbox, number);
  if (source != 0) copy(address == 0 ? post + HEADER_BYTES : (address as usize), source, bytes);
  store<u32>(post, type, TYPE);
  store<u64>(post, count as u64, COUNT);
  store<u32>(post, address, ADDRESS);
  store<u32>(post, bytes, BYTES);
  store<f64>(post, place, PLACE);
  atomic.store<u32>(post, number);
}

/**
 * Takes a message of `count` elements whose only piece is the post `number`. Of its type and tag, it compares the bits of
 * `mask`. Polls once, and up to `spins` times more; then it is PENDING. OTHER leaves the post as it is.
 */
export function takeMessage(mailbox: usize, number: u32, mask: u32, type: u32, count: u32, destination: usize, bytes: u32, spins: i32): i32 {
  const post = postIn(mailbox, number);
  while (atomic.load<u32>(post) != number) if (spins-- <= 0) return PENDING;
  if ((load<u32>(post, TYPE) & mask) != type || load<u64>(post, COUNT) != (count as u64)) return OTHER;
  if (load<u32>(post, BYTES) != bytes || load<f64>(post, PLACE) != 0) return OTHER;
  const address = load<u32>(post, ADDRESS) as usize;
  copy(destination, address == 0 ? post + HEADER_BYTES : address, bytes);
  atomic.store<u32>(mailbox, number);
  return DONE;
}

@inline
function postIn(mailbox: usize, number: u32): usize {
  return mailbox + FIRST_POST + ((number % POSTS) as usize) * POST_BYTES;
}
