import { Moves } from './moves.js';

/** Numbers of the sets of connections: none, and that of the relay. */
const NONE = 0;
const RELAY = 1;

/** The moves of a rank that passes on the messages of another: one for each that the other sends, without data of its own. */
export class RelayMoves extends Moves {
  readonly #sender: Moves;

  /** @param sender the other rank's moves, whose set 0 has no connections, and which are not executed here */
  constructor(sender: Moves) {
    super();
    this.#sender = sender;
    this.receives = RELAY;
    this.sends = RELAY;
  }

  /** Begins a call that the sender's moves have begun. */
  start(): void {
    const sender = this.#sender;
    while (!sender.done && sender.sends === NONE) sender.next();
    this.done = sender.done;
    this.bytes = sender.nRanges * sender.bytes;
  }

  next(): void {
    this.#sender.next();
    this.start();
  }
}
