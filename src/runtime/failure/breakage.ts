import { died } from './reasons.js';
import { silenceOf } from './silence.js';
import { endReason } from './end-reason.js';
import { clockMs, setImmediate } from '../platform/platform.js';
import { graceMs } from './grace.js';

/** Resolves to the reason why a rank ended, once it is known. */
export type WhyGone = (peer: number) => Promise<Error>;

/** Makes the error of a connection that broke for no known reason. */
type WithoutReason = (peer: number, cause: Error | undefined) => Error;

/**
 * Search for the reason why a connection broke without a goodbye. The rank may have died, but a rank that gives up during
 * set-up or exits in order also breaks connections; the bootstrap network then brings the reason.
 */
export class Breakage {
  readonly #peer: number;
  readonly #whyGone: WhyGone | undefined;
  readonly #explained: (error: Error) => void;
  readonly #withoutReason: WithoutReason;
  /** Time at which the connection broke, while its reason is being looked for, and whether the event loop has run since. */
  #sinceMs: number | undefined;
  #turned = false;
  #cause: Error | undefined;

  /**
   * @param explained called once with the reason, in the event loop
   * @param withoutReason makes the error of a connection that broke for no reason that comes to be known
   */
  constructor(
    peer: number,
    whyGone: WhyGone | undefined,
    explained: (error: Error) => void,
    withoutReason: WithoutReason = died,
  ) {
    this.#withoutReason = withoutReason;
    this.#peer = peer;
    this.#whyGone = whyGone;
    this.#explained = explained;
  }

  /** Begins to look for the reason; a second call does nothing. */
  begin(cause: Error | undefined): void {
    if (this.#sinceMs !== undefined) return;
    this.#sinceMs = clockMs();
    this.#cause = cause;
    if (this.#whyGone === undefined || silenceOf(cause) !== undefined) {
      this.#explained(this.#died());
      return;
    }
    setImmediate(() => (this.#turned = true));
    void endReason(this.#whyGone(this.#peer), graceMs.brokenConnection).then((reason) => this.#explained(reason ?? this.#died()));
  }

  /** For callers that block the event loop, which would have brought the reason: returns the death of the rank sooner. */
  look(): Error | undefined {
    if (this.#sinceMs === undefined || this.#turned || clockMs() - this.#sinceMs < graceMs.brokenWhileBlocked) return undefined;
    return this.#died();
  }

  #died(): Error {
    return this.#withoutReason(this.#peer, this.#cause);
  }
}
