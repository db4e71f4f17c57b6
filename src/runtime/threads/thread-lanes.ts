import { MessageChannel, receiveMessageOnPort, type MessagePort } from 'node:worker_threads';
import { Operand } from '../algorithms/operand.js';
import { endCommand, type Lane, type WindowCommand } from '../windows/p2p-window.js';
import type { Libc } from '../device/libc.js';
import type { Segment } from '../device/segment.js';
import type { NumericArray } from '../device/types.js';
import { InternalError } from '../../errors.js';
import { unpackReason } from '../transport/ending.js';
import { newsWords, type WindowInThread, type WindowNews, type WindowRequest } from './served-window.js';
import type { LanesParts, WindowLanes } from '../windows/window-lanes.js';

export interface ThreadLanesOptions {
  readonly segment: Segment;
  readonly libc: Libc | undefined;
  readonly rank: number;
  /** Memory of the connections with one rank. */
  readonly bytesPerPeer: number;
  /** Hands the window over. */
  readonly start: (window: WindowInThread) => void;
  /** The reason for which the thread gave up, if it has. */
  readonly reason: () => Uint8Array | undefined;
}

/** A request that the thread has not answered. */
interface OpenRequest {
  readonly command: WindowCommand;
  readonly lane: ThreadLane;
  /** An array outside the segment: the array, the address of its copy, and whether to copy it back. */
  readonly staged:
    { readonly operand: Operand; readonly address: number; readonly bytes: number; readonly returns: boolean } | undefined;
}

/**
 * The rank's side of lanes in the thread that has its sockets (served-window.ts):
 *
 *      rank's thread                          engine thread
 *      put, get, signal, flush  ── port ──►   lanes  ◄──► other ranks
 *      its part, counters     ◄─ segment ──   carries out what the others want
 *      done, signalled, gone    ◄─ port ───
 *
 * Operations of this rank and of others progress while the rank blocks or computes. Arrays that are not from alloc() are
 * copied, as a whole, because only the rank's thread knows that they still exist.
 */
export class ThreadLanes implements WindowLanes {
  readonly blocking = true;
  readonly #parts: LanesParts;
  readonly #options: ThreadLanesOptions;
  readonly #lanes: ReadonlyMap<number, ThreadLane>;
  readonly #heap: WindowInThread['heap'];
  readonly #requests = new Map<number, OpenRequest>();
  readonly #news = new Int32Array(new SharedArrayBuffer(8));
  #newsSeen = 0;
  #requested = 0;
  #port: MessagePort | undefined;
  /** Resolves when the thread has finished all work on the window. */
  #closed: Promise<void> | undefined;
  #whenOpened: (reason: Uint8Array | undefined) => void = () => undefined;

  /** @throws SystemError `OUT_OF_MEMORY` */
  constructor(parts: LanesParts, options: ThreadLanesOptions) {
    const { segment, bytesPerPeer } = options;
    const bytes = parts.peers.length * bytesPerPeer;
    const from = segment.allocateBytes(bytes);
    this.#parts = parts;
    this.#options = options;
    this.#heap = { from, to: from + bytes };
    this.#lanes = new Map(parts.peers.map((peer) => [peer, new ThreadLane(peer, this)]));
  }

  of(peer: number): Lane | undefined {
    return this.#lanes.get(peer);
  }

