// The operations among the ranks of one host, as one small state machine a rank.
//
// Every rank has a control block in the segment. For its operation number s (1, 2, …) it *posts*: it writes what the
// others need and then, in one 64-bit store, a flag that holds s and the signature of the call. Blocks are written by
// their rank only and read by all.
//
//     control block of a rank                                       (what others poll has pages of its own:
//     0      post of even operations  | flag: signature u32, sequence u32 | 56 bytes: inline data or descriptor |
//     4096   post of odd operations                                  prefetching must not fetch a line into the poller's
//     8192   finished                 | sequence u32 of the last operation whose shared part is over |   cache that its
//     12288  what was called          | kind, type, operator, algorithm u32 | root u32 | count f64 | scalar |   owner is about to write)
//     12352  the same of odd operations
//     12544  tables (private)         | sources u32[256] | destinations u32[256] | scalars u64[256] |
//     20480  data of even operations up to SLOT_BYTES
//     …      data of odd operations
//
// Every operation waits for the posts of all ranks. So whoever completes operation s knows that all ranks posted s and
// hence completed s - 1: two slots, used in turn, are never overwritten while somebody still reads them. Because the
// flag carries the call's signature, ranks that call different things notice at the first post, at no cost.
//
//  small (one phase)   post the data; wait for all posts; each rank takes from them what it is to get.
//  direct (two phases) all-reduce: post the addresses; wait for all posts; each rank reduces its share of all inputs
//                      into all outputs (NVLS's heads, on shared memory); finished; wait until all have finished.
//  meet, finish        the two halves of the above for all else, which collectives/direct-exchange.ts does in between.

import { PREMUL_SUM, sizeShift } from './codes';
import { copy } from './copy';
import { reduceCopy, reduceFew } from './reduce';
import { reduceScaled } from './scaled';

export const SLOT_BYTES: i32 = 65536;
const ODD_POST: usize = 4096;
const CALLED: usize = 12288;
const SLOTS: usize = 20480;
/** Bytes between control blocks: not a multiple of a large power of two, or the blocks would share cache sets. */
export const BLOCK_BYTES: i32 = 20480 + 2 * 65536 + 7 * 128;
const INLINE_BYTES: u32 = 56;
const FINISHED: usize = 8192;
const SOURCES: usize = 12544;
const DESTINATIONS: usize = 12544 + 1024;
const SCALARS: usize = 12544 + 2048;

/**
 * Reductions from here on go forward and backward in turn, backward by pieces of so much (measured), up to where the part of
 * them that a second-level cache holds is too small to gain anything.
 */
const TURNED_BYTES: usize = 128 * 1024;
const MOST_TURNED_BYTES: usize = 1024 * 1024;
const PIECE_BYTES: usize = 64 * 1024;

// Results of start functions and of progress(). Below MISMATCH: the rank whose call differs is MISMATCH - result.
const PENDING: i32 = 0;
const DONE: i32 = 1;
/** All have posted what meet() was about. */
const MET: i32 = 3;
/** A direct round is over, but it was cut to a staging chunk: roundBytes() says how far it came. */
const PARTLY: i32 = 2;
const MISMATCH: i32 = -1;

// Kinds of call, in the low bits of a call's code.
const ALL_REDUCE: i32 = 1;
const BROADCAST: i32 = 2;
const REDUCE: i32 = 4;
const ALL_GATHER: i32 = 5;
const REDUCE_SCATTER: i32 = 6;
const ALL_TO_ALL: i32 = 7;
const GATHER: i32 = 8;
const SCATTER: i32 = 9;

let rank: i32 = 0;
let nRanks: i32 = 0;
/** The first control block, and mine. */
let blocks: usize = 0;
let mine: usize = 0;
/** In rounds where somebody's arrays are staged, all ranks work on at most this much. */
let stageBytes: u32 = 0;

// The operation under way.
let sequence: u32 = 0;
let signature: u32 = 0;
let code: i32 = 0;
let root: i32 = 0;
let send: usize = 0;
let recv: usize = 0;
let bytes: u32 = 0;
/** What the caller asked for; `bytes` may be cut to a staging chunk. */
let asked: u32 = 0;
/** What this rank's input is multiplied with in a premulSum: scalar.ts. */
let scalar: u64 = 0;
/** The rank that is waited for next. */
let waiting: i32 = 0;
/** Bytes that a small operation's posts carry; `bytes` are those of one block. */
let posted: u32 = 0;
/** By kind of call, a bit: whether its next long reduction goes backward. */
let turns: i32 = 0;
/** 0 small: wait for posts; 1 direct: wait for posts; 2 direct: wait until all have finished; 3 meet: wait for posts. */
let phase: i32 = 0;

