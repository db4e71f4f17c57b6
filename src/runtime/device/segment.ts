import { closeSync, openSync } from '#platform/files';
import { counted } from '../../counted.js';
import { describeValue } from '../../describe-value.js';
import { InvalidArgumentError, InvalidUsageError, SystemError } from '../../errors.js';
import { Board } from './board.js';
import { BOARD_BYTES } from './board-layout.js';
import { collectGarbage } from './collect-garbage.js';
import { Heap } from './heap.js';
import { instantiateKernels, type Arithmetic, type Kernels } from './kernels/kernels.js';
import type { Libc } from './libc.js';
import { Lingering } from './lingering.js';
import { MachineCode } from '#seam/device/machine-code/machine-code';
import type { MemoryUse, SegmentMemory } from './memory-use.js';
import type { PeerMemory } from './peer-memory.js';
import { lockLine, RankLines, rankStates, type MemoryFile } from './rank-lines.js';
import { Reservation } from './reservation.js';
import { placeOf, SharedArrays } from './shared-arrays.js';
import { createMemory, leaveMemory, showBeginning } from './shared-memory.js';
import { ParkedRanks } from './parked-ranks.js';
import { teamBytes } from './team-layout.js';
import { arrayNames, isArrayClass, type AllocatedArray, type NumericArrayConstructor, type TypedArray } from './types.js';

const LINE = 64;
const PAGE = 4096;
const FIRST_TEAM = 32768;
const HEAP_ALIGNMENT = 2 ** 21;
/** Most ranks of one segment (their states and address tables have fixed places). */
export const MAX_LOCAL_RANKS = 256;

/**
 * Arrays that are allocated before the garbage collector runs, if no more are in use than these, and the part of a rank's heap
 * that they are at most. To fill so much memory with zeros takes ten times as long.
 */
const UNCOLLECTED_BYTES = 256 * 2 ** 20;
const UNCOLLECTED_PART = 1 / 4;

/** Memory below a segment; see the factories. */
interface Backing {
  readonly memory: WebAssembly.Memory;
  /** Set if the memory is a mapped file. */
  readonly file?: MemoryFile & { readonly address: bigint };
  /** Set if only its beginning is one, for readers of the board. */
  readonly shown?: MemoryFile;
}

/** A segment with a part of this rank's heap, in the form for another thread of the rank. */
export interface SegmentInThread {
  readonly memory: WebAssembly.Memory;
  readonly localRank: number;
  readonly nLocalRanks: number;
  /** Range that the thread may allocate. */
  readonly heap: { readonly from: number; readonly to: number };
  /** See ParkedRanks; to be given back when the thread has ended. */
  readonly line: number;
  readonly file: { readonly fd: number; readonly address: bigint } | undefined;
  readonly machineCode: boolean;
}

/** A user of arrays, for which they must not be freed. */
interface MemoryUser {
  /** Returns whether it uses bytes between two addresses. */
  readonly uses: (from: number, to: number) => boolean;
  /** Reason for the error of a call that tries to free such an array. */
  readonly why: string;
  /** Drops references to arrays of earlier calls: called when an array was freed, and before arrays are collected. */
  readonly forget?: () => void;
}

/**
 * Memory that the ranks of one host share: one WebAssembly memory at the same offsets in each of them.
 *
 *     0        nothing (an address of 0 is a mistake); from 64 on, the place of the boards (board-layout.ts)
 *     2048     one line for each rank (rank-lines.ts); then lines for their engine threads (parked-ranks.ts)
 *     32768    the team of all these ranks (team.ts); other teams are in heaps
 *     …        a board for each rank
 *     …        one heap for each rank: the memory of its alloc()
 *
 * Three ways to get one: alone (a rank without others on its host), between threads (the memory itself is passed), and
 * between processes (an anonymous file in memory is mapped over each process's WebAssembly memory, which never moves because
 * its initial size is its maximum). Addresses have 32 bits: a segment ends at 4 GiB, shared by its ranks. Nothing has a name
 * in the file system: when the last process ends, however it ends, the kernel frees everything.
 */
