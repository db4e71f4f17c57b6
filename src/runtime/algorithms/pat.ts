import { callKinds } from '../device/kernels/kernels.js';
import { InternalError } from '../../errors.js';
import type { PeerConnections, WantedEnd } from '../transport/peers.js';
import type { FifoSize, ReceiveConnection, SendConnection } from '../transport/transport.js';
import type { NetworkAlgorithm, NetworkPlayer } from './algorithm.js';
import { ALIGNMENT, alignedPiece } from './alignment.js';
import type { Combiner } from './combiner.js';
import { HEADER_BYTES, type Track } from './exchange.js';
import type { NetworkCall } from './network-call.js';
import { LONGEST_SLICE_BYTES } from './slices.js';

/** Longest message: its blocks together. */
const MESSAGE_BYTES = LONGEST_SLICE_BYTES;
const patFifo: FifoSize = { steps: 4, slotBytes: HEADER_BYTES + MESSAGE_BYTES };
/** With more ranks, a message would not have room for a pair of cache lines of each block. */
const MOST_RANKS = (2 * MESSAGE_BYTES) / ALIGNMENT;
/**
 * Largest block of a rank for which PAT's few messages are faster than a ring's many; measured (docs/notes/algorithms.md).
 */
const DEFAULT_BYTES = 16 * 1024;

export const pat: NetworkAlgorithm = {
  name: 'pat',
  kinds: ['allGather', 'reduceScatter'],
  mostRanks: MOST_RANKS,
  over: 'connections',
  defaultUpToBytes: (nRanks) => (nRanks > 3 ? DEFAULT_BYTES : 0),
  fifo: () => patFifo,
  ends: ({ order: { length } }, rank) => ({ sendTo: wanted(rank, length, 1), receiveFrom: wanted(rank, length, -1) }),
  open: ({ combiner, order, rank, connections }) => new Pat(combiner, rank, order.length, connections),
};

const none: readonly never[] = [];

/**
 * The algorithm *PAT* (parallel aggregated trees): all-gather and reduce-scatter in log2(n) rounds, for any number of ranks
 * and for small data, where the n - 1 messages of a ring take longest. Each rank's block goes down a binomial tree of its
 * own. All these trees are rotations of each other, so that in one round a rank sends the blocks of many trees to the same
 * rank, in one message.
 *
 *     all-gather      round 0: distance 1    round 1: distance 2       round 2: distance 4
 *     r sends         block r                blocks r, r - 1           blocks r, r - 1, r - 2, r - 3
 *     to              rank r + 1             rank r + 2                rank r + 4
 *                                                                      (in the last round only the missing blocks)
 *
 * A reduce-scatter is the reverse: the greatest distance first, around the circle in the other direction, sums instead of
 * copies. Rank r ends with the sum of block r; the order of its additions depends on n and r alone.
 *
 * Blocks are divided into columns, so that the message of a round fits into a slot. Every move is a whole message.
 */
class Pat implements NetworkPlayer, Track {
  readonly #n: number;
  /** By round of the all-gather. */
  readonly #distances: readonly number[];
  readonly #forth: Rounds;
  readonly #back: Rounds;
  readonly #columnBytes: number;
  readonly #tracks: readonly Track[] = [this];
  /** The column's sums in a reduce-scatter: of this rank's block, of the previous rank's, … */
  #sums = -1;
  /** Number of sums that have begun; all others are still this rank's input. */
  #begun = 0;

  done = true;
  from: readonly ReceiveConnection[] = none;
  to: readonly SendConnection[] = none;
  bytes = 0;
  #gathers = true;
  #blockBytes = 0;
  #column = 0;
  #width = 0;
  #round = 0;
  #sent = false;

  constructor(
    readonly combiner: Combiner,
    readonly rank: number,
    nRanks: number,
    { sends, receives }: PeerConnections,
  ) {
    this.#n = nRanks;
    this.#distances = distances(nRanks);
    const rounds = this.#distances.length;
    this.#forth = roundsOf(sends.slice(0, rounds), receives.slice(0, rounds));
    this.#back = roundsOf(sends.slice(rounds), receives.slice(rounds));
    const messageBytes = Math.min(...sends.map(({ size }) => size.slotBytes)) - HEADER_BYTES;
    this.#columnBytes = alignedPiece(messageBytes, Math.ceil(nRanks / 2));
  }

  start({ kind, bytes }: NetworkCall): readonly Track[] {
    switch (kind) {
      case callKinds.allGather:
        return this.#allGather(bytes);
      case callKinds.reduceScatter:
        return this.#reduceScatter(bytes);
      default:
        throw new InternalError('INTERNAL', `PAT has no call of kind ${kind}`);
    }
  }

