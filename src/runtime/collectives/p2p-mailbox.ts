import type { Segment } from '../device/segment.js';
import type { Team } from '../device/team.js';
import { SystemError } from '../../errors.js';
import type { Mismatch, Transfer } from './p2p-transfer.js';

/*
 * A mailbox from one rank to another of its host, in the heap of the sender, made at the first send. The sender writes
 * posts in turn; each begins with its number, stored last, so that one cache line brings a small message with its flag
 * (as LL does in NCCL). The receiver counts the posts that it has taken, which gives the sender credit for more.
 *
 *     0      posts taken u32                             written by the receiver
 *     64     1 once the receiver has left u32
 *     128    POSTS posts: | number u32 | type u32 | elements u32 u32 | address u32 | bytes u32 | place f64 | data |
 *
 * A message is one or more pieces, each a post. Where a piece's data are:
 *     in the post          up to INLINE_BYTES: the send is complete at once
 *     in the array         an array in the segment: the receiver copies from it, and the send waits until it has
 *     in the sender        a long array elsewhere, where the receiver can read it (device/peer-memory.ts): as in the array
 *     in a staging slot    another array: copied into slots in turn, from which the receiver copies
 */
const TAKEN = 0;
const RECEIVER_LEFT = 64;
const FIRST_POST = 128;
const POSTS = 16;
/** Messages up to this length are copied twice rather than waited for. */
export const INLINE_BYTES = 4096;
const HEADER_BYTES = 32;
/** Not a multiple of a large power of two, or the posts would share cache sets. */
const POST_BYTES = HEADER_BYTES + INLINE_BYTES + 96;
const MAILBOX_BYTES = FIRST_POST + POSTS * POST_BYTES;

const STAGE_SLOTS = 4;
/** Small enough that a slot is still in the cache when the receiver copies from it. */
const STAGE_SLOT_BYTES = 128 * 1024;
/** Longer pieces would keep a rank from looking after anything else for too long. */
const PLACED_PIECE_BYTES = 64 * 2 ** 20;

const TYPE = 1;
const COUNT_LOW = 2;
const COUNT_HIGH = 3;
const ADDRESS = 4;
const BYTES = 5;
/** Bytes from the post's beginning. */
const PLACE = 24;

/** Messages from this length on are read from where they are. */
const OPEN_BYTES = 32 * 1024;

/** Mailboxes that their senders have left and whose receivers may still read, by the segment they are in. */
const leftMailboxes = new WeakMap<Segment, LeftMailbox[]>();

interface LeftMailbox {
  readonly address: number;
  /** Of its staging slots; 0: none. */
  readonly stage: number;
}

/** The sender's end. */
export class Outbox {
  readonly polled = true;
  readonly #team: Team;
  readonly #words: Int32Array;
  readonly #numbers: Float64Array;
  readonly #address: number;
  /** The last post made. */
  #posted = 0;
  /** The last post known to be taken. */
  #taken = 0;
  /** Staging slots, in each the last post that used it; made when first needed, empty where there is no room. */
  #stage = -1;
  readonly #stagePosts = new Float64Array(STAGE_SLOTS);
  #stageTurn = 0;

