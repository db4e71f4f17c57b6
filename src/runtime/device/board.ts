import { process } from '#platform/process';
import {
  BOARDS,
  boardStates,
  BOARD_BYTES,
  callBits,
  header,
  HEADER_BYTES,
  HEADER_TEXT,
  headerTimes,
  LAYOUT_VERSION,
  MAGIC,
  REPORT_WORDS,
  slot,
  SLOT_BYTES,
  SLOT_TEXT,
  SLOTS,
  slotStates,
  slotTimes,
  waitKinds,
  type WaitKind,
} from './board-layout.js';
import { CallRing, type EntryHolder } from './call-ring.js';
import { WaitWords } from './wait-report.js';
import { clockMs, wallClockMs } from '../platform/platform.js';
import { linkOf } from '../proc.js';
import { defined } from '../../defined.js';

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
  /** Its members as ranks of the job, in order; left out of the board where they take too much room. */
  readonly members?: readonly number[];
}

/**
 * This rank's board (board-layout.ts): identity, communicators, waits and the last calls. Only one thread writes it. Plain stores
 * suffice: a reader is another process, which sees them a moment later.
 */
export class Board {
  readonly #buffer: ArrayBufferLike;
  readonly #at: number;
  readonly #words: Int32Array;
  readonly #doubles: Float64Array;
  readonly #ring: CallRing;
  /** Communicators shown so far. */
  #shown = 0;