  /** @param bytes of a block */
  #allGather(bytes: number): readonly Track[] {
    this.combiner.destination.copyFrom(this.combiner.source, 0, this.rank * bytes, bytes);
    return this.#start(true, bytes);
  }

  /** @param bytes of a block */
  #reduceScatter(bytes: number): readonly Track[] {
    if (this.#sums < 0) this.#sums = this.combiner.team.allocateBytes(Math.ceil(this.#n / 2) * this.#columnBytes);
    return this.#start(false, bytes);
  }

  // ── the work, as a track ──────────────────────────────────────────────────────────────────────────────────────────

  pass(inputs: readonly number[], outputs: readonly number[]): void {
    const count = this.#messageBlocks();
    const address = (this.#sent ? inputs[0] : outputs[0]) ?? 0;
    for (let block = 0; block < count && this.#width > 0; block++) {
      const at = address + block * this.#width;
      if (this.#gathers) {
        if (this.#sent) this.combiner.destination.write(this.#place(this.#distance() + block), this.#width, at);
        else this.#copyTo(at, this.combiner.destination.read(this.#place(block), this.#width, at));
      } else if (this.#sent) this.#add(block, at);
      else this.#copyTo(at, this.#sumOf(this.#distance() + block, at));
    }
  }

  finish(): void {
    if (!this.#sent) {
      this.#enter(this.#round, true);
      return;
    }
    if (!this.#gathers) this.#begun = Math.max(this.#begun, this.#messageBlocks());
    if (++this.#round < this.#distances.length) {
      this.#enter(this.#round, false);
      return;
    }
    if (!this.#gathers && this.#width > 0) {
      this.combiner.complete(this.#sums, this.#width);
      this.combiner.destination.write(this.#column, this.#width, this.#sums);
    }
    this.#column += this.#width;
    if (this.#column < this.#blockBytes) this.#enterColumn();
    else this.done = true;
  }

  #start(gathers: boolean, blockBytes: number): readonly Track[] {
    this.done = false;
    this.#gathers = gathers;
    this.#blockBytes = blockBytes;
    this.#column = 0;
    this.#enterColumn();
    return this.#tracks;
  }

  #enterColumn(): void {
    this.#width = Math.min(this.#columnBytes, this.#blockBytes - this.#column);
    this.#begun = 0;
    this.#round = 0;
    this.#enter(0, false);
  }

  /** In each round a rank first sends, then takes the message sent to it. */
  #enter(round: number, sent: boolean): void {
    this.#sent = sent;
    const { sends, receives } = this.#gathers ? this.#forth : this.#back;
    const connection = this.#gathers ? round : this.#distances.length - 1 - round;
    this.from = sent ? (receives[connection] ?? none) : none;
    this.to = sent ? none : (sends[connection] ?? none);
    this.bytes = this.#messageBlocks() * this.#width;
  }

  #distance(): number {
    return this.#distances[this.#gathers ? this.#round : this.#distances.length - 1 - this.#round] ?? 0;
  }

  #messageBlocks(): number {
    const distance = this.#distance();
    return Math.min(distance, this.#n - distance);
  }

  /** Offset of the column in the block of the rank `behind` positions before this one, in an array with a block for each. */
  #place(behind: number): number {
    return ((((this.rank - behind) % this.#n) + this.#n) % this.#n) * this.#blockBytes + this.#column;
  }

  /** Address of this rank's current sum, or `room`. */
  #sumOf(behind: number, room: number): number {
    return behind < this.#begun ? this.#sums + behind * this.#width : this.combiner.own(this.#place(behind), this.#width, room);
  }

  #add(behind: number, address: number): void {
    const sum = this.#sums + behind * this.#width;
    this.combiner.add(address, this.#sumOf(behind, sum), sum, this.#width);
  }

  #copyTo(address: number, source: number): void {
    if (source !== address) this.combiner.segment.kernels.copy(address, source, this.#width);
  }
}

/** The connections of each round, as lists of one. */
interface Rounds {
  readonly sends: readonly (readonly SendConnection[])[];
  readonly receives: readonly (readonly ReceiveConnection[])[];
}

function roundsOf(sends: readonly SendConnection[], receives: readonly ReceiveConnection[]): Rounds {
  return { sends: sends.map((end) => [end]), receives: receives.map((end) => [end]) };
}

/** All powers of two below the number of ranks. */
function distances(nRanks: number): number[] {
  const found: number[] = [];
  for (let distance = 1; distance < nRanks; distance *= 2) found.push(distance);
  return found;
}

/** Ends by round: those of the all-gather, then those of the reduce-scatter, in the other direction. */
function wanted(rank: number, nRanks: number, direction: 1 | -1): WantedEnd[] {
  const ends = (name: string, sign: number): WantedEnd[] =>
    distances(nRanks).map((distance) => ({ peer: (rank + sign * distance + nRanks) % nRanks, name: `${name} ${distance}` }));
  return [...ends('forth', direction), ...ends('back', -direction)];
}
