/** Alignment of allocations: a pair of cache lines, which the processor fetches together. */
const ALIGNMENT = 128;
/**
 * Bytes left free after each allocation. Arrays often have lengths of powers of two; without a gap, inputs and outputs would
 * all begin in the same cache set and evict each other.
 */
const GAP = 5 * ALIGNMENT;
/**
 * The same for large allocations: more than half a page, because a copy whose writes run up to 1920 bytes ahead of its reads
 * within a page takes 1.5 to 3 times as long (docs/notes/memory.md). Another page separates arrays that are not neighbours.
 */
const LARGE_GAP = 4096 + 2048 + ALIGNMENT;
/** Shortest large allocation. */
const LARGE_BYTES = 65536;

interface Range {
  from: number;
  to: number;
}

/** A first-fit allocator of one range of addresses. Its bookkeeping lies outside the range. */
export class Heap {
  readonly #free: Range[];
  readonly #lengths = new Map<number, number>();
  #used = 0;
  #peak = 0;

  /** @param from start, and @param to end of the addresses to allocate */
  constructor(
    readonly from: number,
    readonly to: number,
  ) {
    this.#free = [{ from, to }];
  }

  get usedBytes(): number {
    return this.#used;
  }

  get peakBytes(): number {
    return this.#peak;
  }

  /** Allocates `bytes` bytes; undefined when no hole is long enough. */
  allocate(bytes: number): number | undefined {
    const length = Math.ceil(Math.max(bytes, 1) / ALIGNMENT) * ALIGNMENT + (bytes < LARGE_BYTES ? GAP : LARGE_GAP);
    const index = this.#free.findIndex((hole) => hole.to - hole.from >= length);
    const hole = this.#free[index];
    if (hole === undefined) return undefined;
    const address = hole.from;
    hole.from += length;
    if (hole.from === hole.to) this.#free.splice(index, 1);
    this.#lengths.set(address, length);
    this.#used += length;
    this.#peak = Math.max(this.#peak, this.#used);
    return address;
  }

  /** Frees an allocation. Returns false if the address is not an allocation of this heap, or was freed before. */
  free(address: number): boolean {
    const length = this.#lengths.get(address);
    if (length === undefined) return false;
    this.#lengths.delete(address);
    this.#used -= length;

    let index = this.#free.findIndex((hole) => hole.from > address);
    if (index < 0) index = this.#free.length;
    this.#free.splice(index, 0, { from: address, to: address + length });
    this.#join(index);
    this.#join(index - 1);
    return true;
  }

  /** Length of an allocation including its gap; 0 if `address` is not an allocation. */
  lengthOf(address: number): number {
    return this.#lengths.get(address) ?? 0;
  }

  /** The largest allocation that would succeed now. */
  largestFree(): number {
    let largest = 0;
    for (const { from, to } of this.#free) {
      const small = Math.min(to - from - GAP, LARGE_BYTES - ALIGNMENT);
      const large = to - from - LARGE_GAP;
      largest = Math.max(largest, large < LARGE_BYTES ? small : large);
    }
    return largest;
  }

  #join(index: number): void {
    const left = this.#free[index];
    const right = this.#free[index + 1];
    if (left === undefined || right === undefined || left.to !== right.from) return;
    left.to = right.to;
    this.#free.splice(index + 1, 1);
  }
}
