import { eachMove, Moves, type EndSets, type ScheduledEnd } from './moves.js';
import { ConnectionTable, type Schedule, type ScheduledCall, type Worker } from './schedule.js';

/**
 * The trees of PAT (pat.ts) in rounds, for few bytes: all that goes from one rank to another is one message a column, of as many
 * ranges as trees go that way.
 *
 *     all-gather      round 0: distance 4    round 1: distance 2       round 2: distance 1         8 ranks
 *     r sends         block r                blocks r, r - 4           blocks r, r - 2, r - 4, r - 6
 *     to              rank r + 4             rank r + 2                rank r + 1
 *
 * A reduce-scatter is the same backwards: rank r sends what its place in each tree has added up, and ends with the sum of block
 * r. So the order of additions depends on the number of ranks and on r alone. Sums on the way are stored.
 *
 * A column is the part of the blocks that is in flight at a time. In each round a rank first sends, then receives.
 */
export class PatMoves extends Moves {
  readonly #rank: number;
  readonly #nRanks: number;
  readonly #nRounds: number;
  #gathers = true;
  #copies = false;
  #blockBytes = 0;
  #columnBytes = 0;
  #column = 0;
  #round = 0;
  #isReceiving = false;

  /** @param nRanks at least 2 */
  constructor(rank: number, nRanks: number) {
    super();
    this.#rank = rank;
    this.#nRanks = nRanks;
    this.#nRounds = patRounds(nRanks);
  }

  /**
   * @param blockBytes length of a rank's block
   * @param columnBytes most bytes of a block in a message
   * @param copies true if this rank's block is not yet in its place in the output
   */
  startAllGather(blockBytes: number, columnBytes: number, copies: boolean): void {
    this.#copies = copies;
    this.#start(true, blockBytes, columnBytes);
  }

  startReduceScatter(blockBytes: number, columnBytes: number): void {
    this.#start(false, blockBytes, columnBytes);
  }

  next(): void {
    if (!this.#isReceiving) {
      this.#enter(this.#round, true);
      return;
    }
    if (this.#round + 1 < this.#nRounds) {
      this.#enter(this.#round + 1, false);
      return;
    }
    this.#column += this.bytes;
    this.done = this.#column >= this.#blockBytes;
    if (!this.done) this.#enterColumn();
  }

  override select(range: number): void {
    if (this.#gathers) this.#selectGathered(range);
    else this.#selectSum(range);
  }

  #start(gathers: boolean, blockBytes: number, columnBytes: number): void {
    this.done = false;
    this.#gathers = gathers;
    this.#blockBytes = blockBytes;
    this.#columnBytes = columnBytes;
    this.#column = 0;
    this.#enterColumn();
  }

  #enterColumn(): void {
    this.bytes = Math.min(this.#columnBytes, this.#blockBytes - this.#column);
    this.#enter(0, false);
  }

