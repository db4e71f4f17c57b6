import type { Socket } from 'node:net';
import { watchHost } from '../bootstrap/liveness.js';
import { endSocket, readOnAfterWrites } from '../bootstrap/socket-end.js';
import type { Segment } from '../device/segment.js';
import type { WaitReport } from '../device/wait-report.js';
import { SystemError } from '../../errors.js';
import { closedHere, closedThere, died, packReason, REASON_BYTES, unpackReason } from './ending.js';
import { frame, frameKinds, FRAME_HEADER_BYTES } from './socket-frames.js';
import type { Connection, FifoSize, ReceiveConnection, SendConnection } from './transport.js';

/**
 * How long a rank that lives may take to have what was posted before a connection closed: as long as it may be late for
 * a call by default.
 */
const DELIVERY_MS = 600_000;
/** How long that of a connection that is given up may take. */
const ABORT_MS = 1000;

/** Of a report. */
const MOST_WORDS = 64;

/** How long the news of why a rank's connection broke may take. */
const NEWS_MS = 2000;

/** Why a rank does not go on with this one, once that is known. */
export type WhyGone = (peer: number) => Promise<Error>;

/** Slots in this rank's own segment, each behind a line whose last 8 bytes are its frame's header. */
export class SlotMemory {
  /** Longest frame that a slot has room for. */
  readonly frameBytes: number;
  readonly #address: number;
  readonly #stride: number;
  #freed = false;

  /** @throws SystemError `OUT_OF_MEMORY` when the segment has no room for it. */
  constructor(
    readonly segment: Segment,
    readonly size: FifoSize,
    readonly slots: number = size.steps,
  ) {
    this.frameBytes = FRAME_HEADER_BYTES + Math.max(size.slotBytes, REASON_BYTES);
    this.#stride = Math.ceil((this.frameBytes + 64) / 64) * 64;
    this.#address = segment.allocateBytes(slots * this.#stride);
  }

  /** The address of a slot's message. */
  at(slot: number): number {
    return this.#address + slot * this.#stride + 64;
  }

  /** Bytes `from` to `to` of the frame that is in, or goes into, a slot; its header is before the slot's address. */
  frame(slot: number, from: number, to: number): Uint8Array {
    return new Uint8Array(this.segment.buffer, this.at(slot) - FRAME_HEADER_BYTES + from, to - from);
  }

  /** The two words of a slot's header. */
  header(slot: number): Uint32Array {
    return new Uint32Array(this.segment.buffer, this.at(slot) - FRAME_HEADER_BYTES, 2);
  }

  /** Gives the memory back; again does nothing, although somebody else may have it by then. */
  free(): void {
    if (!this.#freed) this.segment.freeBytes(this.#address);
    this.#freed = true;
  }
}

/** What both ends do alike: news, and the ways to end. */
abstract class SocketConnection implements Connection {
  readonly transport = 'socket';
  readonly polled = false;
  readonly size: FifoSize;
  /** What later calls on this side throw. */
  protected endedHere: Error | undefined;
  /** What ended the connection from outside. */
  protected endedThere: Error | undefined;
  #report: WaitReport | undefined;
  #listener: (() => void) | undefined;
  #socketError: Error | undefined;

