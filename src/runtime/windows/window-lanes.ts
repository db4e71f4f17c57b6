import type { PointToPoint } from '../messages/p2p.js';
import { WindowLane, type Lane } from './p2p-window.js';
import type { Libc } from '../device/libc.js';
import type { Segment } from '../device/segment.js';
import { countSignal } from './window-signals.js';

/** Description of a window for its lanes. */
export interface LanesParts {
  /** Number of the window, the same on all ranks; from 1. */
  readonly number: number;
  /** The ranks that share no memory with this one. */
  readonly peers: readonly number[];
  /** Address of this rank's part, which the others write and read. */
  readonly address: number;
  readonly bytes: number;
  /** Offset of this rank's counters of signals. */
  readonly signals: number;
  /** Called when an awaited operation may have completed. */
  readonly onNews: () => void;
}

/** Lanes for a window's operations to and from ranks that share no memory with this one. */
export interface WindowLanes {
  /** True if operations progress while this rank's thread blocks or computes. */
  readonly blocking: boolean;
  /** Undefined for ranks that share memory. */
  of(peer: number): Lane | undefined;
  /** Starts the lanes. Every rank calls it. Throws errors of connecting. */
  open(): Promise<void>;
  /** Ends the lanes because the communicator failed. */
  abort(reason: Error): void;
  /** Says goodbye, and frees everything, also before `open`. */
  close(): Promise<void>;
}

/** Lanes in the event loop of the rank's own thread, connected at first use. */
export class InlineLanes implements WindowLanes {
  readonly blocking = false;
  readonly #lanes = new Map<number, WindowLane>();

  constructor(
    private readonly parts: LanesParts,
    private readonly pointToPoint: PointToPoint,
    private readonly segment: Segment,
    private readonly libc: Libc | undefined,
  ) {}

  of(peer: number): Lane | undefined {
    return this.#lanes.get(peer);
  }

  open(): Promise<void> {
    const { pointToPoint, segment, libc } = this;
    const { number, peers, address, bytes, signals, onNews } = this.parts;
    const words = new Int32Array(segment.buffer);
    for (const peer of peers) {
      const dialling = pointToPoint.dialling(number, () => {
        this.#lanes.get(peer)?.progress();
        onNews();
      });
      this.#lanes.set(
        peer,
        new WindowLane({ segment, libc, peer, address, bytes, dialling, onSignal: () => countSignal(words, signals, peer) }),
      );
    }
    return Promise.resolve();
  }

  abort(reason: Error): void {
    for (const lane of this.#lanes.values()) lane.abort(reason);
  }

  async close(): Promise<void> {
    await Promise.all([...this.#lanes.values()].map((lane) => lane.close()));
  }
}
