import type { Kernels } from '../../device/kernels/kernels.js';
import type { Team } from '../../device/team.js';

/** Smallest part of a rank's staging memory: enough for short calls. */
const LEAST_BYTES = 1024;
/** Length of parts that are not allocated: less than any call needs. */
const NONE = -1;

/**
 * Memory in the segment for data that lie outside it: two halves that operations use in turn, a third part for the running
 * operation only, and room for data of small operations that do not fit into a post. Each is allocated at first use, as long
 * as the call needs, and replaced when a later call needs more:
 *
 *      all-reduce of 4 bytes    halves of 1 KiB
 *      all-reduce of 1 MiB      halves of 1 MiB; those of 1 KiB are freed two operations later
 *
 * Ranks may have different amounts: the length of rounds depends on Team.stageBytes and the call, and posts contain the
 * addresses.
 *
 * Every operation of the kernels waits for the posts of all ranks. So when a rank is about to post operation s, all ranks
 * have completed s - 2, and with it all reading of the half that s fills: no rank has to wait for readers.
 */
export class StagingMemory {
  readonly #team: Team;
  readonly #kernels: Kernels;
  readonly #halves: StageParts;
  readonly #scratch: StageParts;
  readonly #room: StageParts;
  /** Replaced memory that other ranks may still read, and the operation that used it last. */
  readonly #replaced: { readonly address: number; readonly operation: number }[] = [];

  /** @param leastBytes smallest length of a part; Team.stageBytes if the heap has room for nothing else (stageMemoryBytes) */
  constructor(team: Team, leastBytes = LEAST_BYTES) {
    this.#team = team;
    this.#kernels = team.kernels;
    this.#halves = { count: 2, leastBytes, bytes: NONE, address: 0 };
    this.#scratch = { count: 1, leastBytes, bytes: NONE, address: 0 };
    this.#room = { count: 2, leastBytes: LEAST_BYTES, bytes: NONE, address: 0 };
  }

  /** Address of the half for the next operation, with `bytes` bytes: at most Team.stageBytes. */
  next(bytes: number): number {
    if (this.#replaced.length > 0) this.#freeReplaced();
    if (bytes > this.#halves.bytes) this.#enlarge(this.#halves, bytes);
    return this.#halves.address + ((this.#kernels.operationNumber() + 1) & 1) * this.#halves.bytes;
  }

  /** Address of the third part, with `bytes` bytes: at most Team.stageBytes. */
  scratch(bytes: number): number {
    if (bytes > this.#scratch.bytes) this.#enlarge(this.#scratch, bytes);
    return this.#scratch.address;
  }

  /** Gives the kernels room for small operations of `bytes` bytes. */
  makeRoom(bytes: number): void {
    this.#enlarge(this.#room, bytes);
    this.#kernels.setRoom(this.#room.address, this.#room.bytes);
  }

  #enlarge(parts: StageParts, bytes: number): void {
    const length = Math.max(parts.leastBytes, 2 ** Math.ceil(Math.log2(bytes)));
    const address = this.#team.allocateBytes(parts.count * length);
    if (parts.address > 0) this.#replaced.push({ address: parts.address, operation: this.#kernels.operationNumber() });
    parts.address = address;
    parts.bytes = length;
  }

  /** Frees memory that no rank reads any more, because all have completed the operation before the last one. */
  #freeReplaced(): void {
    const operation = this.#kernels.operationNumber();
    for (let first = this.#replaced[0]; first !== undefined && operation - first.operation >= 2; first = this.#replaced[0]) {
      this.#replaced.shift();
      this.#team.freeBytes(first.address);
    }
  }
}

/** Equal parts of memory, one after the other. */
interface StageParts {
  readonly count: number;
  readonly leastBytes: number;
  /** Length of one part. */
  bytes: number;
  address: number;
}

/** Most memory of a stage in its rank's heap, if its parts have Team.stageBytes from the beginning. */
export function stageMemoryBytes({ stageBytes }: Team): number {
  return 3 * stageBytes;
}
