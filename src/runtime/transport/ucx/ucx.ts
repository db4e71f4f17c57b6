import type { Libc } from '../../device/libc.js';
import type { Segment } from '../../device/segment.js';
import { describeError, SystemError } from '../../../errors.js';
import type { WhyGone } from '../../failure/breakage.js';
import type { ConnectionSetUp, FifoSize, ReceiveConnection, SendConnection, Transport } from '../transport.js';
import { UcxReceiver, UcxSender, type UcxMeans } from './connection.js';
import { MOST_HELLO_BYTES, ReceiverHandshake, SenderHandshake, WELCOME_BYTES } from './handshake.js';
import { UCS_IN_PROGRESS, UCS_OK, ucxAdvice } from './library.js';
import { UcxMemory } from './memory.js';
import type { UcxEndpoint, UcxWorker } from './worker.js';

interface UcxOptions {
  readonly size: FifoSize;
  /** Segment of this rank; it contains the slots. */
  readonly segment: Segment;
  readonly rank: number;
  /** Secret of the communicator, known to its ranks only. */
  readonly secret: Uint8Array;
  readonly libc: Libc;
  /** Opens the worker; called at the first connection. @throws SystemError `NETWORK` */
  readonly worker: () => UcxWorker;
  /** See NetworkTransportOptions. */
  readonly whyGone?: WhyGone;
  readonly placeOf?: (rank: number) => string;
}

/**
 * UCX: InfiniBand, RoCE and whatever else it supports. Messages go from slot to slot by UCX's matching of tags, which reads
 * and writes registered memory directly where the network can. Each side first proves that it knows the secret
 * (handshake.ts). Messages are neither signed nor encrypted.
 */
export class UcxTransport implements Transport {
  readonly name = 'ucx';
  readonly size: FifoSize;
  readonly #options: UcxOptions;
  #opened: UcxWorker | undefined;

  constructor(options: UcxOptions) {
    this.#options = options;
    this.size = options.size;
  }

  /** @throws SystemError `NETWORK` where UCX has no usable transport; `OUT_OF_MEMORY`. */
  // eslint-disable-next-line @typescript-eslint/require-await -- what it throws must come as a rejection
  async setUpSend(peer: number): Promise<ConnectionSetUp<SendConnection>> {
    const { rank, secret } = this.#options;
    const setUp = this.#open();
    const { worker } = setUp;
    const handshake = new SenderHandshake(secret, { sender: rank, receiver: peer });
    const hello = setUp.receive(MOST_HELLO_BYTES, handshake.helloTag);
    return {
      info: handshake.info(worker.address),
      connect: (_, signal) =>
        this.#connected(peer, setUp, signal, async () => {
          const { address, tags, welcome } = handshake.accept(await setUp.arrived(hello, signal));
          const endpoint = setUp.connectTo(address);
          await setUp.sent(welcome, tags.toReceiver, signal);
          return new UcxSender(peer, { ...this.#meansOf(peer, setUp), endpoint, tags });
        }),
      cancel: () => setUp.cancel(),
    };
  }

  /** @throws SystemError `NETWORK` where UCX has no usable transport; `OUT_OF_MEMORY`. */
  // eslint-disable-next-line @typescript-eslint/require-await -- what it throws must come as a rejection
  async setUpReceive(peer: number): Promise<ConnectionSetUp<ReceiveConnection>> {
    const { rank, secret } = this.#options;
    const setUp = this.#open();
    const { worker } = setUp;
    return {
      info: new Uint8Array(),
      connect: (info, signal) =>
        this.#connected(peer, setUp, signal, async () => {
          const handshake = new ReceiverHandshake(secret, { sender: peer, receiver: rank }, info);
          const { tags } = handshake;
          const endpoint = setUp.connectTo(handshake.address);
          const welcome = setUp.receive(WELCOME_BYTES, tags.toReceiver);
          await setUp.sent(handshake.hello(worker.address), handshake.helloTag, signal);
          handshake.checkWelcome(await setUp.arrived(welcome, signal));
          return new UcxReceiver(peer, { ...this.#meansOf(peer, setUp), endpoint, tags });
        }),
      cancel: () => setUp.cancel(),
    };
  }

  close(): void {
    this.#opened?.leave();
    this.#opened = undefined;
  }

  #meansOf(peer: number, { worker, memory }: SetUp): Omit<UcxMeans, 'endpoint' | 'tags'> {
    return { worker, memory, whyGone: this.#options.whyGone, place: this.#placeOf(peer) };
  }

