import { Buffer } from '#platform/bytes';
import { InvalidArgumentError, InvalidUsageError } from '../../errors.js';
import type { Arithmetic } from './kernels/kernels.js';
import type { Segment } from './segment.js';
import { defined } from '../../defined.js';

/*
 * Shared memory of an object's members, in the heap of the rank that created it:
 *
 *     0     magic number u32, members u32, bytes u32, number of members that use it u32
 *     64    for each member: added u32, address of the memory it bound u32 (0: none)
 */
const MAGIC = 0x6d634f62;
const MEMBERS = 1;
const BYTES = 2;
const USERS = 3;
const TABLE = 16;
const WORDS_A_MEMBER = 2;
const HANDLE_BYTES = 8;

/** Granularity of an object's memory, like NVIDIA's; here a cache line. */
export const MULTICAST_GRANULARITY = 64;

/**
 * An object that represents memory of several ranks, with the life cycle of NVIDIA's (`cuMulticastCreate` …): reading a place
 * of it reads and reduces that place in all members' memories, writing it writes to all. For GPUs, NVLink's switch does that;
 * here the kernels do it in the memory that the ranks of a host share.
 *
 *     create            one rank makes the object for a number of members and bytes; the bootstrap network carries its
 *                       `handle` to the others, which `open` it
 *     add               each joins with a number of its own
 *     bind              each binds memory of that length
 *     map               each gets a view, once all have bound
 *     unbind, close     the reverse
 *     destroy           by the rank that made it, once no other uses it
 */
export class Multicast {
  readonly #segment: Segment;
  readonly #words: Uint32Array;
  readonly #signed: Int32Array;
  readonly #address: number;
  #member = -1;
  #view: MulticastView | undefined;
  #closed = false;

  private constructor(segment: Segment, address: number) {
    this.#segment = segment;
    this.#address = address;
    this.#words = new Uint32Array(segment.buffer);
    this.#signed = new Int32Array(segment.buffer);
  }

