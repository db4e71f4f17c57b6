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

/** A window that a rank gives the thread that has its sockets. */
export interface WindowInThread extends Omit<LanesParts, 'onNews'> {
  /** What the thread may give out of the segment for the window's connections. */
  readonly heap: SegmentInThread['heap'];
  /** For requests and news; the window ends with it. */
  readonly port: MessagePort;
  /** What the rank has not taken yet; see newsWords. */
  readonly news: Int32Array<SharedArrayBuffer>;
}

/** Counts news; then 1 where the rank has not taken yet that it was signalled: one message says so of any number of signals. */
export const newsWords = { count: 0, signalled: 1 } as const;

/** What the rank wants to be done. */
export type WindowRequest =
  | { readonly kind: 'close' }
  | {
      readonly kind: 'put' | 'get' | 'signal' | 'flush';
      /** The answer gives it back. */
      readonly number: number;
      readonly peer: number;
      /** In the segment: what is sent or filled. */
      readonly address: number;
      readonly bytes: number;
      /** Bytes from the beginning of the peer's part. */
      readonly offset: number;
      /** Of a put: whether a signal follows. */
      readonly signals: boolean;
    };

/** What the thread tells the rank. */
export type WindowNews =
  /** All connections are made, or why not. */
  | { readonly kind: 'opened'; readonly reason: Uint8Array | undefined }
  | { readonly kind: 'signalled' }
  | { readonly kind: 'done'; readonly number: number }
  /** Why nothing more comes from a peer, or goes there. */
  | { readonly kind: 'gone'; readonly peer: number; readonly reason: Uint8Array };

/** What the thread has for all windows. */
export interface WindowServer {
  readonly bootstrap: Introduction;
  readonly segment: SegmentInThread;
  readonly libc: Libc | undefined;
  readonly host: string;
  readonly secret: Uint8Array;
  /** Wakes a rank that waits in place. */
  readonly wake: () => void;
}

/**
 * A window's lanes in the thread that has a rank's sockets: what other ranks put, get and signal is carried out here,
 * whatever the rank's own thread does meanwhile, and so is what the rank asks for (thread-lanes.ts).
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

  /** All connections are made now: later the rank may wait in place, and its bootstrap network with it. */
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

  /** Something came from a peer, or can go there. */
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
