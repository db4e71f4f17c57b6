import type { AllocatedArray, NumericArrayConstructor, TypedArray } from './types.js';

interface Collected {
  readonly offset: number;
  readonly buffer: WeakRef<SharedArrayBuffer>;
}

/** Marks arrays of alloc(). A property of the array, because reading an array's buffer takes 20 ns. */
const PLACE = Symbol('tccl.place');

/** The memory that an array of alloc() was given. */
export interface Place {
  readonly arrays: SharedArrays;
  readonly offset: number;
  /** True if it was freed, so that its memory may be in use by another array. */
  isFree: boolean;
}

interface Placed {
  [PLACE]?: Place;
}

/** The place of an array of alloc(); undefined for other arrays, and for parts of one, such as those of `subarray`. */
export function placeOf(array: TypedArray | null | undefined): Place | undefined {
  return (array as Placed | null | undefined)?.[PLACE];
}

/** True if an array of alloc() was freed. */
export function wasFreed(array: TypedArray): boolean {
  return placeOf(array)?.isFree === true;
}

/**
 * Arrays of alloc() of one rank, and which of them the program still has.
 *
 * Every array gets a SharedArrayBuffer of its own for the whole memory. Its parts and other views of it keep that object alive,
 * although not the array: when the object has been collected, nothing in this thread can reach the memory.
 */
export class SharedArrays {
  readonly #memory: SharedArrayBuffer;
  readonly #dispose: (array: TypedArray) => void;
  readonly #buffers = new Map<number, WeakRef<SharedArrayBuffer>>();
  readonly #registry: FinalizationRegistry<Collected>;
  readonly #known = new WeakSet<ArrayBufferLike>();
  /** Buffers that other threads may use. */
  readonly #kept = new Set<ArrayBufferLike>();

  /**
   * @param dispose frees an array at the end of a block with `using`
   * @param collected called in a turn of its own for an array that has been collected
   */
  constructor(memory: SharedArrayBuffer, dispose: (array: TypedArray) => void, collected: (offset: number) => void) {
    this.#memory = memory;
    this.#dispose = dispose;
    this.#registry = new FinalizationRegistry(({ offset, buffer }) => {
      // The place may have been found and given out again.
      if (this.#buffers.get(offset) === buffer) collected(offset);
    });
  }

  /** Number of arrays that may be collected. */
  get size(): number {
    return this.#buffers.size;
  }

  /** Makes an array of `length` elements at an address. */
  make<T extends TypedArray>(type: NumericArrayConstructor<T>, offset: number, length: number): AllocatedArray<T> {
    const buffer = structuredClone(this.#memory);
    this.#known.add(buffer);
    const weak = new WeakRef(buffer);
    this.#buffers.set(offset, weak);
    this.#registry.register(buffer, { offset, buffer: weak });
    const array = new type(buffer, offset, length);
    Object.defineProperty(array, PLACE, { value: { arrays: this, offset, isFree: false } satisfies Place });
    const { dispose } = Symbol as { readonly dispose?: symbol };
    if (dispose !== undefined) Object.defineProperty(array, dispose, { value: () => this.#dispose(array) });
    return array as AllocatedArray<T>;
  }

  /** True for the buffer of an array of alloc(), or of a part of one. */
  owns(buffer: ArrayBufferLike): boolean {
    // Reading a length is faster than a look into a set.
    return buffer.byteLength === this.#memory.byteLength && (buffer === this.#memory || this.#known.has(buffer));
  }

  /** Forgets an array that the program has freed. */
  free(array: TypedArray, place: Place): void {
    place.isFree = true;
    this.#buffers.delete(place.offset);
    this.#kept.delete(array.buffer);
  }

  /** Never collects the arrays whose addresses `uses` names: others may still write to them. */
  abandon(uses: (offset: number) => boolean): void {
    for (const offset of this.#buffers.keys()) if (uses(offset)) this.#buffers.delete(offset);
  }

  /** True if an array was abandoned. */
  isAbandoned({ offset }: Place): boolean {
    return !this.#buffers.has(offset);
  }

  /** Never collects the arrays in a value that another thread gets. */
  keepAllIn(value: unknown): void {
    if (this.#buffers.size > 0) this.#keepAllIn(value, new Set());
  }

  #keepAllIn(value: unknown, seen: Set<object>): void {
    if (typeof value !== 'object' || value === null || seen.has(value)) return;
    seen.add(value);
    if (ArrayBuffer.isView(value)) this.#keepAllIn(value.buffer, seen);
    else if (value instanceof SharedArrayBuffer) {
      if (this.#known.has(value)) this.#kept.add(value);
    } else if (value instanceof Map) for (const pair of value) for (const part of pair) this.#keepAllIn(part, seen);
    else if (value instanceof Set) for (const part of value) this.#keepAllIn(part, seen);
    else for (const part of Object.values(value)) this.#keepAllIn(part, seen);
  }

  /** Forgets an array that has been collected. */
  forget(offset: number): void {
    this.#buffers.delete(offset);
  }

  /** Addresses of the arrays that have been collected. All others live until the end of the running turn of the event loop. */
  collected(): number[] {
    return [...this.#buffers].flatMap(([offset, buffer]) => (buffer.deref() === undefined ? [offset] : []));
  }
}
