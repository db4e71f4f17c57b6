import type { Bootstrap } from '../bootstrap/bootstrap.js';
import type { Segment } from '../device/segment.js';
import type { FifoSize, ReceiveConnection, SendConnection, Transport } from '../transport/transport.js';
import type { Mismatch, Transfer } from './p2p-transfer.js';

/** Before the data of each slice: what the sender sends. A line of its own keeps data aligned. */
const HEADER_BYTES = 64;
const TYPE = 0;
const COUNT_LOW = 1;
const COUNT_HIGH = 2;

/** The connections that point-to-point messages need. */
export const P2P_FIFO: FifoSize = { steps: 8, slotBytes: HEADER_BYTES + 128 * 1024 };

/** What a connection's tag grows by for the receiver's answer. */
const ANSWER = 1;

/** What connections between two ranks are made with. */
export interface Dialling {
  readonly bootstrap: Bootstrap;
  readonly transport: Transport;
  /** Tells this connection's messages on the bootstrap network from those of others; the next tag is its, too. */
  readonly tag: number;
  /** Called when there may be something new. */
  readonly onNews: () => void;
  /** Ends set-ups. */
  readonly signal: AbortSignal;
}

/** An end of a connection that is made when it is first needed, while its user goes on. */
abstract class Lazy<C extends SendConnection | ReceiveConnection> {
  readonly polled = false;
  protected connection: C | undefined;
  #failure: Error | undefined;
  #listening = false;

  protected constructor(readonly peer: number, protected readonly dialling: Dialling) {
    this.connect().then(
      (connection) => {
        this.connection = connection;
        if (dialling.signal.aborted) connection.abort(dialling.signal.reason as Error);
        else if (this.#listening) connection.onNews(dialling.onNews);
        dialling.onNews();
      },
      (error: unknown) => {
        this.#failure = error as Error;
        if (!dialling.signal.aborted) dialling.onNews();
      },
    );
  }

  protected abstract connect(): Promise<C>;

  /** Whether news are wanted; while they are, the connection keeps the process alive. */
  listen(wanted: boolean): void {
    if (this.#listening === wanted) return;
    this.#listening = wanted;
    this.connection?.onNews(wanted ? this.dialling.onNews : undefined);
  }

  /** Why nothing more can come or go, if so. */
  failure(): Error | undefined {
    if (this.#failure !== undefined) return this.#failure;
    try {
      this.connection?.check();
      return undefined;
    } catch (error) {
      return error as Error;
    }
  }

  /** Throws {@link failure}. */
  check(): void {
    const failure = this.failure();
    if (failure !== undefined) throw failure;
  }

  async close(): Promise<void> {
    await this.connection?.close();
  }

  abort(reason: Error): void {
    this.connection?.abort(reason);
  }
}

/** The sender's end: messages go in slices, each behind what its message is. */
export class SocketOutlet extends Lazy<SendConnection> {
  readonly #words: Uint32Array;

  constructor(readonly segment: Segment, peer: number, dialling: Dialling) {
    super(peer, dialling);
    this.#words = new Uint32Array(segment.buffer);
  }

  /** Hands over what there is room for. True once all of it is. */
  post(transfer: Transfer): boolean {
    this.check();
    const { connection } = this;
    if (connection === undefined) return false;
    do {
      const slot = connection.acquire();
      if (slot < 0) return false;
      const words = this.#words;
      words[slot / 4 + TYPE] = transfer.type.code;
      words[slot / 4 + COUNT_LOW] = transfer.count;
      words[slot / 4 + COUNT_HIGH] = transfer.count / 2 ** 32;
      const bytes = Math.min(transfer.bytes - transfer.moved, P2P_FIFO.slotBytes - HEADER_BYTES);
      if (bytes > 0) {
        const own = transfer.operand.read(transfer.moved, bytes, slot + HEADER_BYTES);
        if (own !== slot + HEADER_BYTES) this.segment.kernels.copy(slot + HEADER_BYTES, own, bytes);
      }
      connection.post(HEADER_BYTES + bytes);
      transfer.moved += bytes;
    } while (transfer.moved < transfer.bytes);
    return true;
  }

  /** A message that is handed over has been copied. */
  isTaken(): boolean {
    return true;
  }

  protected override async connect(): Promise<SendConnection> {
    const { bootstrap, transport, tag, signal } = this.dialling;
    const setUp = await transport.setUpSend(this.peer);
    const gone = new AbortController();
    try {
      await bootstrap.send(this.peer, tag, setUp.info);
    } catch (error) {
      setUp.cancel();
      throw error;
    }
    // The answer says nothing, but its absence is noticed: a peer that left or died never connects.
    bootstrap.recv(this.peer, tag + ANSWER).catch((error: unknown) => gone.abort(error));
    return setUp.connect(new Uint8Array(), AbortSignal.any([signal, gone.signal]));
  }
}

/** The receiver's end. */
export class SocketInlet extends Lazy<ReceiveConnection> {
  readonly #words: Uint32Array;

  constructor(segment: Segment, peer: number, dialling: Dialling) {
    super(peer, dialling);
    this.#words = new Uint32Array(segment.buffer);
  }

  /** Takes what has come of a message, as Inbox.pull does. */
  pull(transfer: Transfer, mismatch: Mismatch): boolean {
    if (this.connection === undefined) {
      this.check();
      return false;
    }
    do {
      const slot = this.connection.peek();
      if (slot < 0) return false;
      if (!transfer.met) {
        const words = this.#words;
        const type = words[slot / 4 + TYPE] ?? 0;
        const count = (words[slot / 4 + COUNT_LOW] ?? 0) + (words[slot / 4 + COUNT_HIGH] ?? 0) * 2 ** 32;
        if (type !== transfer.type.code || count !== transfer.count) throw mismatch(transfer, type, count);
        transfer.met = true;
      }
      const bytes = this.connection.messageBytes - HEADER_BYTES;
      if (bytes > 0) transfer.operand.write(transfer.moved, bytes, slot + HEADER_BYTES);
      transfer.moved += bytes;
      this.connection.release();
    } while (transfer.moved < transfer.bytes);
    return true;
  }

  protected override async connect(): Promise<ReceiveConnection> {
    const { bootstrap, transport, tag, signal } = this.dialling;
    const info = await bootstrap.recv(this.peer, tag);
    await bootstrap.send(this.peer, tag + ANSWER, new Uint8Array());
    const setUp = await transport.setUpReceive(this.peer);
    return setUp.connect(info, signal);
  }
}
