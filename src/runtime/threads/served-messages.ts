import type { Introduction } from '../bootstrap/bootstrap.js';
import { PointToPoint } from '../messages/p2p.js';
import type { MessagePiece, MessageServer } from '../messages/p2p-served.js';
import { sliceBytesOf } from '../messages/p2p-socket.js';
import { describeLate } from '../algorithms/deed.js';
import { CIRCLE, transferTimeout } from '../messages/p2p-transfer.js';
import { pairFifo } from '../algorithms/pairs.js';
import type { Libc } from '../device/libc.js';
import type { Team } from '../device/team.js';
import { unpackReason } from '../transport/ending.js';
import { SocketTransport } from '../transport/socket.js';
import { elementsAt, type EngineThreadMemory } from './engine-thread-memory.js';
import { longWait, shorterLimit, type WaitLimits } from '../progress/wait-limits.js';
import { WatchClock } from '../progress/watch-clock.js';

/** For each rank, the number of pieces to it and from it that the thread has finished. */
export type EndedPieces = Int32Array<SharedArrayBuffer>;

export function endedPieces(nRanks: number): EndedPieces {
  return new Int32Array(new SharedArrayBuffer(2 * nRanks * Int32Array.BYTES_PER_ELEMENT));
}

function wordOf(sends: boolean, peer: number): number {
  return 2 * peer + (sends ? 1 : 0);
}

function numberAt(team: Team, address: number): Float64Array {
  return new Float64Array(team.segment.buffer, address, 1);
}

export interface MessageServerOptions {
  readonly rank: number;
  readonly nRanks: number;
  readonly team: Team;
  readonly memory: EngineThreadMemory;
  readonly ended: EndedPieces;
  /** Hands a piece over to the thread. */
  readonly hand: (piece: MessagePiece) => void;
}

/** The rank's side: the interface of its messages to the thread that has its sockets. */
export function messageServer({ rank, nRanks, team, memory, ended, hand }: MessageServerOptions): MessageServer {
  return {
    sliceBytes: sliceBytesOf(pairFifo(nRanks)),
    allocate: (bytes) => team.allocateBytes(bytes),
    free: (address) => team.freeBytes(address),
    numberAt: (address) => numberAt(team, address)[0] ?? 0,
    hand,
    ended: (sends, peer) => Atomics.load(ended, wordOf(sends, peer)),
    failure: () => {
      const reason = memory.reason();
      return reason === undefined ? undefined : unpackReason(reason, rank);
    },
    listen: (onNews) => memory.listen(onNews),
  };
}

export interface ServedMessagesOptions {
  readonly bootstrap: Introduction;
  readonly team: Team;
  readonly libc: Libc | undefined;
  /** True if the ranks of this host share memory. */
  readonly shared: boolean;
  readonly host: string;
  readonly secret: Uint8Array;
  readonly memory: EngineThreadMemory;
  readonly ended: EndedPieces;
  readonly limits: WaitLimits;
  /** See PointToPointOptions. */
  readonly tellInCalls: (report: readonly number[]) => void;
  /** Called once for each message that takes long. */
  readonly warn: (text: string) => void;
  /** Ends the thread. */
  readonly fail: (error: unknown) => void;
}

/**
 * A rank's messages in the thread that has its sockets, where they progress whatever the rank's own thread does. The rank
 * hands over pieces of messages (p2p-served.ts), and reads how many are done.
 */
export class ServedMessages {
  readonly #options: ServedMessagesOptions;
  readonly #pointToPoint: PointToPoint;
  readonly #clock: WatchClock;
  readonly #watch: NodeJS.Timeout | undefined;

