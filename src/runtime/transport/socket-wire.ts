import type { Socket } from 'node:net';
import { constants } from 'node:os';
import { getSystemErrorName } from 'node:util';
import type { Libc } from '../device/libc.js';
import { SystemError } from '../../errors.js';
import { frame, FRAME_HEADER_BYTES } from './socket-frames.js';
import type { SlotMemory } from './socket-memory.js';

/** How a connection's bytes get from its memory to the kernel and back. Places are those of the memory. */
export interface Wire {
  /** Whether `receive` reads; otherwise node:net does. */
  readonly polled: boolean;
  readonly fd: number;
  /** What writing, or `receive`, failed with. */
  readonly failure: Error | undefined;
  /** Sends bytes, behind those sent before. They stay as they are until the other side has them. */
  write(place: number, bytes: number): void;
  /** Sends a frame that carries no message; false, and nothing is sent, where one is still on its way out. */
  say(kind: number, value: number, payload?: Uint8Array): boolean;
  flush(): boolean;
  /** Bytes received, at most `bytes`; 0 when none has come, -1 when none will ever come. */
  receive(place: number, bytes: number): number;
  /** Keeps the process alive, or no longer, where node:net calls for news. */
  await(isAwaited: boolean): void;
  /** Gives what is unsent to node:net. Returns whether it has to read from now on. */
  giveBack(): boolean;
}

/** node:net moves the bytes, in the event loop. */
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

  say(kind: number, value: number, payload?: Uint8Array): boolean {
    return this.#socket.writable && (this.#socket.write(frame(kind, value, payload)), true);
  }

  flush(): boolean {
    return true;
  }

  receive(): number {
    return 0;
  }

  await(isAwaited: boolean): void {
    if (this.#socket.destroyed) return; // node:net would keep the wish, each time anew, for a connection that never comes
    if (isAwaited) this.#socket.ref();
    else this.#socket.unref();
  }

  giveBack(): boolean {
    return false;
  }
}

/** More than the frames that can be on their way out at once. */
const QUEUE = 32;
const { EAGAIN, EINTR } = constants.errno;

/** System calls move the bytes, in the caller's time. The socket stays the owner of the connection, and closes it. */
export class SystemWire implements Wire {
  readonly polled = true;
  failure: Error | undefined;
  readonly #socket: Socket;
  readonly #held: HeldSocket;
  readonly #memory: SlotMemory;
  readonly #libc: Libc;
  readonly #fd: number;
  /** Address of the memory in this process. */
  readonly #base: number;
  /** Places and lengths of what is unsent, from `#first` to `#next`. */
  readonly #places = new Float64Array(QUEUE);
  readonly #lengths = new Float64Array(QUEUE);
  #first = 0;
  #next = 0;
  /** The frame of the outbox in the queue. */
  #outbox = -1;
  #cannotWrite = false;
  #isOver = false;

  constructor(socket: Socket, memory: SlotMemory, { libc, held }: SystemCalls) {
    this.#socket = socket;
    this.#held = held;
    this.#memory = memory;
    this.#libc = libc;
    this.#fd = held.fd;
    this.#base = Number(libc.addressOf(memory.bytes));
  }

  /** A socket that is destroyed has closed its descriptor, whose number may be another's by now. */
  get fd(): number {
    return this.#isOver || this.#socket.destroyed ? -1 : this.#fd;
  }

  write(place: number, bytes: number): void {
    if (this.#isOver) {
      writeTo(this.#socket, this.#memory, place, bytes);
      return;
    }
    const sent = this.flush() ? this.#send(place, bytes) : 0;
    if (sent === bytes) return;
    this.#places[this.#next % QUEUE] = place + sent;
    this.#lengths[this.#next++ % QUEUE] = bytes - sent;
  }

  say(kind: number, value: number, payload?: Uint8Array): boolean {
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
    for (; this.#first < this.#next; this.#first++) {
      const i = this.#first % QUEUE;
      const place = this.#places[i] ?? 0;
      const bytes = this.#lengths[i] ?? 0;
      const sent = this.#send(place, bytes);
      if (sent < bytes) {
        this.#places[i] = place + sent;
        this.#lengths[i] = bytes - sent;
        return false;
      }
    }
    return true;
  }

  receive(place: number, bytes: number): number {
    const { fd } = this;
    if (fd < 0) return 0;
    const received = this.#libc.recv(fd, this.#base + place, bytes);
    if (received > 0) return received;
    if (received === -EAGAIN || received === -EINTR) return 0;
    if (received < 0) this.#failed('receiving', received);
    this.#isOver = true;
    return -1;
  }

  await(): void {
    // The caller sleeps on the descriptor.
  }

  giveBack(): boolean {
    if (this.#isOver || this.#socket.destroyed) return false;
    this.#isOver = true;
    for (; this.#first < this.#next; this.#first++) {
      const i = this.#first % QUEUE;
      writeTo(this.#socket, this.#memory, this.#places[i] ?? 0, this.#lengths[i] ?? 0);
    }
    this.#held.letGo();
    return true;
  }

  /**
   * How many bytes the kernel took: as if it were all, once the other side has closed. The end comes from reading then, behind
   * what that side sent last.
   */
  #send(place: number, bytes: number): number {
    const { fd } = this;
    if (fd < 0 || this.#cannotWrite) return bytes;
    const sent = this.#libc.send(fd, this.#base + place, bytes);
    if (sent >= 0) return sent;
    if (sent === -EAGAIN || sent === -EINTR) return 0;
    this.#failed('sending', sent);
    this.#cannotWrite = true;
    return bytes;
  }

  #failed(what: string, result: number): void {
    this.failure ??= new SystemError('NETWORK', `${what} failed: ${getSystemErrorName(result)}`);
  }
}

/** What system calls need. */
export interface SystemCalls {
  readonly libc: Libc;
  readonly held: HeldSocket;
}

/** Takes a socket out of the event loop, where there is a C library and the inside of the socket is what we know. */
export function systemCalls(libc: Libc | undefined, socket: Socket): SystemCalls | undefined {
  const held = libc === undefined ? undefined : hold(socket);
  return libc === undefined || held === undefined ? undefined : { libc, held };
}

/** A socket of node:net that does not read until it is let go. */
export interface HeldSocket {
  readonly fd: number;
  letGo(): void;
}

interface StreamHandle {
  readonly fd: number;
  reading: boolean;
  readStop(): unknown;
}

function hold(socket: Socket): HeldSocket | undefined {
  const handle = (socket as { readonly _handle?: Partial<StreamHandle> | null })._handle;
  if (typeof handle?.fd !== 'number' || handle.fd < 0 || typeof handle.readStop !== 'function' || socket.destroyed)
    return undefined;
  // The method that streams are made of: a stream may ask for more when it likes.
  const read = socket._read.bind(socket);
  socket._read = () => undefined;
  handle.readStop();
  handle.reading = false;
  return {
    fd: handle.fd,
    letGo() {
      socket._read = read;
      if (!socket.destroyed) read(0);
    },
  };
}

function writeTo(socket: Socket, { address, segment }: SlotMemory, place: number, bytes: number): void {
  if (socket.writable) socket.write(new Uint8Array(segment.buffer, address + place, bytes));
}
