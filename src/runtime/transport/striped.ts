import { setMaxListeners } from '#platform/events';
import type { WaitReport } from '../device/wait-report.js';
import { decodeJson, encodeJson } from '../bootstrap/json.js';
import type {
  AwaitedNews,
  ConnectionSetUp,
  FdSources,
  FifoSize,
  ReceiveConnection,
  SendConnection,
  Transport,
  TransportName,
  TwoWayConnection,
} from './transport.js';
import { withAnySignal } from '../abort-signals.js';
import { defined } from '../../defined.js';

/**
 * Connections that consist of several connections, their lanes, of one transport or of several of one kind: messages go over the
 * lanes in a fixed order, and the receiver takes them in the same order. For networks that limit the rate of each connection, as
 * clouds do, and for several NICs.
 */
export class StripedTransport implements Transport {
  readonly name: TransportName;
  readonly size: FifoSize;
  readonly setUpBoth?: (peer: number) => Promise<ConnectionSetUp<TwoWayConnection>>;
  readonly #lanes: readonly Transport[];
  readonly #turns: readonly number[];

  /**
   * @param lanes transport of each lane, all with the same name and size
   * @param turns the lane of each message, repeated without end
   */
  constructor(lanes: readonly Transport[], turns: readonly number[] = [...lanes.keys()]) {
    const [first] = lanes;
    if (first === undefined) throw new RangeError('a connection has at least one lane');
    this.name = first.name;
    this.size = first.size;
    this.#lanes = lanes;
    this.#turns = turns;
    if (first.setUpBoth !== undefined)
      this.setUpBoth = (peer) =>
        setUpAll(
          lanes.flatMap((lane) => lane.setUpBoth?.(peer) ?? []),
          turns,
          'both',
        );
  }

  setUpSend(peer: number): Promise<ConnectionSetUp<SendConnection>> {
    return setUpAll(
      this.#lanes.map((lane) => lane.setUpSend(peer)),
      this.#turns,
      'out',
    );
  }

  setUpReceive(peer: number): Promise<ConnectionSetUp<ReceiveConnection>> {
    return setUpAll(
      this.#lanes.map((lane) => lane.setUpReceive(peer)),
      this.#turns,
      'in',
    );
  }

  close(): void {
    for (const lane of new Set(this.#lanes)) lane.close();
  }
}

async function setUpAll(
  opening: readonly Promise<ConnectionSetUp<SendConnection | ReceiveConnection>>[],
  turns: readonly number[],
  way: Way,
): Promise<ConnectionSetUp<TwoWayConnection>> {
  const opened = await Promise.allSettled(opening);
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
    connect: async (info, signal) => new StripedConnection(await connectAll(lanes, infosOf(info), signal), turns, way),
    cancel,
  };
}

/** Direction of a connection, from this rank. */
type Way = 'out' | 'in' | 'both';

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
  const connected: (SendConnection | ReceiveConnection)[] = [];
  await withAnySignal([signal, stop.signal], (either) => {
    setMaxListeners(0, either); // each lane may have some
    const connecting = lanes.map(async (lane, index) => {
      try {
        connected[index] = await lane.connect(Buffer.from(infos[index] ?? '', 'base64'), either);
      } catch (error) {
        stop.abort(error);
      }
    });
    return Promise.all(connecting);
  });
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
  readonly #turns: readonly number[];
  readonly #way: Way;
  /** Lanes of the next message to send, and to receive. */
  #sending: TwoWayConnection;
  #receiving: TwoWayConnection;
  #sent = 0;
  #received = 0;

  constructor(lanes: readonly TwoWayConnection[], turns: readonly number[], way: Way) {
    const first = lanes[defined(turns[0])];
    if (first === undefined) throw new RangeError('a connection has at least one lane');
    this.transport = first.transport;
    this.peer = first.peer;
    this.size = first.size;
    this.#lanes = lanes;
    this.#turns = turns;
    this.#way = way;
    this.#sending = first;
    this.#receiving = first;
  }

  get polled(): boolean {
    return this.#lanes.every(({ polled }) => polled);
  }

  get reachesArrays(): boolean {
    return this.#lanes.every(({ reachesArrays }) => reachesArrays === true);
  }

  /** Of the lane whose turn it is. */
  get fd(): number {
    return this.#inTurn.fd;
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
    this.#received = (this.#received + 1) % this.#turns.length;
    this.#receiving = defined(this.#lanes[defined(this.#turns[this.#received])]);
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

  wakeOn(sources: FdSources, awaited?: AwaitedNews): void {
    // What came on another lane is read when its turn comes, and would wake the thread in vain until then.
    const inTurn = this.#way === 'both' && awaited === 'slot' ? this.#sending : this.#inTurn;
    for (const lane of this.#lanes) lane.wakeOn(sources, lane === inTurn ? awaited : undefined);
  }

  onNews(listener: (() => void) | undefined): void {
    for (const lane of this.#lanes) lane.onNews(listener);
  }

  /** Checks the lane whose turn it is: the end of another one may arrive before the data on this one. */
  check(): void {
    this.#inTurn.check();
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

  async close(report?: readonly number[]): Promise<void> {
    await Promise.all(this.#lanes.map((lane) => lane.close(report)));
  }

  abort(reason: Error): void {
    for (const lane of this.#lanes) lane.abort(reason);
  }

  /** The lane of the next message, for a connection both ways that to this rank. */
  get #inTurn(): TwoWayConnection {
    return this.#way === 'out' ? this.#sending : this.#receiving;
  }

  #sendOnNext(): void {
    this.#sent = (this.#sent + 1) % this.#turns.length;
    this.#sending = defined(this.#lanes[defined(this.#turns[this.#sent])]);
  }
}
