import type { EngineCall } from '../queued-call.js';
import { callKinds, DONE, MISMATCH, PENDING } from '../../device/kernels/kernels.js';
import type { Libc } from '../../device/libc.js';
import type { MulticastView } from '../../device/multicast.js';
import type { Team } from '../../device/team.js';
import { operatorCode } from '../../device/types.js';
import { alignedPiece, alignedShare } from '../alignment.js';
import { kindOf, operatorOf } from '../call.js';
import { Operand } from '../operand.js';
import { Scaler } from '../scaler.js';
import { defined } from '../../../defined.js';

const SUM = operatorCode('sum');
/** Number of slots: while one is reduced, the next is filled and the one before is emptied. */
const STEPS = 4;
/** Most data in a rank's slot. */
const SLOT_BYTES = 256 * 1024;
/** Lines in front of the slots: a member's counters, and its call. */
const HEADER_BYTES = 512;

/** Memory that a member binds to the multicast object. */
export const NVLS_BYTES = HEADER_BYTES + STEPS * SLOT_BYTES;

// Offsets of each member's counters, in steps since the beginning; each in a line of its own.
const SCATTERED = 0;
const REDUCED = 16;
const GATHERED = 32;
/** Offset of its call: number, code, root, elements. */
const CALL = 48;

/** A member's call, with its number. */
interface PostedCall {
  readonly sequence: number;
  readonly code: number;
  readonly root: number;
  readonly count: number;
}

/**
 * The algorithm *NVLS* on a multicast object of all ranks: every rank is the head of one share of each chunk. Three stages
 * run as a pipeline over four slots, so that arrays outside the object's memory flow through it:
 *
 *     scatter   each rank copies its chunk to a slot of its own memory
 *     reduce    the head of a share reads and reduces it in all memories at once, and writes the result to all
 *     gather    each rank copies the chunk, now the result, from its own slot to its output
 *
 * Counters in the members' memories give the progress of each and serve as credits. In a reduce-scatter the head keeps the
 * result; in an all-gather it stores its own share to all.
 */
export class Nvls {
  /** Number of moves made so far. */
  steps = 0;
  readonly #scaler: Scaler;
  readonly #source: Operand;
  readonly #destination: Operand;
  readonly #counters: Int32Array;
  readonly #words: Uint32Array;
  readonly #n: number;
  readonly #rank: number;
  /** Room for a result on its way to an array outside the segment. */
  readonly #room: number;

  // State of the running call.
  #kind = 0;
  #type = 0;
  #operator = 0;
  /** Length of the data in one slot: of the whole array in an all-reduce, otherwise of each rank's block. */
  #stepBytes = 0;
  #total = 0;
  /** Number of steps of all earlier calls, and including this one. */
  #before = 0;
  #until = 0;
  #scattered = 0;
  #reduced = 0;
  #gathered = 0;
  #sequence = 0;
  #met = false;

  constructor(
    team: Team,
    libc: Libc | undefined,
    readonly view: MulticastView,
  ) {
    const { segment } = team;
    this.#scaler = new Scaler(team);
    this.#source = new Operand(segment, libc);
    this.#destination = new Operand(segment, libc);
    this.#counters = new Int32Array(segment.buffer);
    this.#words = new Uint32Array(segment.buffer);
    this.#n = view.addresses.length;
    this.#rank = view.member;
    this.#room = team.allocateBytes(SLOT_BYTES);
  }

