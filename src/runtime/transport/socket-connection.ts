import type { Socket } from 'node:net';
import { lookAtHosts, watchHost } from '../bootstrap/liveness.js';
import { endSocket, readOnAfterWrites } from '../bootstrap/socket-end.js';
import type { WaitReport } from '../device/wait-report.js';
import { SystemError } from '../../errors.js';
import { Breakage, type WhyGone } from './breakage.js';
import { closedHere, closedThere, packReason, REASON_BYTES, unpackReason } from './ending.js';
import { frame, frameKinds, FRAME_HEADER_BYTES, REPORT_BYTES } from './socket-frames.js';
import { INBOX_BYTES, type SlotMemory } from './socket-memory.js';
import { NodeWire, SystemWire, type SystemCalls, type Wire } from './socket-wire.js';
import type { Connection, FdSources, FifoSize, ReceiveConnection, SendConnection } from './transport.js';

/** Time after `close` in which a live peer may read the posted messages: the default timeout of a call. */
const DELIVERY_MS = 600_000;
/** The same after `abort`. */
const ABORT_MS = 1000;

/** Credits are returned for this share of the slots, or of their bytes. */
const SHORT_CREDITS = 3 / 4;
const LONG_CREDITS = 3 / 8;

/**
 * Minimum number of bytes to ask for, so that several short messages arrive in one read. Bytes behind a message are moved.
 */
const READ_BYTES = 4096;

/** Means of a connection besides its socket and its memory. */
export interface ConnectionMeans {
  readonly whyGone?: WhyGone | undefined;
  /** Left out where node:net moves the data. */
  readonly system?: SystemCalls | undefined;
}

/** Common part of both ends: frames without a message, and teardown. */
abstract class SocketConnection implements Connection {
  readonly transport = 'socket';
  readonly polled: boolean;
  readonly size: FifoSize;
  /** Error that later calls on this side throw. */
  protected endedHere: Error | undefined;
  /** Error with which the other side ended the connection. */
  protected endedThere: Error | undefined;
  protected readonly wire: Wire;
  /** Bytes received so far of the current frame. */
  protected have = 0;
  readonly #breakage: Breakage;
  #report: WaitReport | undefined;
  #listener: (() => void) | undefined;
  #socketError: Error | undefined;

