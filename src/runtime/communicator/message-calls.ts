import type { BlockingCallOptions, BlockingLimits, CallLimits, CallOptions, TimedCallOptions } from '../algorithms/arguments.js';
import type { DataTypeName, MovableArray } from '../device/types.js';
import { errorOfCall } from '../caller-stack.js';
import { Grid, type GridOptions } from './grid.js';
import { asGroup, asGroupSync } from './group.js';
import { ObjectCalls } from './object-calls.js';

/** Options of a receive that blocks. */
export interface BlockingRecvOptions extends BlockingCallOptions {
  /** True if the message may be shorter than the array; the call returns the number of received elements. Default false. */
  readonly atMost?: boolean | undefined;
}

/** Options of a receive. */
export interface RecvOptions extends BlockingRecvOptions, CallLimits {}

/** A message that has arrived and is not received yet. */
export interface ProbedMessage {
  /** Number of elements; 1 for an object. */
  readonly count: number;
  /** Type of the elements, as the sender gave it; `object` for a value that {@link ObjectCalls.recvObject} takes. */
  readonly type: DataTypeName | 'object';
}

/** Messages between two ranks, and calls made of them. */
export abstract class MessageCalls extends ObjectCalls {
  abstract override readonly rank: number;
  abstract readonly nRanks: number;
  /** Adds a message to the group whose body is running; `call` is what the program called. */
  protected abstract addMessage(
    call: string,
    sends: boolean,
    array: MovableArray,
    peer: number,
    options: CallOptions | undefined,
  ): void;

  /**
   * Sends all of `array` to rank `peer`, which receives it with {@link recv}. Resolves when the array may be changed; small
   * messages, and others that are copied, do not wait for the receiver.
   *
   * Sends and receives are not collectives: all that are in flight progress at the same time, so `Promise.all` of a send and
   * a receive never deadlocks. From one rank to another, the n-th send matches the n-th receive; both must agree in type and
   * length. docs/guides/p2p.md has examples.
   */
  abstract send(array: MovableArray, peer: number, options?: TimedCallOptions): Promise<void>;

  /** The blocking form of {@link send}: between ranks that share memory, and with `blocking: true` also between others. */
  abstract sendSync(array: MovableArray, peer: number, options?: BlockingCallOptions): void;

  /**
   * Receives a message from rank `peer` into `array`; see {@link send}. With `{ atMost: true }` the message may be shorter,
   * and the promise resolves to the number of received elements; the rest of the array is unchanged.
   */
  abstract recv(array: MovableArray, peer: number, options: RecvOptions & { readonly atMost: true }): Promise<number>;
  abstract recv(array: MovableArray, peer: number, options?: RecvOptions): Promise<void>;

  /** The blocking form of {@link recv}; see {@link sendSync}. */
  abstract recvSync(array: MovableArray, peer: number, options: BlockingRecvOptions & { readonly atMost: true }): number;
  abstract recvSync(array: MovableArray, peer: number, options?: BlockingRecvOptions): void;

  /**
   * Waits for a message of rank `peer` that no receive awaits, and returns its length and type; the message stays for the
   * next {@link recv}, or {@link recvObject} if its type is `object`.
   */
  abstract probe(peer: number, options?: CallLimits): Promise<ProbedMessage>;

  /** The blocking form of {@link probe}; see {@link sendSync}. */
  abstract probeSync(peer: number, options?: BlockingLimits): ProbedMessage;

  /**
   * This communicator's ranks as a Cartesian grid: coordinates, neighbours, and the exchange of borders with them. The call
   * itself exchanges no data.
   *
   * @throws InvalidArgumentError `ARGUMENT_TYPE`, `ARGUMENT_RANGE`, `UNKNOWN_NAME`
   */
  grid(dimensions: readonly number[], options: GridOptions = {}): Grid {
    try {
      const { rank, nRanks } = this;
      return new Grid({ rank, nRanks, addMessage: (...message) => this.addMessage(...message) }, dimensions, options);
    } catch (error) {
      throw errorOfCall(error, this.rank);
    }
  }

  /**
   * Sends `send` to rank `to` and receives a message from rank `from` into `recv`, both at the same time. The arrays may not
   * overlap.
   */
  sendRecv(send: MovableArray, to: number, recv: MovableArray, from: number, options?: TimedCallOptions): Promise<void> {
    return asGroup('sendRecv', options, (type) => {
      this.addMessage('sendRecv', true, send, to, type);
      this.addMessage('sendRecv', false, recv, from, type);
    });
  }

  /** The blocking form of {@link sendRecv}; see {@link sendSync}. */
  sendRecvSync(send: MovableArray, to: number, recv: MovableArray, from: number, options?: BlockingCallOptions): void {
    asGroupSync('sendRecvSync', options, (type) => {
      this.addMessage('sendRecvSync', true, send, to, type);
      this.addMessage('sendRecvSync', false, recv, from, type);
    });
  }
}
