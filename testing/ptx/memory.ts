/** An access that no memory answers, or that PTX leaves undefined. */
export class MemoryError extends Error {
  override name = 'MemoryError';
}

/** A piece of memory that was allocated as a whole. */
export interface Region {
  readonly name: string;
  readonly bytes: Uint8Array;
  readonly view: DataView;
  /** Of a multicast object: the memories that it represents; `bytes` is empty. */
  readonly members: readonly Region[];
  readonly length: number;
}

/** Bits of an address within its region: nothing that is near the end of one region is the beginning of another. */
export const OFFSET_BITS = 36;

/** A region, and the bytes from its beginning. */
export interface Place {
  readonly region: Region;
  readonly offset: number;
}

/** The memory of all devices, which all of them can address. */
export class DeviceMemory {
  readonly #regions: (Region | undefined)[] = [];
  readonly #elsewhere: (address: bigint) => Place | undefined;

  /** @param elsewhere gives memory of the host that devices can address, too */
  constructor(elsewhere: (address: bigint) => Place | undefined = () => undefined) {
    this.#elsewhere = elsewhere;
  }

  /** Adds memory; the address is a multiple of 256, as the driver's are. */
  allocate(name: string, length: number): bigint {
    return this.#add(makeRegion(name, length));
  }

  /** Adds a multicast object of memories of one length. */
  multicast(name: string, addresses: readonly bigint[]): bigint {
    const members = addresses.map((address) => this.at(address).region);
    return this.#add({ ...makeRegion(name, 0), members, length: Math.min(...members.map(({ length }) => length)) });
  }

  /** Ends a piece of memory; its addresses are never given again. */
  free(address: bigint): void {
    const { region } = this.at(address);
    this.#regions[this.#regions.indexOf(region)] = undefined;
  }

  /** The place of an address. */
  at(address: bigint): Place {
    return this.atWords(Number(address & 0xffffffffn), Number(address >> 32n));
  }

  /** The same for the halves of an address. */
  atWords(low: number, high: number): Place {
    const region = this.#regions[(high >>> (OFFSET_BITS - 32)) - 1];
    if (region === undefined) {
      const address = BigInt(high) * 2n ** 32n + BigInt(low);
      const place = this.#elsewhere(address);
      if (place === undefined) throw new MemoryError(`no memory at 0x${address.toString(16)}`);
      return place;
    }
    return { region, offset: (high & (2 ** (OFFSET_BITS - 32) - 1)) * 2 ** 32 + low };
  }

  /** The host's view of memory, from an address to the end of its region. */
  bytesAt(address: bigint): Uint8Array {
    const { region, offset } = this.at(address);
    return region.bytes.subarray(offset);
  }

  viewAt(address: bigint): DataView {
    const { buffer, byteOffset, byteLength } = this.bytesAt(address);
    return new DataView(buffer, byteOffset, byteLength);
  }

  #add(region: Region): bigint {
    return BigInt(this.#regions.push(region)) << BigInt(OFFSET_BITS);
  }
}

export function makeRegion(name: string, length: number, bytes: Uint8Array = new Uint8Array(length)): Region {
  return { name, bytes, view: new DataView(bytes.buffer, bytes.byteOffset, bytes.length), members: [], length };
}

/** Throws unless `bytes` bytes at an offset are inside of a region and aligned to their number. */
export function checkAccess({ name, length }: Region, offset: number, bytes: number): void {
  if (offset < 0 || offset + bytes > length)
    throw new MemoryError(`out of bounds: ${bytes} bytes at ${offset} of ${name}, which has ${length}`);
  if (offset % bytes !== 0) throw new MemoryError(`misaligned: ${bytes} bytes at ${offset} of ${name}`);
}

/** The 64 bits at an offset, as processes that share the memory change them at once. */
export function counterAt({ bytes: { buffer, byteOffset } }: Region, offset: number): BigUint64Array {
  return new BigUint64Array(buffer, byteOffset + offset, 1);
}