  #enter(round: number, isReceiving: boolean): void {
    this.#round = round;
    this.#isReceiving = isReceiving;
    const set = setOf(this.#bit(), this.#gathers);
    this.receives = isReceiving ? set : 0;
    this.sends = isReceiving ? 0 : set;
    const distance = 1 << this.#bit();
    // Places away 0, 2 · distance, 4 · distance, …, from which a tree goes on over the distance: see continues().
    this.nRanges = Math.ceil((this.#nRanks - distance) / (2 * distance));
    this.select(0);
    this.isPlain = this.nRanges === 1 && this.again < 0 && this.held === 'none' && !this.holds;
  }

  /** The distance of the round is 2^bit. */
  #bit(): number {
    return this.#gathers ? this.#nRounds - 1 - this.#round : this.#round;
  }

  #selectGathered(range: number): void {
    const distance = 1 << this.#bit();
    const away = 2 * distance * range + (this.#isReceiving ? distance : 0);
    const isOwn = away === 0;
    const place = this.#place(away);
    this.own = isOwn ? this.#column : -1;
    this.again = this.#isReceiving || isOwn ? -1 : place;
    this.keep = this.#isReceiving || (isOwn && this.#round === 0 && this.#copies) ? place : -1;
    this.held = 'none';
    this.holds = false;
    this.complete = false;
  }

  #selectSum(range: number): void {
    const bit = this.#bit();
    const distance = 1 << bit;
    const away = 2 * distance * range + (this.#isReceiving ? 0 : distance);
    // Places that are odd multiples of the distance have sent; the others that are still under way added up something in the
    // first round, unless they are the last.
    const isStored = bit > 0 && away + 1 < this.#nRanks;
    const isLast = this.#isReceiving && this.#round === this.#nRounds - 1;
    this.held = !isStored ? 'none' : 'last';
    this.own = isStored ? -1 : this.#place(away);
    this.again = -1;
    this.holds = this.#isReceiving && !isLast;
    this.stored = (away >> 1) * this.bytes;
    this.keep = isLast ? this.#column : -1;
    this.complete = isLast;
  }

  /** Offset of the column in the block of the rank `away` positions before this one, in an array with a block for each. */
  #place(away: number): number {
    return ((this.#rank - away + this.#nRanks) % this.#nRanks) * this.#blockBytes + this.#column;
  }
}

/** Number of rounds. */
function patRounds(nRanks: number): number {
  return Math.ceil(Math.log2(nRanks));
}

/** Room for sums in a reduce-scatter. */
export function patStoreBytes(nRanks: number, columnBytes: number): number {
  return Math.ceil(nRanks / 2) * columnBytes;
}

/** Set of the connection of a round: none, those of all-gathers by bit of the distance, those of reduce-scatters. */
function setOf(bit: number, gathers: boolean): number {
  return 1 + 2 * bit + (gathers ? 0 : 1);
}

/** Connections of a rank: at each distance with the rank after it and the rank before it. */
export function patEnds(rank: number, nRanks: number): EndSets {
  const sets = (isSending: boolean): (readonly ScheduledEnd[])[] => [
    [],
    ...Array.from({ length: patRounds(nRanks) }, (_, bit) => 2 ** bit).flatMap((distance) => {
      const forth = { peer: (rank + distance) % nRanks, name: `forth ${distance}` };
      const back = { peer: (rank - distance + nRanks) % nRanks, name: `back ${distance}` };
      return isSending ? [[forth], [back]] : [[{ ...back, name: forth.name }], [{ ...forth, name: back.name }]];
    }),
  ];
  return { sends: sets(true), receives: sets(false) };
}

/** The moves of all ranks. */
export function patRoundsSchedule(call: ScheduledCall, nRanks: number, columnBytes: number): Schedule {
  const table = new ConnectionTable();
  const numbers = new Map<string, number>();
  const numberOf = (from: number, to: number, name: string): number => {
    const key = `${from} ${to} ${name}`;
    const number = numbers.get(key) ?? table.add(from, to, 0);
    numbers.set(key, number);
    return number;
  };
  const blockBytes = call.bytes / nRanks;
  const workers = Array.from({ length: nRanks }, (_, rank): Worker => {
    const { sends, receives } = patEnds(rank, nRanks);
    const sendNumbers = sends.map((set) => set.map(({ peer, name }) => numberOf(rank, peer, name)));
    const receiveNumbers = receives.map((set) => set.map(({ peer, name }) => numberOf(peer, rank, name)));
    const moves = () => {
      const machine = new PatMoves(rank, nRanks);
      if (call.collective === 'AllGather') machine.startAllGather(blockBytes, columnBytes, true);
      else machine.startReduceScatter(blockBytes, columnBytes);
      return eachMove(machine, receiveNumbers, sendNumbers);
    };
    return { rank, channel: 0, moves };
  });
  const own = { scratchBytes: patStoreBytes(nRanks, columnBytes), isInPlace: false };
  return { call, nRanks, connections: table.all, workers, own };
}
