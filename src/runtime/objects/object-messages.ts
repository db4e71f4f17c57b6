import { objectBytes } from '../device/types.js';
import type { BlockingLimits, CallLimits } from '../algorithms/arguments.js';
import { settlerOf } from '../caller-stack.js';
import type { Messenger } from '../messages/messenger.js';
import {
  checkBlockingMessage,
  isTimed,
  lookAt,
  runTimedMessage,
  runWait,
  startTimedMessage,
  startWait,
  waitForAny,
  type TimedCallParts,
  type TimedMessage,
  type TimedWait,
} from '../messages/timed-call.js';
import { ANY_SOURCE } from '../algorithms/activity.js';
import { ANY_TAG, type Transfer, type TransferOwner } from '../messages/p2p-transfer.js';
import type { AnyObject } from './object-exchange.js';
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
  send(value: unknown, peer: number, tag?: number, options?: CallLimits): Promise<void> {
    return this.#start(this.#sendOf(value, peer, 'sendObject', tag), options);
  }

  sendSync(value: unknown, peer: number, tag?: number, options?: BlockingLimits): void {
    this.#run(this.#sendOf(value, peer, 'sendObjectSync', tag), options);
  }

  async recv(peer: number, tag?: number, options?: CallLimits): Promise<unknown> {
    const receive = new ObjectReceive('recvObject', this.#parts.messenger, peer, tag);
    await this.#start(this.#receiveOf(receive), options);
    return receive.value();
  }

  recvSync(peer: number, tag?: number, options?: BlockingLimits): unknown {
    const receive = new ObjectReceive('recvObjectSync', this.#parts.messenger, peer, tag);
    this.#run(this.#receiveOf(receive), options);
    return receive.value();
  }

  async recvAny(tag?: number, options?: CallLimits): Promise<AnyObject<unknown>> {
    const receive = new ObjectReceive('recvAnyObject', this.#parts.messenger, ANY_SOURCE, tag);
    await startWait(this.#parts, this.#waitForAny(receive), options);
    return { value: receive.value(), source: receive.peer, tag: receive.tag };
  }

  recvAnySync(tag?: number, options?: BlockingLimits): AnyObject<unknown> {
    const receive = new ObjectReceive('recvAnyObjectSync', this.#parts.messenger, ANY_SOURCE, tag);
    this.#parts.messenger.checkBlockingCall(receive.call, false, ANY_SOURCE);
    runWait(this.#parts, this.#waitForAny(receive), options);
    return { value: receive.value(), source: receive.peer, tag: receive.tag };
  }

  #waitForAny(receive: ObjectReceive): TimedWait {
    const { messenger } = this.#parts;
    return waitForAny(receive.call, messenger, (settled) => {
      receive.ended = settled;
      const any = messenger.addAny(receive.head, objectBytes, receive, receive.tag, false);
      receive.leads = () => any.claimed;
      return any;
    });
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

  #sendOf(value: unknown, peer: number, name: string, tag?: number): TimedMessage {
    const send = new ObjectSend(name, value);
    return {
      name,
      peer,
      sends: true,
      add: (settled) => {
        send.ended = settled;
        for (const part of send.parts) this.#parts.messenger.add(true, peer, part, objectBytes, send, tag);
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
        const lead = this.#parts.messenger.add(false, peer, head, objectBytes, receive, receive.tag);
        receive.leads = () => lead;
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
  /** The transfer of its head, which has source and tag once it has arrived. */
  leads: () => Transfer | undefined = () => undefined;
  readonly head = new Uint8Array(HEAD_BYTES);
  /** Called once, with an error if it failed. */
  ended: (error?: Error) => void = () => undefined;
  #incoming: Incoming | undefined;
  #pieces: readonly Uint8Array[] | undefined;
  #piecesAsked = 0;

  constructor(
    readonly call: string,
    readonly messenger: Messenger,
    public peer: number,
    public tag = ANY_TAG,
  ) {}

  /** True if its head has arrived; the rest follows. */
  get hasBegun(): boolean {
    return this.#incoming !== undefined;
  }

  settled(error?: Error): void {
    const next = error === undefined ? this.#next() : undefined;
    if (next === undefined) this.ended(error);
    else this.messenger.addNext(this.peer, next, objectBytes, this, this.tag);
  }

  /** Memory for the next part. */
  #next(): Uint8Array | undefined {
    if (this.#incoming === undefined) {
      const { peer, tag } = this.leads() ?? this;
      this.peer = peer;
      this.tag = tag;
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
