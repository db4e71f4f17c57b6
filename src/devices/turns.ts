/** Kind of a message, whose order among others of its kind decides which it matches. */
export type Side = 'send' | 'recv';

/** A turn to begin calls. */
interface Turn {
  /** Begins calls when those before have begun or been given up; resolves with their result. */
  begin<T>(calls: () => Promise<T>): Promise<T>;
  /** Lets those behind it begin, if it has not begun. */
  giveUp(): void;
}

/** Calls that begin in the order in which their turns were taken, though they get ready in another. */
export class Turns {
  readonly #last: Record<Side, Promise<unknown>> = { send: Promise.resolve(), recv: Promise.resolve() };

  take(sides: readonly Side[]): Turn {
    const before = Promise.all(sides.map((side) => this.#last[side]));
    let giveUp: () => void = () => undefined;
    const own = new Promise<void>((resolve) => (giveUp = resolve));
    const behind = before.then(() => own);
    for (const side of sides) this.#last[side] = behind;
    return {
      giveUp,
      begin: async (calls) => {
        await before;
        const result = calls();
        giveUp();
        return result;
      },
    };
  }
}
