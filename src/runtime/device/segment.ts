import { closeSync, openSync } from 'node:fs';
import { counted } from '../../counted.js';
import { describeValue } from '../../describe-value.js';
import { InvalidArgumentError, InvalidUsageError, SystemError } from '../../errors.js';
import { availableMemory } from './available-memory.js';
import { Heap } from './heap.js';
import { instantiateKernels, type Arithmetic, type Kernels } from './kernels/kernels.js';
import type { Libc } from './libc.js';
import { MachineCode } from './machine-code/machine-code.js';
import type { MemoryUse, SegmentMemory } from './memory-use.js';
import type { PeerMemory } from './peer-memory.js';
import { lockLine, RankLines, rankStates, type MemoryFile } from './rank-lines.js';
import { createMemory, PAGE_BYTES } from './shared-memory.js';
import { Sleepers } from './sleepers.js';
import { teamBytes } from './team-layout.js';
import { arrayNames, isArrayClass, type NumericArrayConstructor, type TypedArray } from './types.js';

const LINE = 64;
const FIRST_TEAM = 32768;
const HEAP_ALIGNMENT = 2 ** 21;
/** Most ranks that one segment can hold (their states and address tables have fixed places). */
export const MAX_LOCAL_RANKS = 256;

/** Memory that is never given out, so that the machine stays alive. */
const MEMORY_MARGIN = 64 * 2 ** 20;
/**
 * How long a rank believes how much memory is available, and how much of it the ranks of a host may take meanwhile:
 * asking takes 100 µs.
 */
const AVAILABLE_FOR_MS = 100;
const AVAILABLE_PART = 1 / 16;
/** How many actions that are left for later are asked about each time: where one rank is slow, the others may have thousands. */
const LOOKS = 8;

/** Marks arrays that alloc() made. A property of the array, because asking an array for its buffer takes 20 ns. */
const PLACE = Symbol('tccl.place');

interface Place {
  readonly segment: Segment;
  readonly offset: number;
  /** Whether it was given back, so that the place may be another array's by now. */
  isFree: boolean;
}

interface Placed {
  [PLACE]?: Place;
}

/** What a segment stands on; see the factories. */
interface Backing {
  readonly memory: WebAssembly.Memory;
  /** Set where the memory is a mapped file. */
  readonly file?: MemoryFile & { readonly address: bigint };
}

/** A segment, or a stretch of this rank's heap of it, as another thread of the rank gets to it. */
export interface SegmentInThread {
  readonly memory: WebAssembly.Memory;
  readonly localRank: number;
  readonly nLocalRanks: number;
  /** What the thread may give out. */
  readonly heap: { readonly from: number; readonly to: number };
  readonly file: { readonly fd: number; readonly address: bigint } | undefined;
  readonly machineCode: boolean;
}

/** Whether an array of alloc() was given back. Of its parts, such as `subarray` gives, that is not known. */
export function wasFreed(array: TypedArray): boolean {
  return (array as Placed)[PLACE]?.isFree === true;
}

/** Somebody who needs arrays to stay where they are. */
export interface MemoryUser {
  /** Whether it uses bytes from the first address to the second. */
  readonly uses: (from: number, to: number) => boolean;
  /** What whoever frees such an array is told. */
  readonly why: string;
  /** Told that one was freed. */
  readonly freed?: () => void;
}

/**
 * The memory that the ranks of one host share: one WebAssembly memory at the same offsets in each of them.
 *
 *     0        nothing (an address of 0 is a mistake)
 *     2048     one line a rank (rank-lines.ts)
 *     32768    what the communicator of all these ranks shares (team.ts); other communicators have that in heaps
 *     …        one heap a rank: what its alloc() gives out
 *
 * Three ways to get one: alone (a rank whose host has no other), between threads (the memory itself is passed), and
 * between processes (an anonymous file in memory is mapped over each process's WebAssembly memory, which never moves
 * because its initial size is its maximum). Addresses are 32 bits: a segment ends at 4 GiB, shared by its ranks.
 * Nothing has a name in the file system: when the last process ends, however it ends, the kernel takes it all back.
 */
