import { InvalidArgumentError, namingCall } from '../../errors.js';
import type { CallChain, QueuedCall } from '../algorithms/queued-call.js';
import type { Exchange, Members } from './collective-objects.js';

/** The collectives of one exchange of objects, as the queue takes them. */
export class ObjectChain<T> implements CallChain {
  /** The first of them. */
  readonly first: QueuedCall;
  readonly #exchange: Exchange<T>;
  /** The parts of this rank's value that are sent without a copy, with their lengths. */
  readonly #held: { readonly piece: Uint8Array; readonly bytes: number }[] = [];
  #result: (() => T) | undefined;

  /**
   * @param call name of the public call, for errors
   * @throws InvalidArgumentError `ARGUMENT_TYPE`, `BUFFER_SIZE` when the value cannot be sent
   */
  constructor(
    readonly call: string,
    rank: number,
    nRanks: number,
    begin: (members: Members) => Exchange<T>,
  ) {
    const hold = (pieces: readonly Uint8Array[]): void => {
      for (const piece of pieces) this.#held.push({ piece, bytes: piece.length });
    };
    this.#exchange = begin({ call, rank, nRanks, hold });
    const { value, done } = this.#exchange.next();
    if (done === true) throw new RangeError(`${call} exchanges nothing`);
    this.first = { ...value, chain: this };
  }

  next(): QueuedCall | undefined {
    const { value, done } = this.#exchange.next();
    if (done !== true) {
      this.#checkHeld();
      return value;
    }
    // Everything was sent, so what happens to the arrays from now on concerns no rank.
    this.#result = value;
    return undefined;
  }

  #checkHeld(): void {
    if (this.#held.every(({ piece, bytes }) => piece.length === bytes)) return;
    throw namingCall(
      new InvalidArgumentError(
        'BUFFER_DETACHED',
        `${this.call}: the memory of a typed array in the value was transferred or resized away before it was sent; keep it until the call has ended`,
      ),
    );
  }

  arrays(): Uint8Array[] {
    return this.#held.map(({ piece }) => piece);
  }

  /** All calls have ended. */
  result(): T {
    if (this.#result === undefined) throw new RangeError(`${this.call} has not ended`);
    return this.#result();
  }
}
