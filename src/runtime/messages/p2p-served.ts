import { InternalError } from '../../errors.js';
import type { Connection } from '../transport/transport.js';
import type { Transfer } from './p2p-transfer.js';

/** Of arrays outside the segment, so much of a message is on its way between the two threads at once, on each connection: */
const STAGES = 8;
const SLICES_PER_STAGE = 2;

/** A message, or consecutive slices of one, in the segment. */
export interface MessagePiece {
  readonly sends: boolean;
  readonly peer: number;
  /** Code of the type. */
  readonly type: number;
  /** Elements of the whole message. */
  readonly count: number;
  readonly address: number;
  /** Elements of the piece. */
  readonly length: number;
}

/** The thread that has this rank's sockets, as messages see it. */
export interface MessageServer {
  /** Data in a slice. Slices of a message begin at its multiples, and so do pieces. */
  readonly sliceBytes: number;
  /** Throws SystemError `OUT_OF_MEMORY`. */
  readonly allocate: (bytes: number) => number;
  readonly hand: (piece: MessagePiece) => void;
  /** How many pieces for a rank, or from there, are done. They are in the order in which they were handed over. */
  readonly ended: (sends: boolean, peer: number) => number;
  /** Why nothing more comes or goes, if so. */
  readonly failure: () => Error | undefined;
  /** From now on calls back after news; `undefined` ends it. */
  readonly listen: (onNews: (() => void) | undefined) => void;
}

interface PieceUnderWay {
  readonly transfer: Transfer;
  readonly from: number;
  readonly bytes: number;
  /** Where its copy is, where it has one. */
  readonly stage: number | undefined;
}

/**
 * An end of a connection that a thread of this rank has, which goes on whatever the rank does. What lies in the segment it
 * is given as a whole; other arrays piece by piece through a few stages, since only the rank's own thread can know that
 * they are still there:
 *
 *     rank's thread                            thread
 *     array ── copy ──► stage 0 … 7 ── hand ──►  slices  ◄──► peer
 *     array of alloc ───────────────── hand ──►
 *                                  ◄── ended ──
 */
export class ServedLink {
  readonly shared = false;
  readonly polled = false;
  /** The thread has it. */
  readonly connection: Connection | undefined = undefined;
  readonly #pieces: PieceUnderWay[] = [];
  /** Receives that are not handed over as a whole. */
  readonly #expected: Transfer[] = [];
  readonly #stageBytes: number;
  #stages: number | undefined;
  #handed = 0;
  #ended = 0;
  /** Pieces that went through a stage, and those of them that are done. */
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

  /** Makes ready for an array. Throws SystemError `OUT_OF_MEMORY`. */
  admit(placed: boolean): void {
    if (!placed) this.#stages ??= this.server.allocate(STAGES * this.#stageBytes);
  }

  /** Hands over what there is room for of a send. True once all of it is. */
  post(transfer: Transfer): boolean {
    this.#settle();
    return this.#handOver(transfer);
  }

  /** Whether the array of a send may be changed again. */
  isTaken({ lastPost }: Transfer): boolean {
    this.#settle();
    return lastPost <= this.#ended;
  }

  /** A receive comes behind those before. */
  expect(transfer: Transfer): void {
    this.#expected.push(transfer);
  }

  /** Hands over what there is room for of all receives, and takes what has come. True once `transfer`, the first, is there. */
  pull(transfer: Transfer): boolean {
    this.#settle();
    for (let next = this.#expected[0]; next !== undefined && this.#handOver(next); next = this.#expected[0])
      this.#expected.shift();
    return transfer.handedOver && transfer.lastPost <= this.#ended;
  }

  failure(): Error | undefined {
    return this.server.failure();
  }

  listen(wanted: boolean): void {
    this.server.listen(wanted ? this.onNews : undefined);
  }

  /** The connection belongs to the thread, which ends with the communicator. */
  abort(): void {
    this.#pieces.length = this.#expected.length = 0;
  }

  /** See abort(). */
  close(): void {
    this.abort();
  }

  #handOver(transfer: Transfer): boolean {
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

  /** Takes note of pieces that are done, and takes what came in those. Throws why the others never will be, if so. */
  #settle(): void {
    const ended = this.server.ended(this.sends, this.peer);
    while (this.#ended !== ended) {
      const piece = this.#pieces.shift();
      if (piece === undefined) return;
      this.#ended++;
      if (piece.stage === undefined) continue;
      this.#unstaged++;
      if (!this.sends && piece.bytes > 0) piece.transfer.operand.write(piece.from, piece.bytes, piece.stage);
    }
    const failure = this.#pieces.length > 0 ? this.failure() : undefined;
    if (failure !== undefined) throw failure;
  }
}