export class Segment {
  readonly memory: WebAssembly.Memory;
  readonly buffer: SharedArrayBuffer;
  readonly bytes: number;
  /** For what needs no other rank: arithmetic and copies. The team's are for operations. */
  readonly kernels: Arithmetic;
  /** Where the team of all ranks lies. */
  readonly firstTeam = FIRST_TEAM;
  /** Bytes of the control block that each member of a team has. */
  readonly blockBytes: number;
  readonly heap: Heap;
  /** What they say of themselves. */
  readonly ranks: RankLines;
  /** Those that sleep until another does something. */
  readonly sleepers: Sleepers;
  /** Where the ranks may be able to read each other's private memory. */
  peerMemory: PeerMemory | undefined;
  /** Where kernels may leave sums to it. */
  machineCode: MachineCode | undefined;
  readonly #backing: Backing;
  readonly #view: Uint8Array;
  readonly #uses = new Map<number, MemoryUse>();
  /** What arrays must stay for. */
  readonly #users = new Set<MemoryUser>();
  /** What is to be done once others are through with some memory. */
  #lingering: { readonly isTime: () => boolean; readonly action: () => void }[] = [];
  /** Until when this rank may take how much memory without asking again what is available. */
  #trustedUntilMs = 0;
  #trustedBytes = 0;
  /** Communicators of this rank that use the segment. */
  communicators = 0;
  /** Moves this thread to where memory should come from; what it returns moves it back. */
  #goHome: () => () => void = () => () => undefined;
  #reservedTo: number;
  #closed = false;
  /** Where arrays lie that were looked up last: programs use the same few again and again. */
  #recent: TypedArray | undefined;
  #recentOffset = -1;
  #lessRecent: TypedArray | undefined;
  #lessRecentOffset = -1;

  private constructor(
    backing: Backing,
    readonly localRank: number,
    readonly nLocalRanks: number,
    heap?: SegmentInThread['heap'],
  ) {
    this.#backing = backing;
    this.memory = backing.memory;
    this.buffer = backing.memory.buffer as SharedArrayBuffer;
    this.bytes = this.buffer.byteLength;
    this.ranks = new RankLines(backing.memory, localRank, backing.file);
    this.sleepers = new Sleepers(backing.memory, localRank, nLocalRanks);
    this.#view = new Uint8Array(this.buffer);
    const kernels = this.instantiateKernels();
    this.kernels = kernels;
    this.blockBytes = kernels.BLOCK_BYTES.value as number;

    const controlEnd = FIRST_TEAM + teamBytes(nLocalRanks, this.blockBytes);
    const heapsFrom = Math.ceil(controlEnd / HEAP_ALIGNMENT) * HEAP_ALIGNMENT;
    const heapBytes = Math.floor((this.bytes - heapsFrom) / nLocalRanks / HEAP_ALIGNMENT) * HEAP_ALIGNMENT;
    const from = heapsFrom + localRank * heapBytes;
    if (heap !== undefined) {
      this.heap = new Heap(heap.from, heap.to);
      this.#reservedTo = heap.to;
      return;
    }
    // Each heap starts nine lines later than its neighbour's, for the reason that heap.ts gives for its gaps.
    this.heap = new Heap(from + localRank * 9 * LINE, from + heapBytes);
    this.#reservedTo = from;
    this.#reserve(0, localRank === 0 ? controlEnd : 0);
  }

  /** The segment of a rank that shares with nobody. */
  static alone(): Segment {
    return new Segment({ memory: createMemory() }, 0, 1);
  }

  /** The segment of a rank that is a thread: `memory` is the same object in all threads. */
  static ofThreads(memory: WebAssembly.Memory, localRank: number, nLocalRanks: number): Segment {
    return new Segment({ memory }, localRank, nLocalRanks);
  }

  /** For another thread of this rank, which may give out the addresses [from, to) of this rank's heap. */
  forThread(from: number, to: number): SegmentInThread {
    const { memory, localRank, nLocalRanks } = this;
    const file = this.#backing.file;
    return {
      memory,
      localRank,
      nLocalRanks,
      heap: { from, to },
      file: file === undefined ? undefined : { fd: file.fd, address: file.address },
      machineCode: this.machineCode !== undefined,
    };
  }

  /** The segment of a rank in another thread of it, which the rank's own thread outlives. It is not to be closed. */
  static inThread({ memory, localRank, nLocalRanks, heap, file, machineCode }: SegmentInThread, libc: Libc | undefined): Segment {
    const segment = new Segment(
      { memory, ...(file === undefined || libc === undefined ? {} : { file: { ...file, libc } }) },
      localRank,
      nLocalRanks,
      heap,
    );
    if (machineCode && libc !== undefined) segment.machineCode = new MachineCode(memory, libc);
    return segment;
  }

