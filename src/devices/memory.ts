/** Consecutive bytes in a buffer of a device. */
export interface Part<Buffer> {
  readonly buffer: Buffer;
  readonly offset: number;
  readonly bytes: number;
}

/**
 * The memory of a device. A new kind of device implements this alone. Work is ordered: a copy follows all that the program
 * queued on the device before, and later work sees what a copy wrote.
 */
export interface DeviceMemory<Buffer> {
  /** Name in messages: `WebGPU`. */
  readonly name: string;
  /** Offsets and lengths of parts are multiples of so many bytes. */
  readonly alignment: number;
  /** Resolves with the reason when the device is lost; never where this cannot happen. Every copy in flight fails then. */
  readonly lost: Promise<string>;
  /**
   * A new buffer of zeros.
   * @throws SystemError `OUT_OF_MEMORY`
   */
  allocate(bytes: number): Promise<Buffer>;
  release(buffer: Buffer): void;
  /** Number of bytes of a buffer that the program made. Throws InvalidArgumentError for one that calls cannot use. */
  sizeOf(buffer: Buffer, call: string): number;
  /** Resolves when all buffers can be used by the next copy. Rejects with InvalidArgumentError otherwise. */
  check(buffers: readonly Buffer[], call: string): Promise<void>;
  /** Copies parts, one after the other, to host memory; resolves when `to` has them. */
  read(parts: readonly Part<Buffer>[], to: Uint8Array): Promise<void>;
  /** Copies host memory to parts, one after the other; resolves when the copies are queued and `from` may change. */
  write(parts: readonly Part<Buffer>[], from: Uint8Array): Promise<void>;
  /** Prepares host memory, whose pages are its own, for many copies, where a device has such a thing. Returns what ends it. */
  pin?(host: Uint8Array): () => void;
  /** Releases what the copies use. */
  close(): void;
}
