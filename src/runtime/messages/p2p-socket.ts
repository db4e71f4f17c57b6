import { fairSlice, MOST_BUFFERS, type SlotLimits } from '../algorithms/slices.js';
import type { Segment } from '../device/segment.js';
import { LEAST_IN_PLACE_BYTES, type Connection, type FifoSize, type ReceiveConnection } from '../transport/transport.js';
import { LazyReceiver, LazySender, type Dialling } from './p2p-connection.js';
import { headOf, typeWord, type MessageHead, type Mismatch, type Transfer } from './p2p-transfer.js';
import { defined } from '../../defined.js';

/** Header in front of each slice: the description of the send. A line of its own keeps data aligned. */
const HEADER_BYTES = 64;
const TYPE = 0;
const COUNT_LOW = 1;
const COUNT_HIGH = 2;

const slots: SlotLimits = { steps: 8, heldBytes: 16 * 2 ** 20, shortestBytes: 4096, buffers: MOST_BUFFERS };

/**
 * The size of connections for messages between two ranks, and for windows; both ends must give the same.
 * @param nConnected ranks of which each is connected with each from the beginning; 0 where the first message connects two
 */
export function messageFifo(nConnected: number): FifoSize {
  return { steps: slots.steps, slotBytes: HEADER_BYTES + fairSlice(slots, Math.max(1, nConnected)) };
}

/** True if a slice can go straight from the array or to it. */
function isInPlace({ reachesArrays }: Connection, { operand }: Transfer, bytes: number): boolean {
  return reachesArrays === true && operand.placed && bytes >= LEAST_IN_PLACE_BYTES;
}

/** The sender's end: messages are sent in slices, each with a header. */
export class SocketOutlet extends LazySender {
  readonly #words: Uint32Array;

  constructor(segment: Segment, peer: number, dialling: Dialling) {
    super(peer, dialling);
    this.#words = new Uint32Array(segment.buffer);
  }

  /** Hands over as much as there is room for. Returns true once all is handed over. */
  post(transfer: Transfer): boolean {
    this.check();
    const { connection } = this;
    if (connection === undefined) return false;
    do {
      const slot = connection.acquire();
      if (slot < 0) return false;
      const words = this.#words;
      words[slot / 4 + TYPE] = typeWord(transfer);
      words[slot / 4 + COUNT_LOW] = transfer.count;
      words[slot / 4 + COUNT_HIGH] = transfer.count / 2 ** 32;
      const bytes = Math.min(transfer.bytes - transfer.moved, connection.size.slotBytes - HEADER_BYTES);
      if (isInPlace(connection, transfer, bytes))
        connection.postFrom?.(HEADER_BYTES, transfer.operand.address(transfer.moved), bytes);
      else {
        if (bytes > 0) transfer.operand.copyTo(slot + HEADER_BYTES, transfer.moved, bytes);
        connection.post(HEADER_BYTES + bytes);
      }
      transfer.moved += bytes;
    } while (transfer.moved < transfer.bytes);
    return true;
  }

  /** True if the kernel has taken all of it. */
  isTaken(): boolean {
    return this.connection?.flush() !== false;
  }
}

/** The receiver's end. */
export class SocketInlet extends LazyReceiver {
  readonly #words: Uint32Array;

  constructor(segment: Segment, peer: number, dialling: Dialling) {
    super(peer, dialling);
    this.#words = new Uint32Array(segment.buffer);
  }

  /** Type, tag and length of the next message, like Inbox.peek. */
  peek(): MessageHead | undefined {
    if (this.connection === undefined) {
      this.check();
      return undefined;
    }
    const slot = this.connection.peek();
    if (slot < 0) return undefined;
    const header = slot / 4;
    const words = this.#words;
    return headOf(defined(words[header + TYPE]), defined(words[header + COUNT_LOW]), defined(words[header + COUNT_HIGH]));
  }

  /** Takes received data of a message, like Inbox.pull. */
  pull(transfer: Transfer, mismatch: Mismatch): boolean {
    const { connection } = this;
    if (connection === undefined) {
      this.check();
      return false;
    }
    do {
      const slot = this.#slotOf(connection, transfer);
      if (slot < 0) return false;
      if (!transfer.met) {
        const words = this.#words;
        const type = defined(words[slot / 4 + TYPE]) & 255;
        const count = defined(words[slot / 4 + COUNT_LOW]) + defined(words[slot / 4 + COUNT_HIGH]) * 2 ** 32;
        if (!transfer.meets(type, count)) throw mismatch(transfer, type, count);
      }
      const bytes = connection.messageBytes - HEADER_BYTES;
      if (bytes > 0 && connection.isInPlace !== true) transfer.operand.write(transfer.moved, bytes, slot + HEADER_BYTES);
      transfer.moved += bytes;
      connection.release();
    } while (transfer.moved < transfer.bytes);
    connection.settle?.();
    return true;
  }

  /** The slot of the next slice, or -1. Only the slices after the first belong to this message for certain. */
  #slotOf(connection: ReceiveConnection, transfer: Transfer): number {
    const bytes = Math.min(transfer.bytes - transfer.moved, connection.size.slotBytes - HEADER_BYTES);
    if (!transfer.met || !isInPlace(connection, transfer, bytes)) return connection.peek();
    return connection.peekInto?.(HEADER_BYTES, transfer.operand.address(transfer.moved), bytes) ?? -1;
  }
}