  /** The segment of a process on the file at `path`, which createMemoryFile() made in some process of this host. */
  static mapped(libc: Libc, path: string, bytes: number, localRank: number, nLocalRanks: number): Segment {
    let fd: number;
    try {
      fd = openSync(path, 'r+');
    } catch (error) {
      throw new SystemError('SHARED_MEMORY', `the host's shared memory ${path} cannot be opened`, { cause: error });
    }
    try {
      const memory = createMemory(bytes / PAGE_BYTES);
      const address = libc.addressOf(new Uint8Array(memory.buffer));
      libc.mapShared(address, bytes, fd);
      lockLine({ libc, fd }, localRank);
      return new Segment({ memory, file: { fd, libc, address } }, localRank, nLocalRanks);
    } catch (error) {
      closeSync(fd);
      throw error;
    }
  }

  /** Kernels that work on this memory, with a state of their own. */
  instantiateKernels(): Kernels {
    return instantiateKernels(
      this.memory,
      (sources, nSources, destinations, nDestinations, from, bytes) =>
        this.machineCode?.sumFloat16(sources, nSources, destinations, nDestinations, from, bytes) ?? 0,
    );
  }

  /** From now on memory is taken while this thread is where `goHome` moves it; what that returns moves it back. */
  takeMemoryAt(goHome: () => () => void): void {
    this.#goHome = goHome;
  }

  /**
   * An array of `length` zeros in this rank's heap, which every rank of the host can read and write. Its memory is
   * taken from the system now, so that using it cannot fail later. Throws `OUT_OF_MEMORY`.
   */
  alloc<T extends TypedArray>(type: NumericArrayConstructor<T>, length: number): T {
    if (!isArrayClass(type)) {
      const given = typeof type === 'function' ? type.name : describeValue(type);
      throw new InvalidArgumentError(
        'ARGUMENT_TYPE',
        `alloc takes the class of the array and its length, as in alloc(Float32Array, 1000); the class is one of ${arrayNames()}, not ${given}`,
      );
    }
    if (!Number.isSafeInteger(length) || length < 0) {
      throw new InvalidArgumentError(
        'ARGUMENT_RANGE',
        `alloc takes a whole number of elements from 0, not ${describeValue(length)}`,
      );
    }
    const bytes = length * type.BYTES_PER_ELEMENT;
    const offset = this.allocateBytes(bytes, 'arrays');
    const goBack = this.#goHome();
    this.#view.fill(0, offset, offset + bytes);
    goBack();
    const array = new type(this.buffer, offset, length);
    Object.defineProperty(array, PLACE, { value: { segment: this, offset, isFree: false } satisfies Place });
    return array;
  }

  /** `bytes` bytes of this rank's heap, as alloc() takes them; their content is undefined. */
  allocateBytes(bytes: number, use: MemoryUse = 'staging'): number {
    this.#settleSome();
    let offset = this.heap.allocate(bytes);
    if (offset === undefined) {
      this.settle();
      offset = this.heap.allocate(bytes);
    }
    if (offset === undefined) {
      throw new SystemError(
        'OUT_OF_MEMORY',
        `${String(bytes)} bytes do not fit into this rank's part of the shared memory: at most ` +
          `${String(this.heap.largestFree())} are free of ${String(this.heap.to - this.heap.from)} ` +
          `(a host's ranks share ${String(this.bytes)})${this.#remedy(use)}`,
      );
    }
    try {
      this.#reserve(offset, offset + bytes);
    } catch (error) {
      this.heap.free(offset);
      throw error;
    }
    this.#uses.set(offset, use);
    return offset;
  }

  freeBytes(offset: number): void {
    this.heap.free(offset);
    this.#uses.delete(offset);
  }

  /** Does something as soon as `isTime` says so: it is asked again whenever memory is taken, left or looked at. */
  when(isTime: () => boolean, action: () => void): void {
    if (isTime()) action();
    else this.#lingering.push({ isTime, action });
  }