  async open(): Promise<void> {
    const { number, peers, address, bytes, signals, onNews } = this.#parts;
    const { port1, port2 } = new MessageChannel();
    this.#port = port1;
    const opened = new Promise<Uint8Array | undefined>((resolve) => (this.#whenOpened = resolve));
    this.#closed = new Promise((resolve) => {
      port1.once('close', () => {
        this.#freeAll();
        resolve();
      });
    });
    port1.on('message', (news: WindowNews) => {
      this.#take(news);
      onNews();
    });
    this.#options.start({ number, peers, address, bytes, signals, heap: this.#heap, port: port2, news: this.#news });
    const reason = await Promise.race([opened, this.#closed.then(this.#options.reason)]);
    if (reason !== undefined) throw unpackReason(reason, this.#options.rank);
  }

  /** Sends a request to the thread. */
  request(
    lane: ThreadLane,
    kind: 'put' | 'get' | 'signal' | 'flush',
    array: NumericArray | undefined,
    bytes: number,
    offset: number,
    signals: boolean,
  ): WindowCommand {
    const { segment, libc } = this.#options;
    const command: WindowCommand = { done: false, ended: undefined };
    let address = 0;
    let staged: OpenRequest['staged'];
    if (array !== undefined && bytes > 0) {
      const operand = new Operand(segment, libc);
      operand.use(array);
      if (operand.placed) address = operand.address(0);
      else {
        address = segment.allocateBytes(bytes);
        staged = { operand, address, bytes, returns: kind === 'get' };
        if (kind === 'put') operand.copyTo(address, 0, bytes);
      }
    }
    const number = ++this.#requested;
    this.#requests.set(number, { command, lane, staged });
    this.#post({ kind, number, peer: lane.peer, address, bytes, offset, signals });
    return command;
  }

  /** Takes news that has arrived, which the event loop would take later. */
  drain(): void {
    const count = Atomics.load(this.#news, newsWords.count);
    if (count === this.#newsSeen || this.#port === undefined) return;
    this.#newsSeen = count;
    for (let next = receiveMessageOnPort(this.#port); next !== undefined; next = receiveMessageOnPort(this.#port))
      this.#take(next.message as WindowNews);
  }

  /** Nothing to do: the thread fails with the communicator's engine, and tells the other ranks why. */
  abort(): void {
    this.#port?.unref();
  }

  async close(): Promise<void> {
    if (this.#port === undefined) {
      this.#freeAll();
      return;
    }
    this.#port.ref();
    this.#post({ kind: 'close' });
    await this.#closed;
  }

  #post(request: WindowRequest): void {
    this.#port?.postMessage(request);
  }

  #take(news: WindowNews): void {
    if (news.kind === 'opened') this.#whenOpened(news.reason);
    else if (news.kind === 'gone') this.#lanes.get(news.peer)?.end(unpackReason(news.reason, this.#options.rank));
    else if (news.kind === 'done') this.#end(news.number);
    // Before the counters are read: later signals send a message of their own.
    else Atomics.store(this.#news, newsWords.signalled, 0);
  }

  #end(number: number): void {
    const request = this.#requests.get(number);
    if (request === undefined) throw new InternalError('INTERNAL', `the thread answered request ${number}, which does not exist`);
    this.#requests.delete(number);
    const { command, lane, staged } = request;
    if (staged !== undefined) {
      try {
        if (staged.returns) staged.operand.write(0, staged.bytes, staged.address);
      } catch (error) {
        lane.end(error as Error);
        return;
      } finally {
        this.#options.segment.freeBytes(staged.address);
      }
    }
    endCommand(command);
  }

  /** Frees the memory, which nobody uses any more. */
  #freeAll(): void {
    const { segment } = this.#options;
    for (const { staged } of this.#requests.values()) if (staged !== undefined) segment.freeBytes(staged.address);
    this.#requests.clear();
    segment.freeBytes(this.#heap.from);
  }
}

/** Access to one rank, through the thread. */
class ThreadLane implements Lane {
  isUsed = false;
  readonly #lanes: ThreadLanes;
  #failure: Error | undefined;

  constructor(
    readonly peer: number,
    lanes: ThreadLanes,
  ) {
    this.#lanes = lanes;
  }

  put(array: NumericArray, bytes: number, offset: number, signals: boolean): WindowCommand {
    return this.#request('put', array, bytes, offset, signals);
  }

  get(array: NumericArray, bytes: number, offset: number): WindowCommand {
    return this.#request('get', array, bytes, offset);
  }

  signal(): WindowCommand {
    return this.#request('signal');
  }

  flush(): WindowCommand {
    return this.#request('flush');
  }

  failure(): Error | undefined {
    this.#lanes.drain();
    return this.#failure;
  }

  /** Nothing more comes from the peer or goes to it. */
  end(reason: Error): void {
    this.#failure ??= reason;
  }

  #request(
    kind: 'put' | 'get' | 'signal' | 'flush',
    array?: NumericArray,
    bytes = 0,
    offset = 0,
    signals = false,
  ): WindowCommand {
    this.isUsed = true;
    return this.#lanes.request(this, kind, array, bytes, offset, signals);
  }
}