  #placeOf(rank: number): string {
    return this.#options.placeOf?.(rank) ?? `rank ${rank}`;
  }

  /** Makes a connection. @throws SystemError `NETWORK` with both ranks; the reason of `signal` */
  async #connected<C>(peer: number, setUp: SetUp, signal: AbortSignal, connect: () => Promise<C>): Promise<C> {
    try {
      return await setUp.orCancel(connect);
    } catch (error) {
      if (signal.aborted) throw error;
      const [here, there] = [this.#options.rank, peer].map((rank) => this.#placeOf(rank));
      throw new SystemError('NETWORK', `${here} cannot connect with ${there} for data: ${describeError(error)}`, {
        rank: peer,
        cause: error,
      });
    }
  }

  #started(open: () => UcxWorker): UcxWorker {
    try {
      const worker = open();
      worker.use();
      return worker;
    } catch (error) {
      throw new SystemError('NETWORK', `${this.#placeOf(this.#options.rank)} cannot use UCX: ${describeError(error)}`, {
        cause: error,
      });
    }
  }

  #open(): SetUp {
    const { segment, libc, size, worker: open } = this.#options;
    const worker = (this.#opened ??= this.#started(open));
    return new SetUp(worker, new UcxMemory(segment, libc, worker, size), libc);
  }
}

/** A message of the handshake that is being received. */
interface Incoming {
  readonly bytes: Uint8Array;
  request: number;
}

/** A connection that is being made. It uses the worker until the connection does, or until it is given up. */
class SetUp {
  readonly worker: UcxWorker;
  readonly memory: UcxMemory;
  readonly #libc: Libc;
  readonly #incoming: Incoming[] = [];
  readonly #outgoing: Incoming[] = [];
  #endpoint: UcxEndpoint | undefined;
  #isOver = false;

  constructor(worker: UcxWorker, memory: UcxMemory, libc: Libc) {
    this.worker = worker;
    this.memory = memory;
    this.#libc = libc;
    worker.use();
  }

  connectTo(address: Uint8Array): UcxEndpoint {
    return (this.#endpoint = this.worker.endpoint(address));
  }

  /** Receives a message of the handshake. */
  receive(mostBytes: number, tag: bigint): Incoming {
    const bytes = new Uint8Array(new ArrayBuffer(mostBytes));
    const incoming = { bytes, request: this.worker.receive(this.#addressOf(bytes), mostBytes, tag) };
    this.#incoming.push(incoming);
    return incoming;
  }

  /** Resolves to the message once it has arrived. @throws the failure of the endpoint; the reason of `signal` */
  async arrived(incoming: Incoming, signal: AbortSignal): Promise<Uint8Array> {
    const { ucx } = this.worker;
    let status = UCS_IN_PROGRESS;
    await this.#until(() => (status = ucx.received(incoming.request)) !== UCS_IN_PROGRESS, signal);
    const bytes = ucx.received(incoming.request) === UCS_OK ? ucx.receivedBytes : 0;
    ucx.free(incoming.request);
    incoming.request = 0;
    if (status !== UCS_OK) throw new SystemError('NETWORK', `the handshake of UCX failed: ${ucx.nameOf(status)}; ${ucxAdvice()}`);
    return incoming.bytes.slice(0, bytes);
  }

  /** Sends a message of the handshake. Resolves once it has left this process. */
  async sent(message: Uint8Array, tag: bigint, signal: AbortSignal): Promise<void> {
    const bytes = new Uint8Array(new ArrayBuffer(Math.max(128, message.length)));
    bytes.set(message);
    const endpoint = this.#endpoint;
    if (endpoint === undefined) return;
    const outgoing = { bytes, request: endpoint.send(this.#addressOf(bytes), message.length, tag) };
    this.#outgoing.push(outgoing);
    const { ucx } = this.worker;
    await this.#until(() => outgoing.request === 0 || ucx.statusOf(outgoing.request) !== UCS_IN_PROGRESS, signal);
    if (outgoing.request !== 0) ucx.free(outgoing.request);
    outgoing.request = 0;
  }

  /** Returns the connection, which now owns everything, or gives up. */
  async orCancel<C>(connect: () => Promise<C>): Promise<C> {
    try {
      const connection = await connect();
      this.#isOver = true;
      return connection;
    } catch (error) {
      this.cancel();
      throw error;
    }
  }

  cancel(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    const { worker, memory } = this;
    // The closure keeps the arrays until UCX has let go of them.
    const waiting = [...this.#incoming, ...this.#outgoing];
    worker.retire(
      waiting.map(({ request }) => request),
      () => {
        waiting.length = 0;
        memory.free();
      },
    );
    if (this.#endpoint !== undefined) worker.release(this.#endpoint);
    worker.leave();
  }

  async #until(isOver: () => boolean, signal: AbortSignal): Promise<void> {
    const hasFailed = (): boolean => this.#endpoint?.hasFailed === true;
    await this.worker.until(() => signal.aborted || isOver() || hasFailed());
    signal.throwIfAborted();
    const failure = this.#endpoint?.failure;
    if (!isOver() && failure !== undefined) throw failure;
  }

  #addressOf(bytes: Uint8Array): number {
    return Number(this.#libc.addressOf(bytes));
  }
}
