import type { Team } from '../../device/team.js';

/**
 * Words of a rank's post: address of its input, address of its output, the flags below, its table of parts (0: none), and the
 * address of an open input in its own memory (float64).
 */
const SOURCE = 0;
const DESTINATION = 1;
const FLAGS = 2;
const TABLE = 3;
const PLACE = 4;
/** The input goes through staging memory, one piece in each round after the first. */
export const STAGED = 1;
/** The input, in the segment, is also the output; if that holds on all ranks, they exchange parts in pairs. */
export const SWAPS = 2;
/** The root's output lies outside the segment: its data go through the root's scratch memory, one piece in each round. */
export const CLOSED = 4;
/** The input lies outside the segment, and the others read it in place (device/peer-memory.ts). */
export const OPEN = 8;
/** An open input is staged instead if the rank that chooses posts `STAGES`. */
export const EITHER = 16;
export const STAGES = 32;
/** The root has nothing to copy for itself, and copies a part of each block (direct-rooted.ts). */
export const HELPS = 64;
/** This rank can copy a block to both outputs in one pass (direct-spread.ts). */
export const SPREADS = 128;

/** Posts of a team's ranks for the running call of direct-exchange.ts, after they met. */
export class Posts {
  readonly #team: Team;
  readonly #words: Uint32Array;
  readonly #numbers: Float64Array;
  /** Addresses by rank: from the first round, or from the current one for staged inputs. */
  readonly #sources: Float64Array;
  readonly #flags: Uint32Array;

  constructor(team: Team) {
    const { segment, nLocalRanks } = team;
    this.#team = team;
    this.#words = new Uint32Array(segment.buffer);
    this.#numbers = new Float64Array(segment.buffer, 0, Math.floor(segment.bytes / 8));
    this.#sources = new Float64Array(nLocalRanks);
    this.#flags = new Uint32Array(nLocalRanks);
  }

  /** Reads the posts of a round. Those of the first round have the kind of each rank's input. */
  read(isFirst: boolean): void {
    for (let r = 0; r < this.#team.nLocalRanks; r++) {
      const flags = this.#word(r, FLAGS);
      if (isFirst) this.#flags[r] = flags;
      if (isFirst || (flags & STAGED) !== 0) this.#sources[r] = (flags & OPEN) !== 0 ? this.#place(r) : this.#word(r, SOURCE);
    }
  }

  /** Changes inputs that may use either way to staged ones. */
  stage(): void {
    for (let r = 0; r < this.#flags.length; r++)
      if (this.has(r, EITHER)) this.#flags[r] = ((this.#flags[r] ?? 0) & ~OPEN) | STAGED;
  }

  /** Address of a rank's input: in the segment or, if it is open, in that rank's own memory. */
  source(rank: number): number {
    return this.#sources[rank] ?? 0;
  }

  has(rank: number, flag: number): boolean {
    return ((this.#flags[rank] ?? 0) & flag) !== 0;
  }

  anyHas(flag: number): boolean {
    for (let r = 0; r < this.#flags.length; r++) if (this.has(r, flag)) return true;
    return false;
  }

  allHave(flag: number): boolean {
    for (let r = 0; r < this.#flags.length; r++) if (!this.has(r, flag)) return false;
    return true;
  }

  /** True if the data read from inputs are valid: a rank that gives a call up may reuse its open memory. */
  areValid(): boolean {
    return !this.anyHas(OPEN) || this.#team.abort() === undefined;
  }

  /** Address of a rank's output in the segment; 0 for none. */
  destination(rank: number): number {
    return this.#word(rank, DESTINATION);
  }

  /** Address of a rank's table of parts (direct-tables.ts); 0 for none. */
  table(rank: number): number {
    return this.#word(rank, TABLE);
  }

  #word(rank: number, word: number): number {
    return this.#words[(this.#team.kernels.postAddress(rank) >>> 2) + 2 + word] ?? 0;
  }

  #place(rank: number): number {
    return this.#numbers[((this.#team.kernels.postAddress(rank) >>> 0) + 8 + 4 * PLACE) / 8] ?? 0;
  }
}
