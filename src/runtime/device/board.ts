import {
  BOARDS,
  boardStates,
  BOARD_BYTES,
  header,
  HEADER_BYTES,
  HEADER_TEXT,
  headerTimes,
  KEPT,
  LAYOUT_VERSION,
  MAGIC,
  RECORD_BYTES,
  REPORT_WORDS,
  RUNS,
  SINCE,
  slot,
  SLOT_BYTES,
  SLOT_SHIFT,
  SLOT_TEXT,
  SLOTS,
  slotStates,
  TIMES,
  waitKinds,
  type WaitKind,
} from './board-layout.js';
import { WaitWords } from './wait-report.js';

/** The clock is read at every so many calls. */
const CALLS_PER_CLOCK = 256;

/** Identity of a rank, for readers of its board. */
interface Identity {
  readonly rank: number;
  readonly nRanks: number;
  /** Written as JSON; see observe/read-boards.ts. */
  readonly facts: object;
}

/** A communicator, for readers of a board. */
interface Shown {
  /** Equal on all its ranks, and for no other communicator of the job. */
  readonly id: string;
  readonly name: string | undefined;
  readonly rank: number;
  readonly nRanks: number;
}

/**
 * This rank's board (board-layout.ts): identity, communicators, waits and last calls. Only one thread writes it. Plain stores
 * suffice: a reader is another process, which sees them a moment later.
 */
export class Board {
  readonly #buffer: ArrayBufferLike;
  readonly #at: number;
  readonly #words: Int32Array;
  readonly #doubles: Float64Array;

  /** @param at address of `BOARD_BYTES` bytes */
  constructor(buffer: ArrayBufferLike, at: number) {
    this.#buffer = buffer;
    this.#at = at;
    this.#words = new Int32Array(buffer, at, BOARD_BYTES / 4);
    this.#doubles = new Float64Array(buffer, at, BOARD_BYTES / 8);
  }

  /** A board that no other process can read. */
  static ofOwn(): Board {
    return new Board(new ArrayBuffer(BOARD_BYTES), 0);
  }

  /** Notes in a segment where its boards are. */
  static announce(buffer: ArrayBufferLike, nRanks: number, at: number): void {
    const words = new Int32Array(buffer);
    words[BOARDS + 1] = LAYOUT_VERSION;
    words[BOARDS + 2] = nRanks;
    words[BOARDS + 3] = at;
    Atomics.store(words, BOARDS, MAGIC);
  }

  open({ rank, nRanks, facts }: Identity): void {
    const words = this.#words;
    words[header.rank] = rank;
    words[header.nRanks] = nRanks;
    words[header.pid] = process.pid;
    this.#doubles[headerTimes.origin] = performance.timeOrigin;
    this.#write(JSON.stringify(facts), header.textLength, HEADER_TEXT, HEADER_BYTES - HEADER_TEXT);
    Atomics.store(words, header.state, boardStates.open);
  }

