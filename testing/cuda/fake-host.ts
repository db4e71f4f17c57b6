import { makeRegion, type Place, type Region } from '../ptx/memory.js';

const PAGE_BYTES = 4096;

/** Memory of the host as a driver sees it: its addresses, and which of it is page-locked. */
export class FakeHost {
  readonly #views = new Map<bigint, Uint8Array>();
  readonly #locked: Uint8Array[] = [];
  readonly #mapped: { readonly address: bigint; readonly region: Region }[] = [];
  /** Above the addresses of devices. */
  #next = 0x7fff_0000_0000_0000n;

  /** An address, which stands for the view alone. */
  addressOf(view: ArrayBufferView): bigint {
    const address = this.#next;
    this.#next += BigInt(view.byteLength + PAGE_BYTES);
    this.#views.set(address, bytesIn(view));
    return address;
  }

  /** The view that got an address. */
  viewAt(address: bigint): Uint8Array {
    const view = this.#views.get(address);
    if (view === undefined) throw new Error(`no host memory has the address 0x${address.toString(16)}`);
    return view;
  }

  /** Gives kernels an address of page-locked memory. */
  map(view: Uint8Array): bigint {
    const address = this.addressOf(view);
    this.#mapped.push({ address, region: makeRegion('memory of the host', view.length, view) });
    return address;
  }

  /** The place of an address that kernels may use. */
  mappedAt(address: bigint): Place | undefined {
    const found = this.#mapped.find((each) => address >= each.address && address < each.address + BigInt(each.region.length));
    if (found === undefined || this.isLocked(found.region.bytes) !== true) return undefined;
    return { region: found.region, offset: Number(address - found.address) };
  }

  /** Returns false if a page is locked already. */
  lock(view: Uint8Array): boolean {
    const pages = (of: Uint8Array): [number, number] => [
      Math.floor(of.byteOffset / PAGE_BYTES),
      Math.ceil((of.byteOffset + of.length) / PAGE_BYTES),
    ];
    const [first, end] = pages(view);
    const isShared = this.#locked.some((other) => {
      const [from, to] = pages(other);
      return other.buffer === view.buffer && from < end && first < to;
    });
    if (!isShared) this.#locked.push(view);
    return !isShared;
  }

  unlock(view: Uint8Array): boolean {
    const at = this.#locked.findIndex((other) => other.buffer === view.buffer && other.byteOffset === view.byteOffset);
    if (at >= 0) this.#locked.splice(at, 1);
    return at >= 0;
  }

  get nLocked(): number {
    return this.#locked.length;
  }

  /** True for page-locked memory, undefined for memory of which a part is. */
  isLocked(view: Uint8Array): boolean | undefined {
    const begin = view.byteOffset;
    const end = begin + view.length;
    const touching = this.#locked.filter(
      (other) => other.buffer === view.buffer && other.byteOffset < end && begin < other.byteOffset + other.length,
    );
    if (touching.length === 0) return false;
    const [only] = touching;
    const isWhole = only !== undefined && only.byteOffset <= begin && end <= only.byteOffset + only.length;
    return isWhole && touching.length === 1 ? true : undefined;
  }
}

export function bytesIn(view: ArrayBufferView, bytes = view.byteLength): Uint8Array {
  if (bytes > view.byteLength) throw new Error(`a driver would write ${bytes} bytes to an array of ${view.byteLength}`);
  return new Uint8Array(view.buffer, view.byteOffset, bytes);
}
