import { objectBytes } from '../device/types.js';
import type { BlockingLimits, CallLimits } from '../algorithms/arguments.js';
import { settlerOf } from '../caller-stack.js';
import type { Messenger } from '../messages/messenger.js';
import {
  checkBlockingMessage,
  isTimed,
  lookAt,
  runTimedMessage,
  startTimedMessage,
  type TimedCallParts,
  type TimedMessage,
} from '../messages/timed-call.js';
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
  readonly #parts: TimedCallParts;

  constructor(parts: TimedCallParts) {
    this.#parts = parts;
  }

  /** Throws, before anything starts, when the value cannot be sent. */
  send(value: unknown, peer: number, options?: CallLimits): Promise<void> {
    return this.#start(this.#sendOf(value, peer, 'sendObject'), options);
  }

  sendSync(value: unknown, peer: number, options?: BlockingLimits): void {
    this.#run(this.#sendOf(value, peer, 'sendObjectSync'), options);
  }

  async recv(peer: number, options?: CallLimits): Promise<unknown> {
    const receive = new ObjectReceive('recvObject', this.#parts.messenger, peer);
    await this.#start(this.#receiveOf(receive), options);
    return receive.value();
  }

  recvSync(peer: number, options?: BlockingLimits): unknown {
    const receive = new ObjectReceive('recvObjectSync', this.#parts.messenger, peer);
    this.#run(this.#receiveOf(receive), options);
    return receive.value();
  }

  async sendRecv(value: unknown, to: number, from: number, options?: CallLimits): Promise<unknown> {
    const receive = new ObjectReceive('sendRecvObject', this.#parts.messenger, from);
    await this.#start(bothOf(this.#sendOf(value, to, receive.call), this.#receiveOf(receive)), options);
    return receive.value();
  }

  sendRecvSync(value: unknown, to: number, from: number, options?: BlockingLimits): unknown {
    const receive = new ObjectReceive('sendRecvObjectSync', this.#parts.messenger, from);
    this.#run(bothOf(this.#sendOf(value, to, receive.call), this.#receiveOf(receive)), options);
    return receive.value();
  }

  #sendOf(value: unknown, peer: number, name: string): TimedMessage {
    const send = new ObjectSend(name, value);
    return {
      name,
      peer,
      sends: true,
      add: (settled) => {
        send.ended = settled;
        for (const part of send.parts) this.#parts.messenger.add(true, peer, part, objectBytes, send);
        return send;
      },
    };
  }

  #receiveOf(receive: ObjectReceive): TimedMessage {
    const { call: name, peer, head } = receive;
    return {
      name,
      peer,
      sends: false,
      add: (settled) => {
        receive.ended = settled;
        this.#parts.messenger.add(false, peer, head, objectBytes, receive);
        return receive;
      },
      mayWithdraw: () => !receive.hasBegun,
    };
  }

  #start(message: TimedMessage, options: CallLimits | undefined): Promise<void> {
    if (isTimed(options)) return startTimedMessage(this.#parts, message, options);
    return new Promise<void>((resolve) => {
      message.add(settlerOf(resolve));
      lookAt(this.#parts.messenger);
    });
  }

  #run(message: TimedMessage, { timeoutMs }: BlockingLimits = {}): void {
    checkBlockingMessage(this.#parts, message);
    if (timeoutMs !== undefined) {
      runTimedMessage(this.#parts, message, timeoutMs);
      return;
    }
    const { messenger } = this.#parts;
    let isDone = false;
    message.add((error) => (isDone = error === undefined));
    messenger.waitUntil(() => isDone);
  }
}

/** A send and a receive in flight together. Either ends the call with an error; it waits for the send first. */
function bothOf(send: TimedMessage, receive: TimedMessage): TimedMessage {
  let isSent = false;
  return {
    name: send.name,
    get peer() {
      return isSent ? receive.peer : send.peer;
    },
    get sends() {
      return !isSent;
    },
    and: receive,
    add: (settled) => {
      let open = 2;
      const one = (error?: Error): void => {
        if (open > 0 && (open = error === undefined ? open - 1 : 0) === 0) settled(error);
      };
      send.add((error) => {
        isSent = true;
        one(error);
      });
      return receive.add(one);
    },
  };
}

/** A send in flight: the owner of all its parts. */
class ObjectSend implements TransferOwner {
  readonly parts: readonly Uint8Array[];
  /** Called once, with an error if it failed. */
  ended: (error?: Error) => void = () => undefined;
  #left: number;

  constructor(call: string, value: unknown) {
    const encoded = encodeValue(call, value);
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
  /** Called once, with an error if it failed. */
  ended: (error?: Error) => void = () => undefined;
  #incoming: Incoming | undefined;
  #pieces: readonly Uint8Array[] | undefined;
  #piecesAsked = 0;

  constructor(
    readonly call: string,
    readonly messenger: Messenger,
    readonly peer: number,
  ) {}

  /** True if its head has arrived; the rest follows. */
  get hasBegun(): boolean {
    return this.#incoming !== undefined;
  }

  settled(error?: Error): void {
    const next = error === undefined ? this.#next() : undefined;
    if (next === undefined) this.ended(error);
    else this.messenger.addNext(this.peer, next, objectBytes, this);
  }

  /** Memory for the next part. */
  #next(): Uint8Array | undefined {
    if (this.#incoming === undefined) {
      this.#incoming = new Incoming(this.call, readHead(this.head));
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
