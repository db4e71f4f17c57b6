import { evenBlocks, eachMove, Moves, SliceMoves, type RankBlocks } from './moves.js';
import { ConnectionTable, type Local, type Move, type VerifiableCall, type VerifiableSchedule, type Worker } from './schedule.js';

/** Sets of connections of a worker: none, and the one with its peer. */
const NONE = 0;
const PEER = 1;

/** Moves that swap two blocks of two ranks: each slice is sent before the one that replaces it is taken. */
class SwapMoves extends Moves {
  override readonly overwrites = true;
  #at = 0;
  #end = 0;
  #sliceBytes = 0;

  start(from: number, bytes: number, sliceBytes: number): void {
    this.done = false;
    this.#at = from;
    this.#end = from + bytes;
    this.#sliceBytes = sliceBytes;
    this.#enter(true);
  }

  next(): void {
    if (this.sends === PEER) {
      this.#enter(false);
      return;
    }
    this.#at += this.bytes;
    this.done = this.#at === this.#end;
    this.#enter(true);
  }

  #enter(isSending: boolean): void {
    this.sends = isSending ? PEER : NONE;
    this.receives = isSending ? NONE : PEER;
    this.bytes = Math.min(this.#sliceBytes, this.#end - this.#at);
    this.own = isSending ? this.#at : -1;
    this.keep = isSending ? -1 : this.#at;
  }
}

/** A worker of {@link PairWork}. */
export interface PairWorker {
  readonly moves: Moves;
  /** Ranks that it receives from and sends to; -1 for none. */
  readonly from: number;
  readonly to: number;
  /** True if it sends a block or receives one, or both, and combines nothing. */
  readonly hasBlocks: boolean;
}

/** Numbers of the workers: first those with each other rank, one for each job, then those without a rank of their own. */
const RECEIVE = 0;
const SEND = 1;
const SWAP = 2;
const JOBS = 3;

/**
 * The workers of a rank in collectives whose data differ between pairs of ranks: one for each direction with each other rank, all
 * at the same time. A rank begins with the next one, so that not all begin with the same. In scans ranks are a chain: each adds
 * its input to what the one before it sends, and passes the result on. One object serves many calls.
 */
export class PairWork {
  readonly workers: readonly PairWorker[];
  /** Numbers of the workers that have work in the current call. */
  readonly busy: number[] = [];
  readonly #rank: number;
  readonly #nRanks: number;
  readonly #sliceBytes: number;
  /** By distance from this rank, less 1. */
  readonly #receiving: readonly SliceMoves[];
  readonly #sending: readonly SliceMoves[];
  readonly #swapping: readonly SwapMoves[];
  readonly #copying = new SliceMoves();
  readonly #chain = new SliceMoves();