  protected constructor(
    protected readonly socket: Socket,
    readonly peer: number,
    protected readonly memory: SlotMemory,
    whyGone: WhyGone | undefined,
  ) {
    this.size = memory.size;
    const ended = (): void => {
      this.#freeUnused();
      if (this.endedThere === undefined && this.endedHere === undefined) this.#explainEnd(whyGone);
    };
    readOnAfterWrites(socket, (error) => (this.#socketError = error));
    socket.on('error', (error) => (this.#socketError = error));
    socket.on('close', ended);
    if (socket.closed) ended();
    watchHost(socket);
  }

  onNews(listener: (() => void) | undefined): void {
    this.#listener = listener;
    if (this.socket.destroyed) return; // node:net would keep the wish, each time anew, for a connection that never comes
    if (listener === undefined) this.socket.unref();
    else this.socket.ref();
  }

  check(): void {
    if (this.endedHere !== undefined) throw this.endedHere;
    if (this.endedThere !== undefined) throw this.endedThere;
  }

  sayWaits(report: readonly number[]): void {
    if (this.endedHere !== undefined || this.endedThere !== undefined || !this.socket.writable) return;
    const words = Int32Array.from(report.slice(0, MOST_WORDS));
    this.socket.write(frame(frameKinds.waits, words.byteLength, new Uint8Array(words.buffer)));
  }

  heardWaits(): WaitReport | undefined {
    return this.#report;
  }

  async close(): Promise<void> {
    if (this.endedHere === undefined) {
      this.endedHere = closedHere(this.peer);
      if (this.socket.writable) this.socket.write(frame(frameKinds.goodbye, 0));
    }
    await this.#finish(DELIVERY_MS);
    this.#freeUnused();
  }

  abort(reason: Error): void {
    if (this.endedHere !== undefined) return;
    this.endedHere = reason;
    const packed = packReason(reason);
    if (this.socket.writable) this.socket.write(frame(frameKinds.abort, packed.length, packed));
    void this.#finish(ABORT_MS);
    this.socket.unref();
    this.#freeUnused();
  }

  /** What the other side may not have read yet. */
  protected abstract unreadBytes(): number;

  protected news(): void {
    this.#listener?.();
  }

  /** A frame that ends the connection came. */
  protected goodbye(): void {
    this.#end(closedThere(this.peer));
    this.socket.end();
  }

  /** The other side waits. */
  protected waits(report: Uint8Array): void {
    const words = new DataView(report.buffer, report.byteOffset, report.byteLength);
    this.#report = {
      count: (this.#report?.count ?? 0) + 1,
      words: Array.from({ length: report.byteLength / 4 }, (_, i) => words.getInt32(4 * i, true)),
    };
  }

  protected aborted(reason: Uint8Array): void {
    try {
      this.#end(unpackReason(reason, this.peer));
      this.socket.end();
    } catch {
      this.broken();
    }
  }

  /** What came is no frame. */
  protected broken(): void {
    this.#end(
      new SystemError('NETWORK', `the data from rank ${this.peer} make no sense: something on the way changed them`, {
        rank: this.peer,
      }),
    );
    this.socket.destroy();
  }

  /**
   * The connection broke without a word. The rank may have died, but a rank that gives up while connections are being
   * made, or exits in order, breaks some, too: then the bootstrap network tells why.
   */
  #explainEnd(whyGone: WhyGone | undefined): void {
    const dead = died(this.peer, this.#socketError);
    if (whyGone === undefined) {
      this.#end(dead);
      return;
    }
    const timer = setTimeout(() => this.#end(dead), NEWS_MS);
    void whyGone(this.peer)
      .catch(() => dead)
      .then((reason) => {
        clearTimeout(timer);
        this.#end(reason);
      });
  }

  /** Once neither the socket nor the caller uses the slots. */
  #freeUnused(): void {
    if (this.socket.closed && this.endedHere !== undefined) this.memory.free();
  }

  #end(error: Error): void {
    if (this.endedThere !== undefined) return;
    this.endedThere = error;
    this.news();
  }

  /** Ends this direction after what was written, which the other side has then. */
  #finish(limitMs: number): Promise<void> {
    this.#listener = undefined;
    return endSocket(this.socket, limitMs, this.unreadBytes());
  }
}

/** Writes messages from slots to a socket. A slot is free again when the receiver has given its credit back. */
export class SocketSender extends SocketConnection implements SendConnection {
  #posted = 0;
  #credited = 0;
  /** Bytes that came and are not yet a whole frame. */
  #partial: Buffer = Buffer.alloc(0);

  constructor(socket: Socket, peer: number, memory: SlotMemory, whyGone?: WhyGone) {
    super(socket, peer, memory, whyGone);
    socket.on('data', (chunk: Buffer) => this.#read(chunk));
    socket.resume();
    socket.unref();
  }

  acquire(): number {
    this.check();
    const { memory } = this;
    return this.#posted - this.#credited < memory.slots ? memory.at(this.#posted % memory.slots) : -1;
  }

  post(bytes: number): void {
    const slot = this.#posted++ % this.memory.slots;
    const header = this.memory.header(slot);
    header[0] = frameKinds.data;
    header[1] = bytes;
    this.socket.write(this.memory.frame(slot, 0, FRAME_HEADER_BYTES + bytes));
  }

  protected override unreadBytes(): number {
    let bytes = 0;
    for (let message = this.#credited; message < this.#posted; message++)
      bytes += this.memory.header(message % this.memory.slots)[1] ?? 0;
    return bytes;
  }

  #read(chunk: Buffer): void {
    let bytes = this.#partial.length === 0 ? chunk : Buffer.concat([this.#partial, chunk]);
    while (bytes.length >= FRAME_HEADER_BYTES && this.endedThere === undefined) {
      const taken = this.#take(bytes);
      if (taken === 0) break;
      bytes = bytes.subarray(taken);
    }
    this.#partial = bytes;
  }

  /** Takes the frame at the beginning of `bytes` and returns its length, or 0 where more of it has to come. */
  #take(bytes: Buffer): number {
    const kind = bytes.readUInt32LE(0);
    const value = bytes.readUInt32LE(4);
    if (kind === frameKinds.credit && value <= this.#posted - this.#credited) {
      this.#credited += value;
      this.news();
    } else if (kind === frameKinds.goodbye) this.goodbye();
    else if (kind === frameKinds.abort && value <= REASON_BYTES) {
      const end = FRAME_HEADER_BYTES + value;
      if (bytes.length < end) return 0;
      this.aborted(bytes.subarray(FRAME_HEADER_BYTES, end));
    } else if (kind === frameKinds.waits && isReport(value)) {
      const end = FRAME_HEADER_BYTES + value;
      if (bytes.length < end) return 0;
      this.waits(bytes.subarray(FRAME_HEADER_BYTES, end));
      return end;
    } else this.broken();
    return FRAME_HEADER_BYTES;
  }
}

/**
 * Reads messages from a socket straight into slots. What is read at once may reach beyond a message's end: those few
 * bytes are moved to where the next message goes. So there is one slot more than the sender has credits for.
 */
export class SocketReceiver extends SocketConnection implements ReceiveConnection {
  messageBytes = 0;
  /** Messages that came, were released, and whose release the sender knows of. */
  #came = 0;
  #released = 0;
  #credited = 0;
  /** Bytes of the frame that is coming. */
  #have = 0;

