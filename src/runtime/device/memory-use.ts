/** Purpose of heap memory: arrays of alloc(), buffers for data in flight, or shared structures of teams. */
export type MemoryUse = 'arrays' | 'staging' | 'control';

/** Sizes in bytes of this rank's part of the segment, and of the whole. */
export interface SegmentMemory {
  /** Size of this rank's heap. */
  readonly heapBytes: number;
  /** Free memory of the heap in total. */
  readonly freeBytes: number;
  /** Longest array that alloc() can return now. */
  readonly largestFreeBytes: number;
  /** Largest amount ever allocated at one time. */
  readonly peakBytes: number;
  /** Allocated memory by purpose, including the gaps between allocations. */
  readonly used: Readonly<Record<MemoryUse, number>>;
  /** Address range of the segment, which its ranks share; only a part of it has memory: see `reservedBytes`. */
  readonly mappedBytes: number;
  /** Memory of the system that this rank took for its heap; freed memory is kept for later. */
  readonly reservedBytes: number;
}
