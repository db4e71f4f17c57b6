/** Shares of a block are whole pairs of cache lines, and so whole elements of any type. */
const ALIGNMENT = 128;

/**
 * Who sends what when in a ring of n ranks. It is the same for all of them but for the place in the ring, and consists
 * of moves: one slice that is received, sent, or received and passed on.
 *
 * An all-reduce cuts the data into blocks of n chunks. In step s, rank p works on chunk p - s: sends its own, then adds
 * its own to what it gets and passes the sum on; after n - 1 steps it holds a chunk that is complete, which then goes
 * round once more. Chunk c is therefore added in the order c, c + 1, …, c - 1, at whichever rank.
 *
 *     step    0     1 … n - 2                n - 1                           n … 2n - 3          2n - 2
 *             send  receive, reduce, send    receive, reduce, keep, send     receive, keep, send receive, keep
 *
 * A broadcast is a chain from the root; the rank before the root only keeps. For the root to hear from that rank too, it
 * sends the root an empty slice first.
 *
 * A barrier is an all-reduce of nothing without its second half: after n - 1 steps, news of all ranks have come.
 *
 * Empty slices do not travel, except the first of an operation (of each step, in a barrier).
 */
export class Schedule {
  // The current move.
  done = true;
  sends = false;
  receives = false;
  /** Whether what is received is combined with this rank's own. */
  reduces = false;
  /** Whether the outcome goes to this rank's output. */
  keeps = false;
  /** Bytes from the beginning of the array. */
  offset = 0;
  bytes = 0;

  readonly #chunkBytes: number;
  #kind: 'allReduce' | 'broadcast' | 'barrier' = 'barrier';
  #total = 0;
  /** Of a broadcast: places behind the root, and whether the root's output is not its input. */
  #distance = 0;
  #rootKeeps = false;

  #block = 0;
  #step = 0;
  /** What is left of the chunk, from `#from` to `#to`. */
  #from = 0;
  #to = 0;

  /**
   * @param nRanks at least 2
   * @param place of this rank in the ring
   * @param sliceBytes most bytes that a move is about; a multiple of 128
   * @param slicesPerChunk while one is worked on, the next travel. Fewer than the steps of a connection: ranks that had
   *   filled all steps with what they sent first would all wait for each other.
   */
  constructor(readonly nRanks: number, readonly place: number, readonly sliceBytes: number, slicesPerChunk: number) {
    this.#chunkBytes = slicesPerChunk * sliceBytes;
  }

  startAllReduce(bytes: number): void {
    this.#start('allReduce', bytes);
    this.#enterStep();
  }

  startBarrier(): void {
    this.#start('barrier', 0);
    this.#enterStep();
  }

  /** @param rootKeeps whether the root's output is another array than its input */
  startBroadcast(bytes: number, rootPlace: number, rootKeeps: boolean): void {
    this.#start('broadcast', bytes);
    this.#distance = (this.place - rootPlace + this.nRanks) % this.nRanks;
    this.#rootKeeps = rootKeeps;
    this.#enterPart();
  }

  /** Goes to the next move, or to the end. */
  next(): void {
    this.#from += this.bytes;
    if (this.#from < this.#to) {
      this.#takeSlice();
      return;
    }
    this.#step++;
    if (this.#kind === 'broadcast') this.#enterPart();
    else this.#enterStep();
  }

  #start(kind: 'allReduce' | 'broadcast' | 'barrier', bytes: number): void {
    this.done = false;
    this.#kind = kind;
    this.#total = bytes;
    this.#block = 0;
    this.#step = 0;
  }

  /** The first move of the current step, or of the next in which there is something to move. */
  #enterStep(): void {
    const n = this.nRanks;
    const last = this.#kind === 'barrier' ? n - 1 : 2 * n - 2;
    while (true) {
      if (this.#step > last) {
        this.#block += n * this.#chunkBytes;
        this.#step = 0;
        if (this.#block >= this.#total) {
          this.done = true;
          return;
        }
      }
      const step = this.#step;
      this.#setChunk((((this.place - step) % n) + n) % n);
      const empty = this.#from === this.#to;
      // A message that is sent in one step is received in the next.
      const travelsEmpty = (sentIn: number): boolean => this.#kind === 'barrier' || (this.#block === 0 && sentIn === 0);
      this.sends = step < last && (!empty || travelsEmpty(step));
      this.receives = step > 0 && (!empty || travelsEmpty(step - 1));
      this.reduces = this.receives && step < n;
      this.keeps = this.receives && step >= n - 1;
      if (this.sends || this.receives) {
        this.#takeSlice();
        return;
      }
      this.#step++;
    }
  }

  #setChunk(chunk: number): void {
    const bytes = Math.min(this.#total - this.#block, this.nRanks * this.#chunkBytes);
    const share = Math.ceil(bytes / this.nRanks / ALIGNMENT) * ALIGNMENT;
    this.#from = this.#block + Math.min(chunk * share, bytes);
    this.#to = this.#block + Math.min((chunk + 1) * share, bytes);
  }

  /**
   * A rank's broadcast has up to two parts: its data, and for the root and the rank before it the empty slice by which
   * they meet.
   */
  #enterPart(): void {
    const beforeRoot = this.nRanks - 1;
    const [isRoot, isLast] = [this.#distance === 0, this.#distance === beforeRoot];
    const parts = isRoot || isLast ? 2 : 1;
    this.done = this.#step >= parts;
    const meeting = isRoot ? this.#step === 1 : isLast && this.#step === 0;
    this.receives = meeting ? isRoot : !isRoot;
    this.sends = meeting ? isLast : !isLast;
    this.reduces = false;
    this.keeps = !meeting && (!isRoot || this.#rootKeeps);
    this.#from = 0;
    this.#to = meeting ? 0 : this.#total;
    this.#takeSlice();
  }

  #takeSlice(): void {
    this.offset = this.#from;
    this.bytes = Math.min(this.sliceBytes, this.#to - this.#from);
  }
}
