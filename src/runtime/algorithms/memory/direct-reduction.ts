import type { Kernels } from '../../device/kernels/kernels.js';
import { SUM_BLOCK_BYTES, type SumFunction } from '../../device/machine-code/sum.js';
import { MAX_LOCAL_RANKS } from '../../device/segment.js';
import type { Team } from '../../device/team.js';
import { operatorCode, type DataType } from '../../device/types.js';
import { ALIGNMENT, alignedPiece } from '../alignment.js';
import { operatorOf } from '../call.js';
import type { Operand } from '../operand.js';
import { OPEN, type Posts, STAGED } from './direct-posts.js';
import type { StagingMemory } from './direct-staging.js';
import { defined } from '../../../defined.js';

const SUM = operatorCode('sum');

/**
 * Combines bytes of all ranks' inputs, in a call of direct-exchange.ts. The kernels work in the segment, so data
 * outside are copied there first. For sums that processors can add directly, machine code avoids this: it reads this rank's
 * own input in place, and writes the sums to their destination.
 *
 *      kernels        | own input into a slot | combine | out of the scratch memory |
 *      machine code   |                       | combine |                           |
 *
 * In both cases, another rank's open data are first read into a slot. Slots are in the half of this rank's staging memory
 * that the next operation fills.
 */
export class Reduction {
  /** Number of ranks whose inputs are combined in the running call, from rank 0 on. */
  nSources = 0;
  readonly #team: Team;
  readonly #stage: StagingMemory;
  readonly #posts: Posts;
  readonly #source: Operand;
  readonly #destination: Operand;
  readonly #kernels: Kernels;
  readonly #words: Uint32Array;
  /** The kernels' table of addresses: an index in `words`. */
  readonly #table: number;
  /** Machine code's table: 64 bits each, low half first. */
  readonly #places: Uint32Array;
  #placesAt = 0;
  /** Longest slot. */
  readonly #slotBytes: number;
  #sum: SumFunction | undefined;

  /** @param source this rank's input, and @param destination its output */
  constructor(team: Team, stage: StagingMemory, posts: Posts, source: Operand, destination: Operand) {
    this.#team = team;
    this.#stage = stage;
    this.#posts = posts;
    this.#source = source;
    this.#destination = destination;
    this.#kernels = team.kernels;
    this.#words = new Uint32Array(team.segment.buffer);
    this.#table = (team.kernels.tableAddress() >>> 0) / 4;
    this.#places = new Uint32Array(2 * team.nLocalRanks);
    this.#slotBytes = alignedPiece(team.stageBytes, team.nLocalRanks);
  }

  /** Begins a call in which this rank has an input and an output. */
  start(code: number, type: DataType): void {
    const isSum = operatorOf(code) === SUM && this.nSources > 1;
    const isOutside = !this.#source.placed || !this.#destination.placed;
    this.#sum = isSum && isOutside ? this.#team.segment.machineCode?.sumOf(type.name) : undefined;
  }

  /**
   * Combines `bytes` bytes at `from` of all inputs into offset `to` of this rank's output. Staged inputs have them at
   * `inStage`. Returns false if an input could not be read.
   */
  intoOutput(to: number, from: number, inStage: number, bytes: number): boolean {
    const destination = this.#destination;
    const most = Math.min(this.#mostAtOnce(), destination.placed ? Infinity : this.#team.stageBytes);
    for (let at = 0, length = 0; at < bytes; at += length) {
      length = Math.min(most, bytes - at);
      const sum = length >= SUM_BLOCK_BYTES ? this.#sum : undefined;
      if (sum !== undefined) {
        length -= length % SUM_BLOCK_BYTES;
        if (!this.#layForMachineCode(from + at, inStage + at, length)) return false;
        sum(this.#placesAt, this.#placesAt + this.nSources * 8, destination.here(to + at, length), length, 0);
      } else {
        if (!this.#lay(from + at, inStage + at, length, false)) return false;
        const output = destination.placed ? destination.address(to + at) : this.#stage.scratch(length);
        this.#combine(output, length);
        destination.write(to + at, length, output);
      }
    }
    return this.#posts.areValid();
  }

  /** The same into the segment, by kernels; this rank's own input is staged there too. */
  into(address: number, from: number, inStage: number, bytes: number): boolean {
    const most = this.#mostAtOnce();
    for (let at = 0; at < bytes; at += most) {
      const length = Math.min(most, bytes - at);
      if (!this.#lay(from + at, inStage + at, length, true)) return false;
      this.#combine(address + at, length);
    }
    return this.#posts.areValid();
  }

  /**
   * Most bytes that can be combined at once, because open inputs are read into slots (measured: half of a slot between two
   * ranks takes 1.06 of the time).
   */
  #mostAtOnce(): number {
    return this.#posts.anyHas(OPEN) ? this.#slotBytes : Infinity;
  }

  /** Writes the addresses of all ranks' bytes to the kernels' table. */
  #lay(from: number, inStage: number, bytes: number, ownIsStaged: boolean): boolean {
    for (let r = 0; r < this.nSources; r++) {
      const isOwn = r === this.#team.localRank && !this.#source.placed && !(ownIsStaged && this.#posts.has(r, STAGED));
      const address = isOwn ? this.#slotOf(r, bytes) : this.#addressOf(r, from, inStage, bytes);
      if (isOwn) this.#source.copyTo(address, from, bytes);
      if (address < 0) return false;
      this.#words[this.#table + r] = address;
    }
    return true;
  }

  /** Writes the addresses of all ranks' bytes in this process to machine code's table. */
  #layForMachineCode(from: number, inStage: number, bytes: number): boolean {
    const {
      segment: { machineCode },
      localRank,
    } = this.#team;
    if (this.#placesAt === 0) this.#placesAt = machineCode?.addressOfOutside(this.#places) ?? 0;
    for (let r = 0; r < this.nSources; r++) {
      let place = 0;
      if (r === localRank) place = this.#source.here(from, bytes);
      else {
        const address = this.#addressOf(r, from, inStage, bytes);
        if (address < 0) return false;
        place = machineCode?.addressOf(address) ?? 0;
      }
      this.#places[2 * r] = place % 2 ** 32;
      this.#places[2 * r + 1] = Math.floor(place / 2 ** 32);
    }
    return true;
  }

  /** Address of a rank's bytes in the segment; -1 if they could not be read. */
  #addressOf(rank: number, from: number, inStage: number, bytes: number): number {
    const source = this.#posts.source(rank);
    if (!this.#posts.has(rank, OPEN)) return source + (this.#posts.has(rank, STAGED) ? inStage : from);
    const { segment, members } = this.#team;
    const slot = this.#slotOf(rank, bytes);
    return segment.peerMemory?.read(defined(members[rank]), source + from, new Uint8Array(segment.buffer, slot, bytes)) === true
      ? slot
      : -1;
  }

  /** Address of the slot for `bytes` bytes of a rank, if all other ranks' slots are as long. */
  #slotOf(rank: number, bytes: number): number {
    const slotBytes = Math.ceil(bytes / ALIGNMENT) * ALIGNMENT;
    return this.#stage.next(this.#team.nLocalRanks * slotBytes) + rank * slotBytes;
  }

  /** Combines the inputs in the kernels' table. */
  #combine(destination: number, bytes: number): void {
    this.#words[this.#table + MAX_LOCAL_RANKS] = destination;
    this.#kernels.reduceTables(1, 0, bytes);
  }
}