export class Segment {
  readonly memory: WebAssembly.Memory;
  readonly buffer: SharedArrayBuffer;
  readonly bytes: number;
  /** For arithmetic and copies that need no other rank. The team's kernels are for operations. */
  readonly kernels: Arithmetic;
  /** Address of the team of all ranks. */
  readonly firstTeam = FIRST_TEAM;
  /** Size of the control block that each member of a team has. */
  readonly blockBytes: number;
  readonly heap: Heap;
  /** State of each rank. */
  readonly ranks: RankLines;
  /** Ranks that sleep until another one does something. */
  readonly parkedRanks: ParkedRanks;
  /** State of this rank for other processes to read. */
  readonly board: Board;
  /** Access to the ranks' private memory, where possible. */
  peerMemory: PeerMemory | undefined;
  /** Machine code to which kernels may leave sums, where possible. */
  machineCode: MachineCode | undefined;
  readonly #backing: Backing;
  readonly #view: Uint8Array;
  readonly #uses = new Map<number, MemoryUse>();
  readonly #arrays: SharedArrays;
  /** Heap memory in use beyond which arrays are collected. */
  #collectBeyond = 0;
  #usedWhenCollected = 0;
  /** Users of arrays. */
  readonly #users = new Set<MemoryUser>();
  readonly #lingering = new Lingering();
  readonly #reservation: Reservation;
  /** True if the event loop should turn, so that the next allocation can collect the arrays of this turn. */
  isCollectionDue = false;
  /** Number of communicators of this rank that use the segment. */
  communicators = 0;
  /** True in a thread beside the rank's own. */
  readonly #isBeside: boolean;
  #closed = false;
  /** Offsets of the arrays that were looked up last: programs use the same few repeatedly. */
  #recent: TypedArray | undefined;
  #recentOffset = -1;
  #lessRecent: TypedArray | undefined;
  #lessRecentOffset = -1;
  /** Buffer of the last part of an array of this segment. */
  #recentBuffer: ArrayBufferLike | undefined;

  private constructor(
    backing: Backing,
    readonly localRank: number,
    readonly nLocalRanks: number,
    thread?: Pick<SegmentInThread, 'heap' | 'line'>,
  ) {
    this.#backing = backing;
    this.#isBeside = thread !== undefined;
    this.memory = backing.memory;
    this.buffer = backing.memory.buffer as SharedArrayBuffer;
    this.bytes = this.buffer.byteLength;
    this.ranks = new RankLines(backing.memory, localRank, backing.file);
    this.parkedRanks = new ParkedRanks(backing.memory, localRank, nLocalRanks, thread?.line);
    this.#view = new Uint8Array(this.buffer);
    this.#arrays = new SharedArrays(
      this.buffer,
      (array) => this.#dispose(array),
      (offset) => this.#freeCollected(offset),
    );
    const kernels = this.instantiateKernels();
    this.kernels = kernels;
    this.blockBytes = kernels.BLOCK_BYTES.value as number;

