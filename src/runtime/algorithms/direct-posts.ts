import type { Team } from '../device/team.js';

/**
 * The words of a rank's post: where its input is, where its output, the bits below, its table of parts (0: nowhere), and
 * where in its own memory an open input is (a float64).
 */
const SOURCE = 0;
const DESTINATION = 1;
const FLAGS = 2;
const TABLE = 3;
const PLACE = 4;
/** The input comes through staging memory, a piece in each round but the first. */
export const STAGED = 1;
/** The input, in the segment, is also the output; if that is so on all ranks, they exchange parts in pairs. */
export const SWAPS = 2;
/** The root's output lies outside the segment: what is for it goes through its scratch memory, a piece in each round. */
export const CLOSED = 4;
/** The input lies outside the segment, and the others read it there (device/peer-memory.ts). */
export const OPEN = 8;
/** An open input comes through staging memory instead if the rank that chooses posts `STAGES`. */
export const EITHER = 16;
export const STAGES = 32;
/** The root has nothing to copy for itself, and copies a part of each block (direct-rooted.ts). */
export const HELPS = 64;
/** This rank can copy a block to both outputs at once (direct-spread.ts). */
export const SPREADS = 128;

/** What the ranks of a team posted for the call under way of algorithms/direct-exchange.ts, after they met. */
export class Posts {
  readonly #team: Team;
  readonly #words: Uint32Array;
  readonly #numbers: Float64Array;
  /** Of each rank, from the first round; where inputs are staged, from this one. */
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

  /** Reads the posts of a round. The first round's tell what kind of input each rank has. */
  read(isFirst: boolean): void {
    for (let r = 0; r < this.#team.nLocalRanks; r++) {
      const flags = this.#word(r, FLAGS);
      if (isFirst) this.#flags[r] = flags;
      if (isFirst || (flags & STAGED) !== 0) this.#sources[r] = (flags & OPEN) !== 0 ? this.#place(r) : this.#word(r, SOURCE);
    }
  }

  /** Makes inputs that may come in either way staged ones. */
  stage(): void {
    for (let r = 0; r < this.#flags.length; r++)
      if (this.has(r, EITHER)) this.#flags[r] = ((this.#flags[r] ?? 0) & ~OPEN) | STAGED;
  }

  /** Where a rank's input is: in the segment, or, if it is open, in that rank's own memory. */
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

  /**
   * Whether what was read of inputs is what was to be read: a rank that gives a call up may use its open memory for
   * something else.
   */
  areValid(): boolean {
    return !this.anyHas(OPEN) || this.#team.abort() === undefined;
  }

  /** Where a rank's output is in the segment; 0 for nowhere. */
  destination(rank: number): number {
    return this.#word(rank, DESTINATION);
  }

  /** Where a rank's table of parts is (direct-tables.ts); 0 for nowhere. */
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
