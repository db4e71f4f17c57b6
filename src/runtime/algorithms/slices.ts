import type { ReceiveConnection, SendConnection } from '../transport/transport.js';
import type { Combiner, Piece } from './combiner.js';
import type { Track } from './exchange.js';

/**
 * Longest slice. With its headers it fits in one buffer of the kernel's TCP (64 KiB): the short rest of a longer one waits for
 * its turn, which halves the throughput between hosts. Shorter slices cost more hand-overs.
 */
export const LONGEST_SLICE_BYTES = 60 * 1024;

const none: readonly never[] = [];

/**
 * A track whose moves are all alike: slice by slice, it receives from the same connections and sends on the same ones.
 * Without data it is a single empty move. One object serves many calls.
 */
export class Slices implements Track, Piece {
  done = true;
  from: readonly ReceiveConnection[] = none;
  to: readonly SendConnection[] = none;
  bytes = 0;
  own = -1;
  keep = -1;
  complete = false;
  #left = 0;
  #sliceBytes = 0;

  constructor(readonly combiner: Combiner) {}

  /**
   * @param own offset of this rank's own data, a part of which each move sends or keeps; -1 for none
   * @param keep offset of the result; -1 for none
   * @param complete true if the result is complete, so that averages are divided
   */
  start(
    from: readonly ReceiveConnection[],
    to: readonly SendConnection[],
    bytes: number,
    own: number,
    keep: number,
    complete: boolean,
    sliceBytes: number,
  ): void {
    this.done = false;
    this.from = from;
    this.to = to;
    this.own = own;
    this.keep = keep;
    this.complete = complete;
    this.#left = bytes;
    this.#sliceBytes = sliceBytes;
    this.bytes = Math.min(sliceBytes, bytes);
  }

  pass(inputs: readonly number[], outputs: readonly number[]): void {
    this.combiner.pass(this, inputs, this.from.length, outputs, this.to.length);
  }

  finish(): void {
    this.combiner.keep(this);
    this.#left -= this.bytes;
    if (this.own >= 0) this.own += this.bytes;
    if (this.keep >= 0) this.keep += this.bytes;
    this.bytes = Math.min(this.#sliceBytes, this.#left);
    this.done = this.bytes === 0;
  }
}
