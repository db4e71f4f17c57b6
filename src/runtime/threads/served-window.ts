import type { MessagePort } from 'node:worker_threads';
import type { Introduction } from '../bootstrap/bootstrap.js';
import { laneTag } from '../messages/p2p.js';
import { WindowLane, type WindowCommand } from '../windows/p2p-window.js';
import { pairFifo } from '../algorithms/pairs.js';
import { Segment, type SegmentInThread } from '../device/segment.js';
import type { Libc } from '../device/libc.js';
import { InternalError } from '../../errors.js';
import { packReason } from '../transport/ending.js';
import { SocketTransport } from '../transport/socket.js';
import type { LanesParts } from '../windows/window-lanes.js';
import { countSignal } from '../windows/window-signals.js';

/** A window that a rank gives to the thread that has its sockets. */
export interface WindowInThread extends Omit<LanesParts, 'onNews'> {
  /** Memory of the segment that the thread may allocate for the window's connections. */
  readonly heap: SegmentInThread['heap'];
  /** Port for requests and news; the window ends with it. */
  readonly port: MessagePort;
  /** News that the rank has not taken yet; see newsWords. */
  readonly news: Int32Array<SharedArrayBuffer>;
}

/**
 * Index of the count of news, and of a flag that is 1 until the rank has noticed a signal: one message reports any number of
 * signals.
 */
export const newsWords = { count: 0, signalled: 1 } as const;

/** Requests of the rank. */
export type WindowRequest =
  | { readonly kind: 'close' }
  | {
      readonly kind: 'put' | 'get' | 'signal' | 'flush';
      /** Repeated in the answer. */
      readonly number: number;
      readonly peer: number;
      /** Address in the segment of the data to send or to fill. */
      readonly address: number;
      readonly bytes: number;
      /** Offset in bytes in the peer's part. */
      readonly offset: number;
      /** True if a signal follows the put. */
      readonly signals: boolean;
    };

/** News from the thread to the rank. */
export type WindowNews =
  /** All connections are made; or the reason why not. */
  | { readonly kind: 'opened'; readonly reason: Uint8Array | undefined }
  | { readonly kind: 'signalled' }
  | { readonly kind: 'done'; readonly number: number }
  /** Reason why nothing more comes from a peer or goes to it. */
  | { readonly kind: 'gone'; readonly peer: number; readonly reason: Uint8Array };

/** Services of the thread for all windows. */
export interface WindowServer {
  readonly bootstrap: Introduction;
  readonly segment: SegmentInThread;
  readonly libc: Libc | undefined;
  readonly host: string;
  readonly secret: Uint8Array;
  /** Wakes a blocked rank. */
  readonly wake: () => void;
}

/**
 * A window's lanes in the thread that has a rank's sockets: it carries out puts, gets and signals of other ranks, and the
 * rank's own requests (thread-lanes.ts), whatever the rank's own thread does meanwhile.
 */
export class ServedWindow {
  readonly #window: WindowInThread;
  readonly #lanes = new Map<number, WindowLane>();
  readonly #gone = new Set<number>();
  readonly #buffer: SharedArrayBuffer;
  readonly #transport: SocketTransport;
  readonly #stop = new AbortController();
  readonly #wake: () => void;

  constructor(window: WindowInThread, { bootstrap, segment: place, libc, host, secret, wake }: WindowServer) {
    const { number, peers, heap, port, address, bytes, signals } = window;
    const segment = Segment.inThread({ ...place, heap }, libc);
    const words = new Int32Array(segment.buffer);
    this.#window = window;
    this.#wake = wake;
    this.#buffer = segment.buffer;
    this.#transport = new SocketTransport({
      size: pairFifo(bootstrap.nRanks),
      segment,
      rank: bootstrap.rank,
      host,
      secret,
      whyGone: (peer) => bootstrap.whyGone(peer),
    });
    for (const peer of peers) {
      bootstrap.watch(peer);
      const dialling = {
        bootstrap,
        transport: this.#transport,
        tag: laneTag(number),
        onNews: () => this.#goOn(peer),
        signal: this.#stop.signal,
      };
      const onSignal = (): void => {
        countSignal(words, signals, peer);
        if (Atomics.exchange(window.news, newsWords.signalled, 1) === 0) this.#tell({ kind: 'signalled' });
      };
      this.#lanes.set(peer, new WindowLane({ segment, libc, peer, address, bytes, dialling, onSignal }));
    }
    port.on('message', (request: WindowRequest) => this.#take(request));
    void this.#connect();
  }

  abort(reason: Error): void {
    this.#stop.abort(reason);
    for (const lane of this.#lanes.values()) lane.abort(reason);
  }

  /** Says goodbye to all peers, and then to the rank. */
  async close(): Promise<void> {
    await Promise.all([...this.#lanes.values()].map((lane) => lane.close()));
    this.#transport.close();
    this.#window.port.close();
  }

  /** Makes all connections now: later the rank may block, and its bootstrap network with it. */
  async #connect(): Promise<void> {
    let reason: Uint8Array | undefined;
    try {
      await Promise.all([...this.#lanes.values()].map((lane) => lane.connect()));
    } catch (error) {
      reason = packReason(error as Error);
    }
    this.#transport.close();
    this.#tell({ kind: 'opened', reason });
  }

  #take(request: WindowRequest): void {
    if (request.kind === 'close') {
      void this.close();
      return;
    }
    const { kind, number, peer, address, bytes, offset, signals } = request;
    const lane = this.#lanes.get(peer);
    if (lane === undefined) throw new InternalError('INTERNAL', `there is no lane to rank ${peer}`);
    const array = new Uint8Array(this.#buffer, address, bytes);
    const command: WindowCommand =
      kind === 'put'
        ? lane.put(array, bytes, offset, signals)
        : kind === 'get'
          ? lane.get(array, bytes, offset)
          : kind === 'signal'
            ? lane.signal()
            : lane.flush();
    const ended = (): void => this.#tell({ kind: 'done', number });
    if (command.done) ended();
    else command.ended = ended;
  }

  /** Progresses a lane after news of its peer. */
  #goOn(peer: number): void {
    const lane = this.#lanes.get(peer);
    lane?.progress();
    const failure = lane?.failure();
    if (failure === undefined || this.#gone.has(peer)) return;
    this.#gone.add(peer);
    this.#tell({ kind: 'gone', peer, reason: packReason(failure) });
  }

  #tell(news: WindowNews): void {
    const { port, news: count } = this.#window;
    port.postMessage(news);
    Atomics.add(count, newsWords.count, 1);
    this.#wake();
  }
}
