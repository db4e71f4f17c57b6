import { ANY_SOURCE } from '../algorithms/activity.js';
import type { MovableArray } from '../device/types.js';
import { ofRank } from '../caller-stack.js';
import { Grid, type GridOptions } from './grid.js';
import { asGroup, asGroupSync } from './group.js';
import { refused } from '../messages/running-group.js';
import type { ShownMessage } from '../messages/p2p-transfer.js';
import type {
  BlockingRecvOptions,
  BlockingSendOptions,
  BlockingTaggedLimits,
  MessageExchange,
  ProbedMessage,
  ReceivedMessage,
  RecvOptions,
  SendOptions,
  TaggedLimits,
} from './message-exchange.js';
import type { NeighbourhoodMember } from './neighbourhood.js';
import { ObjectCalls } from './object-calls.js';

/** Messages between two ranks, and calls made of them. */
export abstract class MessageCalls extends ObjectCalls {
  /** @internal Carries out the calls. */
  protected abstract readonly messages: MessageExchange;

  /**
   * Sends all of `array` to rank `peer`, which receives it with {@link recv}. Resolves when the array may be changed; small
   * messages, and others that are copied, do not wait for the receiver.
   *
   * Sends and receives are not collectives: all that are in flight progress at the same time, so `Promise.all` of a send and
   * a receive never deadlocks. From one rank to another, the n-th send matches the n-th receive, where no receive has a tag or
   * takes messages of any rank; both must agree in type and length. docs/guides/p2p.md has examples.
   */
  send(array: MovableArray, peer: number, options?: SendOptions): Promise<void> {
    return this.messages.start('send', array, peer, options);
  }

  /** The blocking form of {@link send}: where {@link CommunicatorConfig.blocking} allows it. */
  sendSync(array: MovableArray, peer: number, options?: BlockingSendOptions): void {
    this.messages.run('sendSync', true, array, peer, options);
  }

  /**
   * Receives a message from rank `peer` into `array`; see {@link send}. With `{ atMost: true }` the message may be shorter,
   * and the promise resolves to the number of received elements; the rest of the array is unchanged. With a `tag`, it receives
   * the first message with that tag which no earlier receive takes.
   */
  recv(array: MovableArray, peer: number, options: RecvOptions & { readonly atMost: true }): Promise<number>;
  recv(array: MovableArray, peer: number, options?: RecvOptions): Promise<void>;
  recv(array: MovableArray, peer: number, options?: RecvOptions): Promise<never> {
    return this.messages.startRecv(array, peer, options) as Promise<never>;
  }

  /** @internal {@link recv} within a message of the program, which reports of waits show. */
  recvWithin(shows: ShownMessage, array: MovableArray, peer: number, options: TaggedLimits): Promise<unknown> {
    return this.messages.startRecv(array, peer, { ...options, atMost: true }, shows);
  }

  /** The blocking form of {@link recv}; see {@link sendSync}. */
  recvSync(array: MovableArray, peer: number, options: BlockingRecvOptions & { readonly atMost: true }): number;
  recvSync(array: MovableArray, peer: number, options?: BlockingRecvOptions): void;
  recvSync(array: MovableArray, peer: number, options?: BlockingRecvOptions): never {
    return this.messages.runRecv(array, peer, options) as never;
  }

  /**
   * Receives the next message of any rank, or the next with `tag`, and gives its source, tag and number of elements. Messages of
   * one rank are received in their order. docs/guides/p2p.md has an example.
   *
   * @throws RemoteError `RANK_DIED` as all calls after a death; `CLOSED` when all other ranks have closed the communicator
   */
  recvAny(array: MovableArray, options?: RecvOptions): Promise<ReceivedMessage> {
    return this.messages.recvAny(array, options);
  }

  /** The blocking form of {@link recvAny}; see {@link sendSync}. */
  recvAnySync(array: MovableArray, options?: BlockingRecvOptions): ReceivedMessage {
    return this.messages.recvAnySync(array, options);
  }

  /**
   * Waits for a message of rank `peer` that no receive awaits, and returns its length and type; the message stays for the
   * next {@link recv}, or {@link recvObject} if its type is `object`.
   */
  probe(peer: number, options?: TaggedLimits): Promise<ProbedMessage> {
    return this.messages.probe('probe', peer, options);
  }

  /** The blocking form of {@link probe}; see {@link sendSync}. */
  probeSync(peer: number, options?: BlockingTaggedLimits): ProbedMessage {
    return this.messages.probeSync('probeSync', peer, options);
  }

  /** {@link probe} of the messages of all ranks. `recv(array, source, { tag })` with what it gives receives the message. */
  probeAny(options?: TaggedLimits): Promise<ProbedMessage> {
    return this.messages.probe('probeAny', ANY_SOURCE, options);
  }

  /** The blocking form of {@link probeAny}; see {@link sendSync}. */
  probeAnySync(options?: BlockingTaggedLimits): ProbedMessage {
    return this.messages.probeSync('probeAnySync', ANY_SOURCE, options);
  }

  /**
   * This communicator's ranks as a Cartesian grid: coordinates, neighbours, and the exchange of borders with them. The call
   * itself exchanges no data.
   *
   * @throws InvalidArgumentError `ARGUMENT_TYPE`, `ARGUMENT_RANGE`, `UNKNOWN_NAME`
   */
  grid(dimensions: readonly number[], options: GridOptions = {}): Grid {
    return ofRank(this.rank, () => new Grid(this.neighbourhood, dimensions, options));
  }

  /** @internal What exchanges with neighbours use. */
  protected get neighbourhood(): NeighbourhoodMember {
    const { rank, nRanks } = this;
    return { rank, nRanks, addMessage: (call, ...message) => this.messages.add(call, ...message, call) };
  }

  /**
   * Sends `send` to rank `to` and receives a message from rank `from` into `recv`, both at the same time. The arrays may not
   * overlap. A `tag` is that of the sent message, and the only one that is received.
   */
  sendRecv(send: MovableArray, to: number, recv: MovableArray, from: number, options?: SendOptions): Promise<void> {
    if (options === undefined) {
      try {
        const received = this.messages.startSendRecv(send, to, recv, from);
        if (received !== undefined) return received;
      } catch (error) {
        return refused(error);
      }
    }
    return asGroup('sendRecv', options, (each) => {
      this.messages.add('sendRecv', true, send, to, each);
      this.messages.add('sendRecv', false, recv, from, each);
    });
  }

  /** The blocking form of {@link sendRecv}; see {@link sendSync}. */
  sendRecvSync(send: MovableArray, to: number, recv: MovableArray, from: number, options?: BlockingSendOptions): void {
    if (options === undefined && this.messages.runSendRecv(send, to, recv, from)) return;
    asGroupSync('sendRecvSync', options, (each) => {
      this.messages.add('sendRecvSync', true, send, to, each);
      this.messages.add('sendRecvSync', false, recv, from, each);
    });
  }
}
