import { TcclError } from '../../errors.js';
import type { RemoteError } from '../../errors.js';
import { ConnectionEndedError, type RankConnection } from './rank-connection.js';
import { Mailbox } from './mailbox.js';
import { clearTimeout, setTimeout } from '../platform/platform.js';
import { Ending } from '../failure/ending.js';
import { graceMs } from '../failure/grace.js';

/** A remote rank: its connections, mailbox and liveness. */
export class Peer {
  /** The end of all traffic with the peer: its own, or this rank's. */
  readonly #ending = new Ending();
  readonly mailbox = new Mailbox(this.#ending);
  /** Connection that the peer made; its messages come on it. */
  incoming: RankConnection | undefined;
  /** True if that connection has ended, so that all its messages have arrived. */
  hasEnded = false;
  /** Connection that this rank made; messages to the peer go on it. */
  outgoing: Promise<RankConnection> | undefined;
  /** Reason why the latest attempt to connect failed. */
  dialFailure: string | undefined;
  /** Ends the wait for the last messages of a peer whose loss others have reported. */
  #lose: (() => void) | undefined;
  #hasLeft = false;

  constructor(readonly rank: number) {}

  /** True after its goodbye: a later break is not a loss. */
  get hasLeft(): boolean {
    return this.#hasLeft;
  }

  /** Records its goodbye; waiting receivers may fail later. */
  leave(): void {
    this.#hasLeft = true;
  }

  /** Reason why all traffic with the peer has ended; the end of this rank is one. */
  get gone(): Error | undefined {
    return this.#ending.reason;
  }

  /** Sends a notice on the connection that the peer made. Returns false if there is none. */
  notifyBack(text: string): boolean {
    this.incoming?.notify(text);
    return this.incoming !== undefined;
  }

  /** Sends a notice on the connection that this rank made, after everything sent there. Returns false if there is none. */
  notifyForth(text: string): boolean {
    this.outgoing?.then(
      (connection) => connection.notify(text),
      () => undefined,
    );
    return this.outgoing !== undefined;
  }

  /** Ends all traffic with the peer. Returns the reason; the first one is kept. */
  forget(reason: RemoteError): Error {
    if (reason.code === 'CLOSED') this.leave();
    return this.#ending.end(reason);
  }

  /** Calls `lose` once all messages that the peer sent have been read, if they can still arrive. */
  loseLater(lose: () => void): void {
    if (this.incoming === undefined || this.hasEnded) {
      lose();
      return;
    }
    const timer = setTimeout(() => this.loseNow(), graceMs.lastMessages);
    timer.unref();
    this.#lose = () => {
      clearTimeout(timer);
      this.#lose = undefined;
      lose();
    };
  }

  /** Nothing more can be read from a peer that is being lost. */
  loseNow(): void {
    this.#lose?.();
  }

  /** Resolves with the reason when the peer is gone, or this rank closes. */
  whenGone(): Promise<Error> {
    return this.#ending.whenEnded();
  }

  /** Reason why a write failed. Waits briefly in case the peer has sent the reason on its other connection. */
  whyBroken(error: unknown): Promise<unknown> {
    const isFinal = error instanceof TcclError && !(error instanceof ConnectionEndedError) && this.#lose === undefined;
    if (this.gone !== undefined || isFinal) return Promise.resolve(this.gone ?? error);
    return new Promise((resolve) => {
      const timer = setTimeout(() => resolve(error), 2 * graceMs.lastMessages);
      void this.whenGone().then((reason) => {
        clearTimeout(timer);
        resolve(reason);
      });
    });
  }

  /** This rank closes: receivers that wait for the peer reject. */
  shut(reason: Error): void {
    this.#ending.end(reason);
    this.mailbox.clear();
  }
}
