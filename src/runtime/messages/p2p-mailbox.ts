import type { Team } from '../device/team.js';
import { SystemError } from '../../errors.js';
import type { Mismatch, Transfer } from './p2p-transfer.js';

/*
 * A mailbox from one rank to another of its host, in the heap of the sender, made at the first send and freed when all
 * members have left the team. The sender writes posts in turn; each begins with its number, stored last, so that one cache
 * line brings a small message with its flag (as LL does in NCCL). The receiver counts the posts that it has taken, which gives
 * the sender credit for more.
 *
 *     0      posts taken u32                             written by the receiver
 *     128    POSTS posts: | number u32 | type u32 | elements u32 u32 | address u32 | bytes u32 | place f64 | data |
 *
 * A message is one or more pieces, each a post. Where a piece's data are:
 *     in the post          up to INLINE_BYTES
 *     in an eager slot     up to EAGER_BYTES: copied into a slot of the post's own, so the send is complete at once
 *     in the array         an array in the segment: the receiver copies from it, and the send waits until it has
 *     in the sender        a long array elsewhere, where the receiver can read it (device/peer-memory.ts): as in the array
 *     in a staging slot    another array: copied into slots in turn, from which the receiver copies
 */
const TAKEN = 0;
const FIRST_POST = 128;
const POSTS = 16;
const HEADER_BYTES = 32;
/** Two cache lines a post: processors fetch lines in pairs. */
const POST_BYTES = 128;
const INLINE_BYTES = POST_BYTES - HEADER_BYTES;
const MAILBOX_BYTES = FIRST_POST + POSTS * POST_BYTES;

/** Messages up to this length are copied twice rather than waited for. */
const EAGER_BYTES = 4096;
/** Staging slots, and the longest of one: small enough that it is still in the cache when the receiver copies from it. */
const STAGE_SLOTS = 4;
const STAGE_SLOT_BYTES = 128 * 1024;
/**
 * The least that a slot has, and what lies between slots: not a multiple of a large power of two, or they would share
 * cache sets.
 */
const LEAST_SLOT_BYTES = 256;
const BETWEEN_SLOTS_BYTES = 128;
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

/** The sender's end. */
export class Outbox {
  readonly shared = true;
  readonly #team: Team;
  readonly #words: Int32Array;
  readonly #numbers: Float64Array;
  readonly #address: number;
  /** The last post made. */
  #posted = 0;
  /** The last post known to be taken. */
  #taken = 0;
  readonly #eagerSlots: Slots;
  readonly #stagingSlots: Slots;

  /**
   * @param to the receiver's place in the team
   * @throws SystemError `OUT_OF_MEMORY`
   */
  constructor(
    team: Team,
    readonly to: number,
  ) {
    this.#team = team;
    const { segment } = team;
    this.#words = new Int32Array(segment.buffer);
    this.#numbers = new Float64Array(segment.buffer, 0, Math.floor(segment.bytes / 8));
    this.#address = team.allocateBytes(MAILBOX_BYTES);
    new Uint8Array(segment.buffer, this.#address, MAILBOX_BYTES).fill(0);
    this.#eagerSlots = new Slots(team, POSTS);
    this.#stagingSlots = new Slots(team, STAGE_SLOTS);
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
    if (transfer.bytes <= EAGER_BYTES || !(transfer.operand.placed || transfer.place > 0)) return true;
    if (transfer.place > 0) transfer.operand.checkAttached(transfer.bytes);
    return this.#taken >= transfer.lastPost || (this.#look() && this.#taken >= transfer.lastPost);
  }

  /** Whether the receiver has left the communicator. */
  hasLeft(): boolean {
    return this.#team.hasLeft(this.to);
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
    if (bytes > EAGER_BYTES && operand.placed) {
      piece = Math.min(left, PLACED_PIECE_BYTES);
      address = operand.address(moved);
    } else if (transfer.place > 0) {
      operand.checkAttached(bytes);
      piece = Math.min(left, PLACED_PIECE_BYTES);
      place = transfer.place + moved;
    } else if (bytes > INLINE_BYTES) {
      const staged = bytes > EAGER_BYTES && this.#stagingSlots.haveRoom(Math.min(bytes, STAGE_SLOT_BYTES));
      const slots = staged ? this.#stagingSlots : this.#eagerSlots;
      if (!staged && !slots.haveRoom(Math.min(bytes, EAGER_BYTES))) piece = Math.min(left, INLINE_BYTES);
      else {
        if (slots.lastPost > this.#taken && !(this.#look() && slots.lastPost <= this.#taken)) return false;
        piece = Math.min(left, slots.slotBytes);
        address = slots.use(number, this.#taken);
        operand.copyTo(address, moved, piece);
      }
    }
    if (address === 0 && place === 0 && piece > 0) operand.copyTo(post + HEADER_BYTES, moved, piece);
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
}

/**
 * Memory of the sender that pieces are copied into, in slots that are used in turn. It is taken when a message first needs it,
 * and replaced when a longer one comes.
 */
class Slots {
  /** Of one slot; 0 as long as there are none. */
  slotBytes = 0;
  readonly #team: Team;
  /** In each slot, the last post that used it. */
  readonly #lastPosts: Float64Array;
  #address = 0;
  #turn = 0;
  #replaced: { readonly address: number; readonly lastPost: number }[] = [];

  constructor(team: Team, count: number) {
    this.#team = team;
    this.#lastPosts = new Float64Array(count);
  }

  /** Whether slots have `bytes` bytes each, or at least some, where memory has no room for longer ones. */
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

  /** The last post that used the slot whose turn it is. */
  get lastPost(): number {
    return this.#lastPosts[this.#turn] ?? 0;
  }

  /** Uses that slot for a post, and returns its address. @param taken the last post that the receiver has taken */
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
  /** The last post taken. */
  #taken = 0;

  /** @param from the sender's place in the team */
  constructor(
    team: Team,
    readonly from: number,
  ) {
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
