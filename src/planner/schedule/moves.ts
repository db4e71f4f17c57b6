import type { Local, Move } from './schedule.js';

/*
 * Moves of workers as state machines. The runtime executes them (runtime/algorithms/connections/worker-track.ts); eachMove()
 * makes a schedule of them, for the verifier and the simulator.
 */

/**
 * The current move of a worker, on one range of the data or on several. One object goes through the moves of many calls, so
 * that moves allocate nothing.
 */
export abstract class Moves {
  done = true;
  /** Length of a range. A message has all ranges of the move, one after the other. */
  bytes = 0;
  /** True if the move is no more than its connections, `own` and `keep` of one range. */
  isPlain = true;
  /** Number of ranges. The following fields describe one of them; with several, the one that `select` selected. */
  nRanges = 1;
  /** Offsets of the range in the input and in the output; -1 for none. */
  own = -1;
  keep = -1;
  /** Offset of a range of the output that an earlier move wrote and this one adds; -1 for none. */
  again = -1;
  /** True if the result is complete, so that averages are divided. */
  complete = false;
  /** True if the output gets what is received, without this rank's input. */
  exclusive = false;
  /** True if later moves of the call may overwrite what this one sends, before the others have received it. */
  readonly overwrites: boolean = false;
  /** Numbers of the sets of connections; see {@link EndSets}. */
  receives = 0;
  sends = 0;
  /** Position of the stored sum among the addends. */
  held: 'none' | 'first' | 'last' = 'none';
  /** True if the move stores its sum. */
  holds = false;
  /** Offset of the stored sum. */
  stored = 0;

  /** Moves on to the next move, or to the end. */
  abstract next(): void;

  /** Selects a range of a move that has several. */
  select(range: number): void {
    if (range > 0) throw new RangeError('a move of this kind has one range');
  }
}

/** One end of a connection. Connections between the same two ranks have different names. */
export interface ScheduledEnd {
  readonly peer: number;
  readonly name: string;
  /** Channel whose NIC it uses between hosts. */
  readonly channel?: number;
}

/** Connections of a worker, as the sets that moves use by number. */
export interface EndSets {
  readonly receives: readonly (readonly ScheduledEnd[])[];
  readonly sends: readonly (readonly ScheduledEnd[])[];
}

/** Position of each rank's block in the longer array of a collective that has blocks. */
export interface RankBlocks {
  readonly from: ArrayLike<number>;
  readonly bytes: ArrayLike<number>;
  /** Distance of `from` from the start of the rank's whole block, if these are parts of blocks. */
  readonly within: ArrayLike<number>;
  readonly longest: number;
}

/** Length of every part but the last when `bytes` are divided into parts that are as equal as possible. */
export function partBytes(bytes: number, nParts: number, grainBytes: number): number {
  return Math.ceil(bytes / nParts / grainBytes) * grainBytes;
}

/** The same part of each rank's block, where all blocks have the same length. */
export function evenBlocks(nRanks: number, blockBytes: number, { offset, bytes }: { offset: number; bytes: number }): RankBlocks {
  return {
    from: Array.from({ length: nRanks }, (_, rank) => rank * blockBytes + offset),
    bytes: new Float64Array(nRanks).fill(bytes),
    within: new Float64Array(nRanks).fill(offset),
    longest: bytes,
  };
}

/**
 * Moves that are all alike: slice by slice, from the same connections to the same ones. Without data there is one empty move.
 */
export class SliceMoves extends Moves {
  #left = 0;
  #sliceBytes = 0;

  /**
   * @param receives numbers of the sets
   * @param own offset of the data in the input, -1 for none
   * @param keep offset of the result in the output, -1 for none
   */
  start(
    receives: number,
    sends: number,
    bytes: number,
    own: number,
    keep: number,
    complete: boolean,
    sliceBytes: number,
    exclusive = false,
  ): void {
    this.done = false;
    this.receives = receives;
    this.sends = sends;
    this.own = own;
    this.keep = keep;
    this.complete = complete;
    this.exclusive = exclusive;
    this.isPlain = !exclusive;
    this.#left = bytes;
    this.#sliceBytes = sliceBytes;
    this.bytes = Math.min(sliceBytes, bytes);
  }

  next(): void {
    this.#left -= this.bytes;
    if (this.own >= 0) this.own += this.bytes;
    if (this.keep >= 0) this.keep += this.bytes;
    this.bytes = Math.min(this.#sliceBytes, this.#left);
    this.done = this.bytes === 0;
  }
}

/**
 * The moves of a call, from the current one on.
 *
 * @param receives by number of a set: its connections
 */
export function* eachMove(
  moves: Moves,
  receives: readonly (readonly number[])[],
  sends: readonly (readonly number[])[],
): Generator<Move> {
  while (!moves.done) {
    yield moveOf(moves, receives[moves.receives] ?? [], sends[moves.sends] ?? []);
    moves.next();
  }
}

function moveOf(moves: Moves, receive: readonly number[], send: readonly number[]): Move {
  const { bytes, nRanges, exclusive } = moves;
  if (nRanges > 1) {
    const ranges = Array.from({ length: nRanges }, (_, range) => {
      moves.select(range);
      return { input: moves.own, output: moves.keep, bytes, ...localOf(moves) };
    });
    return { receive, input: -1, send, output: -1, bytes: nRanges * bytes, ranges };
  }
  const move = { receive, input: moves.own, send, output: moves.keep, bytes };
  return moves.isPlain ? move : { ...move, ...localOf(moves), ...(exclusive ? { exclusive } : {}) };
}

function localOf({ held, holds, again, stored }: Moves): Pick<Move, 'local'> {
  if (held === 'none' && !holds && again < 0) return {};
  const scratch: Local = { buffer: 'scratch', offset: stored };
  return {
    local: {
      adds: [...(held === 'none' ? [] : [scratch]), ...(again < 0 ? [] : [{ buffer: 'output', offset: again } as const])],
      writes: holds ? [scratch] : [],
      after: [],
    },
  };
}