  /**
   * Makes an object to which `members` ranks of the segment will bind `bytes` bytes each, a multiple of MULTICAST_GRANULARITY.
   * @throws InvalidArgumentError `ARGUMENT_RANGE`; SystemError `OUT_OF_MEMORY`
   */
  static create(segment: Segment, members: number, bytes: number): Multicast {
    if (!Number.isInteger(members) || members < 1 || members > segment.nLocalRanks) {
      throw new InvalidArgumentError(
        'ARGUMENT_RANGE',
        `a multicast object has 1 to ${segment.nLocalRanks} members here, not ${members}`,
      );
    }
    if (!Number.isInteger(bytes) || bytes <= 0 || bytes % MULTICAST_GRANULARITY !== 0) {
      throw new InvalidArgumentError(
        'ARGUMENT_RANGE',
        `a multicast object has a multiple of ${MULTICAST_GRANULARITY} bytes, not ${bytes}`,
      );
    }
    const address = segment.allocateBytes((TABLE + members * WORDS_A_MEMBER) * 4);
    const object = new Multicast(segment, address);
    object.#words.fill(0, address / 4, address / 4 + TABLE + members * WORDS_A_MEMBER);
    object.#words[address / 4 + MEMBERS] = members;
    object.#words[address / 4 + BYTES] = bytes;
    Atomics.store(object.#words, address / 4 + USERS, 1);
    Atomics.store(object.#words, address / 4, MAGIC);
    return object;
  }

  /** Opens an object of another rank of the segment. @throws InvalidArgumentError `ARGUMENT_RANGE` for an invalid handle */
  static open(segment: Segment, handle: Uint8Array): Multicast {
    const address = handle.length === HANDLE_BYTES ? Buffer.from(handle).readUInt32LE(0) : 0;
    const words = new Uint32Array(segment.buffer);
    if (
      address === 0 ||
      address % 4 !== 0 ||
      Atomics.load(words, address / 4) !== MAGIC ||
      Buffer.from(handle).readUInt32LE(4) !== words[address / 4 + BYTES]
    ) {
      throw new InvalidArgumentError(
        'ARGUMENT_RANGE',
        'this is not the handle of a multicast object that lives in the shared memory of these ranks',
      );
    }
    Atomics.add(words, address / 4 + USERS, 1);
    return new Multicast(segment, address);
  }

  /** Handle with which other ranks of the segment open the object. */
  get handle(): Uint8Array {
    const handle = Buffer.alloc(HANDLE_BYTES);
    handle.writeUInt32LE(this.#address, 0);
    handle.writeUInt32LE(this.bytes, 4);
    return handle;
  }

  /** Length of each member's memory. */
  get bytes(): number {
    return defined(this.#words[this.#address / 4 + BYTES]);
  }

  get nMembers(): number {
    return defined(this.#words[this.#address / 4 + MEMBERS]);
  }

  /**
   * Joins as a member; reductions read members in the order of their numbers.
   * @throws InvalidUsageError `MULTICAST` when this rank, or another with that number, has joined
   */
  add(member: number): void {
    this.#checkOpen();
    if (!Number.isInteger(member) || member < 0 || member >= this.nMembers) {
      throw new InvalidArgumentError(
        'ARGUMENT_RANGE',
        `the members of this multicast object are 0 to ${this.nMembers - 1}, not ${member}`,
      );
    }
    if (this.#member >= 0)
      throw new InvalidUsageError('MULTICAST', `this rank is member ${this.#member} of the multicast object already`);
    if (Atomics.compareExchange(this.#signed, this.#place(member), 0, 1) !== 0) {
      throw new InvalidUsageError('MULTICAST', `another rank is member ${member} of the multicast object`);
    }
    this.#member = member;
  }

  /**
   * Binds this member's memory: `bytes` bytes of the segment at an address aligned to MULTICAST_GRANULARITY.
   * @throws InvalidUsageError `MULTICAST` before `add`, and when memory is bound already
   */
  bind(address: number): void {
    this.#checkOpen();
    if (this.#member < 0)
      throw new InvalidUsageError('MULTICAST', 'a rank binds memory to a multicast object after it was added to it');
    if (address <= 0 || address % MULTICAST_GRANULARITY !== 0 || address + this.bytes > this.#segment.bytes) {
      throw new InvalidArgumentError(
        'ARGUMENT_RANGE',
        `${this.bytes} bytes at ${address} cannot be bound: they must lie in the segment, aligned to ${MULTICAST_GRANULARITY}`,
      );
    }
    if (Atomics.compareExchange(this.#signed, this.#place(this.#member) + 1, 0, address | 0) !== 0) {
      throw new InvalidUsageError(
        'MULTICAST',
        `member ${this.#member} has bound memory to the multicast object already; unbind it first`,
      );
    }
  }

  /** True if all members have bound memory, so that the object can be mapped. */
  get isComplete(): boolean {
    for (let member = 0; member < this.nMembers; member++)
      if (Atomics.load(this.#words, this.#place(member) + 1) === 0) return false;
    return true;
  }

  /** Maps the object's memory. @throws InvalidUsageError `MULTICAST` until all members have bound theirs */
  map(kernels: Arithmetic): MulticastView {
    this.#checkOpen();
    if (this.#member < 0 || !this.isComplete) {
      throw new InvalidUsageError(
        'MULTICAST',
        'a multicast object can be mapped by its members, once all of them have bound memory',
      );
    }
    const addresses = Array.from({ length: this.nMembers }, (_, member) => defined(this.#words[this.#place(member) + 1]));
    this.#view = new MulticastView(this.#segment, kernels, addresses, this.#member, this.bytes);
    return this.#view;
  }

  /** Unbinds this member's memory, after all members have stopped using the object. Views of this rank end. */
  unbind(): void {
    this.#checkOpen();
    if (this.#member < 0 || Atomics.load(this.#words, this.#place(this.#member) + 1) === 0) {
      throw new InvalidUsageError('MULTICAST', 'this rank has bound no memory to the multicast object');
    }
    this.#endView();
    Atomics.store(this.#words, this.#place(this.#member) + 1, 0);
  }

  /** Leaves the object and unbinds memory, after all members have stopped using it. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#endView();
    if (this.#member >= 0) {
      Atomics.store(this.#words, this.#place(this.#member) + 1, 0);
      Atomics.store(this.#words, this.#place(this.#member), 0);
    }
    Atomics.sub(this.#words, this.#address / 4 + USERS, 1);
  }

  /** True if any rank has it open. */
  get isUsed(): boolean {
    return Atomics.load(this.#words, this.#address / 4 + USERS) > 0;
  }

  /** Ends the object; only for the rank that made it. @throws InvalidUsageError `MULTICAST` while others use it */
  destroy(): void {
    const others = Atomics.load(this.#words, this.#address / 4 + USERS) - (this.#closed ? 0 : 1);
    if (others > 0)
      throw new InvalidUsageError(
        'MULTICAST',
        `${others} other ranks still use the multicast object; destroy it after they have closed it`,
      );
    this.close();
    if (Atomics.exchange(this.#words, this.#address / 4, 0) === MAGIC) this.#segment.freeBytes(this.#address);
  }

  #endView(): void {
    this.#view?.close();
    this.#view = undefined;
  }

  #place(member: number): number {
    return this.#address / 4 + TABLE + member * WORDS_A_MEMBER;
  }

  #checkOpen(): void {
    if (this.#closed) throw new InvalidUsageError('MULTICAST', 'this rank has closed the multicast object');
  }
}

/**
 * The memory of a multicast object as seen by one member: its own memory (unicast), and that of all members. Offsets and
 * lengths are in bytes within the object; addresses are those of the segment. Nothing here waits: members agree by other
 * means when a place may be read or written.
 */
export class MulticastView {
  readonly #words: Uint32Array;
  /** Tables of addresses for kernels: all members' memories, and one place. */
  readonly #all: number;
  readonly #one: number;
  #open = true;

  /** @param addresses of the members' memories */
  constructor(
    readonly segment: Segment,
    readonly kernels: Arithmetic,
    readonly addresses: readonly number[],
    readonly member: number,
    readonly bytes: number,
  ) {
    this.#words = new Uint32Array(segment.buffer);
    this.#all = segment.allocateBytes((addresses.length + 1) * 4);
    this.#one = this.#all + addresses.length * 4;
    this.#words.set(addresses, this.#all / 4);
  }

  /** Address of a place in this member's own memory. */
  unicast(offset: number, bytes: number): number {
    this.#check(offset, bytes);
    return defined(this.addresses[this.member]) + offset;
  }

  /** Reads a place in all members' memories, reduces, and writes the result to `address`, which may be in the place itself. */
  loadReduce(type: number, operator: number, offset: number, bytes: number, address: number): void {
    this.#check(offset, bytes);
    this.#words[this.#one / 4] = address - offset;
    this.kernels.reduceCopy(type, operator, this.#all, this.addresses.length, this.#one, 1, offset, bytes);
  }

  /** Writes the data at `address` to a place in all members' memories. */
  store(address: number, offset: number, bytes: number): void {
    this.#check(offset, bytes);
    for (const memory of this.addresses) if (memory + offset !== address) this.kernels.copy(memory + offset, address, bytes);
  }

  /** Reads a place in all members' memories, reduces, and writes the result to the place in all: each byte once. */
  loadReduceStore(type: number, operator: number, offset: number, bytes: number): void {
    this.#check(offset, bytes);
    this.kernels.reduceCopy(type, operator, this.#all, this.addresses.length, this.#all, this.addresses.length, offset, bytes);
  }

  /** @internal */
  close(): void {
    if (this.#open) this.segment.freeBytes(this.#all);
    this.#open = false;
  }

  #check(offset: number, bytes: number): void {
    if (!this.#open)
      throw new InvalidUsageError('MULTICAST', 'this view of the multicast object has ended: its memory was unbound');
    if (offset < 0 || bytes < 0 || offset + bytes > this.bytes) {
      throw new InvalidArgumentError(
        'ARGUMENT_RANGE',
        `${bytes} bytes at ${offset} are outside the ${this.bytes} bytes of the multicast object`,
      );
    }
  }
}
