// Operations among the ranks of one host, as one small state machine for each rank, on the ranks' control blocks
// (control-block.ts).
//
// Every operation waits for the posts of all ranks. So a rank that completes operation s knows that all ranks posted s and
// hence completed s - 1: two posts, used in turn, are never overwritten while another rank still reads them. Because the
// flag contains the call's signature, ranks with different calls detect that at the first post, at no cost.
//
//  small (one phase)   post the data; wait for all posts; each rank takes its result from them.
//  direct (two phases) all-reduce: post the addresses; wait for all posts; each rank reduces its share of all inputs
//                      into all outputs (like NVLS's heads, in shared memory); finished; wait until all have finished.
//  meet, finish        the two halves of the above for all other calls, whose work algorithms/memory/direct-exchange.ts does in between.

import { ALL_REDUCE, ALL_TO_ALL, BROADCAST, EXSCAN, GATHER, kindIn, operatorIn, REDUCE, REDUCE_SCATTER, SCAN, SCATTER, typeIn } from './calls';
import { PREMUL_SUM, sizeShift } from './codes';
import { BLOCK_BYTES, calledIn, DESTINATIONS, FINISHED, INLINE_BYTES, postIn, SCALARS, SOURCES } from './control-block';
import { copy } from './copy';
import { reduceCopy, reduceFew } from './reduce';
import { reduceScaled } from './scaled';

/**
 * Reductions from this length on go forward and backward in turn. It is also the length of the pieces of a backward pass
 * (measured), up to a length of which too little fits into a second-level cache for a gain.
 */
const TURNED_BYTES: usize = 128 * 1024;
const MOST_TURNED_BYTES: usize = 1024 * 1024;
const PIECE_BYTES: usize = 64 * 1024;

// Results of start functions and of progress(). A result below MISMATCH means that rank MISMATCH - result made a different call.
const PENDING: i32 = 0;
const DONE: i32 = 1;
/** All ranks have posted their calls of meet(). */
const MET: i32 = 3;
/** A direct round is over, but it was cut to a staging chunk: see roundBytes(). */
const PARTLY: i32 = 2;
/** The data of a small operation need more room than this rank has; nothing was begun (setRoom). */
const NO_ROOM: i32 = 4;
const MISMATCH: i32 = -1;

// Phases by the awaited event: the posts of a small operation, of an all-reduce or of meet(), or the end of all ranks' work.
const SMALL: i32 = 0;
const DIRECT: i32 = 1;
const FINISHING: i32 = 2;
const MEETING: i32 = 3;

let rank: i32 = 0;
let nRanks: i32 = 0;
/** The first control block, and this rank's. */
let blocks: usize = 0;
let mine: usize = 0;
/** Most bytes of an array in a round in which a rank's arrays are staged. */
let stageBytes: u32 = 0;
/**
 * This rank's memory for data of small operations that do not fit into a post (two halves used in turn), and the length of a
 * half.
 */
let room: usize = 0;
let roomBytes: u32 = 0;

// State of the running operation.
let sequence: u32 = 0;
let signature: u32 = 0;
let code: i32 = 0;
let root: i32 = 0;
let send: usize = 0;
let recv: usize = 0;
let bytes: u32 = 0;
/** Length that the caller requested; `bytes` may be cut to a staging chunk. */
let asked: u32 = 0;
/** Factor of this rank's input in a premulSum: scalar.ts. */
let scalar: u64 = 0;
/** The next rank to wait for. */
let waiting: i32 = 0;
/** Length of the data in a small operation's posts; `bytes` is that of one block. */
let posted: u32 = 0;
/** One bit for each kind of call: set if its next long reduction goes backward. */
let turns: i32 = 0;
let phase: i32 = 0;

export function attach(blocksAddress: usize, rank_: i32, nRanks_: i32, stageBytes_: u32): void {
  blocks = blocksAddress;
  rank = rank_;
  nRanks = nRanks_;
  mine = block(rank);
  stageBytes = stageBytes_;
}

/** Sets the memory for data of small operations, two halves of `bytes_` bytes. Data in the old memory stay there. */
export function setRoom(address: usize, bytes_: u32): void {
  room = address;
  roomBytes = bytes_;
}

/** Sets the scalar of the following premulSums, low and high half. */
export function setScalar(low: u32, high: u32): void {
  scalar = ((high as u64) << 32) | (low as u64);
}

/** Number of bytes that the last direct round covered. */
export function roundBytes(): u32 {
  return bytes;
}

export function operationNumber(): u32 {
  return sequence;
}

/** Phase of the pending operation; a different number for each part of an operation. */
export function phaseNumber(): i32 {
  return phase;
}

/** The rank that the pending operation waits for. */
export function waitingFor(): i32 {
  return waiting;
}