  protected constructor(
    protected readonly socket: Socket,
    readonly peer: number,
    protected readonly memory: SlotMemory,
    { whyGone, system }: ConnectionMeans,
  ) {
    this.size = memory.size;
    this.wire = system === undefined ? new NodeWire(socket, memory) : new SystemWire(socket, memory, system);
    this.polled = this.wire.polled;
    this.#breakage = new Breakage(peer, whyGone, (error) => {
      this.#end(error);
      this.#listener?.();
    });
    const closed = (): void => {
      this.#freeUnused();
      this.#explainEnd();
    };
    readOnAfterWrites(socket, (error) => (this.#socketError = error));
    socket.on('error', (error) => (this.#socketError = error));
    socket.on('close', closed);
    if (socket.closed) closed();
    watchHost(socket);
  }

  get fd(): number {
    return this.wire.fd;
  }

  wakeOn(sources: FdSources, isAwaited: boolean): void {
    if (this.fd < 0) return;
    const isUnsent = !this.flush();
    if (isAwaited || isUnsent) sources.addFd(this.fd, isAwaited, isUnsent);
  }

  flush(): boolean {
    return this.wire.flush();
  }

  onNews(listener: (() => void) | undefined): void {
    this.#listener = listener;
    this.wire.await(listener !== undefined);
  }

  check(): void {
    if (this.polled) this.#look();
    if (this.endedHere !== undefined) throw this.endedHere;
    if (this.endedThere !== undefined && !this.hasUnread()) throw this.endedThere;
  }

  reportWait(report: readonly number[]): void {
    if (this.endedHere !== undefined || this.endedThere !== undefined) return;
    const words = Int32Array.from(report.slice(0, REPORT_BYTES / 4));
    this.wire.say(frameKinds.waits, words.byteLength, new Uint8Array(words.buffer));
  }

  waitReport(): WaitReport | undefined {
    while (this.pull());
    return this.#report;
  }

  async close(): Promise<void> {
    if (this.endedHere === undefined) {
      this.endedHere = closedHere(this.peer);
      this.#leave(frame(frameKinds.goodbye, 0));
    }
    await this.#finish(DELIVERY_MS);
    this.#freeUnused();
  }

  abort(reason: Error): void {
    if (this.endedHere !== undefined) return;
    this.endedHere = reason;
    const packed = packReason(reason);
    this.#leave(frame(frameKinds.abort, packed.length, packed));
    void this.#finish(ABORT_MS);
    this.socket.unref();
    this.#freeUnused();
  }

  /** node:net has read `bytes` more bytes of the current frame. */
  read(bytes: number): void {
    if (this.#take(bytes)) this.#listener?.();
  }

  /** Last step of the set-up. */
  protected begin(): void {
    if (!this.polled) this.startReading();
    this.socket.unref();
  }

  /** Lets node:net read into `room()`, then call `read`. */
  protected abstract startReading(): void;

  /** Number of sent bytes that the other side may not have read yet. */
  protected abstract unreadBytes(): number;

  /** True if the caller can still read messages before it gets the error. */
  protected abstract hasUnread(): boolean;

  /** Sets the place of the current frame, its room, and the number of bytes to ask for. */
  protected abstract frame(): number;
  protected abstract roomBytes(): number;
  protected abstract wantedBytes(): number;

  /** Length of a frame of a kind that only this side receives; 0 if the frame is invalid. */
  protected abstract frameBytes(kind: number, value: number): number;

  /** Handles a complete frame of that kind. */
  protected abstract takeFrame(value: number): void;

  /** Takes received frames, as many as one call handles. Returns whether there may be more. */
  protected pull(): boolean {
    if (this.endedThere !== undefined || this.endedHere !== undefined) return false;
    const wanted = this.wantedBytes();
    const bytes = this.wire.receive(this.frame() + this.have, wanted);
    if (bytes > 0) this.#take(bytes);
    else if (bytes < 0) {
      this.socket.destroy();
      this.#explainEnd();
    }
    return bytes === wanted;
  }

  /** Adds received bytes to the current frame. Returns whether the frame is complete. */
  #take(bytes: number): boolean {
    this.have += bytes;
    let isWhole = false;
    while (this.have >= FRAME_HEADER_BYTES && this.endedThere === undefined) {
      const { memory } = this;
      const place = this.frame();
      const kind = memory.kind(place);
      const value = memory.value(place);
      const length = this.#lengthOf(kind, value);
      if (length > 0 && this.have < length) break;
      isWhole = true;
      if (length === 0) this.#broken();
      else if (kind === frameKinds.goodbye) this.#goodbye(closedThere(this.peer));
      else if (kind === frameKinds.abort) this.#aborted(this.#payload(place, value));
      else if (kind === frameKinds.waits) this.#waits(this.#payload(place, value));
      else this.takeFrame(value);
      // Move the bytes behind the frame to the place of the next one, which is the next slot if this frame was a message.
      this.have -= length;
      if (this.have > 0) memory.bytes.copyWithin(this.frame(), place + length, place + length + this.have);
    }
    return isWhole;
  }

  #lengthOf(kind: number, value: number): number {
    switch (kind) {
      case frameKinds.goodbye:
        return FRAME_HEADER_BYTES;
      case frameKinds.abort:
        return value <= REASON_BYTES ? FRAME_HEADER_BYTES + value : 0;
      case frameKinds.waits:
        return value % 4 === 0 && value <= REPORT_BYTES ? FRAME_HEADER_BYTES + value : 0;
      default:
        return this.frameBytes(kind, value);
    }
  }

  #payload(place: number, bytes: number): Uint8Array {
    return this.memory.bytes.subarray(place + FRAME_HEADER_BYTES, place + FRAME_HEADER_BYTES + bytes);
  }

  /** The other side has ended the connection. */
  #goodbye(error: Error): void {
    this.#end(error);
    if (this.wire.giveBack()) this.startReading();
    this.socket.end();
  }

  /** The other side has reported a long wait. */
  #waits(report: Uint8Array): void {
    const words = new DataView(report.buffer, report.byteOffset, report.byteLength);
    this.#report = {
      count: (this.#report?.count ?? 0) + 1,
      words: Array.from({ length: report.byteLength / 4 }, (_, i) => words.getInt32(4 * i, true)),
    };
  }

  #aborted(reason: Uint8Array): void {
    let error: Error;
    try {
      error = unpackReason(reason, this.peer);
    } catch {
      this.#broken();
      return;
    }
    this.#goodbye(error);
  }

  /** The received bytes are not a frame. */
  #broken(): void {
    this.#end(
      new SystemError('NETWORK', `the data from rank ${this.peer} are not valid frames: something on the way changed them`, {
        rank: this.peer,
      }),
    );
    this.socket.destroy();
  }

  /** Reads arrived data and checks the connection, for callers that block the event loop. */
  #look(): void {
    lookAtHosts();
    while (this.pull());
    this.flush();
    if (this.socket.destroyed) this.#explainEnd();
    this.endedThere ??= this.#breakage.look();
  }

  /** The connection broke without a goodbye. */
  #explainEnd(): void {
    if (this.endedThere === undefined && this.endedHere === undefined) this.#breakage.begin(this.#cause);
  }

  get #cause(): Error | undefined {
    return this.#socketError ?? this.wire.failure ?? this.socket.errored ?? undefined;
  }

  /** Frees the slots once neither the socket nor the caller uses them. */
  #freeUnused(): void {
    if (this.socket.closed && this.endedHere !== undefined) this.memory.free();
  }

  #end(error: Error): void {
    this.endedThere ??= error;
  }

  /** Sends the last frame, after all posted messages. */
  #leave(last: Buffer): void {
    if (this.wire.giveBack()) this.startReading();
    if (this.socket.writable) this.socket.write(last);
  }

  /** Closes this direction once the other side has received everything, at the latest after `limitMs`. */
  #finish(limitMs: number): Promise<void> {
    this.#listener = undefined;
    return endSocket(this.socket, limitMs, this.unreadBytes());
  }
}