  constructor(options: ServedMessagesOptions) {
    const { bootstrap, team, libc, host, secret, limits } = options;
    this.#options = options;
    this.#pointToPoint = new PointToPoint({
      // Without the ranks that share memory, which the rank's own thread serves.
      bootstrap,
      team,
      libc,
      shared: false,
      openTransport: () =>
        new SocketTransport({
          size: pairFifo(bootstrap.nRanks),
          segment: team.segment,
          rank: bootstrap.rank,
          host,
          secret,
          whyGone: (peer) => bootstrap.whyGone(peer),
        }),
      onNews: () => this.#goOn(),
      tellInCalls: options.tellInCalls,
    });
    const shorterMs = shorterLimit(limits);
    this.#clock = new WatchClock(shorterMs);
    if (shorterMs > 0) this.#watch = this.#clock.every(this.#lookAtTime).unref();
  }

  /** Makes all connections now: later the rank may block, and its bootstrap network with it. */
  async connect(): Promise<void> {
    const {
      bootstrap: { rank, nRanks, localRanks },
      shared,
    } = this.#options;
    const isElsewhere = (peer: number): boolean => peer !== rank && !(shared && localRanks.includes(peer));
    await this.#pointToPoint.connect(Array.from({ length: nRanks }, (_, peer) => peer).filter(isElsewhere));
    this.#pointToPoint.listen(true);
  }

  take({ sends, peer, type, count, address, length, countAt }: MessagePiece): void {
    const { team, memory, ended } = this.#options;
    const { type: dataType, array } = elementsAt(team.segment.buffer, type, address, length);
    const settled = (error?: Error): void => {
      if (error !== undefined) return;
      if (countAt !== undefined) numberAt(team, countAt)[0] = transfer.count;
      Atomics.add(ended, wordOf(sends, peer), 1);
      memory.tell();
    };
    const transfer = this.#pointToPoint.add(sends, peer, array, dataType, { settled }, count);
    transfer.atMost = countAt !== undefined;
    this.#goOn();
  }

  /** Reports to ranks that may wait for this rank's messages what it waits for elsewhere. */
  tellWaits(report: readonly number[]): void {
    this.#pointToPoint.tellWaits(report);
  }

  /** See PointToPoint. */
  answerWaits(report: readonly number[]): void {
    this.#pointToPoint.answerWaits(report);
  }

  abort(reason: Error): void {
    clearInterval(this.#watch);
    this.#pointToPoint.abort(reason);
  }

  async close(): Promise<void> {
    clearInterval(this.#watch);
    await this.#pointToPoint.close();
  }

  #goOn(): void {
    try {
      this.#pointToPoint.progress();
      this.#pointToPoint.checkSockets();
    } catch (error) {
      this.#options.fail(error);
    }
  }

  readonly #lookAtTime = (): void => {
    const {
      bootstrap: { rank },
      limits,
      warn,
      fail,
    } = this.#options;
    const { timeoutMs, warnAfterMs } = limits;
    const shorterMs = shorterLimit(limits);
    const p2p = this.#pointToPoint;
    const now = this.#clock.look();
    const whom = (awaited: readonly number[], behind: readonly number[]): string => {
      return p2p.isCircle
        ? describeLate(awaited, (one) => p2p.doing(one)) + CIRCLE
        : describeLate(behind, (one) => p2p.doing(one));
    };
    const late = timeoutMs === 0 ? undefined : p2p.longWait(now, timeoutMs);
    if (late !== undefined) {
      const ranks = p2p.holdUps(late.ranks, shorterMs);
      fail(transferTimeout(rank, timeoutMs, late.text, ranks, whom(late.ranks, ranks)));
      return;
    }
    const awaited = p2p.longWait(now, this.#clock.gapMs);
    if (awaited !== undefined) p2p.sayWaits(awaited, shorterMs);
    const warned = warnAfterMs === 0 ? undefined : p2p.longWait(now, warnAfterMs, true);
    if (warned !== undefined)
      warn(longWait(rank, warnAfterMs, warned.text, whom(warned.ranks, p2p.holdUps(warned.ranks, shorterMs))));
  };
}
