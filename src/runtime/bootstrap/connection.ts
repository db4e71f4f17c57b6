import { InvalidArgumentError, SystemError } from '../../errors.js';
import type { ConnectionKeys } from './handshake.js';
import { silenceOf } from '../failure/silence.js';
import { watchHost } from './liveness.js';
import { MAXIMUM_PAYLOAD_BYTES, recordKinds, RecordReader, RecordWriter } from './record.js';
import type { OpenedRecord, RecordKind } from './record.js';
import { ConnectionEndedError, type ConnectionEvents, type MessageHeader, type RankConnection } from './rank-connection.js';
import { endSocket, readOnAfterWrites } from './socket-end.js';
import { setTimeout, type Socket } from '../platform/platform.js';
import { graceMs } from '../failure/grace.js';
import { defined } from '../../defined.js';

/** Longest message of a connection. */
const MAXIMUM_MESSAGE_BYTES = 1024 * 1024 * 1024;

const MESSAGE_HEADER_BYTES = 16;
/** Pieces with at most this total length are copied into one write. */
const JOIN_BYTES = 4096;

interface Outbound {
  readonly header: Buffer;
  readonly data: Uint8Array;
  /** Number of bytes of `data` already written. */
  offset: number;
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
}

/**
 * An authenticated connection: messages of up to 1 GiB, notices that overtake them, and a goodbye that distinguishes an
 * orderly end from a broken connection. It never keeps the process alive.
 */
export class BootstrapConnection implements RankConnection {
  /** Resolves when the acceptor has taken the connection; rejects when it ends before. */
  readonly welcomed: Promise<void>;
  readonly #socket: Socket;
  readonly #writer: RecordWriter;
  readonly #reader: RecordReader;
  readonly #events: ConnectionEvents;
  readonly #messages: Outbound[] = [];
  readonly #notices: string[] = [];
  #assembly: { header: MessageHeader; data: Buffer; have: number } | undefined;
  #state: 'greeting' | 'open' | 'leaving' | 'ended' = 'greeting';
  #blocked = false;
  /** The other side has closed, but its last data are still unread. */
  #writeError: Error | undefined;
  #resolveWelcomed: () => void = () => undefined;
  #rejectWelcomed: (error: Error) => void = () => undefined;

