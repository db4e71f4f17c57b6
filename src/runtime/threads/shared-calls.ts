import { alignedShare } from '../algorithms/alignment.js';
import { kindOf } from '../algorithms/call.js';
import { callKinds } from '../device/kernels/kernels.js';
import type { PlacedCall } from './engine-thread-memory.js';

/** Bytes for each thread up to which sharing a call does not pay. */
const SHARED_BYTES = 128 * 1024;

/** Kinds in which elements are independent: a share is a call on parts of the arrays. */
const elementwise: ReadonlySet<number> = new Set([
  callKinds.allReduce,
  callKinds.reduce,
  callKinds.broadcast,
  callKinds.scan,
  callKinds.exscan,
]);
/** Kinds in which arrays have a block for each rank: a share is a part of each block. */
const inBlocks: ReadonlySet<number> = new Set([
  callKinds.allGather,
  callKinds.reduceScatter,
  callKinds.allToAll,
  callKinds.gather,
  callKinds.scatter,
  callKinds.allGatherV,
  callKinds.reduceScatterV,
  callKinds.allToAllV,
]);

/**
 * Divides a call among several engine threads; with fewer shares than threads, the last threads have no work. The result
 * depends only on arguments that are equal on all ranks, so the threads that work together have the same share. Every
 * allToAllV is shared, however small, because no rank knows the lengths of the others' parts.
 */
export function sharesOf(call: PlacedCall, elementBytes: number, threads: number, nRanks: number): readonly PlacedCall[] {
  const kind = kindOf(call.code);
  const { count, details } = call;
  // The count of V forms is that of all ranks together.
  const blocks = details?.counts === undefined && inBlocks.has(kind) ? nRanks : 1;
  const isSmall = kind !== callKinds.allToAllV && count * blocks * elementBytes < threads * SHARED_BYTES;
  if (threads === 1 || isSmall) return [call];
  if (inBlocks.has(kind))
    return Array.from({ length: threads }, (_, index) => ({ ...call, details: { ...details, share: { index, of: threads } } }));
  return elementwise.has(kind) ? partsOf(call, elementBytes, threads) : [call];
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
