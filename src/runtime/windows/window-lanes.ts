import type { PointToPoint } from '../messages/p2p.js';
import { WindowLane, type Lane } from './p2p-window.js';
import type { Libc } from '../device/libc.js';
import type { Segment } from '../device/segment.js';
import { countSignal } from './window-signals.js';

/** A window, as what carries its operations needs to know it. */
export interface LanesParts {
  /** Tells the window from others, alike on all ranks; from 1. */
  readonly number: number;
  /** The ranks that share no memory with this one. */
  readonly peers: readonly number[];
  /** This rank's part, which the others write and read. */
  readonly address: number;
  readonly bytes: number;
  /** Offset of this rank's counters of signals. */
  readonly signals: number;
  /** Called when something may have come about that is waited for. */
  readonly onNews: () => void;
}

/** Lanes for a window's operations to and from ranks that share no memory with this one. */
export interface WindowLanes {
  /** True if operations go on while this rank's thread waits in place or computes. */
  readonly blocking: boolean;
  /** Undefined where memory is shared. */
  of(peer: number): Lane | undefined;
  /** Begins to carry. Every rank calls it. Throws what connecting throws. */
  open(): Promise<void>;
  /** The communicator failed. */
  abort(reason: Error): void;
  /** Says goodbye. Takes back what is not open, too. */
  close(): Promise<void>;
}

/** Lanes in the event loop of the rank's own thread; they are connected when they are first needed. */
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