  /** Starts an all-reduce, reduce-scatter or all-gather, and progresses until it has to wait. */
  begin({ type, root, send, recv, count, details }: EngineCall, code: number): void {
    this.#kind = kindOf(code);
    this.#type = type.code;
    const operator = operatorOf(code);
    this.#scaler.begin(type, operator, details?.scalar);
    this.#operator = this.#scaler.active ? SUM : operator;
    this.#source.use(send);
    this.#destination.use(recv);
    this.#total = count * type.bytes;
    const most = this.#kind === callKinds.allReduce ? SLOT_BYTES : alignedPiece(SLOT_BYTES, this.#n);
    this.#stepBytes = most;
    this.#before = this.#until;
    this.#until = (this.#before + Math.max(1, Math.ceil(this.#total / most))) | 0;
    this.#scattered = this.#reduced = this.#gathered = this.#before;
    this.#sequence = (this.#sequence + 1) | 0;
    this.#met = false;
    const call = this.#own(CALL);
    this.#words[call + 1] = code;
    this.#words[call + 2] = root;
    this.#words[call + 3] = count;
    this.#words[call + 4] = count / 2 ** 32;
    Atomics.store(this.#counters, call, this.#sequence);
  }

  /** Progresses as far as possible now. Returns MISMATCH if all have begun, but with different calls. */
  progress(spins: number): number {
    while (!this.#met) {
      if (this.#ahead(CALL, this.#sequence) < 0) {
        if (spins-- <= 0) return PENDING;
      } else if (this.#differs()) return MISMATCH;
      else this.#met = true;
    }
    while (this.#scattered !== this.#until || this.#reduced !== this.#until || this.#gathered !== this.#until) {
      if (this.#scatter() || this.#reduce() || this.#gather()) this.steps++;
      else if (spins-- <= 0) return PENDING;
    }
    this.forget();
    return DONE;
  }

  forget(): void {
    this.#source.forget();
    this.#destination.forget();
  }

  /** Members that have not begun this call. */
  late(): number[] {
    return this.view.addresses.flatMap((_, member) =>
      ((Atomics.load(this.#counters, this.#place(member, CALL)) - this.#sequence) | 0) < 0 ? [member] : [],
    );
  }

  /** A member's last call. */
  posted(member: number): PostedCall {
    const call = this.#place(member, CALL);
    const word = (i: number): number => defined(this.#words[call + i]);
    return { sequence: Atomics.load(this.#counters, call), code: word(1), root: word(2), count: word(3) + word(4) * 2 ** 32 };
  }

  #differs(): boolean {
    const mine = this.posted(this.#rank);
    return this.view.addresses.some((_, member) => {
      const other = this.posted(member);
      return other.code !== mine.code || other.root !== mine.root || other.count !== mine.count;
    });
  }

  /** Fills the next slot once its old contents are no longer needed. An all-gather fills nothing. */
  #scatter(): boolean {
    const step = this.#scattered;
    const last = (step - STEPS) | 0;
    if (step === this.#until || ((this.#gathered - last) | 0) <= 0 || this.#ahead(REDUCED, last) <= 0) return false;
    const slot = slotOf(step);
    const from = this.#from(step);
    const bytes = Math.min(this.#stepBytes, this.#total - from);
    if (this.#kind === callKinds.reduceScatter) {
      for (let block = 0; block < this.#n && bytes > 0; block++) {
        this.#put(slot + block * this.#stepBytes, block * this.#total + from, bytes);
      }
    } else if (this.#kind === callKinds.allReduce && bytes > 0) this.#put(slot, from, bytes);
    this.#scattered = (step + 1) | 0;
    Atomics.store(this.#counters, this.#own(SCATTERED), this.#scattered);
    return true;
  }

  /** Copies this rank's input from byte `from` on to its own memory, multiplied for a premulSum. */
  #put(offset: number, from: number, bytes: number): void {
    const address = this.view.unicast(offset, bytes);
    this.#source.copyTo(address, from, bytes);
    if (this.#scaler.active) this.#scaler.scale(address, address, bytes);
  }

  /** Works on this rank's share of the next chunk, once all have scattered it. */
  #reduce(): boolean {
    const step = this.#reduced;
    if (step === this.#until) return false;
    const slot = slotOf(step);
    const from = this.#from(step);
    const bytes = Math.min(this.#stepBytes, this.#total - from);
    if (this.#kind === callKinds.allGather) {
      // The result goes to all memories, so the slot's old contents must be free in all of them.
      const last = (step - STEPS) | 0;
      if (this.#ahead(GATHERED, last) <= 0 || this.#ahead(REDUCED, last) <= 0) return false;
      if (bytes > 0) this.view.store(this.#source.read(from, bytes, this.#room), slot + this.#rank * this.#stepBytes, bytes);
    } else {
      if (this.#ahead(SCATTERED, step) <= 0) return false;
      if (this.#kind === callKinds.reduceScatter) this.#keepShare(slot + this.#rank * this.#stepBytes, from, bytes);
      else {
        const share = alignedShare(bytes, this.#n);
        const begin = Math.min(this.#rank * share, bytes);
        const length = Math.min(share, bytes - begin);
        if (length > 0) this.view.loadReduceStore(this.#type, this.#operator, slot + begin, length);
      }
    }
    this.#reduced = (step + 1) | 0;
    Atomics.store(this.#counters, this.#own(REDUCED), this.#reduced);
    return true;
  }

  #keepShare(offset: number, to: number, bytes: number): void {
    if (bytes === 0) return;
    const address = this.#destination.placed ? this.#destination.address(to) : this.#room;
    this.view.loadReduce(this.#type, this.#operator, offset, bytes, address);
    if (!this.#destination.placed) this.#destination.write(to, bytes, this.#room);
  }

  /** Empties the next slot once all heads have done their shares. */
  #gather(): boolean {
    const step = this.#gathered;
    if (step === this.#until) return false;
    if (this.#kind !== callKinds.reduceScatter) {
      if (this.#ahead(REDUCED, step) <= 0) return false;
      const slot = slotOf(step);
      const from = this.#from(step);
      const bytes = Math.min(this.#stepBytes, this.#total - from);
      if (this.#kind === callKinds.allReduce) {
        if (bytes > 0) this.#destination.write(from, bytes, this.view.unicast(slot, bytes));
      } else {
        for (let block = 0; block < this.#n && bytes > 0; block++) {
          this.#destination.write(block * this.#total + from, bytes, this.view.unicast(slot + block * this.#stepBytes, bytes));
        }
      }
    }
    this.#gathered = (step + 1) | 0;
    Atomics.store(this.#counters, this.#own(GATHERED), this.#gathered);
    return true;
  }

  /** Offset of a step's chunk in the data, or in each block. */
  #from(step: number): number {
    return ((step - this.#before) | 0) * this.#stepBytes;
  }

  /** Distance of the slowest member's counter from a number. Counters overflow in time, so they are compared by difference. */
  #ahead(counter: number, than: number): number {
    let least = Infinity;
    for (let member = 0; member < this.#n; member++)
      least = Math.min(least, (Atomics.load(this.#counters, this.#place(member, counter)) - than) | 0);
    return least;
  }

  #own(word: number): number {
    return this.#place(this.#rank, word);
  }

  #place(member: number, word: number): number {
    return defined(this.view.addresses[member]) / 4 + word;
  }
}

/** Offset in the object of a step's slot. */
function slotOf(step: number): number {
  return HEADER_BYTES + (step & (STEPS - 1)) * SLOT_BYTES;
}