  /** `socket` has just finished the handshake that derived `keys`. */
  constructor(socket: Socket, keys: ConnectionKeys, events: ConnectionEvents) {
    this.#socket = socket;
    this.#writer = new RecordWriter(keys.send);
    this.#reader = new RecordReader(keys.receive);
    this.#events = events;
    this.welcomed = new Promise((resolve, reject) => {
      this.#resolveWelcomed = resolve;
      this.#rejectWelcomed = reject;
    });
    this.welcomed.catch(() => undefined); // the owner may only listen to `end`
    readOnAfterWrites(socket, (error) => (this.#writeError = error));
    let failure: Error | undefined;
    const ended = (): void => this.#end(failure ?? this.#writeError ?? new ConnectionEndedError('was closed by the other side'));
    socket.on('error', (error) => {
      failure = error;
      if (silenceOf(error) !== undefined) ended();
    });
    // The socket closes some turns later; by then, the reason may have arrived from another rank.
    socket.on('end', ended);
    socket.on('close', ended);
    socket.on('drain', () => {
      this.#blocked = false;
      this.#pump();
    });
    socket.on('data', (chunk: Buffer) => this.#read(chunk));
    watchHost(socket);
    socket.resume();
  }

  /** Sends the acceptor's first record. */
  welcome(): void {
    this.#write(this.#writer.seal(recordKinds.welcome));
    this.#open();
  }

  /**
   * Resolves when the bytes are handed to the network; until then they must not change.
   * @throws InvalidArgumentError `BUFFER_SIZE` above 1 GiB. Rejects when the connection ends before.
   */
  send(header: MessageHeader, data: Uint8Array): Promise<void> {
    if (data.length > MAXIMUM_MESSAGE_BYTES) {
      return Promise.reject(
        new InvalidArgumentError('BUFFER_SIZE', `a message of ${data.length} bytes is longer than ${MAXIMUM_MESSAGE_BYTES}`),
      );
    }
    if (this.#state !== 'open') return Promise.reject(new ConnectionEndedError('is not open'));
    return new Promise((resolve, reject) => {
      this.#messages.push({ header: encodeHeader(header, data.length), data, offset: 0, resolve, reject });
      this.#pump();
    });
  }

  /** Sends a notice ahead of queued messages. */
  notify(text: string): void {
    if (this.#state !== 'open') return;
    this.#notices.push(text);
    this.#pump();
  }

  /**
   * Sends a goodbye after the record in progress, and closes. Unwritten messages reject. Resolves when closed.
   *
   * @param news notices to send before the goodbye
   */
  async leave(news: readonly string[] = []): Promise<void> {
    if (this.#socket.closed || this.#state === 'ended') return;
    if (this.#state !== 'leaving') {
      this.#state = 'leaving';
      this.#rejectMessages(new ConnectionEndedError('was closed by this side'));
      for (const text of [...this.#notices.splice(0), ...news])
        this.#write(this.#writer.seal(recordKinds.notice, Buffer.from(text)));
      this.#write(this.#writer.seal(recordKinds.goodbye));
    }
    await endSocket(this.#socket, graceMs.goodbye);
  }

  /** Closes without a goodbye; data already written, such as a notice, may still arrive. */
  destroy(): void {
    this.#end(new ConnectionEndedError('was closed by this side'));
    this.#socket.destroySoon();
    setTimeout(() => this.#socket.destroy(), graceMs.unreadData).unref(); // time for data that the other side does not read
  }

  #open(): void {
    this.#state = 'open';
    this.#resolveWelcomed();
  }

  #end(cause: Error | undefined): void {
    if (this.#state === 'ended') return;
    const before = this.#state;
    this.#state = 'ended';
    this.#assembly = undefined;
    const error = cause ?? new ConnectionEndedError('was closed by the other side');
    this.#rejectMessages(error);
    this.#rejectWelcomed(error);
    if (before !== 'greeting') this.#events.end(before === 'leaving' ? undefined : cause);
  }

  #rejectMessages(error: Error): void {
    for (const outbound of this.#messages.splice(0)) outbound.reject(error);
  }

  #pump(): void {
    while (!this.#blocked && this.#state === 'open') {
      const notice = this.#notices.shift();
      if (notice !== undefined) {
        this.#write(this.#writer.seal(recordKinds.notice, Buffer.from(notice)));
        continue;
      }
      const outbound = this.#messages[0];
      if (outbound === undefined) return;
      this.#writeNext(outbound);
    }
  }

  /** Writes the next record of a message; the last record removes it from the queue. */
  #writeNext(outbound: Outbound): void {
    const { header, data, offset } = outbound;
    const isFirst = offset === 0;
    const end = Math.min(data.length, offset + MAXIMUM_PAYLOAD_BYTES - (isFirst ? MESSAGE_HEADER_BYTES : 0));
    const part = data.subarray(offset, end);
    const pieces = isFirst
      ? this.#writer.seal(recordKinds.message, header, part)
      : this.#writer.seal(recordKinds.continuation, part);
    outbound.offset = end;
    if (end < data.length) {
      this.#write(pieces);
    } else {
      this.#messages.shift();
      this.#write(pieces, (error) => {
        const failure = error ?? this.#writeError;
        if (failure === undefined) outbound.resolve();
        else outbound.reject(failure);
      });
    }
  }

  #write(pieces: readonly Uint8Array[], done?: (error?: Error | null) => void): void {
    const bytes = pieces.reduce((sum, piece) => sum + piece.length, 0);
    if (bytes <= JOIN_BYTES) {
      this.#blocked = !this.#socket.write(Buffer.concat(pieces), done);
      return;
    }
    this.#socket.cork();
    for (const piece of pieces.slice(0, -1)) this.#socket.write(piece);
    this.#blocked = !this.#socket.write(pieces.at(-1) ?? new Uint8Array(), done);
    this.#socket.uncork();
  }

  #read(chunk: Buffer): void {
    try {
      for (const record of this.#reader.push(chunk)) this.#take(record);
    } catch (error) {
      this.#end(error as Error);
      this.#socket.destroy();
    }
  }

  #take({ kind, payload }: OpenedRecord): void {
    if (this.#state === 'ended') return;
    switch (kind) {
      case recordKinds.welcome:
        if (this.#state === 'greeting') this.#open();
        return;
      case recordKinds.message: {
        const { header, length } = decodeHeader(payload);
        this.#assembly = { header, data: Buffer.allocUnsafeSlow(length), have: 0 };
        this.#assemble(kind, payload.subarray(MESSAGE_HEADER_BYTES));
        return;
      }
      case recordKinds.continuation:
        this.#assemble(kind, payload);
        return;
      case recordKinds.notice:
        this.#events.notice?.(payload.toString());
        return;
      case recordKinds.goodbye:
        this.#end(undefined);
        this.#socket.end();
        return;
    }
  }

  #assemble(kind: RecordKind, part: Buffer): void {
    const assembly = this.#assembly;
    if (
      assembly === undefined ||
      part.length > assembly.data.length - assembly.have ||
      (kind === recordKinds.continuation && part.length === 0)
    ) {
      throw new SystemError('NETWORK', 'the other side sent bytes that belong to no message');
    }
    part.copy(assembly.data, assembly.have);
    assembly.have += part.length;
    if (assembly.have < assembly.data.length) return;
    this.#assembly = undefined;
    const { buffer, byteOffset, byteLength } = assembly.data;
    this.#events.message?.({ ...assembly.header, data: new Uint8Array(buffer, byteOffset, byteLength) });
  }
}

/** `space u32, number u32, length u32, operation u8, 0 u24` */
function encodeHeader({ space, operation, number }: MessageHeader, length: number): Buffer {
  const bytes = Buffer.alloc(MESSAGE_HEADER_BYTES);
  bytes.writeUInt32LE(space, 0);
  bytes.writeUInt32LE(number, 4);
  bytes.writeUInt32LE(length, 8);
  bytes[12] = operation;
  return bytes;
}

function decodeHeader(bytes: Buffer): { header: MessageHeader; length: number } {
  const length = bytes.length < MESSAGE_HEADER_BYTES ? NaN : bytes.readUInt32LE(8);
  if (!(length <= MAXIMUM_MESSAGE_BYTES)) {
    throw new SystemError('NETWORK', `the other side announced a message of ${length} bytes`);
  }
  return { header: { space: bytes.readUInt32LE(0), number: bytes.readUInt32LE(4), operation: defined(bytes[12]) }, length };
}