    const { boards, controlEnd, heapsFrom } = placesIn(nLocalRanks, this.blockBytes);
    const heapBytes = Math.floor((this.bytes - heapsFrom) / nLocalRanks / HEAP_ALIGNMENT) * HEAP_ALIGNMENT;
    const from = heapsFrom + localRank * heapBytes;
    this.#collectBeyond = Math.min(UNCOLLECTED_BYTES, heapBytes * UNCOLLECTED_PART);
    this.board = new Board(this.buffer, boards + localRank * BOARD_BYTES);
    const reservationFrom = (first: number): Reservation => {
      const { file, shown } = backing;
      return new Reservation({ bytes: this.bytes, nLocalRanks, from: first, file, shown, remedy: () => this.#remedy('staging') });
    };
    if (thread !== undefined) {
      this.heap = new Heap(thread.heap.from, thread.heap.to);
      this.#reservation = reservationFrom(thread.heap.to);
      return;
    }
    // Each heap starts nine lines later than its neighbour's, for the same reason as the gaps in heap.ts.
    this.heap = new Heap(from + localRank * 9 * LINE, from + heapBytes);
    this.#reservation = reservationFrom(from);
    if (localRank !== 0) return;
    this.#reservation.takeBeginning(controlEnd);
    Board.announce(this.buffer, nLocalRanks, boards);
  }

  /**
   * The segment of a rank that shares memory with no other.
   * @param libc lets other processes read the rank's board
   */
  static alone(memory = createMemory(), libc?: Libc): Segment {
    return new Segment({ memory, ...(libc === undefined ? {} : { shown: showBeginning(memory, libc, HEAP_ALIGNMENT) }) }, 0, 1);
  }

  /**
   * Lets other processes read the boards of ranks that will be threads, before these use their memory. Returns a function for
   * their end.
   */
  static show(memory: WebAssembly.Memory, nLocalRanks: number, libc: Libc): () => void {
    const { heapsFrom } = placesIn(nLocalRanks, instantiateKernels(memory).BLOCK_BYTES.value as number);
    const { fd } = showBeginning(memory, libc, heapsFrom);
    return () => libc.close(fd);
  }

  /** The segment of a rank that is a thread: `memory` is the same object in all threads. */
  static ofThreads(memory: WebAssembly.Memory, localRank: number, nLocalRanks: number): Segment {
    return new Segment({ memory }, localRank, nLocalRanks);
  }

  /** Describes the segment for another thread of this rank, which may allocate the addresses [from, to) of this rank's heap. */
  forThread(from: number, to: number): SegmentInThread {
    const { memory, localRank, nLocalRanks } = this;
    const file = this.#backing.file;
    return {
      memory,
      localRank,
      nLocalRanks,
      heap: { from, to },
      line: this.parkedRanks.takeLine(),
      file: file === undefined ? undefined : { fd: file.fd, address: file.address },
      machineCode: this.machineCode !== undefined,
    };
  }

  /** The segment in another thread of a rank, which the rank's own thread outlives. Do not close it. */
  static inThread(
    { memory, localRank, nLocalRanks, heap, line, file, machineCode }: SegmentInThread,
    libc: Libc | undefined,
  ): Segment {
    const segment = new Segment(
      { memory, ...(file === undefined || libc === undefined ? {} : { file: { ...file, libc } }) },
      localRank,
      nLocalRanks,
      { heap, line },
    );
    if (machineCode && libc !== undefined) segment.machineCode = new MachineCode(memory, libc);
    return segment;
  }

  /** The segment of a process on a file as long as `memory`, which createMemoryFile() made in a process of this host. */
  static mapped(
    libc: Libc,
    { path, memory }: { readonly path: string; readonly memory: WebAssembly.Memory },
    localRank: number,
    nLocalRanks: number,
  ): Segment {
    let fd: number;
    try {
      fd = openSync(path, 'r+');
    } catch (error) {
      throw new SystemError('SHARED_MEMORY', `the host's shared memory ${path} cannot be opened`, { cause: error });
    }
    try {
      const bytes = memory.buffer.byteLength;
      const address = libc.addressOf(new Uint8Array(memory.buffer));
      libc.mapShared(address, bytes, fd);
      lockLine({ libc, fd }, localRank);
      return new Segment({ memory, file: { fd, libc, address } }, localRank, nLocalRanks);
    } catch (error) {
      closeSync(fd);
      throw error;
    }
  }

  /** Kernels on this memory, with a state of their own. */
  instantiateKernels(): Kernels {
    return instantiateKernels(
      this.memory,
      (sources, nSources, destinations, nDestinations, from, bytes) =>
        this.machineCode?.sumFloat16(sources, nSources, destinations, nDestinations, from, bytes) ?? 0,
    );
  }

  /**
   * From now on, memory is allocated while this thread is where `goHome` moves it; the function that it returns moves it back.
   */
  takeMemoryAt(goHome: () => () => void): void {
    this.#reservation.takeAt(goHome);
  }

  /**
   * Allocates an array of `length` zeros in this rank's heap, which every rank of the host can read and write. Its memory is
   * taken from the system now, so that using it cannot fail later. Throws `OUT_OF_MEMORY`.
   */
  alloc<T extends TypedArray>(type: NumericArrayConstructor<T>, length: number): AllocatedArray<T> {
    if (!isArrayClass(type)) {
      const given = typeof type === 'function' ? type.name : describeValue(type);
      throw new InvalidArgumentError(
        'ARGUMENT_TYPE',
        `alloc: pass the class of the array and its length, as in alloc(Float32Array, 1000); the class is one of ${arrayNames()}, not ${given}`,
      );
    }
    if (!Number.isSafeInteger(length) || length < 0) {
      throw new InvalidArgumentError(
        'ARGUMENT_RANGE',
        `alloc: pass a whole number of elements from 0, not ${describeValue(length)}`,
      );
    }
    const bytes = length * type.BYTES_PER_ELEMENT;
    const offset = this.#allocateArray(bytes);
    this.#reservation.atHome(() => this.#view.fill(0, offset, offset + bytes));
    return this.#arrays.make(type, offset, length);
  }

  /** Collects arrays first if many were allocated since the last time, or if there is no room. */
  #allocateArray(bytes: number): number {
    if (this.heap.usedBytes + bytes > this.#collectBeyond) this.#collectInTime();
    try {
      return this.allocateBytes(bytes, 'arrays');
    } catch (error) {
      if (!this.collectArrays()) throw error;
      return this.allocateBytes(bytes, 'arrays');
    }
  }

  /** Arrays of the running turn of the event loop cannot be collected: asks for its end, and collects a little later. */
  #collectInTime(): void {
    this.isCollectionDue = !this.isCollectionDue;
    if (this.isCollectionDue) {
      this.#collectBeyond += this.#uncollectedBytes / 8;
    } else this.collectArrays();
  }