  /** The caller passes on the socket's reads: into `room()`, then `read`. */
  constructor(socket: Socket, peer: number, memory: SlotMemory, whyGone?: WhyGone) {
    super(socket, peer, memory, whyGone);
    socket.unref();
  }

  peek(): number {
    if (this.endedHere !== undefined) throw this.endedHere;
    if (this.#came === this.#released) {
      if (this.endedThere !== undefined) throw this.endedThere;
      return -1;
    }
    const slot = this.#released % this.memory.slots;
    this.messageBytes = this.memory.header(slot)[1] ?? 0;
    return this.memory.at(slot);
  }

  release(): void {
    this.#released++;
    this.#giveCredits();
  }

  override check(): void {
    if (this.endedHere !== undefined) throw this.endedHere;
    if (this.endedThere !== undefined && this.#came === this.#released) throw this.endedThere;
  }

  /** Credits are few. */
  protected override unreadBytes(): number {
    return 0;
  }

  /** Where the next bytes from the socket go. */
  room(): Uint8Array {
    return this.memory.frame(this.#came % this.memory.slots, this.#have, this.memory.frameBytes);
  }

  /** `bytes` bytes have come into `room()`. */
  read(bytes: number): void {
    this.#have += bytes;
    const before = this.#came;
    while (this.#have >= FRAME_HEADER_BYTES && this.endedThere === undefined) {
      const slot = this.#came % this.memory.slots;
      const [kind, value = 0] = this.memory.header(slot);
      if (kind === frameKinds.goodbye) this.goodbye();
      else if (kind === frameKinds.data && value <= this.size.slotBytes && this.#came - this.#released < this.size.steps) {
        if (this.#have < FRAME_HEADER_BYTES + value) break;
        this.#came++;
        this.#moveRest(slot, FRAME_HEADER_BYTES + value);
      } else if (kind === frameKinds.abort && value <= REASON_BYTES) {
        if (this.#have < FRAME_HEADER_BYTES + value) break;
        this.aborted(this.memory.frame(slot, FRAME_HEADER_BYTES, FRAME_HEADER_BYTES + value));
      } else if (kind === frameKinds.waits && isReport(value)) {
        if (this.#have < FRAME_HEADER_BYTES + value) break;
        this.waits(this.memory.frame(slot, FRAME_HEADER_BYTES, FRAME_HEADER_BYTES + value));
        this.#moveRest(slot, FRAME_HEADER_BYTES + value);
      } else this.broken();
    }
    if (this.#came === before) return;
    this.#giveCredits();
    this.news();
  }

  /**
   * Moves what came behind the frame of `length` bytes in `slot` to where the next one goes: the next slot, if that was
   * a message.
   */
  #moveRest(slot: number, length: number): void {
    const rest = this.#have - length;
    if (rest > 0) this.memory.frame(this.#came % this.memory.slots, 0, rest).set(this.memory.frame(slot, length, this.#have));
    this.#have = rest;
  }

  /** In a few frames rather than one a message, but at once when the sender has none left. */
  #giveCredits(): void {
    const credits = this.#released - this.#credited;
    const outstanding = this.#came - this.#credited;
    const { steps } = this.size;
    if (
      credits === 0 ||
      (credits < steps / 2 && outstanding < steps) ||
      this.endedHere !== undefined ||
      this.endedThere !== undefined
    )
      return;
    this.#credited = this.#released;
    this.socket.write(frame(frameKinds.credit, credits));
  }
}

/** Whether so many bytes can be a report. */
function isReport(bytes: number): boolean {
  return bytes % 4 === 0 && bytes <= 4 * MOST_WORDS;
}