  /** How this rank's memory is used now. */
  memoryUse(): SegmentMemory {
    this.settle();
    const used = { arrays: 0, staging: 0, control: 0 };
    for (const [offset, use] of this.#uses) used[use] += this.heap.lengthOf(offset);
    const heapBytes = this.heap.to - this.heap.from;
    return {
      heapBytes,
      freeBytes: heapBytes - this.heap.usedBytes,
      largestFreeBytes: Math.max(0, this.heap.largestFree()),
      peakBytes: this.heap.peakBytes,
      used,
      mappedBytes: this.bytes,
      reservedBytes: Math.max(0, this.#reservedTo - this.heap.from),
    };
  }

  /** Gives back what alloc() gave. Views of the array that live on see memory that others may get. */
  free(array: TypedArray): void {
    const place = (array as Placed | null | undefined)?.[PLACE];
    if (place?.segment !== this || place.isFree) {
      throw new InvalidUsageError(
        'ARGUMENT_TYPE',
        `free takes an array that alloc of this communicator gave, once${place?.isFree === true ? '; this one was freed before' : ''}`,
      );
    }
    const end = place.offset + this.heap.lengthOf(place.offset);
    for (const { uses, why } of this.#users)
      if (uses(place.offset, end)) throw new InvalidUsageError('ARGUMENT_TYPE', `free: ${why}`);
    place.isFree = true;
    this.freeBytes(place.offset);
    for (const user of this.#users) user.freed?.();
  }

  /** Keeps arrays that somebody uses from being freed, until what this returns is called. */
  keep(user: MemoryUser): () => void {
    this.#users.add(user);
    return () => void this.#users.delete(user);
  }

  /** Whether some of an array's elements lie between two addresses. */
  overlaps({ buffer, byteOffset, byteLength }: TypedArray, from: number, to: number): boolean {
    return buffer === this.buffer && byteOffset < to && byteOffset + byteLength > from;
  }

  /** Where an array lies in the segment, or -1 if it lies elsewhere. */
  offsetOf(array: TypedArray): number {
    if (array === this.#recent) return this.#recentOffset;
    if (array === this.#lessRecent) return this.#lessRecentOffset;
    this.#lessRecent = this.#recent;
    this.#lessRecentOffset = this.#recentOffset;
    const place = (array as Placed)[PLACE];
    this.#recent = array;
    this.#recentOffset = place?.segment === this ? place.offset : array.buffer === this.buffer ? array.byteOffset : -1;
    return this.#recentOffset;
  }

  /** Leaves the segment. Arrays in it stay usable but are no longer shared, and a mapped one's content is gone. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#recent = this.#lessRecent = undefined;
    this.ranks.setState(rankStates.closed);
    this.sleepers.ring();
    this.sleepers.close();
    const file = this.#backing.file;
    if (file === undefined) return;
    file.libc.mapPrivate(file.address, this.bytes);
    closeSync(file.fd);
  }

  /** Does what `when` left for later and is due now. */
  settle(): void {
    const waiting = this.#lingering.splice(0);
    for (const { isTime, action } of waiting) this.when(isTime, action);
  }

  /** The same for some of it, in turn. */
  #settleSome(): void {
    for (const { isTime, action } of this.#lingering.splice(0, LOOKS)) this.when(isTime, action);
  }

  /** What to do where there is no memory for that. */
  #remedy(use: MemoryUse): string {
    const open = this.communicators > 1 ? `, with ${counted(this.communicators, 'communicator')} open` : '';
    if (use === 'arrays') return `${open}; free arrays, or pass ordinary typed arrays, which need no room here`;
    return `${open}; ${open === '' ? '' : 'close communicators that are not needed, or '}free arrays`;
  }

  /** Takes real memory up to `to`, in steps, for a range that this rank is the only one to use first. */
  #reserve(from: number, to: number): void {
    const control = from === 0;
    const start = control ? 0 : Math.max(this.#reservedTo, Math.floor(from / PAGE_BYTES) * PAGE_BYTES);
    if (to <= start) return;
    const end = Math.min(this.bytes, Math.ceil(to / PAGE_BYTES) * PAGE_BYTES);
    const name = `${String(end - start)} bytes of shared memory`;
    this.#checkAvailable(
      end - start,
      (available) => `${name} cannot be had: the machine, or this process's control group, has ${String(available)} left`,
    );
    const file = this.#backing.file;
    const goBack = this.#goHome();
    try {
      file?.libc.reserve(file.fd, start, end - start);
    } catch (error) {
      throw new SystemError('OUT_OF_MEMORY', `${name} cannot be had: ${(error as Error).message}`, { cause: error });
    } finally {
      goBack();
    }
    if (!control) this.#reservedTo = end;
  }

  /** Throws where the machine has no room for so much. */
  #checkAvailable(bytes: number, why: (available: number) => string): void {
    const nowMs = performance.now();
    if (nowMs > this.#trustedUntilMs || bytes > this.#trustedBytes) {
      const available = availableMemory();
      if (bytes + MEMORY_MARGIN > available)
        throw new SystemError('OUT_OF_MEMORY', `${why(available)}${this.#remedy('staging')}`);
      this.#trustedUntilMs = nowMs + AVAILABLE_FOR_MS;
      this.#trustedBytes = ((available - MEMORY_MARGIN) * AVAILABLE_PART) / this.nLocalRanks;
    }
    this.#trustedBytes -= bytes;
  }
}
