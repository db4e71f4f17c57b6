/** What memory of a heap is for: arrays of alloc(), places that data passes through, or what teams share. */
export type MemoryUse = 'arrays' | 'staging' | 'control';

/** Bytes of this rank's part of the segment, and of the whole. */
export interface SegmentMemory {
  /** This rank's heap. */
  readonly heapBytes: number;
  /** What is left of the heap, in all. */
  readonly freeBytes: number;
  /** The longest array that alloc() could give now. */
  readonly largestFreeBytes: number;
  /** Most that was ever given out at once. */
  readonly peakBytes: number;
  /** Given out by what it is for, the gaps between allocations included. */
  readonly used: Readonly<Record<MemoryUse, number>>;
  /** Addresses of the segment, which its ranks share; memory is taken for a part of them only: see `reservedBytes`. */
  readonly mappedBytes: number;
  /** Of the system's memory that this rank took for its heap; it keeps what is freed for later. */
  readonly reservedBytes: number;
}