export function attach(blocksAddress: usize, rank_: i32, nRanks_: i32, stageBytes_: u32): void {
  blocks = blocksAddress;
  rank = rank_;
  nRanks = nRanks_;
  mine = block(rank);
  stageBytes = stageBytes_;
}

/** Sets the scalar of the premulSums that follow, low and high half. */
export function setScalar(low: u32, high: u32): void {
  scalar = ((high as u64) << 32) | (low as u64);
}

/** Bytes that the last direct round covered. */
export function roundBytes(): u32 {
  return bytes;
}

export function operationNumber(): u32 {
  return sequence;
}

/** The rank that the pending operation waits for. */
export function waitingFor(): i32 {
  return waiting;
}

/**
 * All-reduce of `count` elements: in one phase up to `smallBytes`, else one round of the two. `staged` says that the addresses are
 * of staging chunks.
 */
export function allReduce(code_: i32, send_: usize, recv_: usize, count: u32, smallBytes: u32, staged: u32, spins: i32): i32 {
  code = code_;
  root = 0;
  send = send_;
  recv = recv_;
  bytes = count << sizeShift((code_ >> 4) & 15);
  return bytes <= smallBytes ? allReduceSmall(count, spins) : allReduceDirect(count, staged, spins);
}

@inline
function allReduceSmall(count: u32, spins: i32): i32 {
  posted = bytes;
  phase = 0;
  const slot = next();
  if (bytes <= INLINE_BYTES) copyInline(slot + 8, send, bytes);
  else copy(data(mine), send, bytes);
  post(slot, count);
  return waitSmall(spins);
}

@inline
function allReduceDirect(count: u32, staged: u32, spins: i32): i32 {
  asked = bytes;
  phase = 1;
  const slot = next();
  store<u32>(slot, send as u32, 8);
  store<u32>(slot, recv as u32, 12);
  store<u32>(slot, staged, 16);
  post(slot, count);
  return waitDirect(spins);
}

/**
 * Any small operation but an all-reduce and the V forms. Of `count` elements are the input, or its blocks where it has
 * one for each rank: blocks of all ranks together have at most SLOT_BYTES.
 */
export function small(code_: i32, root_: i32, send_: usize, recv_: usize, count: u32, spins: i32): i32 {
  const kind = code_ & 15;
  code = code_;
  root = root_;
  recv = recv_;
  bytes = count << sizeShift((code_ >> 4) & 15);
  posted = kind == REDUCE_SCATTER || kind == ALL_TO_ALL || kind == SCATTER ? bytes * nRanks : bytes;
  phase = 0;
  const slot = next();
  if ((kind != BROADCAST && kind != SCATTER) || rank == root_) {
    if (posted <= INLINE_BYTES) copyInline(slot + 8, send_, posted);
    else copy(data(mine), send_, posted);
  }
  post(slot, count);
  return waitSmall(spins);
}

/**
 * Posts a call and where this rank's arrays are (words that only collectives/direct-exchange.ts reads, at postAddress() + 8,
 * the last a f64), and waits for all others' posts: MET.
 */
export function meet(code_: i32, root_: i32, count: u32, word0: u32, word1: u32, word2: u32, word3: u32, place: f64, spins: i32): i32 {
  code = code_;
  root = root_;
  bytes = 0;
  asked = 0;
  phase = 3;
  const slot = next();
  store<u32>(slot, word0, 8);
  store<u32>(slot, word1, 12);
  store<u32>(slot, word2, 16);
  store<u32>(slot, word3, 20);
  store<f64>(slot, place, 24);
  post(slot, count);
  return waitMet(spins);
}

/** Says that this rank needs nothing more of what the others posted; `waits` until all say so, if not 0. */
export function finish(waits: i32, spins: i32): i32 {
  atomic.store<u32>(mine + FINISHED, sequence);
  if (waits == 0) return DONE;
  phase = 2;
  waiting = 0;
  return waitFinished(spins);
}