  /** @param at address of `BOARD_BYTES` bytes */
  constructor(buffer: ArrayBufferLike, at: number) {
    this.#buffer = buffer;
    this.#at = at;
    this.#words = new Int32Array(buffer, at, BOARD_BYTES / 4);
    this.#doubles = new Float64Array(buffer, at, BOARD_BYTES / 8);
    this.#ring = new CallRing(buffer, at, this.#words);
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

  /** A copy of its bytes. */
  bytes(): Uint8Array {
    return new Uint8Array(this.#buffer, this.#at, BOARD_BYTES).slice();
  }

  open({ rank, nRanks, facts }: Identity): void {
    const words = this.#words;
    words[header.rank] = rank;
    words[header.nRanks] = nRanks;
    words[header.pid] = process.pid;
    words[header.thread] = ownThread();
    this.#doubles[headerTimes.origin] = wallClockMs() - clockMs();
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

  /** Shows a communicator. If all slots are in use, only its number of calls is shown, once it is closed. */
  show({ id, name, rank, nRanks, members }: Shown): CallRecorder {
    const words = this.#words;
    let index = 0;
    while (index < SLOTS && words[wordOf(index)] !== slotStates.free) index++;
    // The last slot is not read; it is for communicators that find no place.
    const at = wordOf(index);
    words.fill(0, at, at + SLOT_BYTES / 4);
    words[at + slot.rank] = rank;
    words[at + slot.nRanks] = nRanks;
    const serial = (words[at + slot.serial] = (this.#shown++ % MOST_SERIALS) + 1);
    const facts = { id, name: name?.slice(0, 40) };
    const place = [at + slot.textLength, at * 4 + SLOT_TEXT, SLOT_BYTES - SLOT_TEXT] as const;
    if (!this.#write(JSON.stringify({ ...facts, members }), ...place)) this.#write(JSON.stringify(facts), ...place);
    Atomics.store(words, at, slotStates.open);
    return new CallRecorder(words, this.#doubles, at, this.#ring, serial);
  }

  /** Writes a text that fits: without its end it is no JSON. */
  #write(text: string, lengthWord: number, at: number, room: number): boolean {
    const bytes = new TextEncoder().encode(text);
    const fits = bytes.length <= room;
    if (fits) new Uint8Array(this.#buffer, this.#at + at, room).set(bytes);
    this.#words[lengthWord] = fits ? bytes.length : 0;
    return fits;
  }
}

/** Most entries of a block of messages: longer steps of programs are slow enough. */
const BLOCK_ENTRIES = 16;

/** Serials of communicators have 8 bits; none is 0. */
const MOST_SERIALS = 255;

/** Number of this thread in the kernel; 0 where it is not known. */
function ownThread(): number {
  return Number(/\d+$/.exec(linkOf('/proc/thread-self') ?? '')?.[0] ?? 0);
}

function wordOf(index: number): number {
  return (HEADER_BYTES + index * SLOT_BYTES) / 4;
}

function messageCode(sends: boolean, typeCode: number): number {
  return (typeCode << 4) | (sends ? callBits.send : callBits.recv);
}

/** A call that waits. */
interface WaitingCall {
  readonly code: number;
  readonly root: number;
  readonly count: number;
}

/** Shows the calls and waits of a communicator on the board of its rank. */
export class CallRecorder implements EntryHolder {
  readonly #words: Int32Array;
  readonly #doubles: Float64Array;
  readonly #slotAt: number;
  readonly #begunAt: number;
  /** Index of the first f64 of the slot. */
  readonly #timesAt: number;
  readonly #reports: readonly WaitWords[];
  readonly #isWaiting: boolean[] = Object.keys(waitKinds).map(() => false);
  readonly #ring: CallRing;
  /** Its serial, as calls in the ring have it. */
  readonly #mark: number;
  /** The last entry, if the next equal call may share it: its call, the number of its first one, and the first that may not. */
  #code = 0;
  #root = 0;
  #count = 0;
  #first = 0;
  #until = 0;
  /**
   * The last block of messages: keys of its entries, their number, the entry that repeats next, the word that counts its
   * calls, and the most that it may have.
   */
  readonly #block = new Int32Array(BLOCK_ENTRIES);
  readonly #sharesBlocks: boolean;
  #blockLength = 0;
  #next = 0;
  #counter = 0;
  #mostCalls = 0;
  /** Calls over the bootstrap network so far. */
  #outOfBand = 0;
  /** Number of the call that waits, or 0, and its entry in the ring. */
  #waiting = 0;
  #entry = -1;

  constructor(words: Int32Array, doubles: Float64Array, slotAt: number, ring: CallRing, serial: number) {
    this.#words = words;
    this.#doubles = doubles;
    this.#slotAt = slotAt;
    this.#ring = ring;
    this.#mark = serial << callBits.serialShift;
    this.#begunAt = slotAt + slot.begun;
    this.#sharesBlocks = defined(words[slotAt + slot.nRanks]) < 2 ** 13;
    this.#timesAt = slotAt / 2;
    const at = slotAt + slot.reports;
    this.#reports = Object.values(waitKinds).map((kind) => new WaitWords(words, at + kind * REPORT_WORDS, REPORT_WORDS));
  }

  /**
   * Shows that a call begins; one that does not wait counts as ended. It is on the path of every call.
   * @param number of calls that the communicator has begun, this one included
   */
  begin(number: number, code: number, root: number, count: number): void {
    if (number >= this.#until || code !== this.#code || root !== this.#root || count !== this.#count)
      this.#enter(number, code, root, count);
    this.#words[this.#begunAt] = number;
  }

  #enter(number: number, code: number, root: number, count: number): void {
    const left = this.#ring.share(this, code | this.#mark, number, root, count);
    this.#code = code;
    this.#root = root;
    this.#count = count;
    this.#first = number;
    this.#until = number + left;
  }

  release(): number {
    if (this.#until > 0) {
      this.#until = 0;
      return (this.#words[this.#begunAt] ?? 0) - this.#first;
    }
    const length = this.#blockLength;
    if (length === 0) return 0;
    this.#block[0] = this.#next = this.#blockLength = 0;
    return (this.#words[this.#counter] ?? 0) - length;
  }

  /** Shows that the last call waits. */
  wait(number: number, { code, root, count }: WaitingCall): void {
    const words = this.#words;
    const doubles = this.#doubles;
    const at = this.#slotAt;
    const timesAt = this.#timesAt;
    words[at + slot.code] = code;
    words[at + slot.root] = root;
    doubles[timesAt + slotTimes.count] = count;
    doubles[timesAt + slotTimes.order] = words[header.waits] = ((words[header.waits] ?? 0) + 1) | 0;
    words[at + slot.waited] = this.#waiting = number;
    const ring = this.#ring;
    if (this.#until === 0 || this.#first !== number) this.#enter(number, code, root, count);
    this.#entry = ring.wait();
    this.#until = 0;
  }

  /** Shows that the last call has ended, which may have waited. */
  end(): void {
    if (this.#waiting === 0) return;
    this.#words[this.#slotAt + slot.waited] = -this.#waiting;
    this.#waiting = 0;
    this.#ring.end(this.#entry, this.#isWaiting[waitKinds.collective] === true);
    this.resolve('collective');
  }

  /**
   * Records a message that has ended without a wait. Little bytecode: V8 inlines no more than so much on a message's way.
   * @param peer less than 2^13, unless sharing is off
   * @param count at most 4096
   */
  addMessage(sends: boolean, peer: number, typeCode: number, count: number): void {
    const next = this.#next;
    if (this.#block[next] !== ((peer << 19) | (count << 6) | (typeCode << 1) | (sends ? 33 : 32))) {
      this.#extend(sends, peer, typeCode, count);
      return;
    }
    const words = this.#words;
    const calls = (words[this.#counter] ?? 0) + 1;
    words[this.#counter] = calls;
    this.#next = next + 1 === this.#blockLength ? 0 : next + 1;
    if (calls >= this.#mostCalls) this.#block.fill(0);
  }

  /** Adds an entry to the block, unless it has begun to repeat, or begins another one. */
  #extend(sends: boolean, peer: number, typeCode: number, count: number): void {
    const [words, block, ring, length] = [this.#words, this.#block, this.#ring, this.#blockLength];
    const call = messageCode(sends, typeCode) | this.#mark;
    const isGrowing = block[0] !== 0 && words[this.#counter] === length && length < BLOCK_ENTRIES && length < this.#mostCalls;
    if (isGrowing && ring.extend(call, peer, count)) words[this.#counter] = length + 1;
    else {
      this.#counter = ring.add(call, peer, count);
      if (!this.#sharesBlocks) return;
      this.#mostCalls = 1 + ring.shareBlock(this);
    }
    // Never 0, which stands for the end.
    const key = (peer << 19) | (count << 6) | (typeCode << 1) | (sends ? 33 : 32);
    block[this.#blockLength] = this.#mostCalls > 1 ? key : 0;
    this.#blockLength++;
  }

  /** Records a message that waits. Returns its entry for {@link endApart}. */
  beginMessage(sends: boolean, peer: number, typeCode: number, count: number): number {
    return this.beginOperation(messageCode(sends, typeCode), peer, count);
  }

  /** Records an operation of a window that has ended without a wait. */
  operation(code: number, peer: number, count: number): void {
    this.#ring.add(code | this.#mark, peer, count);
  }

  /** Records an operation of a window that waits. Returns its entry for {@link endApart}. */
  beginOperation(code: number, peer: number, count: number): number {
    this.#ring.add(code | this.#mark, peer, count);
    return this.#ring.wait();
  }

  /** Records a call over the bootstrap network. Returns its entry for {@link endOutOfBand}. */
  beginOutOfBand(code: number, sinceMs: number): number {
    const ring = this.#ring;
    ring.add(code | this.#mark, 0, this.#outOfBand++);
    const index = ring.wait();
    ring.started(index, sinceMs);
    return index;
  }

  endApart(entry: number): void {
    this.#ring.end(entry, false);
  }

  endOutOfBand(entry: number): void {
    this.#ring.end(entry, true);
  }

  /**
   * Shows a wait that has lasted for some time.
   * @param stillMs time without progress, as far as known
   * @param activity see encodeActivity()
   * @param late ranks that hold it up, as far as known
   */
  report(kind: WaitKind, sinceMs: number, stillMs: number, activity: readonly number[], late: readonly number[]): void {
    const index = waitKinds[kind];
    this.#doubles[this.#timesAt + slotTimes.since + index] = sinceMs;
    this.#reports[index]?.publish([...activity, stillMs | 0, ...late]);
    this.#isWaiting[index] = true;
    if (kind === 'collective') this.#ring.started(this.#entry, sinceMs);
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
    words[header.closedCalls] = (defined(words[header.closedCalls]) + defined(words[this.#begunAt])) | 0;
    Atomics.store(words, this.#slotAt, slotStates.free);
  }
}
