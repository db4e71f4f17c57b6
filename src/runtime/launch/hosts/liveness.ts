import { clearInterval, type Timer } from '../../platform/platform.js';
import { WatchClock } from '../../progress/watch-clock.js';

/** Number of heartbeats in the time limit of the other end. */
const SIGNS_PER_HEARTBEAT = 4;

/**
 * Sends heartbeats to the other end of a connection, and detects missing ones. Time in which this process did not run does
 * not count.
 */
export class Liveness {
  readonly #clock: WatchClock;
  readonly #timer: Timer | undefined;
  #heardMs: number;
  #isSuspended = false;

  /** @param heartbeatMs 0 for a connection that is not watched */
  constructor(heartbeatMs: number, send: () => void, onSilence: () => void) {
    this.#clock = new WatchClock(heartbeatMs);
    let sentMs = this.#clock.look();
    this.#heardMs = sentMs;
    if (heartbeatMs === 0) return;
    this.#timer = this.#clock.every(() => {
      const now = this.#clock.look();
      if (now - sentMs >= heartbeatMs / SIGNS_PER_HEARTBEAT) {
        sentMs = now;
        send();
      }
      if (this.#isSuspended) this.#heardMs = now;
      if (now - this.#heardMs > heartbeatMs) {
        this.stop();
        onSilence();
      }
    });
  }

  /** Records a message of the other end. */
  received(): void {
    this.#heardMs = this.#clock.look();
  }

  /** Records that the other end is stopped on purpose, or continues. */
  suspend(isSuspended: boolean): void {
    this.#isSuspended = isSuspended;
    this.received();
  }

  stop(): void {
    clearInterval(this.#timer);
  }
}
