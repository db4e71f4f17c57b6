import { SystemError } from '../../errors.js';
import { clockMs } from '../platform/platform.js';
import { availableMemory } from './available-memory.js';
import type { MemoryFile } from './rank-lines.js';
import { PAGE_BYTES } from './shared-memory.js';

/** Memory that is never allocated, so that the machine stays alive. */
const MEMORY_MARGIN = 64 * 2 ** 20;
/**
 * Time that a rank relies on a reading of the available memory, and the share of it that the ranks of a host may take
 * meanwhile: a reading takes 100 µs.
 */
const AVAILABLE_FOR_MS = 100;
const AVAILABLE_PART = 1 / 16;

/** Memory of a rank that a reservation takes. */
interface Reserved {
  /** Bytes of the segment. */
  readonly bytes: number;
  readonly nLocalRanks: number;
  /** First byte of this rank's heap that is not taken. */
  readonly from: number;
  /** Set if the memory is a mapped file. */
  readonly file: MemoryFile | undefined;
  /** Set if only its beginning is one. */
  readonly shown: MemoryFile | undefined;
  /** Advice for an error of missing memory. */
  readonly remedy: () => string;
}

/** Takes a segment's memory from the system before it is used, so that its use cannot fail later. */
export class Reservation {
  readonly #reserved: Reserved;
  /** End of the part of this rank's heap that was taken. */
  #end: number;
  /** Moves this thread to the NUMA node for its memory; the returned function moves it back. */
  #goHome: () => () => void = () => () => undefined;
  /** Time until which this rank may take memory without a new reading of what is available, and how much. */
  #trustedUntilMs = 0;
  #trustedBytes = 0;

  constructor(reserved: Reserved) {
    this.#reserved = reserved;
    this.#end = reserved.from;
  }

  get end(): number {
    return this.#end;
  }

  /** From now on, memory is taken while this thread is where `goHome` moves it; the function that it returns moves it back. */
  takeAt(goHome: () => () => void): void {
    this.#goHome = goHome;
  }

  /** Runs `use`, which is the first to write some memory, where that memory shall be. */
  atHome(use: () => void): void {
    const goBack = this.#goHome();
    try {
      use();
    } finally {
      goBack();
    }
  }

  /** Takes this rank's heap up to `to`, in steps, for a range that this rank is the first to use. */
  take(from: number, to: number): void {
    const start = Math.max(this.#end, Math.floor(from / PAGE_BYTES) * PAGE_BYTES);
    if (to > start) this.#end = this.#take(start, to, this.#reserved.file);
  }

  /** Takes the memory below `to`, which all ranks use. */
  takeBeginning(to: number): void {
    this.#take(0, to, this.#reserved.file ?? this.#reserved.shown);
  }

  /** Returns the end of what was taken. */
  #take(start: number, to: number, file: MemoryFile | undefined): number {
    const end = Math.min(this.#reserved.bytes, Math.ceil(to / PAGE_BYTES) * PAGE_BYTES);
    const name = `${end - start} bytes of shared memory`;
    this.#checkAvailable(end - start, name);
    try {
      this.atHome(() => file?.libc.reserve(file.fd, start, end - start));
    } catch (error) {
      throw new SystemError('OUT_OF_MEMORY', `${name} cannot be allocated: ${(error as Error).message}`, { cause: error });
    }
    return end;
  }

  /** Throws if the machine has no room for `bytes`. */
  #checkAvailable(bytes: number, name: string): void {
    const nowMs = clockMs();
    if (nowMs > this.#trustedUntilMs || bytes > this.#trustedBytes) {
      const available = availableMemory();
      if (bytes + MEMORY_MARGIN > available) {
        throw new SystemError(
          'OUT_OF_MEMORY',
          `${name} cannot be allocated: the machine, or this process's control group, has ${available} left${this.#reserved.remedy()}`,
        );
      }
      this.#trustedUntilMs = nowMs + AVAILABLE_FOR_MS;
      this.#trustedBytes = ((available - MEMORY_MARGIN) * AVAILABLE_PART) / this.#reserved.nLocalRanks;
    }
    this.#trustedBytes -= bytes;
  }
}
