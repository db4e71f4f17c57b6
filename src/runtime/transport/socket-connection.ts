import { lookAtHosts, watchHost } from '#seam/bootstrap/liveness';
import { endSocket, readOnAfterWrites } from '../bootstrap/socket-end.js';
import { packReport, unpackReport, type WaitReport } from '../device/wait-report.js';
import { SystemError } from '../../errors.js';
import { Breakage, type WhyGone } from '../failure/breakage.js';
import { closedHere, closedThere, died } from '../failure/reasons.js';
import { packReason, REASON_BYTES, unpackReason } from '../failure/transfer.js';
import { frame, frameKinds, FRAME_HEADER_BYTES, REPORT_BYTES } from './socket-frames.js';
import { INBOX_BYTES, type SlotMemory } from './socket-memory.js';
import { NodeWire, SystemWire, type SystemCalls, type Wire } from './socket-wire.js';
import type { AwaitedNews, FdSources, FifoSize, ReceiveConnection, SendConnection } from './transport.js';
import type { Socket } from '../platform/platform.js';
import { graceMs } from '../failure/grace.js';

/** Credits are returned for this share of the slots, or of their bytes. */
const SHORT_CREDITS = 3 / 4;
const LONG_CREDITS = 3 / 8;

/** Minimum number of bytes to ask for, so that several short messages arrive in one read. Bytes behind a message are moved. */
const READ_BYTES = 4096;

/** Means of a connection besides its socket and its memory. */
export interface ConnectionMeans {
  readonly whyGone?: WhyGone | undefined;
  /** Error of a connection that breaks for no known reason; left out, that the rank died. */
  readonly ended?: ((cause: Error | undefined) => Error) | undefined;
  /** The other rank with its host and address, for errors. */
  readonly place?: string | undefined;
  /** Left out where node:net moves the data. */
  readonly system?: SystemCalls | undefined;
  /** True if the socket's creator gives node:net `room()` to read into, and calls `read`. */
  readonly readsInPlace: boolean;
}

/**
 * One end of a connection over a socket, which carries messages to the other side, from it, or both, as its memory has slots.
 * Messages are written from slots to the socket; a slot is free again when the receiver has returned its credit. They are read
 * straight into slots. One read may go beyond a message's end; these few bytes are moved to the next slot. That is why there
 * is one slot more to receive than the sender has credits.
 */
export class SocketConnection implements SendConnection, ReceiveConnection {
  readonly transport = 'socket';
  readonly polled: boolean;
  readonly reachesArrays: boolean;
  readonly size: FifoSize;
  readonly peer: number;
  messageBytes = 0;
  isInPlace = false;
  readonly #socket: Socket;
  readonly #memory: SlotMemory;
  readonly #wire: Wire;
  readonly #readsInPlace: boolean;
  /** True if messages are received, and so read straight into slots. */
  readonly #receives: boolean;
  /** Number of messages posted, and of those whose slots the receiver has released. */
  #posted = 0;
  #credited = 0;
  /** Number of messages received, of those released, and of those for which credits have been returned. */
  #came = 0;
  #released = 0;
  #returned = 0;
  /** Length of the released messages for which credits are owed. */
  #owedBytes = 0;
  /** Length of the last message: the next one probably has the same. */
  #lastBytes = 0;
  /** Bytes received so far of the current frame. */
  #have = 0;
  /**
   * Place for the data of the next message, outside this memory; length of the frame's part before them, and theirs. A length
   * of 0 stands for none.
   */
  #into = 0;
  #intoHead = 0;
  #intoBytes = 0;
  /** Error that later calls on this side throw. */
  #endedHere: Error | undefined;
  /** Error with which the other side ended the connection. */
  #endedThere: Error | undefined;
  readonly #breakage: Breakage;
  #report: WaitReport | undefined;
  #listener: (() => void) | undefined;
  #socketError: Error | undefined;

