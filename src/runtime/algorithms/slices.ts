import { alignedPiece } from './alignment.js';

/**
 * Longest slice that fits, with its headers, in one buffer of the kernel's TCP (64 KiB). The short rest of a slice that is a
 * little longer waits for its turn, which halves the throughput between hosts.
 */
export const BUFFER_SLICE_BYTES = 60 * 1024;

/** Longest slice that fits into `room` bytes and fills at most `buffers` such buffers; whole ones, if there is room for one. */
export function sliceOfBuffers(buffers: number, room = Infinity): number {
  return room < BUFFER_SLICE_BYTES ? room : Math.min(buffers, Math.floor(room / BUFFER_SLICE_BYTES)) * BUFFER_SLICE_BYTES;
}

/**
 * Buffers that a slice of rings, pairs and messages fills. Measured (docs/notes/algorithms.md). No slice is longer: the combiner
 * has room for one of a ring.
 */
export const MOST_BUFFERS = 2;

/** Slots of the connections of a rank. */
export interface SlotLimits {
  readonly steps: number;
  /** Approximate limit for the data that all connections hold in one direction. */
  readonly heldBytes: number;
  /** Length of a slice, at least, even if the connections then hold more. */
  readonly shortestBytes: number;
  /** Buffers of the kernel that a slice fills, at most. */
  readonly buffers: number;
}

/** Longest slice where a rank has connections with `nRanks` ranks: the more ranks, the shorter. */
export function fairSlice({ steps, heldBytes, shortestBytes, buffers }: SlotLimits, nRanks: number): number {
  return sliceOfBuffers(buffers, Math.max(shortestBytes, alignedPiece(heldBytes / steps, nRanks)));
}

/**
 * Number of rings that a call of `bytes` bytes, all blocks together, uses: one more for each half buffer. Below, hand-overs cost
 * more than another NIC saves.
 */
export function ringParts(bytes: number, nRings: number, sliceBytes = BUFFER_SLICE_BYTES): number {
  return Math.max(1, Math.min(nRings, Math.floor((2 * bytes) / sliceBytes)));
}