  constructor(rank: number, nRanks: number, sliceBytes: number) {
    this.#rank = rank;
    this.#nRanks = nRanks;
    this.#sliceBytes = sliceBytes;
    const others = Array.from({ length: nRanks - 1 }, (_, index) => (rank + 1 + index) % nRanks);
    this.#receiving = others.map(() => new SliceMoves());
    this.#sending = others.map(() => new SliceMoves());
    this.#swapping = others.map(() => new SwapMoves());
    this.workers = [
      ...others.flatMap((peer, index): PairWorker[] => [
        { moves: this.#receiving[index] ?? this.#copying, from: peer, to: -1, hasBlocks: true },
        { moves: this.#sending[index] ?? this.#copying, from: -1, to: peer, hasBlocks: true },
        { moves: this.#swapping[index] ?? this.#copying, from: peer, to: peer, hasBlocks: true },
      ]),
      { moves: this.#copying, from: -1, to: -1, hasBlocks: false },
      { moves: this.#chain, from: rank - 1, to: rank + 1 < nRanks ? rank + 1 : -1, hasBlocks: false },
    ];
  }

  /**
   * @param sent this rank's blocks for each rank, in its input
   * @param received the blocks of each rank for this one, in its output
   */
  startAllToAll(sent: RankBlocks, received: RankBlocks): void {
    const rank = this.#rank;
    this.busy.length = 0;
    for (let distance = 1; distance < this.#nRanks; distance++) {
      const peer = (rank + distance) % this.#nRanks;
      this.#receive(peer, received.from[peer] ?? 0, received.bytes[peer] ?? 0);
      this.#send(peer, sent.from[peer] ?? 0, sent.bytes[peer] ?? 0);
    }
    this.#copy(sent.from[rank] ?? 0, received.from[rank] ?? 0, sent.bytes[rank] ?? 0);
  }

  /** An all-to-all whose input and output are the same memory. */
  startSwap(blocks: RankBlocks): void {
    this.busy.length = 0;
    for (let distance = 1; distance < this.#nRanks; distance++) {
      const peer = (this.#rank + distance) % this.#nRanks;
      this.#swapping[distance - 1]?.start(blocks.from[peer] ?? 0, blocks.bytes[peer] ?? 0, this.#sliceBytes);
      this.busy.push((distance - 1) * JOBS + SWAP);
    }
  }

  /**
   * @param blocks of the root's output; unused on other ranks
   * @param from offset of this rank's block in its input
   */
  startGather(blocks: RankBlocks, root: number, from: number, bytes: number): void {
    this.busy.length = 0;
    if (this.#rank !== root) {
      this.#send(root, from, bytes);
      return;
    }
    this.#copy(from, blocks.from[root] ?? 0, bytes);
    for (let distance = 1; distance < this.#nRanks; distance++) {
      const peer = (root + distance) % this.#nRanks;
      this.#receive(peer, blocks.from[peer] ?? 0, blocks.bytes[peer] ?? 0);
    }
  }

  /**
   * @param blocks of the root's input; unused on other ranks
   * @param to offset of this rank's block in its output
   */
  startScatter(blocks: RankBlocks, root: number, to: number, bytes: number): void {
    this.busy.length = 0;
    if (this.#rank !== root) {
      this.#receive(root, to, bytes);
      return;
    }
    this.#copy(blocks.from[root] ?? 0, to, bytes);
    for (let distance = 1; distance < this.#nRanks; distance++) {
      const peer = (root + distance) % this.#nRanks;
      this.#send(peer, blocks.from[peer] ?? 0, blocks.bytes[peer] ?? 0);
    }
  }

  startScan(bytes: number, isExclusive: boolean): void {
    this.busy.length = 0;
    const [isFirst, isLast] = [this.#rank === 0, this.#rank === this.#nRanks - 1];
    const keep = isExclusive && isFirst ? -1 : 0;
    const own = isExclusive && isLast ? -1 : 0;
    const exclusive = isExclusive && !isFirst && !isLast;
    this.#chain.start(isFirst ? NONE : PEER, isLast ? NONE : PEER, bytes, own, keep, true, this.#sliceBytes, exclusive);
    this.busy.push(this.workers.length - 1);
  }

  #receive(peer: number, to: number, bytes: number): void {
    const index = this.#indexOf(peer);
    this.#receiving[index]?.start(PEER, NONE, bytes, -1, to, false, this.#sliceBytes);
    this.busy.push(index * JOBS + RECEIVE);
  }

  #send(peer: number, from: number, bytes: number): void {
    const index = this.#indexOf(peer);
    this.#sending[index]?.start(NONE, PEER, bytes, from, -1, false, this.#sliceBytes);
    this.busy.push(index * JOBS + SEND);
  }

  /** Copies this rank's own block. */
  #copy(from: number, to: number, bytes: number): void {
    if (bytes === 0) return;
    this.#copying.start(NONE, NONE, bytes, from, to, false, this.#sliceBytes);
    this.busy.push(this.workers.length - 2);
  }

  #indexOf(peer: number): number {
    return (peer - this.#rank - 1 + this.#nRanks) % this.#nRanks;
  }
}

/** The moves of all ranks; `isInPlace` swaps the blocks of an all-to-all. */
export function pairWorkSchedule(
  call: VerifiableCall,
  nRanks: number,
  sliceBytes: number,
  isInPlace = false,
): VerifiableSchedule {
  const table = new ConnectionTable();
  const numbers = new Map<number, number>();
  const setsOf = (from: number, to: number): (readonly number[])[] => {
    if (from < 0 || to < 0) return [[], []];
    const key = from * nRanks + to;
    const number = numbers.get(key) ?? table.add(from, to, 0);
    numbers.set(key, number);
    return [[], [number]];
  };
  const workers = Array.from({ length: nRanks }, (_, rank) => rank).flatMap((rank): Worker[] => {
    const work = new PairWork(rank, nRanks, sliceBytes);
    startPairs(work, call, nRanks, isInPlace);
    return work.busy.flatMap((number): Worker[] => {
      const worker = work.workers[number];
      if (worker === undefined) return [];
      const moves = [...eachMove(worker.moves, setsOf(worker.from, rank), setsOf(rank, worker.to))];
      return [{ rank, channel: 0, moves: () => (isInPlace ? inPlace(moves) : moves) }];
    });
  });
  return { call, nRanks, connections: table.all, workers, ...(isInPlace ? { own: { scratchBytes: 0, isInPlace } } : {}) };
}

function startPairs(work: PairWork, { collective, bytes, root }: VerifiableCall, nRanks: number, isInPlace: boolean): void {
  const blockBytes = bytes / nRanks;
  const blocks = evenBlocks(nRanks, blockBytes, { offset: 0, bytes: blockBytes });
  switch (collective) {
    case 'AllToAll':
      if (isInPlace) work.startSwap(blocks);
      else work.startAllToAll(blocks, blocks);
      break;
    case 'Gather':
      work.startGather(blocks, root, 0, blockBytes);
      break;
    case 'Scatter':
      work.startScatter(blocks, root, 0, blockBytes);
      break;
    case 'Scan':
    case 'ExclusiveScan':
      work.startScan(bytes, collective === 'ExclusiveScan');
      break;
    default:
      throw new RangeError(`pairs of ranks do no ${collective}`);
  }
}

/** The same moves on memory that is input and output. */
function* inPlace(moves: Iterable<Move>): Generator<Move> {
  const at = (buffer: Local['buffer'], offset: number): Local[] => (offset < 0 ? [] : [{ buffer, offset }]);
  for (const move of moves) {
    const local = { adds: at('input', move.input), writes: at('output', move.output), after: [] };
    yield { ...move, input: -1, output: -1, local };
  }
}