export function barrier(code_: i32, spins: i32): i32 {
  code = code_;
  root = 0;
  bytes = 0;
  phase = 0;
  post(next(), 0);
  return waitSmall(spins);
}

/** Goes on with the pending operation; reads at most `spins` flags that are not yet set. */
export function progress(spins: i32): i32 {
  if (phase == 0) return waitSmall(spins);
  if (phase == 1) return waitDirect(spins);
  if (phase == 2) return waitFinished(spins);
  return waitMet(spins);
}

@inline
function waitMet(spins: i32): i32 {
  const status = waitPosts(spins);
  return status == DONE ? MET : status;
}

@inline
function block(owner: i32): usize {
  return blocks + (owner as usize) * BLOCK_BYTES;
}

/** Where the post of the current operation lies in `control`. */
@inline
function postOf(control: usize): usize {
  return control + ((sequence & 1) as usize) * ODD_POST;
}

@inline
function data(control: usize): usize {
  return control + SLOTS + ((sequence & 1) as usize) * SLOT_BYTES;
}

@inline
function next(): usize {
  sequence++;
  waiting = 0;
  return postOf(mine);
}

@inline
function post(slot: usize, count: u32): void {
  signature = (count * 0x9e3779b1) ^ (code as u32) ^ ((root as u32) * 0x85ebca6b);
  const called = mine + CALLED + ((sequence & 1) as usize) * 64;
  store<u32>(called, code as u32);
  store<u32>(called, root as u32, 4);
  store<f64>(called, count as f64, 8);
  store<u64>(called, scalar, 16);
  atomic.store<u64>(slot, flag());
}

@inline
function flag(): u64 {
  return ((sequence as u64) << 32) | (signature as u64);
}

/** Up to 56 bytes. */
@inline
function copyInline(destination: usize, source: usize, length: u32): void {
  let i: usize = 0;
  for (; i + 4 <= (length as usize); i += 4) store<u32>(destination + i, load<u32>(source + i));
  for (; i < (length as usize); i++) store<u8>(destination + i, load<u8>(source + i));
}

/** Waits until all ranks have posted the current operation. */
@inline
function waitPosts(spins: i32): i32 {
  const expected = flag();
  let slot = postOf(block(waiting));
  while (true) {
    const seen = atomic.load<u64>(slot);
    if (seen == expected) {
      waiting++;
      if (waiting >= nRanks) return DONE;
      slot += BLOCK_BYTES;
    } else {
      if (((seen >> 32) as u32) == sequence) return MISMATCH - waiting;
      if (--spins < 0) return PENDING;
    }
  }
}

function waitSmall(spins: i32): i32 {
  const status = waitPosts(spins);
  if (status != DONE || bytes == 0) return status;
  if ((code & 15) == ALL_REDUCE) reducePosts(0);
  else takeFromPosts();
  return DONE;
}

/** What a rank gets from the posts of a small operation. */
function takeFromPosts(): void {
  const kind = code & 15;
  const own = (rank as usize) * (bytes as usize);
  switch (kind) {
    case REDUCE: {
      if (rank == root) reducePosts(0);
      break;
    }
    case REDUCE_SCATTER: {
      reducePosts(own);
      break;
    }
    case BROADCAST: {
      takeBlock(recv, postedBy(root));
      break;
    }
    case SCATTER: {
      takeBlock(recv, postedBy(root) + own);
      break;
    }
    case GATHER: {
      if (rank != root) break;
    }
    default: {
      // allGather, gather and allToAll: a block from each.
      const from: usize = kind == ALL_TO_ALL ? own : 0;
      for (let r = 0; r < nRanks; r++) takeBlock(recv + (r as usize) * (bytes as usize), postedBy(r) + from);
    }
  }
}

/** Where the data lie that a rank posted with a small operation. */
@inline
function postedBy(owner: i32): usize {
  const control = block(owner);
  return posted <= INLINE_BYTES ? postOf(control) + 8 : data(control);
}

@inline
function takeBlock(destination: usize, source: usize): void {
  if (bytes <= INLINE_BYTES) copyInline(destination, source, bytes);
  else copy(destination, source, bytes);
}