  /**
   * @param to the receiver's place in the team
   * @throws SystemError `OUT_OF_MEMORY`
   */
  constructor(team: Team, readonly to: number) {
    this.#team = team;
    const { segment } = team;
    freeLeft(segment);
    this.#words = new Int32Array(segment.buffer);
    this.#numbers = new Float64Array(segment.buffer, 0, Math.floor(segment.bytes / 8));
    this.#address = segment.allocateBytes(MAILBOX_BYTES);
    new Uint8Array(segment.buffer, this.#address, MAILBOX_BYTES).fill(0);
    team.setMailbox(team.localRank, to, this.#address);
  }

  /** Hands over what there is room for. True once all of it is. */
  post(transfer: Transfer): boolean {
    do {
      if (this.#posted - this.#taken === POSTS && !this.#look()) return false;
      if (!this.#postPiece(transfer)) return false;
    } while (transfer.moved < transfer.bytes);
    transfer.lastPost = this.#posted;
    return true;
  }

  /**
   * Whether the receiver no longer needs the sender's array.
   * @throws InvalidArgumentError `BUFFER_DETACHED` when it does, but the array is no longer there
   */
  isTaken(transfer: Transfer): boolean {
    if (transfer.bytes <= INLINE_BYTES || !(transfer.operand.placed || transfer.place > 0)) return true;
    if (transfer.place > 0) transfer.operand.checkAttached(transfer.bytes);
    return this.#taken >= transfer.lastPost || (this.#look() && this.#taken >= transfer.lastPost);
  }

  /** Whether the receiver has left the communicator. */
  hasLeft(): boolean {
    return this.#team.hasLeft(this.to);
  }

  /** Leaves the mailbox to its receiver, or gives its memory back if that has left. */
  close(): void {
    const { segment } = this.#team;
    const mailbox = { address: this.#address, stage: Math.max(0, this.#stage) };
    if (this.hasLeft()) free(segment, mailbox);
    else leftMailboxes.set(segment, [...(leftMailboxes.get(segment) ?? []), mailbox]);
  }

  /** Reads what the receiver has taken. Numbers here go beyond 32 bits, those in memory don't. True if it is more. */
  #look(): boolean {
    const more = (Atomics.load(this.#words, (this.#address + TAKEN) / 4) - this.#taken) | 0;
    this.#taken += more;
    return more > 0;
  }

  #postPiece(transfer: Transfer): boolean {
    const { operand, bytes, moved } = transfer;
    const number = this.#posted + 1;
    const post = this.#address + FIRST_POST + (number % POSTS) * POST_BYTES;
    const left = bytes - moved;
    let address = 0;
    let place = 0;
    let piece = left;
    if (moved === 0 && bytes >= OPEN_BYTES && !operand.placed) transfer.place = operand.open();
    if (bytes > INLINE_BYTES && operand.placed) {
      piece = Math.min(left, PLACED_PIECE_BYTES);
      address = operand.address(moved);
    } else if (transfer.place > 0) {
      operand.checkAttached(bytes);
      piece = Math.min(left, PLACED_PIECE_BYTES);
      place = transfer.place + moved;
    } else if (bytes > INLINE_BYTES && this.#hasStage()) {
      const slot = this.#stageTurn % STAGE_SLOTS;
      if ((this.#stagePosts[slot] ?? 0) > this.#taken && !(this.#look() && (this.#stagePosts[slot] ?? 0) <= this.#taken)) return false;
      this.#stageTurn++;
      this.#stagePosts[slot] = number;
      piece = Math.min(left, STAGE_SLOT_BYTES);
      address = operand.read(moved, piece, this.#stage + slot * STAGE_SLOT_BYTES);
    } else {
      piece = Math.min(left, INLINE_BYTES);
      if (piece > 0) operand.copyTo(post + HEADER_BYTES, moved, piece);
    }
    const words = this.#words;
    const header = post / 4;
    words[header + TYPE] = transfer.type.code;
    words[header + COUNT_LOW] = transfer.count;
    words[header + COUNT_HIGH] = transfer.count / 2 ** 32;
    words[header + ADDRESS] = address;
    words[header + BYTES] = piece;
    this.#numbers[(post + PLACE) / 8] = place;
    Atomics.store(words, header, number | 0);
    this.#posted = number;
    transfer.moved += piece;
    return true;
  }

  /** Whether there are staging slots; where memory has no room for them, messages go through posts. */
  #hasStage(): boolean {
    if (this.#stage >= 0) return this.#stage > 0;
    try {
      this.#stage = this.#team.segment.allocateBytes(STAGE_SLOTS * STAGE_SLOT_BYTES);
    } catch (error) {
      if (!(error instanceof SystemError)) throw error;
      this.#stage = 0;
    }
    return this.#stage > 0;
  }
}

/** The receiver's end. */
export class Inbox {
  readonly polled = true;
  readonly #team: Team;
  readonly #words: Int32Array;
  readonly #numbers: Float64Array;
  #address = 0;
  /** The last post taken. */
  #taken = 0;

  /** @param from the sender's place in the team */
  constructor(team: Team, readonly from: number) {
    this.#team = team;
    this.#words = new Int32Array(team.segment.buffer);
    this.#numbers = new Float64Array(team.segment.buffer, 0, Math.floor(team.segment.bytes / 8));
  }

  /**
   * Takes what has come of a message. True once all of it has.
   * @throws what `mismatch` makes of a message of another type or length
   */
  pull(transfer: Transfer, mismatch: Mismatch): boolean {
    if (this.#address === 0 && !this.#find()) return false;
    const words = this.#words;
    do {
      const number = this.#taken + 1;
      const post = this.#address + FIRST_POST + (number % POSTS) * POST_BYTES;
      const header = post / 4;
      if (Atomics.load(words, header) !== (number | 0)) return false;
      if (!transfer.met) {
        const type = words[header + TYPE] ?? 0;
        const count = ((words[header + COUNT_LOW] ?? 0) >>> 0) + ((words[header + COUNT_HIGH] ?? 0) >>> 0) * 2 ** 32;
        if (type !== transfer.type.code || count !== transfer.count) throw mismatch(transfer, type, count);
        transfer.met = true;
      }
      const address = (words[header + ADDRESS] ?? 0) >>> 0;
      const bytes = (words[header + BYTES] ?? 0) >>> 0;
      const place = this.#numbers[(post + PLACE) / 8] ?? 0;
      if (place > 0) {
        if (!this.#read(transfer, bytes, place)) return false;
      } else if (bytes > 0) transfer.operand.write(transfer.moved, bytes, address === 0 ? post + HEADER_BYTES : address);
      transfer.moved += bytes;
      this.#taken = number;
      Atomics.store(words, (this.#address + TAKEN) / 4, number | 0);
    } while (transfer.moved < transfer.bytes);
    return true;
  }

  /** Whether the sender has left the communicator. */
  hasLeft(): boolean {
    return this.#team.hasLeft(this.from);
  }

  /** Tells the sender that its mailbox will not be read any more. */
  close(): void {
    if (this.#address !== 0 || this.#find()) Atomics.store(this.#words, (this.#address + RECEIVER_LEFT) / 4, 1);
  }

  /** Reads a piece in the sender's memory. False if the sender is no longer there, or gave up: others tell what became of it. */
  #read({ operand, moved }: Transfer, bytes: number, place: number): boolean {
    const { members } = this.#team;
    if (!operand.readFrom(moved, bytes, members[this.from] ?? 0, place)) return false;
    return this.#team.abort() === undefined && this.#team.lastWords() === undefined;
  }

  #find(): boolean {
    this.#address = this.#team.mailbox(this.from, this.#team.localRank);
    return this.#address !== 0;
  }
}

/** Gives back the memory of mailboxes that both sides have left. */
function freeLeft(segment: Segment): void {
  const left = leftMailboxes.get(segment);
  if (left === undefined) return;
  const words = new Int32Array(segment.buffer);
  leftMailboxes.set(segment, left.filter((mailbox) => {
    if (Atomics.load(words, (mailbox.address + RECEIVER_LEFT) / 4) === 0) return true;
    free(segment, mailbox);
    return false;
  }));
}

function free(segment: Segment, { address, stage }: LeftMailbox): void {
  segment.freeBytes(address);
  if (stage > 0) segment.freeBytes(stage);
}
