import type { Arithmetic } from '../../device/kernels/kernels.js';
import type { Libc } from '../../device/libc.js';
import type { Team } from '../../device/team.js';
import { operatorCode, uint8, type DataType } from '../../device/types.js';
import { Operand } from '../operand.js';
import { Scaler } from '../scaler.js';
import { defined } from '../../../defined.js';

const AVERAGE = operatorCode('avg');
const SUM = operatorCode('sum');
/** Least room for the inputs, and for the outputs, of a move. */
const LEAST_PLACES = 16;

/** The arrays' pieces of a move; all lengths and offsets are in bytes. */
export interface Piece {
  readonly bytes: number;
  /** Offset of this rank's own piece in its input; -1 if it has no part in the move. */
  readonly own: number;
  /** Offset of the result in this rank's output; -1 for none. */
  readonly keep: number;
  /** True if the result is complete, so that averages are divided. */
  readonly complete: boolean;
}

/** Combines received data with a rank's own data into data to send and to keep. One object serves many calls. */
export class Combiner {
  readonly source: Operand;
  readonly destination: Operand;
  /** All memory of the segment. */
  readonly words: Uint32Array;
  readonly #kernels: Arithmetic;
  /** Tables of addresses for kernels: sources, then destinations. */
  readonly #tables: number;
  /** Most inputs, and most outputs, of a move. */
  readonly #places: number;
  /** Room for a piece of an array outside the segment. */
  #scratch = -1;
  readonly #scaler: Scaler;
  #type = 0;
  #operator = 0;
  /** Divisor of averages; 0 for other reductions. */
  #divisor = 0;
  /** Address of the result of the last `pass` that must still be kept, or -1. */
  #kept = -1;

  /** @param pieceBytes longest piece */
  constructor(
    readonly team: Team,
    libc: Libc | undefined,
    readonly nRanks: number,
    readonly pieceBytes: number,
  ) {
    const { segment } = team;
    this.#kernels = segment.kernels;
    this.#scaler = new Scaler(team);
    this.source = new Operand(segment, libc);
    this.destination = new Operand(segment, libc);
    this.words = new Uint32Array(segment.buffer);
    this.#places = Math.max(LEAST_PLACES, nRanks + 2);
    this.#tables = team.allocateBytes(2 * this.#places * 4);
  }

  /**
   * Begins the next call, whose arrays `source` and `destination` have.
   * @param operator its code; ignored without a reduction
   * @param scalar of a premulSum
   */
  begin(type: DataType, operator: number, scalar: number | bigint | undefined): void {
    this.#type = type.code;
    this.#divisor = operator === AVERAGE ? this.nRanks : 0;
    this.#scaler.begin(type, operator, scalar);
    this.#operator = operator === AVERAGE || this.#scaler.active ? SUM : operator;
  }

  /** Drops the references to the caller's arrays. */
  forget(): void {
    this.source.forget();
    this.destination.forget();
  }

  /**
   * Combines the inputs in order, followed by this rank's own piece, into all outputs. The kept result may be in place only
   * after `keep`, because other ranks wait for the outputs.
   */
  pass(piece: Piece, inputs: readonly number[], nInputs: number, outputs: readonly number[], nOutputs: number): void {
    this.#kept = -1;
    if (piece.bytes === 0) return;
    if (nInputs + (piece.own >= 0 ? 1 : 0) > 1) this.#reduce(piece, inputs, nInputs, outputs, nOutputs);
    else this.#copy(piece, inputs, nInputs, outputs, nOutputs);
  }

  /** Writes the result that the last `pass` left to keep. */
  keep({ bytes, keep }: Piece): void {
    if (this.#kept >= 0 && keep >= 0) this.destination.write(keep, bytes, this.#kept);
    this.#kept = -1;
  }

  /** Address of this rank's input at `from`, if other ranks of the segment can add it where it is; otherwise 0. */
  inputAddress(from: number): number {
    return this.source.placed && !this.#scaler.active ? this.source.address(from) : 0;
  }

  /** Address of this rank's output at `from`, if other ranks of the segment can write it; otherwise 0. */
  outputAddress(from: number): number {
    return this.destination.placed ? this.destination.address(from) : 0;
  }

  #reduce(
    { bytes, own, keep, complete }: Piece,
    inputs: readonly number[],
    nInputs: number,
    outputs: readonly number[],
    nOutputs: number,
  ): void {
    const words = this.words;
    const sources = this.#tables / 4;
    let nSources = 0;
    for (; nSources < nInputs; nSources++) words[sources + nSources] = defined(inputs[nSources]);
    if (own >= 0) words[sources + nSources++] = this.#own(own, bytes, nOutputs > 0 ? defined(outputs[0]) : this.#room());

    const destinations = sources + this.#places;
    const divides = complete && this.#divisor > 0;
    const inPlace = keep >= 0 && this.destination.placed && !(divides && nOutputs > 0);
    let nDestinations = 0;
    for (; nDestinations < nOutputs; nDestinations++) words[destinations + nDestinations] = defined(outputs[nDestinations]);
    if (inPlace) words[destinations + nDestinations++] = this.destination.address(keep);
    if (nDestinations === 0) words[destinations + nDestinations++] = this.#room();
    const first = defined(words[destinations]);

    this.#kernels.reduceCopy(
      this.#type,
      this.#operator,
      this.#tables,
      nSources,
      this.#tables + this.#places * 4,
      nDestinations,
      0,
      bytes,
    );
    if (divides) {
      this.#kernels.divide(this.#type, first, bytes, this.#divisor);
      for (let d = 1; d < nOutputs; d++) this.#kernels.copy(defined(outputs[d]), first, bytes);
    }
    if (!inPlace) this.#kept = first;
  }

  /** Copies one source: received data, or this rank's own. */
  #copy(
    { bytes, own, keep }: Piece,
    inputs: readonly number[],
    nInputs: number,
    outputs: readonly number[],
    nOutputs: number,
  ): void {
    if (nInputs + nOutputs === 0 && !this.#scaler.active) {
      this.destination.copyFrom(this.source, own, keep, bytes);
      return;
    }
    const source = nInputs > 0 ? defined(inputs[0]) : this.#own(own, bytes, nOutputs > 0 ? defined(outputs[0]) : this.#room());
    if (nOutputs === 1 && nInputs > 0 && keep >= 0 && this.destination.placed && source !== this.destination.address(keep)) {
      this.#copyToBoth(source, defined(outputs[0]), this.destination.address(keep), bytes);
      return;
    }
    for (let d = 0; d < nOutputs; d++) if (outputs[d] !== source) this.#kernels.copy(defined(outputs[d]), source, bytes);
    this.#kept = source;
  }

  /** Copies to two destinations and reads the source once. */
  #copyToBoth(source: number, a: number, b: number, bytes: number): void {
    const words = this.words;
    const sources = this.#tables / 4;
    words[sources] = source;
    words[sources + this.#places] = a;
    words[sources + this.#places + 1] = b;
    // As bytes: the type may be one that no kernel combines.
    this.#kernels.reduceCopy(uint8.code, SUM, this.#tables, 1, this.#tables + this.#places * 4, 2, 0, bytes);
  }

  /** Address of this rank's own piece at `from`, ready for a reduction: in place, or copied to `room`. */
  #own(from: number, bytes: number, room: number): number {
    const address = this.source.read(from, bytes, room);
    if (!this.#scaler.active) return address;
    this.#scaler.scale(address, room, bytes);
    return room;
  }

  #room(): number {
    if (this.#scratch < 0) this.#scratch = this.team.allocateBytes(this.pieceBytes);
    return this.#scratch;
  }
}
