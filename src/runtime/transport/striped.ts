import { setMaxListeners } from 'node:events';
import type { WaitReport } from '../device/wait-report.js';
import { decodeJson, encodeJson } from '../bootstrap/json.js';
import type {
  ConnectionSetUp,
  FdSources,
  FifoSize,
  ReceiveConnection,
  SendConnection,
  Transport,
  TransportName,
  TwoWayConnection,
} from './transport.js';

/** The most sockets that a connection may have. */
export const MOST_SOCKETS = 16;

/**
 * Connections that consist of several connections of another transport, its lanes: messages go over the lanes in turn, and the
 * receiver takes them in the same order. For networks that limit the rate of each connection, as clouds do.
 */
export class StripedTransport implements Transport {
  readonly name: TransportName;
  readonly size: FifoSize;
  readonly setUpBoth?: (peer: number) => Promise<ConnectionSetUp<TwoWayConnection>>;
  readonly #inner: Transport;
  readonly #nLanes: number;

  constructor(inner: Transport, nLanes: number) {
    this.name = inner.name;
    this.size = inner.size;
    this.#inner = inner;
    this.#nLanes = nLanes;
    const both = inner.setUpBoth?.bind(inner);
    if (both !== undefined) this.setUpBoth = (peer) => this.#setUp(() => both(peer), true);
  }

  setUpSend(peer: number): Promise<ConnectionSetUp<SendConnection>> {
    return this.#setUp(() => this.#inner.setUpSend(peer), false);
  }

  setUpReceive(peer: number): Promise<ConnectionSetUp<ReceiveConnection>> {
    return this.#setUp(() => this.#inner.setUpReceive(peer), true);
  }

  close(): void {
    this.#inner.close();
  }

  async #setUp(
    open: () => Promise<ConnectionSetUp<SendConnection | ReceiveConnection>>,
    receives: boolean,
  ): Promise<ConnectionSetUp<TwoWayConnection>> {
    const opened = await Promise.allSettled(Array.from({ length: this.#nLanes }, open));
    const lanes = opened.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []));
    const cancel = (): void => {
      for (const lane of lanes) lane.cancel();
    };
    for (const result of opened) {
      if (result.status === 'fulfilled') continue;
      cancel();
      throw result.reason;
    }
    return {
      get info() {
        return encodeJson(lanes.map(({ info }) => Buffer.from(info).toString('base64')));
      },
      connect: async (info, signal) => new StripedConnection(await connectAll(lanes, infosOf(info), signal), receives),
      cancel,
    };
  }
}

/** Infos of the lanes, in base64; none where the end that listens gets no info. */
function infosOf(info: Uint8Array): string[] {
  return info.length === 0 ? [] : (decodeJson(info) as string[]);
}

/** Connects all lanes or none. @param infos of the other end, in base64 */
async function connectAll(
  lanes: readonly ConnectionSetUp<SendConnection | ReceiveConnection>[],
  infos: readonly string[],
  signal: AbortSignal,
): Promise<TwoWayConnection[]> {
  const stop = new AbortController();
  const either = AbortSignal.any([signal, stop.signal]);
  setMaxListeners(0, either); // each lane may have some
  const connected: (SendConnection | ReceiveConnection)[] = [];
  const connecting = lanes.map(async (lane, index) => {
    try {
      connected[index] = await lane.connect(Buffer.from(infos[index] ?? '', 'base64'), either);
    } catch (error) {
      stop.abort(error);
    }
  });
  await Promise.all(connecting);
  if (!stop.signal.aborted) return connected as TwoWayConnection[];
  for (const connection of connected) (connection as SendConnection | undefined)?.abort(stop.signal.reason as Error);
  throw stop.signal.reason;
}

/** One end. Its lanes have only the methods of the direction in which it goes. */
class StripedConnection implements TwoWayConnection {
  readonly transport: TransportName;
  readonly peer: number;
  readonly size: FifoSize;
  readonly #lanes: readonly TwoWayConnection[];
  readonly #receives: boolean;
  /** Lanes of the next message to send, and to receive. */
  #sending: TwoWayConnection;
  #receiving: TwoWayConnection;
  #sent = 0;
  #received = 0;

  /** @param receives false if it only sends */
  constructor(lanes: readonly TwoWayConnection[], receives: boolean) {
    const [first] = lanes;
    if (first === undefined) throw new RangeError('a connection has at least one lane');
    this.transport = first.transport;
    this.peer = first.peer;
    this.size = first.size;
    this.#lanes = lanes;
    this.#receives = receives;
    this.#sending = first;
    this.#receiving = first;
  }

  get polled(): boolean {
    return this.#lanes.every(({ polled }) => polled);
  }

  get reachesArrays(): boolean {
    return this.#lanes.every(({ reachesArrays }) => reachesArrays === true);
  }

  /** Of the lane whose turn it is; `wakeOn` adds those of all. */
  get fd(): number {
    return (this.#receives ? this.#receiving : this.#sending).fd;
  }

  get messageBytes(): number {
    return this.#receiving.messageBytes;
  }

  get isInPlace(): boolean {
    return this.#receiving.isInPlace === true;
  }

  acquire(): number {
    return this.#sending.acquire();
  }

  post(bytes: number): void {
    this.#sending.post(bytes);
    this.#sendOnNext();
  }

  postFrom(headBytes: number, address: number, bytes: number): void {
    this.#sending.postFrom?.(headBytes, address, bytes);
    this.#sendOnNext();
  }

  peek(): number {
    return this.#receiving.peek();
  }

  peekInto(headBytes: number, address: number, bytes: number): number {
    return this.#receiving.peekInto?.(headBytes, address, bytes) ?? this.#receiving.peek();
  }

  release(): void {
    this.#receiving.release();
    this.#received = (this.#received + 1) % this.#lanes.length;
    this.#receiving = this.#lanes[this.#received] ?? this.#receiving;
  }

  returnSlots(): void {
    for (const lane of this.#lanes) lane.returnSlots?.();
  }

  settle(): void {
    for (const lane of this.#lanes) lane.settle?.();
  }

  flush(): boolean {
    let isFlushed = true;
    for (const lane of this.#lanes) if (!lane.flush()) isFlushed = false;
    return isFlushed;
  }

  wakeOn(sources: FdSources, isAwaited: boolean): void {
    for (const lane of this.#lanes) lane.wakeOn(sources, isAwaited);
  }

  onNews(listener: (() => void) | undefined): void {
    for (const lane of this.#lanes) lane.onNews(listener);
  }

  /** Checks the lane whose turn it is: the end of another one may arrive before the data on this one. */
  check(): void {
    (this.#receives ? this.#receiving : this.#sending).check();
  }

  /** On all lanes: the other side may read only the one that it waits for. */
  reportWait(report: readonly number[]): void {
    for (const lane of this.#lanes) lane.reportWait(report);
  }

  waitReport(): WaitReport | undefined {
    let last: WaitReport | undefined;
    for (const lane of this.#lanes) {
      const report = lane.waitReport();
      if (report !== undefined && report.count > (last?.count ?? 0)) last = report;
    }
    return last;
  }

  async close(): Promise<void> {
    await Promise.all(this.#lanes.map((lane) => lane.close()));
  }

  abort(reason: Error): void {
    for (const lane of this.#lanes) lane.abort(reason);
  }

  #sendOnNext(): void {
    this.#sent = (this.#sent + 1) % this.#lanes.length;
    this.#sending = this.#lanes[this.#sent] ?? this.#sending;
  }
}
