// The operations among the ranks of one host, as one small state machine a rank, on the ranks' control blocks
// (control-block.ts).
//
// Every operation waits for the posts of all ranks. So whoever completes operation s knows that all ranks posted s and
// hence completed s - 1: two posts, used in turn, are never overwritten while somebody still reads them. Because the
// flag carries the call's signature, ranks that call different things notice at the first post, at no cost.
//
//  small (one phase)   post the data; wait for all posts; each rank takes from them what it is to get.
//  direct (two phases) all-reduce: post the addresses; wait for all posts; each rank reduces its share of all inputs
//                      into all outputs (NVLS's heads, on shared memory); finished; wait until all have finished.
//  meet, finish        the two halves of the above for all else, which algorithms/direct-exchange.ts does in between.

import { ALL_REDUCE, ALL_TO_ALL, BROADCAST, GATHER, kindIn, operatorIn, REDUCE, REDUCE_SCATTER, SCATTER, typeIn } from './calls';
import { PREMUL_SUM, sizeShift } from './codes';
import { BLOCK_BYTES, calledIn, DESTINATIONS, FINISHED, INLINE_BYTES, postIn, SCALARS, SOURCES } from './control-block';
import { copy } from './copy';
import { reduceCopy, reduceFew } from './reduce';
import { reduceScaled } from './scaled';

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
/** The data of a small operation need more room than this rank has: nothing was begun (setRoom). */
const NO_ROOM: i32 = 4;
const MISMATCH: i32 = -1;

// Phases, by what is waited for: the posts of a small operation, of an all-reduce or of meet(), or that all have finished.
const SMALL: i32 = 0;
const DIRECT: i32 = 1;
const FINISHING: i32 = 2;
const MEETING: i32 = 3;

let rank: i32 = 0;
let nRanks: i32 = 0;
/** The first control block, and mine. */
let blocks: usize = 0;
let mine: usize = 0;
/** In rounds where somebody's arrays are staged, all ranks work on at most this much. */
let stageBytes: u32 = 0;
/** This rank's memory for data of small operations that are too long for a post, two halves used in turn, and the length of one. */
let room: usize = 0;
let roomBytes: u32 = 0;

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
let phase: i32 = 0;

export function attach(blocksAddress: usize, rank_: i32, nRanks_: i32, stageBytes_: u32): void {
  blocks = blocksAddress;
  rank = rank_;
  nRanks = nRanks_;
  mine = block(rank);
  stageBytes = stageBytes_;
}

