import { Moves, partBytes, type RankBlocks } from './moves.js';

/** Sizes by which the data of a ring are cut. */
export interface RingCut {
  /** Most bytes in a message. */
  readonly sliceBytes: number;
  /**
   * Messages of a chunk: while one is worked on, the next ones travel. Fewer than a connection holds: ranks that had filled
   * all slots with their first data would all wait for each other.
   */
  readonly slicesPerChunk: number;
  readonly grainBytes: number;
  /**
   * True if all ranks have to meet in every call, so that each learns what the others called. Empty messages are then sent only
   * where ranks would not meet otherwise; without, every step has its message, as in NCCL's kernels.
   */
  readonly meets: boolean;
}

type Kind = 'allReduce' | 'reduceScatter' | 'allGather' | 'barrier' | 'broadcast' | 'reduce';

/** Sets of connections: none, and that of the ring. */
const NONE = 0;
const RING = 1;

/**
 * The moves of one rank in a ring of n, which differ between ranks only by the position. A move is one slice that is received,
 * sent, or received and passed on.
 *
 * An all-reduce divides the data into columns of n chunks. In step s, position p works on chunk p - 1 - s: it sends its own, then
 * adds its own to what it receives and passes the sum on. After n - 1 steps it has a complete chunk, which then goes around
 * once more. So chunk c is added in the order c + 1, c + 2, …, c on every rank.
 *
 *     step    0     1 … n - 2                n - 1                           n … 2n - 3          2n - 2
 *             send  receive, reduce, send    receive, reduce, keep, send     receive, keep, send receive, keep
 *
 * A reduce-scatter is its first half on the ranks' blocks; an all-gather is its second half. A column is the part of each block
 * that is in flight at a time.
 *
 * A broadcast is a chain from the root; the rank before the root only keeps the data. It sends nothing to the root, so where
 * ranks have to meet, the root sends itself an empty slice around the chain. A reduce is a chain that ends at the root; its first
 * rank receives an empty slice from the root.
 *
 * A barrier is a reduce-scatter of nothing: after n - 1 steps, each rank has received a message that depends on all others.
 */
export class RingMoves extends Moves {
  readonly #order: ArrayLike<number>;
  readonly #place: number;
  readonly #cut: RingCut;
  readonly #chunkBytes: number;
  #kind: Kind = 'barrier';
  #total = 0;
  /** Start of the data in the arrays of calls without blocks. */
  #base = 0;
  /** Broadcast or reduce: number of positions after the root, and whether the root's data have to be in its output. */
  #distance = 0;
  #rootKeeps = false;
  /** All-gather or reduce-scatter: the blocks, and whether this rank's own must be copied. */
  #blocks: RankBlocks | undefined;
  #copiesOwn = false;

  #column = 0;
  #step = 0;
  /** Remaining part of the chunk, in the whole data or in the block: from `#from` to `#to`. */
  #from = 0;
  #to = 0;
  /** Start of the data or the block in the input and the output; -1 if not used in this step. */
  #ownBase = -1;
  #keepBase = -1;

  /**
   * @param order the rank at each position in the ring; at least 2
   * @param place position of this rank
   */
  constructor(order: ArrayLike<number>, place: number, cut: RingCut) {
    super();
    this.#order = order;
    this.#place = place;
    this.#cut = cut;
    this.#chunkBytes = cut.slicesPerChunk * cut.sliceBytes;
  }

  /** @param start of the data in the arrays */
  startAllReduce(bytes: number, start: number): void {
    this.#start('allReduce', bytes, start);
    this.#enterStep();
  }

  /** @param blocks of the input */
  startReduceScatter(blocks: RankBlocks): void {
    this.#blocks = blocks;
    this.#start('reduceScatter', blocks.longest, 0);
    this.#enterStep();
  }

  /** @param copiesOwn true if this rank's block is not yet in its place in the output, whose blocks are given */
  startAllGather(blocks: RankBlocks, copiesOwn: boolean): void {
    this.#blocks = blocks;
    this.#copiesOwn = copiesOwn;
    this.#start('allGather', blocks.longest, 0);
    this.#enterStep();
  }

  startBarrier(): void {
    this.#start('barrier', 0, 0);
    this.#enterStep();
  }

  /** @param rootKeeps true if the root's output is another array than its input */
  startBroadcast(bytes: number, rootPlace: number, rootKeeps: boolean, start: number): void {
    this.#rootKeeps = rootKeeps;
    this.#startChain('broadcast', bytes, rootPlace, start);
  }

  startReduce(bytes: number, rootPlace: number, start: number): void {
    this.#startChain('reduce', bytes, rootPlace, start);
  }

  next(): void {
    this.#from += this.bytes;
    if (this.#from < this.#to) {
      this.#takeSlice();
      return;
    }
    this.#step++;
    if (this.#kind === 'broadcast' || this.#kind === 'reduce') this.#enterPart();
    else this.#enterStep();
  }

  #start(kind: Kind, bytes: number, start: number): void {
    this.done = bytes === 0 && !this.#cut.meets;
    this.#base = start;
    this.#kind = kind;
    this.#total = bytes;
    this.#column = 0;
    this.#step = 0;
  }