  close(): void {
    Atomics.store(this.#words, header.state, boardStates.closed);
  }

  /** Shows the use of this rank's heap. */
  setMemory(usedBytes: number, heapBytes: number): void {
    this.#doubles[headerTimes.used] = usedBytes;
    this.#doubles[headerTimes.heap] = heapBytes;
  }

  /** Shows a communicator, and records its calls. If all slots are in use, its calls are recorded without its name. */
  show({ id, name, rank, nRanks }: Shown): CallRecorder {
    const words = this.#words;
    let index = 0;
    while (index < SLOTS && words[wordOf(index)] !== slotStates.free) index++;
    // The last slot is for communicators that find no place: nobody reads it.
    const at = wordOf(index);
    words.fill(0, at, at + SLOT_BYTES / 4);
    words[at + slot.number] = words[header.shown] = ((words[header.shown] ?? 0) + 1) | 0;
    words[at + slot.rank] = rank;
    words[at + slot.nRanks] = nRanks;
    const text = JSON.stringify({ id, name: name?.slice(0, 40) });
    this.#write(text, at + slot.textLength, at * 4 + SLOT_TEXT, SLOT_BYTES - SLOT_TEXT);
    Atomics.store(words, at, slotStates.open);
    return new CallRecorder(words, this.#doubles, at, index);
  }

  /** A copy of the board's bytes. */
  copy(): Uint8Array {
    return new Uint8Array(this.#buffer, this.#at, BOARD_BYTES).slice();
  }

  #write(text: string, lengthWord: number, at: number, room: number): void {
    const bytes = new TextEncoder().encode(text);
    // A text without its end is no JSON.
    const fits = bytes.length <= room;
    if (fits) new Uint8Array(this.#buffer, this.#at + at, room).set(bytes);
    this.#words[lengthWord] = fits ? bytes.length : 0;
  }
}

function wordOf(index: number): number {
  return (HEADER_BYTES + index * SLOT_BYTES) / 4;
}

/** Records the calls and waits of a communicator in the board of its rank. */
export class CallRecorder {
  readonly #words: Int32Array;
  readonly #doubles: Float64Array;
  readonly #floats: Float32Array;
  readonly #slotAt: number;
  readonly #begunAt: number;
  readonly #slotBits: number;
  readonly #reports: readonly WaitWords[];
  readonly #since: number;
  readonly #isWaiting: boolean[] = Object.keys(waitKinds).map(() => false);
  /** The last call. */
  #code = -1;
  #root = 0;
  #count = 0;
  /** Place and start of the last call whose time was read. */
  #timeAt = FIRST_TIME;
  #beganMs = 0;
  /** Number of that call. */
  #timed = 0;

  constructor(words: Int32Array, doubles: Float64Array, slotAt: number, index: number) {
    this.#words = words;
    this.#doubles = doubles;
    this.#floats = new Float32Array(words.buffer, words.byteOffset, words.length);
    this.#slotAt = slotAt;
    this.#begunAt = slotAt + slot.begun;
    this.#slotBits = index << SLOT_SHIFT;
    const at = slotAt + slot.reports;
    this.#reports = Object.values(waitKinds).map((kind) => new WaitWords(words, at + kind * REPORT_WORDS, REPORT_WORDS));
    this.#since = slotAt / 2 + SINCE;
  }

  /**
   * Records that a call begins; one that does not wait counts as ended. It is on the path of every call, so equal calls in a
   * row take one store.
   * @param number of calls that the communicator has begun, this one included
   */
  begin(code: number, root: number, count: number, number: number): void {
    this.#words[this.#begunAt] = number;
    if (code !== this.#code || count !== this.#count || root !== this.#root) this.#startRun(code, root, count, number);
    else if ((number & (CALLS_PER_CLOCK - 1)) === 0) this.#time(number, 0);
  }

  #startRun(code: number, root: number, count: number, number: number): void {
    this.#code = code;
    this.#root = root;
    this.#count = count;
    const words = this.#words;
    const runs = words[header.runs] ?? 0;
    const at = FIRST_RUN + (runs & (KEPT - 1)) * RECORD_WORDS;
    words[at] = code | this.#slotBits;
    words[at + 1] = root;
    this.#doubles[at / 2 + 1] = count;
    words[at + 4] = number;
    words[at + 5] = words[this.#slotAt + slot.number] ?? 0;
    words[header.runs] = (runs + 1) | 0;
    this.#time(number, 0);
  }

  /** Records that the last call waits. */
  wait(number: number): void {
    this.#time(number, -1);
    this.#words[this.#slotAt + slot.waiting] = number;
  }

  /** Records that the last call has ended, which may have waited. */
  end(number: number): void {
    if (this.#timed !== number) return;
    this.#floats[this.#timeAt + 4] = performance.now() - this.#beganMs;
    this.#words[this.#slotAt + slot.waiting] = 0;
    this.resolve('collective');
  }

  /** Start of the last call that waited. */
  get beganMs(): number {
    return this.#beganMs;
  }

  /**
   * Shows a wait that has lasted for some time.
   * @param stillMs time without progress, as far as known
   * @param activity see encodeActivity()
   * @param late ranks that hold it up, as far as known
   */
  report(kind: WaitKind, sinceMs: number, stillMs: number, activity: readonly number[], late: readonly number[]): void {
    const index = waitKinds[kind];
    this.#doubles[this.#since + index] = sinceMs;
    this.#reports[index]?.publish([...activity, stillMs | 0, ...late]);
    this.#isWaiting[index] = true;
  }

  /** Takes the report of a wait back. */
  resolve(kind: WaitKind): void {
    const index = waitKinds[kind];
    if (this.#isWaiting[index] !== true) return;
    this.#isWaiting[index] = false;
    this.#reports[index]?.publish([]);
  }

  /** Shows that the communicator has failed. */
  fail(): void {
    Atomics.store(this.#words, this.#slotAt, slotStates.failed);
  }

  close(): void {
    const words = this.#words;
    words[header.closedCalls] = ((words[header.closedCalls] ?? 0) + (words[this.#begunAt] ?? 0)) | 0;
    Atomics.store(words, this.#slotAt, slotStates.free);
  }

  #time(number: number, durationMs: number): void {
    const words = this.#words;
    const times = words[header.times] ?? 0;
    // A call that waits has been timed already, if it began a run.
    const isSame = this.#timed === number && number !== 0;
    if (!isSame) {
      this.#timeAt = FIRST_TIME + (times & (KEPT - 1)) * RECORD_WORDS;
      this.#beganMs = performance.now();
      words[header.times] = (times + 1) | 0;
    }
    this.#timed = number;
    const at = this.#timeAt;
    words[at] = words[this.#slotAt + slot.number] ?? 0;
    words[at + 1] = number;
    this.#doubles[at / 2 + 1] = this.#beganMs;
    this.#floats[at + 4] = durationMs;
  }
}

const RECORD_WORDS = RECORD_BYTES / 4;
const FIRST_RUN = RUNS / 4;
const FIRST_TIME = TIMES / 4;
