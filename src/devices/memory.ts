import type { TcclError } from '../errors.js';
import type { DataTypeName, OperatorName } from '../runtime/device/types.js';

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
  /**
   * Number of bytes of a buffer that the program made. Throws InvalidArgumentError for one that calls cannot use as elements of
   * so many bytes.
   */
  sizeOf(buffer: Buffer, call: string, elementBytes: number): number;
  /** Resolves when all buffers can be used by the next copy. Rejects with InvalidArgumentError otherwise. */
  check(buffers: readonly Buffer[], call: string): Promise<void>;
  /** Copies parts, one after the other, to host memory; resolves when `to` has them. */
  read(parts: readonly Part<Buffer>[], to: Uint8Array): Promise<void>;
  /** Copies host memory to parts, one after the other; resolves when the copies are queued and `from` may change. */
  write(parts: readonly Part<Buffer>[], from: Uint8Array): Promise<void>;
  /** Prepares host memory, whose pages are its own, for many copies, where a device has such a thing. Returns what ends it. */
  pin?(host: Uint8Array): () => void;
  /** Calls between devices that reach each other's memory; without it, calls go through memory of the host. */
  readonly peers?: DevicePeers<Buffer> | undefined;
  /** Releases what the copies use. */
  close(): void;
}

/** Work of a device: combines sources in their order, or copies the only one, and writes the result to all destinations. */
export interface PeerStep<Buffer> {
  /** All of one length. Sources and destinations may be the same part, or lie apart. */
  readonly sources: readonly Part<Buffer>[];
  readonly destinations: readonly Part<Buffer>[];
  readonly combining?: Combining | undefined;
}

/** Elements and operator of a reduction. */
export interface Combining {
  readonly type: DataTypeName;
  readonly operator: OperatorName;
  /** Of `premulSum`: a scalar of each source, as writeScalar makes it. */
  readonly scalars?: readonly bigint[];
}

/**
 * Devices of all ranks that reach each other's memory. A rank queues its work on a stream of its own. Work of several ranks has
 * two points, which every rank passes in turn; at each bar, all ranks have made the calls before it:
 *
 *     rank 0   mark(ready) ·  | waitFor(ready, 1)  queue(…)  mark(done)  | waitFor(done, 1)
 *     rank 1   mark(ready)  · | waitFor(ready, 0)  queue(…)  mark(done)  | waitFor(done, 0)
 *
 * A wait is for the last mark that each rank has made. So no work waits for work that is not queued yet, and ranks may share a
 * device. Where ranks wait on the host for `reached` before each bar, nothing that is queued waits for another rank.
 */
export interface DevicePeers<Buffer> {
  /** Size of a handle. */
  readonly handleBytes: number;
  /** True for a reduction that `queue` takes. May prepare it. */
  canCombine(combining: Combining): boolean;
  /** True for buffers of `allocate`. */
  canShare(buffer: Buffer): boolean;
  /** Writes what other ranks open a buffer by. It stays theirs until they have closed it, though it is released before. */
  share(buffer: Buffer, handle: Uint8Array): void;
  /** The buffer of another rank that has a handle. Opened once, until the rank retires it. */
  open(rank: number, handle: Uint8Array): Buffer;
  /** True if buffers were released here that `retired` has not given yet. */
  readonly hasRetired: boolean;
  /** Numbers of shared buffers that were released here, at most `most`, which other ranks close. */
  retired(most: number): readonly number[];
  /** Closes buffers that another rank has retired. */
  closeRetired(rank: number, numbers: readonly number[]): void;
  /** Frees buffers whose numbers `retired` gave before: all ranks have closed them. */
  freeRetired(): void;
  /** Lets later work here wait for what the program has queued. */
  afterProgram(): void;
  /** Lets later work of the program wait for what is queued here. */
  beforeProgram(): void;
  /** Marks the point that work queued until now ends at. */
  mark(point: PeerPoint): void;
  /** Lets later work here wait for the last mark of another rank. */
  waitFor(point: PeerPoint, rank: number): void;
  queue(step: PeerStep<Buffer>): void;
  /** Resolves when all that is queued here is done, `isOver` says that nobody waits for it, or it may never be done. */
  reached(isOver: () => boolean): Promise<void>;
  /** Notes that other ranks may never do what work here waits for. While it waits, nothing that it may use is freed. */
  abandon(failure: TcclError): void;
  /** Closes buffers of other ranks. Those of this rank stay until `freeRetired`. */
  closeOpened(): void;
  /** A switch between the devices that combines and multiplies data; missing where there is none. */
  readonly switch?: DeviceSwitch<Buffer> | undefined;
}

/** A collective as a switch takes it. */
export interface SwitchedCall<Buffer> {
  readonly name: string;
  readonly root: number;
  /** Elements of a part. */
  readonly count: number;
  readonly elementBytes: number;
  readonly combining: Combining | undefined;
  /** This rank's arrays, all their parts; missing where it has none. */
  readonly input: Part<Buffer> | undefined;
  readonly output: Part<Buffer> | undefined;
}

/**
 * A switch between the devices of all ranks. A rank queues its work after all have agreed on a call; it waits for that of other
 * ranks on the device, and needs neither their buffers nor an exchange on the host.
 */
export interface DeviceSwitch<Buffer> {
  /** True for calls that it makes: ranks that pass the same arguments get the same answer. */
  takes(call: SwitchedCall<Buffer>): boolean;
  /** Resolves when the call is queued. */
  queue(call: SwitchedCall<Buffer>): Promise<void>;
}

/** Points of collectives, and of messages. */
export const peerPoints = ['ready', 'done', 'sent', 'taken'] as const;
export type PeerPoint = (typeof peerPoints)[number];
