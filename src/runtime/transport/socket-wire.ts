import { constants, getSystemErrorName } from '#platform/system';
import { MOST_PIECES, type Libc } from '../device/libc.js';
import { SystemError } from '../../errors.js';
import { frame, FRAME_HEADER_BYTES } from './socket-frames.js';
import type { SlotMemory } from './socket-memory.js';
import type { Socket } from '../platform/platform.js';
import { defined } from '../../defined.js';

/** Moves a connection's bytes between its memory and the kernel. Places are offsets in that memory. */
export interface Wire {
  /** True if `receive` reads the socket; otherwise node:net reads it. */
  readonly polled: boolean;
  readonly fd: number;
  /** Error with which writing or `receive` failed. */
  readonly failure: Error | undefined;
  /** Sends bytes after those sent before. The caller leaves them unchanged until the other side has received them. */
  write(place: number, bytes: number): void;
  /**
   * Sends bytes, then `dataBytes` bytes at place `data`, which may lie outside the memory: the caller leaves those unchanged
   * until `flush` has returned true. Left out where node:net moves the bytes.
   */
  writeBoth?(place: number, bytes: number, data: number, dataBytes: number): void;
  /** Sends a frame without a message. Returns false and sends nothing while an earlier such frame is unsent. */
  sendNote(kind: number, value: number, payload?: Uint8Array): boolean;
  flush(): boolean;
  /** Number of bytes received, at most `bytes`; 0 when nothing has arrived, -1 when the other side has closed. */
  receive(place: number, bytes: number): number;
  /** The same to two places, one after the other; left out where node:net moves the bytes. */
  receiveBoth?(place: number, bytes: number, next: number, nextBytes: number): number;
  /** Keeps the process alive, or stops doing so, where node:net reports news. */
  await(isAwaited: boolean): void;
  /** Hands unsent bytes over to node:net. Returns whether node:net must also read from now on. */
  giveBack(): boolean;
}

/** Wire on node:net: the event loop moves the bytes. */
export class NodeWire implements Wire {
  readonly polled = false;
  readonly fd = -1;
  readonly failure = undefined;
  readonly #socket: Socket;
  readonly #memory: SlotMemory;

  constructor(socket: Socket, memory: SlotMemory) {
    this.#socket = socket;
    this.#memory = memory;
  }

