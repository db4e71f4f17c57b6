import type { EndSets, Moves } from '../../../planner/schedule/moves.js';
import { keyOf, type PeerConnections, type WantedEnd } from '../../transport/peers.js';
import { LEAST_IN_PLACE_BYTES, type Connection, type ReceiveConnection, type SendConnection } from '../../transport/transport.js';
import type { Ends } from './algorithm.js';
import type { Combiner, Piece } from './combiner.js';
import { HEADER_BYTES, OWN_WORDS, type Track } from './exchange.js';
import { defined } from '../../../defined.js';

/** Connections of a worker, as the sets that its moves use by number. */
export interface ConnectionSets {
  readonly receives: readonly (readonly ReceiveConnection[])[];
  readonly sends: readonly (readonly SendConnection[])[];
}

const none: readonly never[] = [];

/** Word of a message's header that shows whether its data are in the receiver's output already, and not in the message. */
const IS_WRITTEN = OWN_WORDS;

/** Executes the moves of a worker (planner/schedule/moves.ts) on its connections. */
export class WorkerTrack implements Track {
  // Polls read these often, and the moves of algorithms are of different classes.
  done = true;
  from: readonly ReceiveConnection[] = none;
  to: readonly SendConnection[] = none;
  bytes = 0;
  into = 0;
  data = 0;
  protected readonly combiner: Combiner;
  protected readonly moves: Moves;
  /** False where a subclass passes data otherwise. */
  protected mayUseArrays = true;
  readonly #sets: ConnectionSets;
  /** By number of a set: true if all its connections send from arrays, and receive into them. */
  readonly #sendsArrays: readonly boolean[];
  readonly #receivesArrays: readonly boolean[];
  /** True if `data` are in the input. */
  #sendsOwn = false;
  /** Address of the stored sums. */
  readonly #store: number;
  /** Addresses of a move that is not plain. */
  readonly #inputs: number[] = [];
  readonly #outputs: number[] = [];
  readonly #piece: { -readonly [Name in keyof Piece]: Piece[Name] } = { bytes: 0, own: -1, keep: -1, complete: false };

  constructor(combiner: Combiner, moves: Moves, sets: ConnectionSets, store = 0) {
    this.combiner = combiner;
    this.moves = moves;
    this.#sets = sets;
    const reachArrays = (set: readonly Connection[]): boolean => set.every(({ reachesArrays }) => reachesArrays === true);
    this.#sendsArrays = sets.sends.map((set) => set.length > 0 && reachArrays(set));
    this.#receivesArrays = sets.receives.map((set) => set.length === 1 && reachArrays(set));
    this.#store = store;
  }

  /** Takes the first move of a call, which the moves have begun. */
  start(): void {
    this.#take();
  }

  pass(inputs: readonly number[], outputs: readonly number[]): void {
    const moves = this.moves;
    if (this.data > 0) this.#passArray(inputs);
    else if (moves.isPlain) this.combiner.pass(moves, inputs, this.from.length, outputs, this.to.length);
    else if (moves.exclusive) this.#passExclusive(inputs, outputs);
    else this.#passRanges(inputs, outputs);
  }

  finish(): void {
    const { combiner, moves } = this;
    if (this.data === 0) combiner.keep(moves);
    else if (this.#sendsOwn && moves.keep >= 0)
      combiner.destination.copyFrom(combiner.source, moves.own, moves.keep, moves.bytes);
    moves.next();
    this.#take();
  }

  /** True if the sender of a message has written its data to this rank's output. Only between ranks of a host. */
  protected isWritten(data = 0): boolean {
    return this.wordOf(data, IS_WRITTEN) !== 0;
  }

  protected markWritten(data: number, isWritten: boolean): void {
    this.setWordOf(data, IS_WRITTEN, isWritten ? 1 : 0);
  }

  /** A word of the header in front of a message's data. */
  protected wordOf(data: number, word: number): number {
    return defined(this.combiner.words[(data - HEADER_BYTES) / 4 + word]);
  }

  protected setWordOf(data: number, word: number, value: number): void {
    this.combiner.words[(data - HEADER_BYTES) / 4 + word] = value;
  }

  /** Results are kept first, and sent from there; this rank's own data are sent from its input, and kept after that. */
  #passArray(inputs: readonly number[]): void {
    if (this.#sendsOwn) return;
    this.combiner.pass(this.moves, inputs, this.from.length, none, 0);
    this.combiner.keep(this.moves);
  }

  #passRanges(inputs: readonly number[], outputs: readonly number[]): void {
    const moves = this.moves;
    const { nRanges } = moves;
    for (let range = 0; range < nRanges; range++) {
      if (nRanges > 1) moves.select(range);
      this.#passRange(range * moves.bytes, inputs, outputs);
      // The result of the last range can wait until messages are sent.
      if (range + 1 < nRanges) this.combiner.keep(moves);
    }
  }

