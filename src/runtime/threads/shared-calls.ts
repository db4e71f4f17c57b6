import { alignedShare } from '../algorithms/alignment.js';
import { divides, gathers, hasCommonCounts, isUneven } from '../algorithms/call-traits.js';
import { kindOf } from '../algorithms/call.js';
import { callKinds } from '../device/kernels/kernels.js';
import type { PlacedCall } from './engine-thread-memory.js';

/** Bytes for each thread up to which sharing a call does not pay. */
const SHARED_BYTES = 128 * 1024;

/**
 * Divides a call among several engine threads; with fewer shares than threads, the last threads have no work. The result
 * depends only on arguments that are equal on all ranks, so the threads that work together have the same share. Every
 * allToAllV is shared, however small, because no rank knows the lengths of the others' parts.
 */
export function sharesOf(call: PlacedCall, elementBytes: number, threads: number, nRanks: number): readonly PlacedCall[] {
  const { code, count, details } = call;
  // Arrays have a block for each rank: a share is a part of each block. Otherwise it is a call on parts of the arrays.
  const inBlocks = divides(code) || gathers(code);
  // The count of V forms is that of all ranks together.
  const blocks = details?.counts === undefined && inBlocks ? nRanks : 1;
  const isSmall = (!isUneven(code) || hasCommonCounts(code)) && count * blocks * elementBytes < threads * SHARED_BYTES;
  if (threads === 1 || isSmall || kindOf(code) === callKinds.barrier) return [call];
  if (inBlocks)
    return Array.from({ length: threads }, (_, index) => ({ ...call, details: { ...details, share: { index, of: threads } } }));
  return partsOf(call, elementBytes, threads);
}

/** Calls on consecutive parts of both arrays. */
function partsOf(call: PlacedCall, elementBytes: number, threads: number): readonly PlacedCall[] {
  const { count } = call;
  const share = alignedShare(count * elementBytes, threads) / elementBytes;
  return Array.from({ length: Math.ceil(count / share) }, (_, index) => {
    const from = index * share;
    const length = Math.min(share, count - from);
    const lengthOf = (elements: number): number => Math.max(0, Math.min(elements - from, length));
    return {
      ...call,
      count: length,
      send: call.send + from * elementBytes,
      sendLength: lengthOf(call.sendLength),
      recv: call.recv + from * elementBytes,
      recvLength: lengthOf(call.recvLength),
    };
  });
}