  /**
   * Frees arrays that the program no longer has, if at least `leastBytes` of memory were allocated since the last time. An array
   * of the running turn of the event loop is not collected. Returns true if any was freed.
   */
  collectArrays(leastBytes = 0): boolean {
    const used = this.heap.usedBytes;
    if (used - this.#usedWhenCollected < leastBytes) return false;
    if (this.#arrays.size > 0) {
      this.#recent = this.#lessRecent = this.#recentBuffer = undefined;
      for (const { forget } of this.#users) forget?.();
      collectGarbage();
      for (const offset of this.#arrays.collected()) this.#freeCollected(offset);
    }
    const left = (this.#usedWhenCollected = this.heap.usedBytes);
    this.#collectBeyond = left + Math.max(this.#uncollectedBytes, left);
    return left < used;
  }

  get #uncollectedBytes(): number {
    return Math.min(UNCOLLECTED_BYTES, (this.heap.to - this.heap.from) * UNCOLLECTED_PART);
  }

  #freeCollected(offset: number): void {
    // A later collection finds it again.
    if (this.#userOf(offset) !== undefined) return;
    this.#arrays.forget(offset);
    this.freeBytes(offset);
  }

  #userOf(offset: number): MemoryUser | undefined {
    const end = offset + this.heap.lengthOf(offset);
    for (const user of this.#users) if (user.uses(offset, end)) return user;
    return undefined;
  }

  /** Never collects arrays that `uses` names, because a failed call may leave other ranks that still write to them. */
  abandonArrays(uses: MemoryUser['uses']): void {
    this.#arrays.abandon((from) => uses(from, from + this.heap.lengthOf(from)));
  }

  /** Never collects the arrays in a value that another thread gets. */
  keepArraysIn(value: unknown): void {
    this.#arrays.keepAllIn(value);
  }

  /** Frees an array at the end of a block with `using`, unless it was freed before. */
  #dispose(array: TypedArray): void {
    const place = placeOf(array);
    if (place === undefined || place.isFree || this.#closed) return;
    if (this.#arrays.isAbandoned(place)) place.isFree = true;
    else this.free(array);
  }

  /** Allocates `bytes` bytes of this rank's heap, like alloc(); their content is undefined. */
  allocateBytes(bytes: number, use: MemoryUse = 'staging'): number {
    this.settleSome();
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
      this.#reservation.take(offset, offset + bytes);
    } catch (error) {
      this.heap.free(offset);
      throw error;
    }
    this.#uses.set(offset, use);
    this.#showMemory();
    return offset;
  }

  freeBytes(offset: number): void {
    this.heap.free(offset);
    this.#uses.delete(offset);
    this.#showMemory();
  }

  /** A thread beside the rank's own has only a part of the heap. */
  #showMemory(): void {
    if (!this.#isBeside) this.board.setMemory(this.heap.usedBytes, this.heap.to - this.heap.from);
  }

  /** Runs `action` once `isTime` returns true, which is checked whenever memory is allocated, left or inspected. */
  when(isTime: () => boolean, action: () => void): void {
    this.#lingering.when(isTime, action);
  }

  /** Current use of this rank's memory. */
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
      reservedBytes: Math.max(0, this.#reservation.end - this.heap.from),
    };
  }

  /** Frees an array of alloc(). Remaining views of the array see memory that may be reused. */
  free(array: TypedArray): void {
    const place = placeOf(array);
    if (place?.arrays !== this.#arrays || place.isFree) {
      throw new InvalidUsageError(
        'ARGUMENT_TYPE',
        `free: pass an array that alloc of this communicator gave, once${place?.isFree === true ? '; this one was freed before' : ''}`,
      );
    }
    const user = this.#userOf(place.offset);
    if (user !== undefined) throw new InvalidUsageError('ARGUMENT_TYPE', `free: ${user.why}`);
    this.#arrays.free(array, place);
    this.freeBytes(place.offset);
    for (const { forget } of this.#users) forget?.();
  }

  /** Protects arrays that `user` uses from being freed, until the returned function is called. */
  keep(user: MemoryUser): () => void {
    this.#users.add(user);
    return () => void this.#users.delete(user);
  }

  /** True if some of an array's elements lie between two addresses. */
  overlaps({ buffer, byteOffset, byteLength }: TypedArray, from: number, to: number): boolean {
    return this.#arrays.owns(buffer) && byteOffset < to && byteOffset + byteLength > from;
  }

  /** Offset of an array in the segment, or -1 if it lies elsewhere. */
  offsetOf(array: TypedArray): number {
    if (array === this.#recent) return this.#recentOffset;
    if (array === this.#lessRecent) return this.#lessRecentOffset;
    this.#lessRecent = this.#recent;
    this.#lessRecentOffset = this.#recentOffset;
    const place = placeOf(array);
    this.#recent = array;
    if (place?.arrays === this.#arrays) this.#recentOffset = place.offset;
    else {
      // Parts of one array often follow each other.
      const { buffer } = array;
      const isOwn = buffer === this.#recentBuffer || this.#arrays.owns(buffer);
      if (isOwn) this.#recentBuffer = buffer;
      this.#recentOffset = isOwn ? array.byteOffset : -1;
    }
    return this.#recentOffset;
  }

  /** Leaves the segment. Its arrays stay usable but are no longer shared, and the content of a mapped one is lost. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#recent = this.#lessRecent = this.#recentBuffer = undefined;
    leaveMemory();
    this.board.close();
    this.ranks.setState(rankStates.closed);
    this.parkedRanks.wake();
    this.parkedRanks.close();
    const { file, shown } = this.#backing;
    shown?.libc.close(shown.fd);
    if (file === undefined) return;
    file.libc.mapPrivate(file.address, this.bytes);
    closeSync(file.fd);
  }

  /** Runs the actions of `when` that are due. */
  settle(): void {
    this.#lingering.settle();
  }

  /** The same for some of the actions, in turn. */
  settleSome(): void {
    this.#lingering.settleSome();
  }

  /** Advice for an error of missing memory. */
  #remedy(use: MemoryUse): string {
    const open = this.communicators > 1 ? `, with ${counted(this.communicators, 'communicator')} open` : '';
    if (use === 'arrays')
      return (
        `${open}; free arrays with comm.free or using (those that a loop of blocking calls drops are collected only after an await), ` +
        'or pass ordinary typed arrays, which need no room here'
      );
    return `${open}; ${open === '' ? '' : 'close communicators that are not needed, or '}free arrays`;
  }
}

/** Addresses of the boards, of the end of all that is no heap, and of the first heap. */
function placesIn(nLocalRanks: number, blockBytes: number): { boards: number; controlEnd: number; heapsFrom: number } {
  const teamEnd = FIRST_TEAM + teamBytes(nLocalRanks, blockBytes);
  const boards = Math.ceil(teamEnd / PAGE) * PAGE;
  const controlEnd = boards + nLocalRanks * BOARD_BYTES;
  return { boards, controlEnd, heapsFrom: Math.ceil(controlEnd / HEAP_ALIGNMENT) * HEAP_ALIGNMENT };
}
