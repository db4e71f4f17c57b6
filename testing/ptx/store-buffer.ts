import { counterAt, type Region } from './memory.js';

/** A store that its thread has made, and that others do not see yet. */
interface Held {
  readonly region: Region;
  readonly offset: number;
  readonly bytes: Uint8Array;
  /** Called when others can see it. */
  readonly onVisible: (() => void) | undefined;
}

/** Bytes of a piece of an overlay: most blocks store to little of a region. No element lies in two. */
const PAGE_BYTES = 4096;

interface Overlay {
  readonly contents: Uint8Array;
  readonly mask: Uint8Array;
}

const overlaps = (a: Held, b: Held): boolean =>
  a.region === b.region && a.offset < b.offset + b.bytes.length && b.offset < a.offset + a.bytes.length;

/**
 * Stores of a block that the rest of the system does not see yet: those of each thread, and those of all threads before the
 * last barrier, which the whole block sees.
 *
 *     thread 0: st st ─┐ barrier
 *     thread 1: st ────┼────────► block: st st st ── release, fence, chance ──► memory
 *     thread 2: st st ─┘
 */
export class StoreBuffer {
  readonly #ofThreads: Held[][];
  readonly #ofBlock: Held[] = [];
  /** Contents of pages of regions as the block sees them; `mask` is 1 where they differ from memory. */
  readonly #overlays = new Map<Region, (Overlay | undefined)[]>();

  constructor(nThreads: number) {
    this.#ofThreads = Array.from({ length: nThreads }, () => []);
  }

  /** Number of stores that are held back. */
  get size(): number {
    return this.#ofThreads.reduce((sum, held) => sum + held.length, this.#ofBlock.length);
  }

  store(thread: number, region: Region, offset: number, bytes: Uint8Array, onVisible?: () => void): void {
    this.#ofThreads[thread]?.push({ region, offset, bytes, onVisible });
  }

  /** Bytes as a thread sees them, into `target`; 8 of them at once if the load is strong. */
  load(thread: number, region: Region, offset: number, target: Uint8Array, isStrong: boolean): void {
    if (isStrong && target.length === 8)
      new DataView(target.buffer, target.byteOffset).setBigUint64(0, Atomics.load(counterAt(region, offset), 0), true);
    else for (let i = 0; i < target.length; i++) target[i] = region.bytes[offset + i] ?? 0;
    const overlay = this.#ofBlock.length === 0 ? undefined : this.#overlays.get(region)?.[Math.floor(offset / PAGE_BYTES)];
    const at = offset % PAGE_BYTES;
    if (overlay !== undefined)
      for (let i = 0; i < target.length; i++) if (overlay.mask[at + i] === 1) target[i] = overlay.contents[at + i] ?? 0;
    for (const held of this.#ofThreads[thread] ?? []) {
      if (held.region !== region) continue;
      for (let i = 0; i < target.length; i++) {
        const byte = held.bytes[offset + i - held.offset];
        if (byte !== undefined) target[i] = byte;
      }
    }
  }

  /** At a barrier: the whole block sees what its threads have stored. */
  shareInBlock(): void {
    for (const held of this.#ofThreads) {
      for (const store of held) {
        let pages = this.#overlays.get(store.region);
        if (pages === undefined) this.#overlays.set(store.region, (pages = []));
        const overlay = (pages[Math.floor(store.offset / PAGE_BYTES)] ??= {
          contents: new Uint8Array(PAGE_BYTES),
          mask: new Uint8Array(PAGE_BYTES),
        });
        const at = store.offset % PAGE_BYTES;
        overlay.contents.set(store.bytes, at);
        overlay.mask.fill(1, at, at + store.bytes.length);
        this.#ofBlock.push(store);
      }
      held.length = 0;
    }
  }

  /** At a release: all see what the thread has stored, and what it has seen of its block. */
  releaseBy(thread: number): void {
    for (const store of this.#ofBlock) this.#show(store);
    this.#ofBlock.length = 0;
    this.#overlays.clear();
    const held = this.#ofThreads[thread] ?? [];
    for (const store of held) this.#show(store);
    held.length = 0;
  }

  /** Makes one store visible, before its turn: the weak order of memory. Stores to one place keep theirs. */
  showOne(random: (below: number) => number): void {
    const thread = random(this.#ofThreads.length + 1);
    const held = this.#ofThreads[thread] ?? this.#ofBlock;
    if (held.length === 0) return;
    let at = random(held.length);
    const store = held[at];
    const first = store === undefined ? -1 : held.findIndex((other) => overlaps(other, store));
    if (first >= 0) at = first;
    if (held === this.#ofBlock) this.#showOfBlock(at);
    else {
      const [shown] = held.splice(at, 1);
      if (shown === undefined) return;
      // What the block stored to this place is older.
      for (let i = 0; i < this.#ofBlock.length;) {
        const older = this.#ofBlock[i];
        if (older !== undefined && overlaps(older, shown)) this.#showOfBlock(i);
        else i++;
      }
      this.#show(shown);
    }
  }

  #showOfBlock(at: number): void {
    const [store] = this.#ofBlock.splice(at, 1);
    if (store === undefined) return;
    this.#show(store);
    // A newer store of the block to the same place stays hidden.
    if (this.#ofBlock.some((other) => overlaps(other, store))) return;
    const from = store.offset % PAGE_BYTES;
    const overlay = this.#overlays.get(store.region)?.[Math.floor(store.offset / PAGE_BYTES)];
    overlay?.mask.fill(0, from, from + store.bytes.length);
  }

  #show({ region, offset, bytes, onVisible }: Held): void {
    region.bytes.set(bytes, offset);
    onVisible?.();
  }
}
