import type { Team } from '../device/team.js';
import { DONE } from '../device/kernels/kernels.js';
import { SystemError } from '../../errors.js';
import { headOf, typeWord, type MessageHead, type Mismatch, type Transfer } from './p2p-transfer.js';
import { defined } from '../../defined.js';

/*
 * A mailbox from one rank to another of its host, in the sender's heap, made at the first send and freed when all
 * members have left the team. The sender writes posts in turn. Each begins with its number, stored last, so that one cache
 * line brings a small message with its flag (like LL in NCCL). The receiver counts the posts that it has taken, which is
 * the sender's credit for more.
 *
 *     0      posts taken u32                             written by the receiver
 *     64     1 once the sender has given up u32
 *     128    POSTS posts: | number u32 | type and tag u32 | elements u32 u32 | address u32 | bytes u32 | place f64 | data |
 *
 * A message is one or more pieces, each a post. The data of a piece are
 *     in the post          up to INLINE_BYTES
 *     in an eager slot     up to EAGER_BYTES: copied to a slot of the post's own, so that the send completes immediately
 *     in the array         an array in the segment: the receiver copies from it, and the send completes afterwards
 *     in the sender        a long array elsewhere, if the receiver can read it (device/peer-memory.ts): like "in the array"
 *     in a staging slot    any other array: copied to slots in turn, from which the receiver copies
 *
 * Short messages that are sent together are one post of type PACKED, whose count is that of the messages, in an eager slot:
 *
 *     | type and tag u32 | elements u32 | data, to a multiple of 8 bytes | type and tag u32 | …
 *
 * A message that is copied, or has arrived, and that nothing before it waits for, takes one kernel on each side and no Transfer
 * (device/kernels/assembly/messages.ts).
 */
const TAKEN = 0;
const GIVEN_UP = 64;
const FIRST_POST = 128;
const POSTS = 16;
const HEADER_BYTES = 32;
/** Two cache lines for each post: processors prefetch lines in pairs. */
const POST_BYTES = 128;
const INLINE_BYTES = POST_BYTES - HEADER_BYTES;
const MAILBOX_BYTES = FIRST_POST + POSTS * POST_BYTES;

/** Messages up to this length are copied twice, so that the sender need not wait. */
export const EAGER_BYTES = 4096;
/** Longest message that is packed with others. */
export const PACKED_BYTES = 512;
/** Type of a post of several messages, which no element type has. */
const PACKED = 255;
/** Number of staging slots, and the longest slot: small enough to be in the cache when the receiver copies from it. */
const STAGE_SLOTS = 4;
const STAGE_SLOT_BYTES = 128 * 1024;
/**
 * Smallest slot, and the gap between slots, which avoids multiples of large powers of two, so that slots do not share cache sets.
 */
const LEAST_SLOT_BYTES = 256;
const BETWEEN_SLOTS_BYTES = 128;
/** Longest piece: longer ones would keep a rank from other work for too long. */
const PLACED_PIECE_BYTES = 64 * 2 ** 20;

const TYPE = 1;
const COUNT_LOW = 2;
const COUNT_HIGH = 3;
const ADDRESS = 4;
const BYTES = 5;
/** Offsets from the post's beginning. */
const PLACE = 24;

/** Shortest message that the receiver reads directly in the sender's memory. */
const OPEN_BYTES = 32 * 1024;

const WAIT = -1;
const NO_SLOT = -2;

/** The sender's end. */
export class Outbox {
  readonly shared = true;
  readonly #team: Team;
  readonly #words: Int32Array;
  readonly #address: number;
  /** Number of the last post made. */
  #posted = 0;
  /** Number of the last post known to be taken. */
  #taken = 0;
  readonly #eagerSlots: Slots;
  readonly #stagingSlots: Slots;

