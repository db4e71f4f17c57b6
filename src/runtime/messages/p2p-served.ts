import { InternalError } from '../../errors.js';
import type { Connection } from '../transport/transport.js';
import type { Transfer } from './p2p-transfer.js';

/** Number of pieces in flight between the two threads on each connection, for arrays outside the segment. */
const STAGES = 8;
const SLICES_PER_STAGE = 2;

/** A message in the segment, or consecutive slices of one. */
export interface MessagePiece {
  readonly sends: boolean;
  readonly peer: number;
  /** Code of the type. */
  readonly type: number;
  /** Number of elements of the whole message. */
  readonly count: number;
  readonly address: number;
  /** Number of elements of the piece. */
  readonly length: number;
  /** Of a receive that takes a shorter message, too: where in the segment the message's number of elements goes, a float64. */
  readonly countAt?: number | undefined;
}

/** The thread that has this rank's sockets, as seen by messages. */
export interface MessageServer {
  /** Bytes of data in a slice. Slices and pieces of a message begin at multiples of it. */
  readonly sliceBytes: number;
  /** Throws SystemError `OUT_OF_MEMORY`. */
  readonly allocate: (bytes: number) => number;
  readonly free: (address: number) => void;
  /** The float64 at an address of the segment. */
  readonly numberAt: (address: number) => number;
  readonly hand: (piece: MessagePiece) => void;
  /** Number of pieces to or from a rank that are done. They complete in the order in which they were handed over. */
  readonly ended: (sends: boolean, peer: number) => number;
  /** The error after which no data move any more, if there is one. */
  readonly failure: () => Error | undefined;
  /** Calls back after news from now on; `undefined` stops it. */
  readonly listen: (onNews: (() => void) | undefined) => void;
}

interface PieceUnderWay {
  readonly transfer: Transfer;
  readonly from: number;
  readonly bytes: number;
  /** Address of its copy, if it has one. */
  readonly stage: number | undefined;
  /** Memory of a receive that takes a shorter message, too: its copy, if it has one, then the message's number of elements. */
  readonly room?: { readonly address: number; readonly countAt: number; readonly isCopy: boolean };
}

/**
 * One end of a connection that another thread of this rank owns and serves, whatever the rank does. Arrays in the segment are
 * handed over as a whole. Other arrays go piece by piece through a few stages, because only the rank's own thread can know
 * that they still exist:
 *
 *     rank's thread                            thread
 *     array ── copy ──► stage 0 … 7 ── hand ──►  slices  ◄──► peer
 *     array of alloc ───────────────── hand ──►
 *                                  ◄── ended ──
 */
export class ServedLink {
  readonly shared = false;
  readonly polled = false;
  /** The connection is in the other thread. */
  readonly connection: Connection | undefined = undefined;
  readonly #pieces: PieceUnderWay[] = [];
  /** Receives that are not handed over as a whole. */
  readonly #expected: Transfer[] = [];
  /** A receive that was handed over and may be followed by others: what is expected waits for its end. */
  #leader: Transfer | undefined;
  readonly #stageBytes: number;
  #stages: number | undefined;
  #handed = 0;
  #ended = 0;
  /** Number of pieces that went through a stage, and how many of them are done. */
  #staged = 0;
  #unstaged = 0;

  constructor(
    readonly server: MessageServer,
    readonly sends: boolean,
    readonly peer: number,
    readonly onNews: () => void,
  ) {
    this.#stageBytes = SLICES_PER_STAGE * server.sliceBytes;
  }

  /** Prepares for an array. Throws SystemError `OUT_OF_MEMORY`. */
  admit(placed: boolean): void {
    if (!placed) this.#stages ??= this.server.allocate(STAGES * this.#stageBytes);
  }

  /** Hands over as much of a send as there is room for. Returns true once all of it is handed over. */
  post(transfer: Transfer): boolean {
    this.#settle();
    return this.#handOver(transfer);
  }

  /** True if the array of a send may be changed again. */
  isTaken({ lastPost }: Transfer): boolean {
    this.#settle();
    return lastPost <= this.#ended;
  }

  /** Queues a receive. */
  expect(transfer: Transfer): void {
    this.#expected.push(transfer);
  }

