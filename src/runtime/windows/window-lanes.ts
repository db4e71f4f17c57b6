import type { PointToPoint } from '../messages/p2p.js';
import { WindowLane } from './p2p-window.js';
import type { Libc } from '../device/libc.js';
import type { DataType } from '../device/types.js';
import type { Segment } from '../device/segment.js';
import type { Progress, Waitable } from '../progress/progress.js';
import type { WakeSources } from '../progress/parking.js';
import { countSignal } from './window-signals.js';

/** Description of a window for its lanes. */
interface LanesParts {
  /** Number of the window, the same on all ranks; from 1. */
  readonly number: number;
  /** The ranks that share no memory with this one. */
  readonly peers: readonly number[];
  /** Address of this rank's part, which the others write and read. */
  readonly address: number;
  readonly bytes: number;
  readonly type: DataType;
  /** Offset of this rank's counters of signals. */
  readonly signals: number;
  readonly pointToPoint: PointToPoint;
  readonly segment: Segment;
  readonly libc: Libc | undefined;
  /** Of this thread. */
  readonly progress: Progress;
}

/**
 * A window's lanes to and from ranks that share no memory with this one. Others may put and get at any time, so the lanes
 * are served while the window is open: from the event loop, and in every blocking call.
 */
export class WindowLanes implements Waitable {
  readonly polled = true;
  readonly spins = 0;
  /** No spins: an operation of this rank spins in its own wait, and news is enough to serve others. */
  readonly parkAfterMs = 0;
  readonly checkEveryMs = Infinity;
  readonly #lanes = new Map<number, WindowLane>();
  readonly #parts: LanesParts;
  /** True after the end of the window or its communicator: later connections are closed immediately. */
  #hasEnded = false;

  constructor(parts: LanesParts) {
    this.#parts = parts;
  }

  /** Undefined where memory is shared. */
  of(peer: number): WindowLane | undefined {
    return this.#lanes.get(peer);
  }

  /** True if this rank may wait for that one without returning to its event loop. */
  isBlocking(peer: number): boolean {
    return this.#parts.pointToPoint.links.connectsAll && this.#lanes.get(peer)?.canBlock === true;
  }

  /**
   * Begins to serve. Every rank calls it. Lanes are connected at their first use, or now if messages are, too. Throws the
   * errors of connecting.
   */
  async open(): Promise<void> {
    const { number, peers, address, bytes, type, signals, pointToPoint, segment, libc, progress } = this.#parts;
    const part = { address, bytes, type: type.code, elementBytes: type.bytes };
    const words = new Int32Array(segment.buffer);
    for (const peer of peers) {
      const dialling = pointToPoint.links.dialling(number, () => {
        if (this.#hasEnded) return;
        const lane = this.#lanes.get(peer);
        lane?.progress();
        // Once it is connected.
        if (lane?.polled === true) progress.add(this);
        progress.wake();
      });
      this.#lanes.set(
        peer,
        new WindowLane({ segment, libc, peer, ...part, dialling, onSignal: () => countSignal(words, signals, peer) }),
      );
    }
    if (!pointToPoint.links.connectsAll) return;
    try {
      await pointToPoint.links.allMet([...this.#lanes.values()].map((lane) => lane.connect()));
    } catch (error) {
      this.abort(error as Error);
      throw error;
    }
  }

  /** The communicator failed. */
  abort(reason: Error): void {
    this.#hasEnded = true;
    this.#parts.progress.remove(this);
    for (const lane of this.#lanes.values()) lane.abort(reason);
  }

  /** Sends a goodbye, and cancels connections that are not open yet. */
  async close(): Promise<void> {
    this.#hasEnded = true;
    this.#parts.progress.remove(this);
    await Promise.all([...this.#lanes.values()].map((lane) => lane.close()));
  }

  // ── serving ───────────────────────────────────────────────────────────────────────────────────────────────────────

  get isPending(): boolean {
    for (const lane of this.#lanes.values()) if (lane.polled) return true;
    return false;
  }

  poll(): boolean {
    let moved = false;
    for (const lane of this.#lanes.values()) if (lane.polled && lane.progress()) moved = true;
    return moved;
  }

  check(): void {
    // The wait for a rank checks its liveness.
  }

  fail(): void {
    // Nothing here throws: operations that wait for a broken lane get its error.
  }

  wakeOn(sources: WakeSources): void {
    for (const lane of this.#lanes.values()) lane.wakeOn(sources);
  }
}
