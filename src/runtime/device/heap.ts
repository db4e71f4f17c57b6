/** Alignment of what a heap gives out: a pair of cache lines, which the processor fetches together. */
const ALIGNMENT = 128;
/**
 * Bytes left free behind each allocation. Arrays are often powers of two long; without a gap, inputs and outputs would
 * all begin in the same set of the cache and drive each other out.
 */
const GAP = 5 * ALIGNMENT;
/**
 * Behind large ones: half a page and more, so that the next array, to which this one is likely to be copied, is not a few
 * lines ahead of it within their pages. Measured on an AMD EPYC: at some distances (16.5 MiB for one) a copy whose writes
 * run 64 to 1920 bytes ahead of its reads, page offsets alone counted, takes 1.5 to 3 times as long, and from 2048 on no
 * longer; presumably lines of both collide in the first-level cache, whose ways are told apart by a hash of addresses.
 * And a page, for arrays that are not neighbours: their distance within a page is again short.
 */
const LARGE_GAP = 4096 + 2048 + ALIGNMENT;
/** From here on allocations are large. */
const LARGE_BYTES = 65536;

interface Range {
  from: number;
  to: number;
}

/** A first-fit allocator of one range of addresses. Bookkeeping lives outside the range. */
export class Heap {
  readonly #free: Range[];
  readonly #lengths = new Map<number, number>();
  #used = 0;
  #peak = 0;

  /** Gives out addresses in [from, to). */
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

  /** The address of `bytes` free bytes, or undefined when no hole is long enough. */
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

  /** Takes back what `allocate` gave. False when the address is not of this heap, or was freed before. */
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

  /** What an allocation takes, its gap included; 0 where `address` is none. */
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