  /** A receive comes before those that are expected. */
  expectNext(transfer: Transfer): void {
    this.#expected.unshift(transfer);
  }

  /**
   * Hands over as much of all receives as there is room for, and takes received data. Returns true once `transfer`, the
   * first, is complete.
   */
  pull(transfer: Transfer): boolean {
    this.#settle();
    while (this.#leader === undefined) {
      const next = this.#expected[0];
      if (next === undefined || !this.#handOver(next)) break;
      this.#expected.shift();
      if (next.owner?.leads === true) this.#leader = next;
    }
    const isThere = transfer.handedOver && transfer.lastPost <= this.#ended;
    if (isThere && this.#leader === transfer) this.#leader = undefined;
    return isThere;
  }

  failure(): Error | undefined {
    return this.server.failure();
  }

  listen(wanted: boolean): void {
    this.server.listen(wanted ? this.onNews : undefined);
  }

  /** Nothing to do: the thread ends the connection with the communicator. */
  abort(): void {
    this.#pieces.length = this.#expected.length = 0;
    this.#leader = undefined;
  }

  /** Nothing to do; see abort(). */
  close(): void {
    this.abort();
  }

  /** Hands over a receive whose message may be shorter: in one piece, since only the other thread learns its length. */
  #handOverAtMost(transfer: Transfer): boolean {
    const { operand, bytes, count, type } = transfer;
    const copied = operand.placed ? 0 : Math.ceil(bytes / 8) * 8;
    const room = this.server.allocate(copied + 8);
    const countAt = room + copied;
    const address = operand.placed ? operand.address(0) : room;
    this.server.hand({ sends: false, peer: this.peer, type: type.code, count, address, length: count, countAt });
    const isCopy = !operand.placed;
    this.#pieces.push({ transfer, from: 0, bytes, stage: undefined, room: { address: room, countAt, isCopy } });
    transfer.moved = bytes;
    transfer.lastPost = ++this.#handed;
    transfer.handedOver = true;
    return true;
  }

  #takeAtMost(transfer: Transfer, { address, countAt, isCopy }: NonNullable<PieceUnderWay['room']>): void {
    transfer.setCount(this.server.numberAt(countAt));
    if (isCopy && transfer.bytes > 0) transfer.operand.write(0, transfer.bytes, address);
    this.server.free(address);
  }

  #handOver(transfer: Transfer): boolean {
    if (transfer.atMost) return this.#handOverAtMost(transfer);
    const { operand, bytes, type } = transfer;
    const { sends, peer } = this;
    do {
      const from = transfer.moved;
      let length = bytes - from;
      let stage: number | undefined;
      let address: number;
      if (operand.placed) address = operand.address(0);
      else {
        if (this.#staged - this.#unstaged === STAGES) return false;
        if (this.#stages === undefined) throw new InternalError('INTERNAL', 'a message has no stages');
        address = stage = this.#stages + (this.#staged++ % STAGES) * this.#stageBytes;
        length = Math.min(length, this.#stageBytes);
        if (sends && length > 0) operand.copyTo(address, from, length);
      }
      this.server.hand({ sends, peer, type: type.code, count: transfer.count, address, length: length / type.bytes });
      this.#pieces.push({ transfer, from, bytes: length, stage });
      transfer.moved += length;
      transfer.lastPost = ++this.#handed;
    } while (transfer.moved < bytes);
    transfer.handedOver = true;
    return true;
  }

  /** Records pieces that are done, and copies the data received in them. Throws if the remaining pieces have failed. */
  #settle(): void {
    const ended = this.server.ended(this.sends, this.peer);
    while (this.#ended !== ended) {
      const piece = this.#pieces.shift();
      if (piece === undefined) return;
      this.#ended++;
      if (piece.room !== undefined) this.#takeAtMost(piece.transfer, piece.room);
      if (piece.stage === undefined) continue;
      this.#unstaged++;
      if (!this.sends && piece.bytes > 0) piece.transfer.operand.write(piece.from, piece.bytes, piece.stage);
    }
    const failure = this.#pieces.length > 0 ? this.failure() : undefined;
    if (failure !== undefined) throw failure;
  }
}