  #startChain(kind: 'broadcast' | 'reduce', bytes: number, rootPlace: number, start: number): void {
    const n = this.#order.length;
    this.#start(kind, bytes, start);
    this.#distance = (this.#place - rootPlace + n) % n;
    this.#enterPart();
  }

  /** Enters the first move of the current step, or of the next step with data. */
  #enterStep(): void {
    const n = this.#order.length;
    const kind = this.#kind;
    const last = kind === 'allReduce' ? 2 * n - 2 : n - 1;
    const columnBytes = kind === 'allReduce' ? n * this.#chunkBytes : this.#chunkBytes;
    while (!this.done) {
      if (this.#step > last) {
        this.#column += columnBytes;
        this.#step = 0;
        if (this.#column >= this.#total) {
          this.done = true;
          return;
        }
      }
      const step = this.#step;
      const part = (this.#place - step - (kind === 'allGather' ? 0 : 1) + 2 * n) % n;
      if (kind === 'allReduce') this.#setShare(part);
      else this.#setBlock(part);
      const isEmpty = this.#from === this.#to;
      const sends = step < last && (!isEmpty || this.#travelsEmpty(step));
      // A message that is sent in one step is received in the next.
      const receives = step > 0 && (!isEmpty || this.#travelsEmpty(step - 1));
      const reduces = step > 0 && step < n && (kind === 'allReduce' || kind === 'reduceScatter');
      const keeps = kind === 'allGather' ? step > 0 || this.#copiesOwn : kind !== 'barrier' && step >= n - 1;
      this.complete = reduces && step === n - 1;
      if (step > 0 && !reduces) this.#ownBase = -1;
      if (!keeps) this.#keepBase = -1;
      if (sends || receives) {
        this.sends = sends ? RING : NONE;
        this.receives = receives ? RING : NONE;
        this.#takeSlice();
        return;
      }
      this.#step++;
    }
  }

  /** True if this rank sends an empty message in a step that has no data for it. */
  #travelsEmpty(step: number): boolean {
    return !this.#cut.meets || this.#kind === 'barrier' || (this.#column === 0 && step === 0);
  }

  /** Selects one of the n parts of a column of an all-reduce. */
  #setShare(chunk: number): void {
    const n = this.#order.length;
    const bytes = Math.min(this.#total - this.#column, n * this.#chunkBytes);
    const share = Math.min(this.#chunkBytes, partBytes(bytes, n, this.#cut.grainBytes));
    this.#from = this.#column + Math.min(chunk * share, bytes);
    this.#to = this.#column + Math.min((chunk + 1) * share, bytes);
    this.#ownBase = this.#base;
    this.#keepBase = this.#base;
  }

  /**
   * Selects the column's part of the block of the rank at a position. In this rank's own array, the block is the whole array.
   */
  #setBlock(place: number): void {
    const rank = this.#order[place] ?? 0;
    const bytes = this.#blocks?.bytes[rank] ?? 0;
    const base = this.#blocks?.from[rank] ?? 0;
    const within = this.#blocks?.within[rank] ?? 0;
    this.#from = Math.min(this.#column, bytes);
    this.#to = this.#kind === 'barrier' ? this.#from : Math.min(this.#column + this.#chunkBytes, bytes);
    this.#ownBase = this.#kind === 'reduceScatter' ? base : within;
    this.#keepBase = this.#kind === 'allGather' ? base : within;
  }

  /**
   * Enters the next of up to two parts of a rank's chain: its data, and the empty slice that connects the root with the rank that
   * would otherwise receive nothing.
   */
  #enterPart(): void {
    const broadcast = this.#kind === 'broadcast';
    const isRoot = this.#distance === 0;
    // The rank that receives in a broadcast but never sends, or sends in a reduce but never receives.
    const isEnd = this.#distance === (broadcast ? this.#order.length - 1 : 1);
    const meets = this.#cut.meets && (isRoot || isEnd);
    this.done ||= this.#step >= (meets ? 2 : 1);
    const meeting = meets && this.#step === (isRoot === broadcast ? 1 : 0);
    const isReceiving = meeting ? broadcast === isRoot : broadcast ? !isRoot : !isEnd;
    const isSending = meeting ? !isReceiving : broadcast ? !isEnd : !isRoot;
    this.receives = isReceiving ? RING : NONE;
    this.sends = isSending ? RING : NONE;
    this.complete = !broadcast && isRoot;
    this.#from = 0;
    this.#to = meeting ? 0 : this.#total;
    this.#ownBase = !meeting && (!broadcast || isRoot) ? this.#base : -1;
    this.#keepBase = !meeting && (broadcast ? !isRoot || this.#rootKeeps : isRoot) ? this.#base : -1;
    this.#takeSlice();
  }

  #takeSlice(): void {
    this.bytes = Math.min(this.#cut.sliceBytes, this.#to - this.#from);
    this.own = this.#ownBase < 0 ? -1 : this.#ownBase + this.#from;
    this.keep = this.#keepBase < 0 ? -1 : this.#keepBase + this.#from;
  }
}