  /** @param offset of the range in messages */
  #passRange(offset: number, inputs: readonly number[], outputs: readonly number[]): void {
    const nInputs = this.from.length;
    const nOutputs = this.to.length;
    const { held, holds, again, stored, bytes } = this.moves;
    const combiner = this.combiner;
    const sources = this.#inputs;
    const destinations = this.#outputs;
    const store = this.#store + stored;
    let nSources = 0;
    let nDestinations = 0;
    if (held === 'first') sources[nSources++] = store;
    for (let i = 0; i < nInputs; i++) sources[nSources++] = defined(inputs[i]) + offset;
    if (held === 'last') sources[nSources++] = store;
    for (let i = 0; i < nOutputs; i++) destinations[nDestinations++] = defined(outputs[i]) + offset;
    if (holds) destinations[nDestinations++] = store;
    if (again >= 0 && bytes > 0) sources[nSources++] = combiner.destination.read(again, bytes, defined(destinations[0]));
    combiner.pass(this.moves, sources, nSources, destinations, nDestinations);
  }

  /** Sends the sum with this rank's input, and keeps it without. */
  #passExclusive(inputs: readonly number[], outputs: readonly number[]): void {
    const { bytes, own, keep } = this.moves;
    const piece = this.#piece;
    piece.bytes = bytes;
    piece.own = own;
    piece.keep = -1;
    piece.complete = false;
    this.combiner.pass(piece, inputs, this.from.length, outputs, this.to.length);
    piece.own = -1;
    piece.keep = keep;
    piece.complete = true;
    this.combiner.pass(piece, inputs, this.from.length, none, 0);
  }

  #take(): void {
    const moves = this.moves;
    this.done = moves.done;
    if (this.done) return;
    this.bytes = moves.nRanges * moves.bytes;
    this.from = this.#sets.receives[moves.receives] ?? none;
    this.to = this.#sets.sends[moves.sends] ?? none;
    this.into = 0;
    this.data = 0;
    if (moves.bytes >= LEAST_IN_PLACE_BYTES && moves.isPlain && this.mayUseArrays) this.#useArrays();
  }

  /** Lets data go from arrays to arrays where it can, past the slots. */
  #useArrays(): void {
    const { combiner, moves } = this;
    const { own, keep } = moves;
    if (own < 0 && keep >= 0 && this.#receivesArrays[moves.receives]) this.into = combiner.outputAddress(keep);
    if (moves.overwrites || !this.#sendsArrays[moves.sends]) return;
    this.#sendsOwn = this.from.length === 0;
    if (this.#sendsOwn) this.data = own < 0 ? 0 : combiner.inputAddress(own);
    else if (keep >= 0) this.data = combiner.outputAddress(keep);
  }
}

/** The ends that several workers of a rank need, each once. */
export function endsOf(sets: readonly EndSets[]): Ends {
  const once = (lists: readonly (readonly WantedEnd[])[]): WantedEnd[] => [
    ...new Map(lists.flat().map((end) => [keyOf(end), end])).values(),
  ];
  return { sendTo: once(sets.flatMap(({ sends }) => sends)), receiveFrom: once(sets.flatMap(({ receives }) => receives)) };
}

/** Finds the connections of sets of ends. @param connections those of `ends`, in that order */
export function connected(
  { sendTo, receiveFrom }: Ends,
  { sends, receives }: PeerConnections,
): (sets: EndSets) => ConnectionSets {
  const sending = new Map(sendTo.map((end, index) => [keyOf(end), sends[index]]));
  const receiving = new Map(receiveFrom.map((end, index) => [keyOf(end), receives[index]]));
  return (sets) => ({
    receives: sets.receives.map((set) => set.map((end) => defined(receiving.get(keyOf(end))))),
    sends: sets.sends.map((set) => set.map((end) => defined(sending.get(keyOf(end))))),
  });
}
