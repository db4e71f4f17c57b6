/**
 * The end of a rank, a network or a communicator, with its first reason, because later ones follow from it. Everything that can
 * end it reports here; everything that waits reads it.
 */
export class Ending<E extends Error = Error> {
  #reason: E | undefined;
  readonly #listeners = new Set<(reason: E) => void>();

  /** The reason; undefined before the end. */
  get reason(): E | undefined {
    return this.#reason;
  }

  /** Ends it, unless it has ended. Returns the reason that counts. */
  end(reason: E): E {
    if (this.#reason !== undefined) return this.#reason;
    this.#reason = reason;
    for (const listener of this.#listeners) listener(reason);
    this.#listeners.clear();
    return reason;
  }

  throwIfEnded(): void {
    if (this.#reason !== undefined) throw this.#reason;
  }

  /** Calls `listener` at the end, now if that has come. Returns a function that removes it. */
  onEnd(listener: (reason: E) => void): () => void {
    if (this.#reason !== undefined) listener(this.#reason);
    else this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Resolves with the reason. */
  whenEnded(): Promise<E> {
    return new Promise((resolve) => this.onEnd(resolve));
  }
}

/** An ending as those see it that wait. */
export type End = Pick<Ending, 'reason' | 'throwIfEnded'>;