  /**
   * @param to local rank of the receiver
   * @throws SystemError `OUT_OF_MEMORY`
   */
  constructor(
    team: Team,
    readonly to: number,
  ) {
    this.#team = team;
    const { segment } = team;
    this.#words = new Int32Array(segment.buffer);
    this.#address = team.allocateBytes(MAILBOX_BYTES);
    new Uint8Array(segment.buffer, this.#address, MAILBOX_BYTES).fill(0);
    this.#eagerSlots = new Slots(team, POSTS);
    this.#stagingSlots = new Slots(team, STAGE_SLOTS);
    team.setMailbox(team.localRank, to, this.#address);
  }

  /** Hands over as much as there is room for. Returns true once all is handed over. */
  post(transfer: Transfer): boolean {
    do {
      if (this.#posted - this.#taken === POSTS && !this.#look()) return false;
      if (!this.#postPiece(transfer)) return false;
    } while (transfer.moved < transfer.bytes);
    transfer.lastPost = this.#posted;
    return true;
  }

  /**
   * Hands over a message in the segment, of at most EAGER_BYTES, before which none waits. False, without any effect, if there is
   * no room.
   * @param word type and tag
   */
  postNow(word: number, count: number, source: number, bytes: number): boolean {
    if (this.#posted - this.#taken === POSTS && !this.#look()) return false;
    const address = bytes > INLINE_BYTES ? this.#slot(this.#eagerSlots, bytes) : 0;
    if (address < 0) return false;
    this.#team.kernels.postPiece(this.#address, ++this.#posted, word, count, address, bytes, 0, source);
    return true;
  }

  /**
   * Hands over in one post as many messages of at most PACKED_BYTES as an eager slot has room for. Returns the first one that
   * is not handed over. It is `first` if there is no room, or no memory for a slot that it fits in: then it is for post().
   */
  postTogether(first: Transfer): Transfer | undefined {
    if (this.#posted - this.#taken === POSTS && !this.#look()) return first;
    let bytes = 0;
    for (let each: Transfer | undefined = first; each !== undefined && each.bytes <= PACKED_BYTES; each = each.next) {
      const more = packedBytes(each.bytes);
      if (bytes + more > EAGER_BYTES) break;
      bytes += more;
    }
    const slots = this.#eagerSlots;
    if (!slots.haveRoom(bytes) || packedBytes(first.bytes) > slots.slotBytes) return first;
    const address = this.#slot(slots, 0);
    if (address < 0) return first;
    const words = this.#words;
    const end = address + Math.min(bytes, slots.slotBytes);
    let at = address;
    let count = 0;
    let next: Transfer | undefined = first;
    while (next !== undefined && next.bytes <= PACKED_BYTES && at + packedBytes(next.bytes) <= end) {
      words[at / 4] = typeWord(next);
      words[at / 4 + 1] = next.count;
      next.operand.copyShortTo(words, at + PACKED_HEADER_BYTES, next.bytes);
      next.moved = next.bytes;
      at += packedBytes(next.bytes);
      next = next.next;
      count++;
    }
    this.#team.kernels.postPiece(this.#address, ++this.#posted, PACKED, count, address, at - address, 0, 0);
    return next;
  }

  /**
   * True if the receiver no longer needs the sender's array.
   * @throws InvalidArgumentError `BUFFER_DETACHED` when the receiver still needs the array, but it was detached
   */
  isTaken(transfer: Transfer): boolean {
    if (transfer.bytes <= EAGER_BYTES || !(transfer.operand.placed || transfer.place > 0)) return true;
    if (transfer.place > 0) transfer.operand.checkAttached(transfer.bytes);
    return this.#taken >= transfer.lastPost || (this.#look() && this.#taken >= transfer.lastPost);
  }

  /** True if the receiver has left the communicator. */
  hasLeft(): boolean {
    return this.#team.hasLeft(this.to);
  }

  /** Shows the receiver that the sender's arrays may change from now on. */
  giveUp(): void {
    Atomics.store(this.#words, (this.#address + GIVEN_UP) / 4, 1);
  }

  /** Reads the receiver's counter and extends it beyond 32 bits. Returns true if it has grown. */
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
    if (bytes > EAGER_BYTES && operand.placed) {
      piece = Math.min(left, PLACED_PIECE_BYTES);
      address = operand.address(moved);
    } else if (transfer.place > 0) {
      operand.checkAttached(bytes);
      piece = Math.min(left, PLACED_PIECE_BYTES);
      place = transfer.place + moved;
    } else {
      if (bytes > INLINE_BYTES) {
        const staged = bytes > EAGER_BYTES && this.#stagingSlots.haveRoom(Math.min(bytes, STAGE_SLOT_BYTES));
        const slots = staged ? this.#stagingSlots : this.#eagerSlots;
        address = this.#slot(slots, staged ? 0 : Math.min(bytes, EAGER_BYTES));
        if (address === WAIT) return false;
        if (address === NO_SLOT) address = 0;
        piece = Math.min(left, address === 0 ? INLINE_BYTES : slots.slotBytes);
      }
      if (piece > 0) operand.copyTo(address === 0 ? post + HEADER_BYTES : address, moved, piece);
    }
    this.#team.kernels.postPiece(this.#address, number, typeWord(transfer), transfer.count, address, piece, place, 0);
    this.#posted = number;
    transfer.moved += piece;
    return true;
  }

  /** Address of a slot for the next post; WAIT while the receiver needs it, NO_SLOT if there is no memory. */
  #slot(slots: Slots, bytes: number): number {
    if (!slots.haveRoom(bytes)) return NO_SLOT;
    if (slots.lastPost > this.#taken && !(this.#look() && slots.lastPost <= this.#taken)) return WAIT;
    return slots.use(this.#posted + 1, this.#taken);
  }
}

/** Type, tag and count in front of a packed message. */
const PACKED_HEADER_BYTES = 8;

/** Bytes that a message takes among packed ones. */
function packedBytes(bytes: number): number {
  return PACKED_HEADER_BYTES + ((bytes + 7) & ~7);
}

/**
 * Slots of sender memory that pieces are copied into, used in turn. Allocated when a message first needs them, replaced when
 * a longer message comes.
 */
class Slots {
  /** Bytes of one slot; 0 while there are none. */
  slotBytes = 0;
  readonly #team: Team;
  /** For each slot, the last post that used it. */
  readonly #lastPosts: Float64Array;
  #address = 0;
  #turn = 0;
  #replaced: { readonly address: number; readonly lastPost: number }[] = [];

  constructor(team: Team, count: number) {
    this.#team = team;
    this.#lastPosts = new Float64Array(count);
  }

  /** True if slots have `bytes` bytes each, or are at least usable, if memory has no room for longer ones. */
  haveRoom(bytes: number): boolean {
    if (bytes <= this.slotBytes) return true;
    const slotBytes = Math.max(LEAST_SLOT_BYTES, 2 ** Math.ceil(Math.log2(bytes)));
    let address: number;
    try {
      address = this.#team.allocateBytes(this.#lastPosts.length * (slotBytes + BETWEEN_SLOTS_BYTES));
    } catch (error) {
      if (!(error instanceof SystemError)) throw error;
      return this.slotBytes > 0;
    }
    if (this.#address > 0) this.#replaced.push({ address: this.#address, lastPost: Math.max(...this.#lastPosts) });
    this.#address = address;
    this.slotBytes = slotBytes;
    this.#lastPosts.fill(0);
    return true;
  }

  /** The last post that used the current slot. */
  get lastPost(): number {
    return this.#lastPosts[this.#turn] ?? 0;
  }

  /** Uses the current slot for a post, and returns its address. @param taken the last post that the receiver has taken */
  use(post: number, taken: number): number {
    if (this.#replaced.length > 0) this.#freeReplaced(taken);
    const address = this.#address + this.#turn * (this.slotBytes + BETWEEN_SLOTS_BYTES);
    this.#lastPosts[this.#turn] = post;
    this.#turn = (this.#turn + 1) % this.#lastPosts.length;
    return address;
  }

  #freeReplaced(taken: number): void {
    for (const { address, lastPost } of this.#replaced) if (lastPost <= taken) this.#team.freeBytes(address);
    this.#replaced = this.#replaced.filter(({ lastPost }) => lastPost > taken);
  }
}

/** The receiver's end. */
export class Inbox {
  readonly shared = true;
  readonly #team: Team;
  readonly #words: Int32Array;
  readonly #numbers: Float64Array;
  #address = 0;
  /** Number of the last post taken. */
  #taken = 0;
  /** Messages of the next post that are left, if it is packed and some have been taken, and address of the first. */
  #packed = 0;
  #packedAt = 0;

  /** @param from local rank of the sender */
  constructor(
    team: Team,
    readonly from: number,
  ) {
    this.#team = team;
    this.#words = new Int32Array(team.segment.buffer);
    this.#numbers = new Float64Array(team.segment.buffer, 0, Math.floor(team.segment.bytes / 8));
  }

  /** Type, tag and length of the next message, once its first post is there. Nothing before it may be in flight. */
  peek(): MessageHead | undefined {
    if (this.#address === 0 && !this.#find()) return undefined;
    const number = this.#taken + 1;
    const header = (this.#address + FIRST_POST + (number % POSTS) * POST_BYTES) / 4;
    const words = this.#words;
    if (this.#packed === 0) {
      if (Atomics.load(words, header) !== (number | 0)) return undefined;
      if (words[header + TYPE] === PACKED) this.#unpack(header);
    }
    if (this.#packed > 0) return headOf(words[this.#packedAt / 4] ?? 0, words[this.#packedAt / 4 + 1] ?? 0, 0);
    return headOf(words[header + TYPE] ?? 0, words[header + COUNT_LOW] ?? 0, words[header + COUNT_HIGH] ?? 0);
  }

  /**
   * Takes a message that is one post, after so many polls at most. Nothing before it may be in flight. False, without any effect,
   * if it has not come, or another one has.
   * @param word type and tag, of which the bits of `mask` are compared
   */
  pullNow(mask: number, word: number, count: number, destination: number, bytes: number, spins: number): boolean {
    if (this.#address === 0 && !this.#find()) return false;
    const number = this.#taken + 1;
    const { kernels } = this.#team;
    if (this.#packed === 0) {
      if (kernels.takeMessage(this.#address, number, mask, word, count, destination, bytes, spins) !== DONE) return false;
      this.#taken = number;
      return true;
    }
    const words = this.#words;
    const at = this.#packedAt;
    if (((words[at / 4] ?? 0) & mask) !== word || words[at / 4 + 1] !== count) return false;
    kernels.copy(destination, at + PACKED_HEADER_BYTES, bytes);
    this.#nextPacked(bytes);
    return true;
  }

  /**
   * Takes the received part of a message. Returns true once all of it is received.
   * @throws the error made by `mismatch` for a message of another type or length
   */
  pull(transfer: Transfer, mismatch: Mismatch): boolean {
    if (this.#address === 0 && !this.#find()) return false;
    const words = this.#words;
    if (this.#packed > 0) return this.#pullPacked(transfer, mismatch);
    do {
      const number = this.#taken + 1;
      const post = this.#address + FIRST_POST + (number % POSTS) * POST_BYTES;
      const header = post / 4;
      if (Atomics.load(words, header) !== (number | 0)) return false;
      if (words[header + TYPE] === PACKED) {
        this.#unpack(header);
        return this.#pullPacked(transfer, mismatch);
      }
      if (!transfer.met) {
        const type = (words[header + TYPE] ?? 0) & 255;
        const count = ((words[header + COUNT_LOW] ?? 0) >>> 0) + ((words[header + COUNT_HIGH] ?? 0) >>> 0) * 2 ** 32;
        if (!transfer.meets(type, count)) throw mismatch(transfer, type, count);
      }
      const address = (words[header + ADDRESS] ?? 0) >>> 0;
      const bytes = (words[header + BYTES] ?? 0) >>> 0;
      const place = this.#numbers[(post + PLACE) / 8] ?? 0;
      if (place > 0) {
        if (!this.#read(transfer, bytes, place)) return false;
      } else if (bytes > 0) {
        transfer.operand.write(transfer.moved, bytes, address === 0 ? post + HEADER_BYTES : address);
        // The error of the sender will arrive while this rank waits.
        if (transfer.bytes > EAGER_BYTES && Atomics.load(words, (this.#address + GIVEN_UP) / 4) !== 0) return false;
      }
      transfer.moved += bytes;
      this.#taken = number;
      Atomics.store(words, (this.#address + TAKEN) / 4, number | 0);
    } while (transfer.moved < transfer.bytes);
    return true;
  }

  /** Begins to take the messages of a packed post. */
  #unpack(header: number): void {
    this.#packed = this.#words[header + COUNT_LOW] ?? 0;
    this.#packedAt = (this.#words[header + ADDRESS] ?? 0) >>> 0;
  }

  #pullPacked(transfer: Transfer, mismatch: Mismatch): boolean {
    const words = this.#words;
    const at = this.#packedAt;
    const type = (words[at / 4] ?? 0) & 255;
    const count = words[at / 4 + 1] ?? 0;
    if (!transfer.meets(type, count)) throw mismatch(transfer, type, count);
    const { bytes } = transfer;
    transfer.operand.writeShort(words, at + PACKED_HEADER_BYTES, bytes);
    transfer.moved = bytes;
    this.#nextPacked(bytes);
    return true;
  }

  #nextPacked(bytes: number): void {
    this.#packedAt += packedBytes(bytes);
    if (--this.#packed > 0) return;
    this.#taken++;
    Atomics.store(this.#words, (this.#address + TAKEN) / 4, this.#taken | 0);
  }

  /** True if the sender has left the communicator. */
  hasLeft(): boolean {
    return this.#team.hasLeft(this.from);
  }

  /** Reads a piece in the sender's memory. Returns false if the sender is gone or gave up; others report the reason. */
  #read({ operand, moved }: Transfer, bytes: number, place: number): boolean {
    const { members } = this.#team;
    if (!operand.readFrom(moved, bytes, defined(members[this.from]), place)) return false;
    return this.#team.abort() === undefined && this.#team.recordedFailure() === undefined;
  }

  #find(): boolean {
    this.#address = this.#team.mailbox(this.from, this.#team.localRank);
    return this.#address !== 0;
  }
}
