import type { Kernels } from '../device/kernels/kernels.js';
import type { Team } from '../device/team.js';

/** The least that a part of a rank's staging memory has: enough for what short calls need. */
const LEAST_BYTES = 1024;
/** The length of parts that are not there yet: less than any call needs. */
const NONE = -1;

/**
 * Memory in the segment for what lies outside it: two halves that operations use in turn, a third part that only the
 * operation under way uses, and the room for data of small operations that do not fit into a post. Each is taken from the
 * heap when it is first needed, as long as the call needs it, and replaced by a longer one when a later call needs more:
 *
 *      all-reduce of 4 bytes    halves of 1 KiB
 *      all-reduce of 1 MiB      halves of 1 MiB; those of 1 KiB are freed two operations later
 *
 * Ranks need not agree on how much they have: rounds are cut by Team.stageBytes and the call, and posts say where data are.
 *
 * Every operation of the kernels waits for the posts of all ranks, so whoever is about to post operation s knows that
 * all have completed s - 2, and with it all reading of the half that s fills: nobody has to wait for readers.
 */
export class Stage {
  readonly #team: Team;
  readonly #kernels: Kernels;
  readonly #halves: StageParts;
  readonly #scratch: StageParts;
  readonly #room: StageParts;
  /** Replaced memory that other ranks may still read, and the operation that used it last. */
  readonly #replaced: { readonly address: number; readonly operation: number }[] = [];

  /** @param leastBytes of a part; Team.stageBytes where the heap has room for nothing else (stageMemoryBytes) */
  constructor(team: Team, leastBytes = LEAST_BYTES) {
    this.#team = team;
    this.#kernels = team.kernels;
    this.#halves = { count: 2, leastBytes, bytes: NONE, address: 0 };
    this.#scratch = { count: 1, leastBytes, bytes: NONE, address: 0 };
    this.#room = { count: 2, leastBytes: LEAST_BYTES, bytes: NONE, address: 0 };
  }

  /** The half of the operation that is posted next, for `bytes` bytes: at most Team.stageBytes. */
  next(bytes: number): number {
    if (this.#replaced.length > 0) this.#freeReplaced();
    if (bytes > this.#halves.bytes) this.#enlarge(this.#halves, bytes);
    return this.#halves.address + ((this.#kernels.operationNumber() + 1) & 1) * this.#halves.bytes;
  }

  /** The third part, for `bytes` bytes: at most Team.stageBytes. */
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

  /** Gives back what nobody reads any more: all have completed the operation before the last one. */
  #freeReplaced(): void {
    const operation = this.#kernels.operationNumber();
    for (let first = this.#replaced[0]; first !== undefined && operation - first.operation >= 2; first = this.#replaced[0]) {
      this.#replaced.shift();
      this.#team.freeBytes(first.address);
    }
  }
}

/** Equal parts of memory, one behind the other. */
interface StageParts {
  readonly count: number;
  readonly leastBytes: number;
  /** Of one part. */
  bytes: number;
  address: number;
}

/** What a stage takes of its rank's heap at most, if its parts have Team.stageBytes from the beginning. */
export function stageMemoryBytes({ stageBytes }: Team): number {
  return 3 * stageBytes;
}