/** Writes messages from slots to a socket. A slot is free again when the receiver has returned its credit. */
export class SocketSender extends SocketConnection implements SendConnection {
  #posted = 0;
  #credited = 0;

  constructor(socket: Socket, peer: number, memory: SlotMemory, means: ConnectionMeans = {}) {
    super(socket, peer, memory, means);
    this.begin();
  }

  acquire(): number {
    const { memory } = this;
    if (this.#posted - this.#credited === memory.slots || this.wire.failure !== undefined) {
      this.flush();
      while (this.pull());
    }
    if (this.endedHere !== undefined) throw this.endedHere;
    if (this.endedThere !== undefined) throw this.endedThere;
    return this.#posted - this.#credited < memory.slots ? memory.at(this.#posted % memory.slots) : -1;
  }

  post(bytes: number): void {
    const place = this.memory.frame(this.#posted++ % this.memory.slots);
    this.memory.setHeader(place, frameKinds.data, bytes);
    this.wire.write(place, FRAME_HEADER_BYTES + bytes);
  }

  protected override startReading(): void {
    this.socket.on('data', (chunk: Buffer) => {
      for (let read = 0; read < chunk.length && this.endedThere === undefined;) {
        const part = chunk.subarray(read, read + this.roomBytes());
        this.memory.bytes.set(part, this.frame() + this.have);
        this.read(part.length);
        read += part.length;
      }
    });
    this.socket.resume();
  }

  protected override unreadBytes(): number {
    let bytes = 0;
    for (let message = this.#credited; message < this.#posted; message++)
      bytes += this.memory.value(this.memory.frame(message % this.memory.slots));
    return bytes;
  }

  protected override hasUnread(): boolean {
    return false;
  }

  protected override frame(): number {
    return this.memory.inbox;
  }

  protected override roomBytes(): number {
    return INBOX_BYTES - this.have;
  }

  protected override wantedBytes(): number {
    return this.roomBytes();
  }

  protected override frameBytes(kind: number, value: number): number {
    return kind === frameKinds.credit && value <= this.#posted - this.#credited ? FRAME_HEADER_BYTES : 0;
  }

  /** The receiver has returned credits. */
  protected override takeFrame(value: number): void {
    this.#credited += value;
  }
}

/**
 * Reads messages from a socket straight into slots. One read may go beyond a message's end; these few bytes are moved to the
 * next slot. That is why there is one slot more than the sender has credits.
 */
export class SocketReceiver extends SocketConnection implements ReceiveConnection {
  messageBytes = 0;
  /** Number of messages received and released for which credits have been returned. */
  #came = 0;
  #released = 0;
  #credited = 0;
  /** Length of these messages. */
  #owedBytes = 0;
  /** Length of the last message: the next one probably has the same. */
  #lastBytes = 0;

  /** With node:net, the caller reads into `room()` and then calls `read`. */
  constructor(socket: Socket, peer: number, memory: SlotMemory, means: ConnectionMeans = {}) {
    super(socket, peer, memory, means);
    this.begin();
  }

  peek(): number {
    if (this.endedHere !== undefined) throw this.endedHere;
    if (this.#came === this.#released) {
      while (this.pull() && this.#came === this.#released);
      if (this.#came === this.#released) {
        if (this.endedThere !== undefined) throw this.endedThere;
        return -1;
      }
    }
    const slot = this.#released % this.memory.slots;
    this.messageBytes = this.memory.value(this.memory.frame(slot));
    return this.memory.at(slot);
  }

  release(): void {
    this.#released++;
    this.#owedBytes += this.messageBytes;
    this.#giveCredits();
  }

  override flush(): boolean {
    if (!super.flush()) return false;
    this.#giveCredits();
    return super.flush();
  }

  /** Memory for the next bytes from the socket. */
  room(): Uint8Array {
    const place = this.frame() + this.have;
    return this.memory.bytes.subarray(place, place + this.roomBytes());
  }

  protected override startReading(): void {
    this.socket.resume();
  }

  /** Credits are few bytes: nothing to wait for. */
  protected override unreadBytes(): number {
    return 0;
  }

  protected override hasUnread(): boolean {
    return this.#came !== this.#released;
  }

  protected override frame(): number {
    return this.memory.frame(this.#came % this.memory.slots);
  }

  protected override roomBytes(): number {
    return this.memory.frameBytes - this.have;
  }

  protected override wantedBytes(): number {
    const { memory, have } = this;
    if (have >= FRAME_HEADER_BYTES) return FRAME_HEADER_BYTES + memory.value(this.frame()) - have;
    return Math.min(memory.frameBytes, Math.max(READ_BYTES, FRAME_HEADER_BYTES + this.#lastBytes)) - have;
  }

  protected override frameBytes(kind: number, value: number): number {
    const hasRoom = this.#came - this.#released < this.size.steps;
    return kind === frameKinds.data && value <= this.size.slotBytes && hasRoom ? FRAME_HEADER_BYTES + value : 0;
  }

  /** A message has arrived. */
  protected override takeFrame(value: number): void {
    this.#came++;
    this.#lastBytes = value;
    this.#giveCredits();
  }

  /** Returns several credits in one frame, but immediately when the sender has none left. */
  #giveCredits(): void {
    const credits = this.#released - this.#credited;
    if (credits === 0 || !this.#isCreditDue(credits) || this.endedHere !== undefined || this.endedThere !== undefined) return;
    if (!this.wire.say(frameKinds.credit, credits)) return;
    this.#credited = this.#released;
    this.#owedBytes = 0;
  }

  /** A frame of credits costs as much as a short message, so there are fewer where messages are short. */
  #isCreditDue(credits: number): boolean {
    const { steps, slotBytes } = this.size;
    return (
      credits >= Math.floor(steps * SHORT_CREDITS) ||
      this.#owedBytes >= steps * slotBytes * LONG_CREDITS ||
      this.#came - this.#credited >= steps
    );
  }
}
