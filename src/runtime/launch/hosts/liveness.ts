import { WatchClock } from '../../progress/watch-clock.js';

/** Signs of life within the time after which the other end counts as gone. */
const SIGNS_PER_HEARTBEAT = 4;

/**
 * Sends signs of life to the other end of a connection, and notices when none come. Time in which this process did not run
 * does not count.
 */
export class Liveness {
  readonly #clock: WatchClock;
  readonly #timer: NodeJS.Timeout | undefined;
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

  /** Something came from the other end. */
  heard(): void {
    this.#heardMs = this.#clock.look();
  }

  /** The other end is stopped on purpose, or goes on. */
  suspend(isSuspended: boolean): void {
    this.#isSuspended = isSuspended;
    this.heard();
  }

  stop(): void {
    clearInterval(this.#timer);
  }
}
