import { TcclError } from '../../errors.js';
import type { RemoteError } from '../../errors.js';
import { ConnectionEndedError, type BootstrapConnection } from './connection.js';
import { Mailbox } from './mailbox.js';

/** News of a loss may come faster than what the lost rank sent last: for so long its own connection may still bring that. */
const LAST_WORDS_MS = 200;

/** Another rank, as far as there was anything to do with it: its connections, what came from it, and what became of it. */
export class Peer {
  readonly mailbox = new Mailbox();
  /** The peer made it, and its messages come on it. */
  incoming: BootstrapConnection | undefined;
  /** Whether that connection has ended, so that all its messages are here. */
  hasEnded = false;
  /** This rank made it, and its messages go on it. */
  outgoing: Promise<BootstrapConnection> | undefined;
  /** Gives up the wait for the end of a peer that others have told the loss of. */
  #lose: (() => void) | undefined;
  #hasLeft = false;
  #gone: Error | undefined;
  /** Who waits for that, or for this rank to close. */
  readonly #waiting: ((reason: Error) => void)[] = [];

  constructor(readonly rank: number) {}

  /** It said goodbye: whatever breaks after it is no loss. */
  get hasLeft(): boolean {
    return this.#hasLeft;
  }

  /** It said goodbye, though what waits for it is told later. */
  leave(): void {
    this.#hasLeft = true;
  }

  /** Why nothing comes from the peer or goes to it any more. */
  get gone(): Error | undefined {
    return this.#gone;
  }

  /** Tells it a notice on the connection that it made. False if it made none. */
  notifyBack(text: string): boolean {
    this.incoming?.notify(text);
    return this.incoming !== undefined;
  }

  /** Tells it a notice on the connection that this rank made, behind what was sent there. False if this rank made none. */
  notifyForth(text: string): boolean {
    this.outgoing?.then(
      (connection) => connection.notify(text),
      () => undefined,
    );
    return this.outgoing !== undefined;
  }

  /** Nothing comes from the peer or goes to it any more. Returns why: the first reason stays. */
  forget(reason: RemoteError): Error {
    if (reason.code === 'CLOSED') this.leave();
    this.#gone ??= reason;
    this.#tellGone(this.#gone);
    this.mailbox.close(this.#gone);
    return this.#gone;
  }

  /** Calls `lose` once all that the peer sent has been read, if that can still come. */
  loseLater(lose: () => void): void {
    if (this.incoming === undefined || this.hasEnded) {
      lose();
      return;
    }
    const timer = setTimeout(() => this.loseNow(), LAST_WORDS_MS);
    timer.unref();
    this.#lose = () => {
      clearTimeout(timer);
      this.#lose = undefined;
      lose();
    };
  }

  /** Nothing more is to be read of a peer that is being lost. */
  loseNow(): void {
    this.#lose?.();
  }

  /** Resolves with the reason when the peer is gone, or this rank closes. */
  whenGone(): Promise<Error> {
    return this.#gone === undefined ? new Promise((resolve) => this.#waiting.push(resolve)) : Promise.resolve(this.#gone);
  }

  /** Why a write failed. Waits a moment for the reason where the peer may have told it on its other connection. */
  whyBroken(error: unknown): Promise<unknown> {
    const isFinal = error instanceof TcclError && !(error instanceof ConnectionEndedError) && this.#lose === undefined;
    if (this.#gone !== undefined || isFinal) return Promise.resolve(this.#gone ?? error);
    return new Promise((resolve) => {
      const timer = setTimeout(() => resolve(error), 2 * LAST_WORDS_MS);
      void this.whenGone().then((reason) => {
        clearTimeout(timer);
        resolve(reason);
      });
    });
  }

  /** This rank closes: what waits for the peer rejects. */
  shut(reason: Error): void {
    this.#tellGone(reason);
    this.mailbox.close(reason);
    this.mailbox.clear();
  }

  #tellGone(reason: Error): void {
    for (const tell of this.#waiting.splice(0)) tell(reason);
  }
}