/**
 * All-reduce of `count` elements: in one phase up to `smallBytes`, otherwise one round of the two. `staged` is set if the
 * addresses are those of staging chunks.
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

/** Copies the data of a small operation to this rank's room, and writes the address to the post. */
@inline
function putIntoRoom(slot: usize, source: usize): void {
  const data = room + ((sequence & 1) as usize) * (roomBytes as usize);
  copy(data, source, posted);
  store<u32>(slot, data as u32, 8);
}

/**
 * Any small operation except an all-reduce and the V forms. The input, or each block if it has one for each rank, has `count`
 * elements.
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
 * Posts a call and the addresses of this rank's arrays (words that only algorithms/memory/direct-exchange.ts reads, at postAddress()
 * + 8, the last one an f64), and waits for all other posts: MET.
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

/** Declares that this rank needs the others' posts no longer. If `waits` is not 0, waits until all have declared that. */
export function finish(waits: i32, spins: i32): i32 {
  atomic.store<u32>(mine + FINISHED, sequence);
  if (waits == 0) return DONE;
  phase = FINISHING;
  waiting = 0;
  return waitFinished(spins);
}

export function barrier(code_: i32, root_: i32, spins: i32): i32 {
  code = code_;
  root = root_;
  bytes = 0;
  phase = SMALL;
  post(next(), 0);
  return waitSmall(spins);
}

/** Progresses the pending operation; polls at most `spins` unset flags. */
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

/** Copies up to 56 bytes. */
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

/** Takes this rank's result from the posts of a small operation. */
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
    case SCAN:
    case EXSCAN: {
      if (nSources() > 0) reducePosts(0);
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
      // allGather, gather and allToAll: a block from each rank.
      const from: usize = kind == ALL_TO_ALL ? own : 0;
      for (let r = 0; r < nRanks; r++) takeBlock(recv + (r as usize) * (bytes as usize), postedBy(r) + from);
    }
  }
}

/** Address of the data that a rank posted with a small operation. */
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

/** Reduces `bytes` bytes from byte `from` on of all ranks' posted data. */
@inline
function reducePosts(from: usize): void {
  const operator = operatorIn(code);
  if (posted <= INLINE_BYTES && operator < PREMUL_SUM) {
    reduceFew(typeIn(code), operator, postIn(blocks, sequence) + 8 + from, nSources(), BLOCK_BYTES, recv, bytes);
    return;
  }
  for (let r = 0; r < nRanks; r++) store<u32>(mine + SOURCES + (r << 2), (postedBy(r) + from) as u32);
  store<u32>(mine + DESTINATIONS, recv as u32);
  reduceTables(1, 0, bytes);
}

/**
 * Combines bytes of all ranks' sources in the table, by the call's operator, into the first destinations in the table. For
 * each kind of call, long ranges are processed forward and backward in turn: programs repeat the same call, and the last data
 * of the one before are still in the cache.
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

/** Number of ranks whose inputs are combined here: of a scan those up to this rank. */
@inline
function nSources(): i32 {
  const kind = kindIn(code);
  return kind < SCAN ? nRanks : kind == SCAN ? rank + 1 : rank;
}

function reduceRange(nDestinations: i32, from: usize, length: usize): void {
  const type = typeIn(code);
  const operator = operatorIn(code);
  if (operator == PREMUL_SUM) {
    for (let r = 0; r < nRanks; r++) store<u64>(mine + SCALARS + (r << 3), load<u64>(calledAddress(r), 16));
    reduceScaled(type, mine + SCALARS, mine + SOURCES, nSources(), mine + DESTINATIONS, nDestinations, from, length);
  } else reduceCopy(type, operator, mine + SOURCES, nSources(), mine + DESTINATIONS, nDestinations, from, length);
}

function waitDirect(spins: i32): i32 {
  const status = waitPosts(spins);
  if (status != DONE) return status;
  shrinkToStage();
  reduceShare();
  return finish(1, spins);
}

/** If any rank is staged, the round covers one staging chunk on all ranks. */
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

/** Address of the table of sources (u32) for reduceTables, with room for 256 ranks, followed by that of destinations. */
export function tableAddress(): usize {
  return mine + SOURCES;
}

/** Address of a rank's post for the current operation. */
export function postAddress(owner: i32): usize {
  return postIn(block(owner), sequence);
}

/** Address of a rank's description of its call. */
export function calledAddress(owner: i32): usize {
  return calledIn(block(owner), sequence);
}

/** Address of a rank's post for the operation before, or after. */
export function otherPostAddress(owner: i32): usize {
  return postIn(block(owner), sequence + 1);
}

export function otherCalledAddress(owner: i32): usize {
  return calledIn(block(owner), sequence + 1);
}