  write(place: number, bytes: number): void {
    writeTo(this.#socket, this.#memory, place, bytes);
  }

  sendNote(kind: number, value: number, payload?: Uint8Array): boolean {
    return this.#socket.writable && (this.#socket.write(frame(kind, value, payload)), true);
  }

  flush(): boolean {
    return true;
  }

  receive(): number {
    return 0;
  }

  await(isAwaited: boolean): void {
    if (this.#socket.destroyed) return; // node:net would add a callback at every call for a connection that never comes
    if (isAwaited) this.#socket.ref();
    else this.#socket.unref();
  }

  giveBack(): boolean {
    return false;
  }
}

/** More than the pieces of frames that can be unsent at the same time: two of each message, and a frame without one. */
const QUEUE = 64;
const { EAGAIN, EINTR } = constants.errno;

/** Wire on system calls: bytes move during the caller's polls. The socket still owns the connection and closes it. */
export class SystemWire implements Wire {
  readonly polled = true;
  failure: Error | undefined;
  readonly #socket: Socket;
  readonly #detached: DetachedSocket;
  readonly #memory: SlotMemory;
  readonly #libc: Libc;
  readonly #fd: number;
  /** Address of the shared memory in this process. */
  readonly #base: number;
  /** Places and lengths of unsent bytes, from `#first` to `#next`. */
  readonly #places = new Float64Array(QUEUE);
  readonly #lengths = new Float64Array(QUEUE);
  #first = 0;
  #next = 0;
  /** Index in the queue of the frame in the outbox. */
  #outbox = -1;
  #cannotWrite = false;
  #isOver = false;

  constructor(socket: Socket, memory: SlotMemory, { libc, detached }: SystemCalls) {
    this.#socket = socket;
    this.#detached = detached;
    this.#memory = memory;
    this.#libc = libc;
    this.#fd = detached.fd;
    this.#base = Number(libc.addressOf(memory.bytes));
  }

  /** -1 for a destroyed socket: its descriptor is closed, and the number may be reused. */
  get fd(): number {
    return this.#isOver || this.#socket.destroyed ? -1 : this.#fd;
  }

  write(place: number, bytes: number): void {
    if (this.#isOver) {
      writeTo(this.#socket, this.#memory, place, bytes);
      return;
    }
    const sent = this.flush() ? this.#send(place, bytes) : 0;
    if (sent < bytes) this.#queue(place + sent, bytes - sent);
  }

  writeBoth(place: number, bytes: number, data: number, dataBytes: number): void {
    if (this.#isOver) {
      writeTo(this.#socket, this.#memory, place, bytes);
      writeTo(this.#socket, this.#memory, data, dataBytes);
      return;
    }
    this.#queue(place, bytes);
    this.#queue(data, dataBytes);
    this.flush();
  }

  sendNote(kind: number, value: number, payload?: Uint8Array): boolean {
    const { outbox, bytes } = this.#memory;
    if (this.#outbox >= this.#first || this.#isOver) return false;
    this.#memory.setHeader(outbox, kind, value);
    if (payload !== undefined) bytes.set(payload, outbox + FRAME_HEADER_BYTES);
    const before = this.#next;
    this.write(outbox, FRAME_HEADER_BYTES + (payload?.length ?? 0));
    if (this.#next > before) this.#outbox = before;
    return true;
  }

  flush(): boolean {
    while (this.#first < this.#next) if (!this.#sendQueued()) return false;
    return true;
  }

  receive(place: number, bytes: number): number {
    const { fd } = this;
    return fd < 0 ? 0 : this.#received(this.#libc.recv(fd, this.#base + place, bytes));
  }

  receiveBoth(place: number, bytes: number, next: number, nextBytes: number): number {
    const { fd } = this;
    if (fd < 0) return 0;
    this.#libc.setPiece(0, this.#base + place, bytes);
    this.#libc.setPiece(1, this.#base + next, nextBytes);
    return this.#received(this.#libc.recvPieces(fd, 2));
  }

  #received(received: number): number {
    if (received > 0) return received;
    if (received === -EAGAIN || received === -EINTR) return 0;
    if (received < 0) this.#failed('receiving', received);
    this.#isOver = true;
    return -1;
  }

  await(): void {
    // Nothing to do: the caller sleeps on the descriptor.
  }

  giveBack(): boolean {
    if (this.#isOver || this.#socket.destroyed) return false;
    this.#isOver = true;
    for (; this.#first < this.#next; this.#first++) {
      const i = this.#first % QUEUE;
      writeTo(this.#socket, this.#memory, defined(this.#places[i]), defined(this.#lengths[i]));
    }
    this.#detached.release();
    return true;
  }

  /**
   * Writes bytes and returns how many the kernel took. Returns all of them once the other side has closed: the error then
   * comes from reading, after the last data of that side.
   */
  #send(place: number, bytes: number): number {
    const { fd } = this;
    if (fd < 0 || this.#cannotWrite) return bytes;
    return this.#sent(this.#libc.send(fd, this.#base + place, bytes), bytes);
  }

  /** Writes the first pieces of the queue. Returns whether the kernel took all of them. */
  #sendQueued(): boolean {
    const { fd } = this;
    const count = Math.min(MOST_PIECES, this.#next - this.#first);
    let left = 0;
    for (let piece = 0; piece < count; piece++) {
      const i = (this.#first + piece) % QUEUE;
      const length = defined(this.#lengths[i]);
      this.#libc.setPiece(piece, this.#base + defined(this.#places[i]), length);
      left += length;
    }
    const sent = fd < 0 || this.#cannotWrite ? left : this.#sent(this.#libc.sendPieces(fd, count), left);
    left -= sent;
    for (let done = sent; done > 0;) {
      const i = this.#first % QUEUE;
      const length = defined(this.#lengths[i]);
      const part = Math.min(done, length);
      this.#places[i] = defined(this.#places[i]) + part;
      this.#lengths[i] = length - part;
      done -= part;
      if (part === length) this.#first++;
    }
    return left === 0;
  }

  #sent(sent: number, bytes: number): number {
    if (sent >= 0) return sent;
    if (sent === -EAGAIN || sent === -EINTR) return 0;
    this.#failed('sending', sent);
    this.#cannotWrite = true;
    return bytes;
  }

  /** Adds unsent bytes. */
  #queue(place: number, bytes: number): void {
    this.#places[this.#next % QUEUE] = place;
    this.#lengths[this.#next++ % QUEUE] = bytes;
  }

  #failed(what: string, result: number): void {
    this.failure ??= new SystemError('NETWORK', `${what} failed: ${getSystemErrorName(result)}`);
  }
}

/** Functions and descriptor for moving bytes by system calls. */
export interface SystemCalls {
  readonly libc: Libc;
  readonly detached: DetachedSocket;
}

/**
 * Takes a socket out of the event loop. Returns undefined without a C library, or where Node's socket has other internals
 * than we know.
 */
export function systemCalls(libc: Libc | undefined, socket: Socket): SystemCalls | undefined {
  const detached = libc === undefined ? undefined : detach(socket);
  return libc === undefined || detached === undefined ? undefined : { libc, detached };
}

/** A socket of node:net that does not read until it is released. */
interface DetachedSocket {
  readonly fd: number;
  release(): void;
}

interface StreamHandle {
  readonly fd: number;
  reading: boolean;
  readStop(): unknown;
}

function detach(socket: Socket): DetachedSocket | undefined {
  const handle = (socket as { readonly _handle?: Partial<StreamHandle> | null })._handle;
  if (typeof handle?.fd !== 'number' || handle.fd < 0 || typeof handle.readStop !== 'function' || socket.destroyed)
    return undefined;
  // Override the method that streams call to read: a stream may call it at any time.
  const read = socket._read.bind(socket);
  socket._read = () => undefined;
  handle.readStop();
  handle.reading = false;
  return {
    fd: handle.fd,
    release() {
      socket._read = read;
      if (!socket.destroyed) read(0);
    },
  };
}

/** Copies bytes outside the slots: their owner may change them once node:net has them. */
function writeTo(socket: Socket, memory: SlotMemory, place: number, bytes: number): void {
  if (!socket.writable) return;
  const data = new Uint8Array(memory.segment.buffer, memory.address + place, bytes);
  socket.write(place < 0 || place >= memory.bytes.length ? data.slice() : data);
}
