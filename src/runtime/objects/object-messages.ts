import { objectBytes } from '../device/types.js';
import { settlerOf } from '../caller-stack.js';
import type { Messenger } from '../messages/messenger.js';
import type { TransferOwner } from '../messages/p2p-transfer.js';
import { encodeValue } from './encode.js';
import { HEAD_BYTES, isLong, readHead, writeHead } from './head.js';
import { Incoming } from './incoming.js';

/*
 * An object as messages: its head, its body unless that is in the head, its pieces. The sender starts them together. Each
 * part announces the next one, which the receiver receives before all later receives.
 */

/** Sends and receives of objects of one communicator. Arguments were checked. */
export class ObjectMessages {
  constructor(readonly messenger: Messenger) {}

  /** Throws, before anything starts, when the value cannot be sent. */
  send(value: unknown, peer: number): Promise<void> {
    let settled: (error?: Error) => void = () => undefined;
    const promise = new Promise<void>((resolve) => (settled = settlerOf(resolve)));
    this.#add(new ObjectSend(value, settled), peer);
    this.#kick();
    return promise;
  }

  sendSync(value: unknown, peer: number): void {
    let isDone = false;
    const send = new ObjectSend(value, (error) => (isDone = error === undefined));
    this.messenger.checkBlockingCall(true, peer);
    this.#add(send, peer);
    this.messenger.waitUntil(() => isDone);
  }

  #kick(): void {
    try {
      this.messenger.kick();
    } catch {
      // The error has ended the communicator, and the promise with it.
    }
  }

  #add(send: ObjectSend, peer: number): void {
    for (const part of send.parts) this.messenger.add(true, peer, part, objectBytes, send);
  }

  recv(peer: number): Promise<unknown> {
    let settled: (error?: Error) => void = () => undefined;
    const promise = new Promise<void>((resolve) => (settled = settlerOf(resolve)));
    const receive = new ObjectReceive(this.messenger, peer, settled);
    this.messenger.add(false, peer, receive.head, objectBytes, receive);
    this.#kick();
    return promise.then(() => receive.value());
  }

  recvSync(peer: number): unknown {
    const { messenger } = this;
    let isDone = false;
    const receive = new ObjectReceive(messenger, peer, (error) => (isDone = error === undefined));
    messenger.checkBlockingCall(false, peer);
    messenger.add(false, peer, receive.head, objectBytes, receive);
    messenger.waitUntil(() => isDone);
    return receive.value();
  }
}

/** A send in flight: the owner of all its parts. */
class ObjectSend implements TransferOwner {
  readonly parts: readonly Uint8Array[];
  #left: number;

  /** @param ended called once, with an error if it failed */
  constructor(
    value: unknown,
    readonly ended: (error?: Error) => void,
  ) {
    const encoded = encodeValue('sendObject', value);
    const head = new Uint8Array(HEAD_BYTES);
    writeHead(head, 'sendObject', 0, encoded);
    this.parts = [head, ...(isLong(encoded) ? [encoded.body] : []), ...encoded.pieces];
    this.#left = this.parts.length;
  }

  settled(error?: Error): void {
    if (this.#left === 0) return;
    this.#left = error === undefined ? this.#left - 1 : 0;
    if (this.#left === 0) this.ended(error);
  }
}

/** A receive in flight: each part that arrives starts the receive of the next. */
class ObjectReceive implements TransferOwner {
  readonly leads = true;
  readonly head = new Uint8Array(HEAD_BYTES);
  #incoming: Incoming | undefined;
  #pieces: readonly Uint8Array[] | undefined;
  #piecesAsked = 0;

  /** @param ended called once, with an error if it failed */
  constructor(
    readonly messenger: Messenger,
    readonly peer: number,
    readonly ended: (error?: Error) => void,
  ) {}

  settled(error?: Error): void {
    const next = error === undefined ? this.#next() : undefined;
    if (next === undefined) this.ended(error);
    else this.messenger.addNext(this.peer, next, objectBytes, this);
  }

  /** Memory for the next part. */
  #next(): Uint8Array | undefined {
    if (this.#incoming === undefined) {
      this.#incoming = new Incoming('recvObject', readHead(this.head));
      if (this.#incoming.rest.length > 0) return this.#incoming.rest;
    }
    this.#pieces ??= this.#incoming.pieces();
    return this.#pieces[this.#piecesAsked++];
  }

  /** Ends the receive: everything has arrived. */
  value(): unknown {
    return this.#incoming?.value();
  }
}
