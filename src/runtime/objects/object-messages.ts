import { objectBytes } from '../device/types.js';
import type { BlockingLimits, CallLimits } from '../algorithms/arguments.js';
import type { Messenger } from '../messages/messenger.js';
import { runWait, startWait, waitForAny, waitForMessage, type TimedCallParts, type TimedWait } from '../messages/timed-call.js';
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

/** A message with an object, or two that are in flight together. */
export interface ObjectMessage<T> {
  readonly wait: TimedWait;
  /** The messages for which its blocking form waits. */
  readonly messages: readonly (readonly [sends: boolean, peer: number])[];
  readonly result: () => T;
}

/** Sends and receives of objects of one communicator. Arguments were checked. */
export class ObjectMessages {
  readonly #parts: TimedCallParts;

  constructor(parts: TimedCallParts) {
    this.#parts = parts;
  }

  /** Starts the promise form. */
  start<T>({ wait, result }: ObjectMessage<T>, options: CallLimits | undefined): Promise<T> {
    return startWait(this.#parts, wait, options).then(result);
  }

  /** Carries out the blocking form. */
  run<T>({ wait, messages, result }: ObjectMessage<T>, options: BlockingLimits | undefined): T {
    for (const [sends, peer] of messages) this.#parts.messenger.checkBlockingCall(wait.name, sends, peer);
    runWait(this.#parts, wait, options);
    return result();
  }

  /** Throws when the value cannot be sent. */
  send(call: string, value: unknown, peer: number, tag?: number): ObjectMessage<void> {
    return { wait: this.#sendOf(value, peer, call, tag), messages: [[true, peer]], result: () => undefined };
  }

  recv(call: string, peer: number, tag?: number): ObjectMessage<unknown> {
    const receive = new ObjectReceive(call, this.#parts.messenger, peer, tag);
    return { wait: this.#receiveOf(receive), messages: [[false, peer]], result: () => receive.value() };
  }

  recvAny(call: string, tag?: number): ObjectMessage<AnyObject<unknown>> {
    const receive = new ObjectReceive(call, this.#parts.messenger, ANY_SOURCE, tag);
    const result = (): AnyObject<unknown> => ({ value: receive.value(), source: receive.peer, tag: receive.tag });
    return { wait: this.#waitForAny(receive), messages: [[false, ANY_SOURCE]], result };
  }

  sendRecv(call: string, value: unknown, to: number, from: number): ObjectMessage<unknown> {
    const { messenger, rank } = this.#parts;
    const receive = new ObjectReceive(call, messenger, from);
    const wait = bothOf(this.#sendOf(value, to, call), this.#receiveOf(receive));
    const isOwn = to === rank && from === rank;
    const messages = isOwn
      ? []
      : ([
          [true, to],
          [false, from],
        ] as const);
    return { wait, messages, result: () => receive.value() };
  }

  #waitForAny(receive: ObjectReceive): TimedWait {
    return waitForAny(this.#parts, receive.call, (settled) => {
      receive.ended = settled;
      const any = this.#parts.messenger.pointToPoint.addAny(receive.head, objectBytes, receive, receive.tag, false);
      receive.leads = () => any.claimed;
      return any;
    });
  }

  #sendOf(value: unknown, peer: number, name: string, tag?: number): TimedWait {
    const send = new ObjectSend(name, value);
    const add = (settled: (error?: Error) => void): ObjectSend => {
      send.ended = settled;
      for (const part of send.parts) this.#parts.messenger.pointToPoint.add(true, peer, part, objectBytes, send, tag);
      return send;
    };
    return waitForMessage(this.#parts, { name, sends: true, peer, add });
  }

  #receiveOf(receive: ObjectReceive): TimedWait {
    const { call: name, peer, head } = receive;
    const add = (settled: (error?: Error) => void): ObjectReceive => {
      receive.ended = settled;
      const lead = this.#parts.messenger.pointToPoint.add(false, peer, head, objectBytes, receive, receive.tag);
      receive.leads = () => lead;
      return receive;
    };
    return waitForMessage(this.#parts, { name, sends: false, peer, add, mayWithdraw: () => !receive.hasBegun });
  }
}

/** A send and a receive in flight together. Either ends the call with an error; it waits for the send first. */
function bothOf(send: TimedWait, receive: TimedWait): TimedWait {
  let awaited = send;
  return {
    name: send.name,
    get missing() {
      return awaited.missing;
    },
    ranks: () => awaited.ranks(),
    begin: (settled) => {
      let open = 2;
      const one = (error?: Error): void => {
        if (open > 0 && (open = error === undefined ? open - 1 : 0) === 0) settled(error);
      };
      send.begin((error) => {
        awaited = receive;
        one(error);
      });
      receive.begin(one);
      return undefined;
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
    else this.messenger.pointToPoint.addNext(this.peer, next, objectBytes, this, this.tag);
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