/** Gives memory for data of small operations, two halves of `bytes_` bytes. What lay in the memory before stays there. */
export function setRoom(address: usize, bytes_: u32): void {
  room = address;
  roomBytes = bytes_;
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

/** What the pending operation waits for; another number in each part of an operation. */
export function phaseNumber(): i32 {
  return phase;
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
  bytes = count << sizeShift(typeIn(code_));
  return bytes <= smallBytes ? allReduceSmall(count, spins) : allReduceDirect(count, staged, spins);
}

@inline
function allReduceSmall(count: u32, spins: i32): i32 {
  posted = bytes;
  phase = SMALL;
  if (bytes > INLINE_BYTES && bytes > roomBytes) return NO_ROOM;
  const slot = next();
  if (bytes <= INLINE_BYTES) copyInline(slot + 8, send, bytes);
  else putIntoRoom(slot, send);
  post(slot, count);
  return waitSmall(spins);
}

@inline
function allReduceDirect(count: u32, staged: u32, spins: i32): i32 {
  asked = bytes;
  phase = DIRECT;
  const slot = next();
  store<u32>(slot, send as u32, 8);
  store<u32>(slot, recv as u32, 12);
  store<u32>(slot, staged, 16);
  post(slot, count);
  return waitDirect(spins);
}

/** Copies what a small operation posts into this rank's room, and says in the post where it is. */
@inline
function putIntoRoom(slot: usize, source: usize): void {
  const data = room + ((sequence & 1) as usize) * (roomBytes as usize);
  copy(data, source, posted);
  store<u32>(slot, data as u32, 8);
}

/**
 * Any small operation but an all-reduce and the V forms. Of `count` elements are the input, or its blocks where it has
 * one for each rank.
 */
export function small(code_: i32, root_: i32, send_: usize, recv_: usize, count: u32, spins: i32): i32 {
  const kind = kindIn(code_);
  code = code_;
  root = root_;
  recv = recv_;
  bytes = count << sizeShift(typeIn(code_));
  posted = kind == REDUCE_SCATTER || kind == ALL_TO_ALL || kind == SCATTER ? bytes * nRanks : bytes;
  phase = SMALL;
  const sends = (kind != BROADCAST && kind != SCATTER) || rank == root_;
  if (sends && posted > INLINE_BYTES && posted > roomBytes) return NO_ROOM;
  const slot = next();
  if (sends) {
    if (posted <= INLINE_BYTES) copyInline(slot + 8, send_, posted);
    else putIntoRoom(slot, send_);
  }
  post(slot, count);
  return waitSmall(spins);
}

/**
 * Posts a call and where this rank's arrays are (words that only algorithms/direct-exchange.ts reads, at postAddress() + 8,
 * the last a f64), and waits for all others' posts: MET.
 */
export function meet(code_: i32, root_: i32, count: u32, word0: u32, word1: u32, word2: u32, word3: u32, place: f64, spins: i32): i32 {
  code = code_;
  root = root_;
  bytes = 0;
  asked = 0;
  phase = MEETING;
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
  phase = FINISHING;
  waiting = 0;
  return waitFinished(spins);
}

export function barrier(code_: i32, spins: i32): i32 {
  code = code_;
  root = 0;
  bytes = 0;
  phase = SMALL;
  post(next(), 0);
  return waitSmall(spins);
}

/** Goes on with the pending operation; reads at most `spins` flags that are not yet set. */
export function progress(spins: i32): i32 {
  if (phase == SMALL) return waitSmall(spins);
  if (phase == DIRECT) return waitDirect(spins);
  if (phase == FINISHING) return waitFinished(spins);
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

@inline
function next(): usize {
  sequence++;
  waiting = 0;
  return postIn(mine, sequence);
}

@inline
function post(slot: usize, count: u32): void {
  signature = (count * 0x9e3779b1) ^ (code as u32) ^ ((root as u32) * 0x85ebca6b);
  const called = calledIn(mine, sequence);
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
  let slot = postIn(block(waiting), sequence);
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
  if (kindIn(code) == ALL_REDUCE) reducePosts(0);
  else takeFromPosts();
  return DONE;
}

/** What a rank gets from the posts of a small operation. */
function takeFromPosts(): void {
  const kind = kindIn(code);
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
  const data = postIn(block(owner), sequence) + 8;
  return posted <= INLINE_BYTES ? data : (load<u32>(data) as usize);
}

@inline
function takeBlock(destination: usize, source: usize): void {
  if (bytes <= INLINE_BYTES) copyInline(destination, source, bytes);
  else copy(destination, source, bytes);
}

/** Reduces `bytes` bytes from byte `from` on of what all ranks posted. */
@inline
function reducePosts(from: usize): void {
  const operator = operatorIn(code);
  if (posted <= INLINE_BYTES && operator != PREMUL_SUM) {
    reduceFew(typeIn(code), operator, postIn(blocks, sequence) + 8 + from, nRanks, BLOCK_BYTES, recv, bytes);
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
    const kind = kindIn(code);
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
  const type = typeIn(code);
  const operator = operatorIn(code);
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
    if (load<u32>(postIn(block(r), sequence), 16) != 0) {
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
    const slot = postIn(block(r), sequence);
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
  return postIn(block(owner), sequence);
}

/** Where it says what was called. */
export function calledAddress(owner: i32): usize {
  return calledIn(block(owner), sequence);
}

/** The same of the operation before, or after. */
export function otherPostAddress(owner: i32): usize {
  return postIn(block(owner), sequence + 1);
}

export function otherCalledAddress(owner: i32): usize {
  return calledIn(block(owner), sequence + 1);
}