  constructor(socket: Socket, peer: number, memory: SlotMemory, means: ConnectionMeans) {
    const { whyGone, ended, place, system, readsInPlace } = means;
    this.peer = peer;
    this.size = memory.size;
    this.#socket = socket;
    this.#memory = memory;
    this.#receives = memory.slots.receives > 0;
    this.#readsInPlace = readsInPlace;
    this.#wire = system === undefined ? new NodeWire(socket, memory) : new SystemWire(socket, memory, system);
    this.polled = this.#wire.polled;
    this.reachesArrays = this.#wire.writeBoth !== undefined;
    const explained = (error: Error): void => {
      this.#end(error);
      this.#listener?.();
    };
    this.#breakage = new Breakage(peer, whyGone, explained, (rank, cause) => ended?.(cause) ?? died(rank, cause, place));
    const closed = (): void => {
      this.#freeUnused();
      this.#explainEnd();
    };
    readOnAfterWrites(socket, (error) => (this.#socketError = error));
    socket.on('error', (error) => (this.#socketError = error));
    socket.on('close', closed);
    if (socket.closed) closed();
    watchHost(socket);
    if (!this.polled) this.#startReading();
    socket.unref();
  }

  get fd(): number {
    return this.#wire.fd;
  }

  wakeOn(sources: FdSources, awaited?: AwaitedNews): void {
    if (this.fd < 0) return;
    const isAwaited = awaited !== undefined;
    const isUnsent = !this.flush();
    if (isAwaited || isUnsent) sources.addFd(this.fd, isAwaited, isUnsent);
  }

  acquire(): number {
    const { failure } = this.#wire;
    if (this.#lacksCredit || failure !== undefined) {
      this.flush();
      // Reads no further than to a credit: data behind it may have a place in an array soon.
      while (this.#pull() && (this.#lacksCredit || failure !== undefined));
    }
    if (this.#endedHere !== undefined) throw this.#endedHere;
    if (this.#endedThere !== undefined) throw this.#endedThere;
    return this.#lacksCredit ? -1 : this.#memory.at(this.#memory.outgoing(this.#posted));
  }

  post(bytes: number): void {
    const place = this.#memory.outgoing(this.#posted++);
    this.#memory.setHeader(place, frameKinds.data, bytes, this.#released - this.#returned);
    this.#creditsReturned();
    this.#wire.write(place, FRAME_HEADER_BYTES + bytes);
  }

  postFrom(headBytes: number, address: number, bytes: number): void {
    const place = this.#memory.outgoing(this.#posted++);
    this.#memory.setHeader(place, frameKinds.data, headBytes + bytes, this.#released - this.#returned);
    this.#creditsReturned();
    this.#wire.writeBoth?.(place, FRAME_HEADER_BYTES + headBytes, address - this.#memory.address, bytes);
  }

  peekInto(headBytes: number, address: number, bytes: number): number {
    const head = FRAME_HEADER_BYTES + headBytes;
    if (this.#came === this.#released && this.#have <= head) {
      this.#into = address - this.#memory.address;
      this.#intoHead = head;
      this.#intoBytes = bytes;
    }
    return this.peek();
  }

  peek(): number {
    if (this.#endedHere !== undefined) throw this.#endedHere;
    if (this.#came === this.#released) {
      while (this.#pull() && this.#came === this.#released);
      if (this.#came === this.#released) {
        if (this.#endedThere !== undefined) throw this.#endedThere;
        return -1;
      }
    }
    const place = this.#memory.incoming(this.#released);
    this.messageBytes = this.#memory.value(place);
    return this.#memory.at(place);
  }

  release(): void {
    this.#released++;
    this.isInPlace = false;
    this.#owedBytes += this.messageBytes;
    this.#giveCredits();
  }

  returnSlots(): void {
    this.#giveCredits(true);
  }

  flush(): boolean {
    if (!this.#wire.flush()) return false;
    if (this.#released === this.#returned) return true;
    this.#giveCredits();
    return this.#wire.flush();
  }

  onNews(listener: (() => void) | undefined): void {
    this.#listener = listener;
    this.#wire.await(listener !== undefined);
  }

  check(): void {
    if (this.polled) this.#look();
    if (this.#endedHere !== undefined) throw this.#endedHere;
    if (this.#endedThere !== undefined && !this.#hasUnread()) throw this.#endedThere;
  }

  reportWait(report: readonly number[]): void {
    if (this.#endedHere !== undefined || this.#endedThere !== undefined) return;
    const bytes = packReport(report, REPORT_BYTES);
    this.#wire.sendNote(frameKinds.waits, bytes.length, bytes);
  }

  waitReport(): WaitReport | undefined {
    while (this.#pull());
    return this.#report;
  }

  async close(report?: readonly number[]): Promise<void> {
    if (this.#endedHere === undefined) {
      this.#endedHere = closedHere(this.peer);
      const bytes = report && packReport(report, REPORT_BYTES);
      if (bytes !== undefined) this.#leave(frame(frameKinds.waits, bytes.length, bytes));
      this.#leave(frame(frameKinds.goodbye, 0));
    }
    await this.#finish(graceMs.deliveryAfterClose);
    this.#freeUnused();
  }

  abort(reason: Error): void {
    if (this.#endedHere !== undefined) return;
    this.#endedHere = reason;
    const packed = packReason(reason);
    this.#leave(frame(frameKinds.abort, packed.length, packed));
    void this.#finish(graceMs.deliveryAfterAbort);
    this.#socket.unref();
    this.#freeUnused();
  }

  /** Memory for the next bytes from the socket, for node:net. */
  room(): Uint8Array {
    const place = this.#frame() + this.#have;
    return this.#memory.bytes.subarray(place, place + this.#roomBytes());
  }

  /** node:net has read `bytes` more bytes of the current frame. */
  read(bytes: number): void {
    if (this.#take(bytes)) this.#listener?.();
  }

  /** Lets node:net read from now on. */
  #startReading(): void {
    if (!this.#readsInPlace) {
      this.#socket.on('data', (chunk: Buffer) => {
        for (let read = 0; read < chunk.length && this.#endedThere === undefined;) {
          const part = chunk.subarray(read, read + this.#roomBytes());
          this.#memory.bytes.set(part, this.#frame() + this.#have);
          this.read(part.length);
          read += part.length;
        }
      });
    }
    this.#socket.resume();
  }

  /** Number of sent bytes that the other side may not have read yet. Frames without a message are too short to count. */
  #unreadBytes(): number {
    let bytes = 0;
    for (let message = this.#credited; message < this.#posted; message++)
      bytes += this.#memory.value(this.#memory.outgoing(message));
    return bytes;
  }

  /** True if the caller can still read messages before it gets the error. */
  #hasUnread(): boolean {
    return this.#came !== this.#released;
  }

  /** Place of the current frame. */
  #frame(): number {
    return this.#receives ? this.#memory.incoming(this.#came) : this.#memory.inbox;
  }

  #roomBytes(): number {
    return (this.#receives ? this.#memory.frameBytes : INBOX_BYTES) - this.#have;
  }

  get #lacksCredit(): boolean {
    return this.#posted - this.#credited === this.#memory.slots.sends;
  }

  /** Number of bytes to ask for, for this memory. */
  #wantedBytes(): number {
    if (!this.#receives) return this.#roomBytes();
    const memory = this.#memory;
    const have = this.#have;
    if (this.#intoBytes > 0 && have < this.#intoHead) return this.#intoHead - have;
    if (have >= FRAME_HEADER_BYTES) return FRAME_HEADER_BYTES + memory.value(this.#frame()) - have;
    return Math.min(memory.frameBytes, Math.max(READ_BYTES, FRAME_HEADER_BYTES + this.#lastBytes)) - have;
  }

  /** Takes received frames, as many as one call handles. Returns whether there may be more. */
  #pull(): boolean {
    if (this.#endedThere !== undefined || this.#endedHere !== undefined) return false;
    if (this.#intoBytes > 0 && this.#have >= this.#intoHead && this.#isForArray(this.#memory.value(this.#frame())))
      return this.#pullIntoArray();
    const wanted = this.#wantedBytes();
    return this.#isTaken(this.#wire.receive(this.#frame() + this.#have, wanted), wanted);
  }

  /** Receives data of the next message where they belong, and the beginning of the frame after it. */
  #pullIntoArray(): boolean {
    const done = this.#have - this.#intoHead;
    const wanted = this.#intoBytes - done;
    const nextHead = this.#intoHead;
    const next = this.#memory.incoming(this.#came + 1);
    const bytes = this.#wire.receiveBoth?.(this.#into + done, wanted, next, nextHead) ?? 0;
    if (bytes <= wanted) {
      this.#isTaken(bytes, wanted);
      return false;
    }
    this.#take(wanted);
    return this.#isTaken(bytes - wanted, nextHead);
  }

  /** Takes received bytes, or the end of the stream. Returns whether they are as many as were wanted. */
  #isTaken(bytes: number, wanted: number): boolean {
    if (bytes > 0) this.#take(bytes);
    else if (bytes < 0) {
      this.#socket.destroy();
      this.#explainEnd();
    }
    return bytes === wanted;
  }

  /** True if the next message has the length for which there is a place. If not, it goes to its slot. */
  #isForArray(messageBytes: number): boolean {
    if (FRAME_HEADER_BYTES + messageBytes !== this.#intoHead + this.#intoBytes) this.#intoBytes = 0;
    return this.#intoBytes > 0;
  }

  /** Adds received bytes to the current frame. Returns whether the frame is complete. */
  #take(bytes: number): boolean {
    this.#have += bytes;
    let isWhole = false;
    while (this.#have >= FRAME_HEADER_BYTES && this.#endedThere === undefined) {
      const memory = this.#memory;
      const place = this.#frame();
      const kind = memory.kind(place);
      const value = memory.value(place);
      const length = this.#lengthOf(kind, value, memory.credits(place));
      if (length > 0 && this.#have < length) break;
      isWhole = true;
      if (length === 0) this.#broken();
      else if (kind === frameKinds.data) this.#arrived(value, memory.credits(place));
      else if (kind === frameKinds.credit) this.#credited += value;
      else if (kind === frameKinds.goodbye) this.#goodbye(closedThere(this.peer));
      else if (kind === frameKinds.abort) this.#aborted(this.#payload(place, value));
      else this.#report = unpackReport(this.#payload(place, value), this.#report);
      // Move the bytes behind the frame to the place of the next one, which is the next slot if this frame was a message.
      this.#have -= length;
      if (this.#have > 0) memory.bytes.copyWithin(this.#frame(), place + length, place + length + this.#have);
    }
    return isWhole;
  }

  /** Length of a frame; 0 if it is invalid. */
  #lengthOf(kind: number, value: number, credits: number): number {
    const lent = this.#posted - this.#credited;
    if (credits > (kind === frameKinds.data ? lent : 0)) return 0;
    const hasRoom = this.#receives && this.#came - this.#released < this.size.steps;
    switch (kind) {
      case frameKinds.data:
        return hasRoom && value <= this.size.slotBytes ? FRAME_HEADER_BYTES + value : 0;
      case frameKinds.credit:
        return value > 0 && value <= lent ? FRAME_HEADER_BYTES : 0;
      case frameKinds.goodbye:
        return FRAME_HEADER_BYTES;
      case frameKinds.abort:
        return value <= REASON_BYTES ? FRAME_HEADER_BYTES + value : 0;
      case frameKinds.waits:
        return value % 4 === 0 && value <= REPORT_BYTES ? FRAME_HEADER_BYTES + value : 0;
      default:
        return 0;
    }
  }

  #arrived(bytes: number, credits: number): void {
    this.#credited += credits;
    if (this.#intoBytes > 0 && this.#isForArray(bytes)) this.isInPlace = true;
    this.#intoBytes = 0;
    this.#came++;
    this.#lastBytes = bytes;
    this.#giveCredits();
  }

  /**
   * Returns several credits in one frame, but immediately when the sender has none left. Where messages go both ways, those
   * to the other side take the credits along before that.
   */
  #giveCredits(all = false): void {
    const credits = this.#released - this.#returned;
    if (credits === 0 || !(all || this.#isCreditDue(credits)) || this.#endedHere !== undefined || this.#endedThere !== undefined)
      return;
    if (this.#wire.sendNote(frameKinds.credit, credits)) this.#creditsReturned();
  }

  #creditsReturned(): void {
    this.#returned = this.#released;
    this.#owedBytes = 0;
  }

  /** A frame of credits costs as much as a short message, so there are fewer where messages are short. */
  #isCreditDue(credits: number): boolean {
    const { steps, slotBytes } = this.size;
    return (
      credits >= Math.floor(steps * SHORT_CREDITS) ||
      this.#owedBytes >= steps * slotBytes * LONG_CREDITS ||
      this.#came - this.#returned >= steps
    );
  }

  #payload(place: number, bytes: number): Uint8Array {
    return this.#memory.bytes.subarray(place + FRAME_HEADER_BYTES, place + FRAME_HEADER_BYTES + bytes);
  }

  /** The other side has ended the connection. */
  #goodbye(error: Error): void {
    this.#end(error);
    if (this.#wire.giveBack()) this.#startReading();
    this.#socket.end();
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
    this.#socket.destroy();
  }

  /** Reads arrived data and checks the connection, for callers that block the event loop. */
  #look(): void {
    lookAtHosts();
    while (this.#pull());
    this.flush();
    if (this.#socket.destroyed) this.#explainEnd();
    this.#endedThere ??= this.#breakage.look();
  }

  /** The connection broke without a goodbye. */
  #explainEnd(): void {
    if (this.#endedThere === undefined && this.#endedHere === undefined) this.#breakage.begin(this.#cause);
  }

  get #cause(): Error | undefined {
    return this.#socketError ?? this.#wire.failure ?? this.#socket.errored ?? undefined;
  }

  /** Frees the slots once neither the socket nor the caller uses them. */
  #freeUnused(): void {
    if (this.#socket.closed && this.#endedHere !== undefined) this.#memory.free();
  }

  #end(error: Error): void {
    this.#endedThere ??= error;
  }

  /** Sends a frame after all posted messages. */
  #leave(last: Buffer): void {
    if (this.#wire.giveBack()) this.#startReading();
    if (this.#socket.writable) this.#socket.write(last);
  }

  /** Closes this direction once the other side has received everything, at the latest after `limitMs`. */
  #finish(limitMs: number): Promise<void> {
    this.#listener = undefined;
    return endSocket(this.#socket, limitMs, this.#unreadBytes());
  }
}