/** Reduces `bytes` bytes from byte `from` on of what all ranks posted. */
@inline
function reducePosts(from: usize): void {
  const operator = (code >> 8) & 15;
  if (posted <= INLINE_BYTES && operator != PREMUL_SUM) {
    reduceFew((code >> 4) & 15, operator, postOf(blocks) + 8 + from, nRanks, BLOCK_BYTES, recv, bytes);
    return;
  }
  for (let r = 0; r < nRanks; r++) store<u32>(mine + SOURCES + (r << 2), (postedBy(r) + from) as u32);
  store<u32>(mine + DESTINATIONS, recv as u32);
  reduceTables(1, 0, bytes);
}

/**
 * Combines bytes of all ranks' sources in the table, as the call says, and writes them to the first destinations in the
 * table. Of each kind of call, long ranges are gone through forward and backward in turn: programs make the same call again
 * and again, and what the one before ended with is still in the cache.
 */
export function reduceTables(nDestinations: i32, from: usize, length: usize): void {
  if (length >= TURNED_BYTES && length <= MOST_TURNED_BYTES) {
    const kind = code & 15;
    turns ^= 1 << kind;
    if (((turns >> kind) & 1) == 0) {
      for (let end = length; end > 0; ) {
        const at = ((end - 1) / PIECE_BYTES) * PIECE_BYTES;
        reduceRange(nDestinations, from + at, end - at);
        end = at;
      }
      return;
    }
  }
  reduceRange(nDestinations, from, length);
}

function reduceRange(nDestinations: i32, from: usize, length: usize): void {
  const type = (code >> 4) & 15;
  const operator = (code >> 8) & 15;
  if (operator == PREMUL_SUM) {
    for (let r = 0; r < nRanks; r++) store<u64>(mine + SCALARS + (r << 3), load<u64>(calledAddress(r), 16));
    reduceScaled(type, mine + SCALARS, mine + SOURCES, nRanks, mine + DESTINATIONS, nDestinations, from, length);
  } else reduceCopy(type, operator, mine + SOURCES, nRanks, mine + DESTINATIONS, nDestinations, from, length);
}

function waitDirect(spins: i32): i32 {
  const status = waitPosts(spins);
  if (status != DONE) return status;
  shrinkToStage();
  reduceShare();
  return finish(1, spins);
}

/** Where any rank is staged, the round covers one staging chunk on all ranks. */
function shrinkToStage(): void {
  if (bytes <= stageBytes) return;
  for (let r = 0; r < nRanks; r++) {
    if (load<u32>(postOf(block(r)), 16) != 0) {
      bytes = stageBytes;
      return;
    }
  }
}

/** Reduces this rank's share of all inputs into all outputs. Shares are whole pairs of cache lines. */
function reduceShare(): void {
  const share = (((bytes + (nRanks as u32) - 1) / (nRanks as u32) + 127) >> 7) << 7;
  const from = min<u64>((share as u64) * (rank as u64), bytes as u64) as u32;
  const until = min<u64>((share as u64) * ((rank + 1) as u64), bytes as u64) as u32;
  if (from >= until) return;
  for (let r = 0; r < nRanks; r++) {
    const slot = postOf(block(r));
    store<u32>(mine + SOURCES + (r << 2), load<u32>(slot, 8));
    store<u32>(mine + DESTINATIONS + (r << 2), load<u32>(slot, 12));
  }
  reduceTables(nRanks, from as usize, (until - from) as usize);
}

/** Waits until all ranks have finished their part. */
function waitFinished(spins: i32): i32 {
  while (waiting < nRanks) {
    if (((atomic.load<u32>(block(waiting) + FINISHED) - sequence) as i32) >= 0) waiting++;
    else if (--spins < 0) return PENDING;
  }
  return roundStatus();
}

@inline
function roundStatus(): i32 {
  return bytes == asked ? DONE : PARTLY;
}

/** The table of sources (u32) for reduceTables, with room for 256 ranks, and behind it that of destinations. */
export function tableAddress(): usize {
  return mine + SOURCES;
}

/** Where a rank's post for the current operation lies. */
export function postAddress(owner: i32): usize {
  return postOf(block(owner));
}

/** Where it says what was called. */
export function calledAddress(owner: i32): usize {
  return block(owner) + CALLED + ((sequence & 1) as usize) * 64;
}
