import { TcclError } from '../../errors.js';
import type { RemoteError } from '../../errors.js';
import { ConnectionEndedError, type BootstrapConnection } from './connection.js';
import { Mailbox } from './mailbox.js';
import { clearTimeout, setTimeout } from '../platform/platform.js';
import { graceMs } from '../failure/grace.js';

/** A remote rank: its connections, mailbox and liveness. */
export class Peer {
  readonly mailbox = new Mailbox();
  /** Connection that the peer made; its messages come on it. */
  incoming: BootstrapConnection | undefined;
  /** True if that connection has ended, so that all its messages have arrived. */
  hasEnded = false;
  /** Connection that this rank made; messages to the peer go on it. */
  outgoing: Promise<BootstrapConnection> | undefined;
  /** Reason why the latest attempt to connect failed. */
  dialFailure: string | undefined;
  /** Ends the wait for the last messages of a peer whose loss others have reported. */
  #lose: (() => void) | undefined;
  #hasLeft = false;
  #gone: Error | undefined;
  /** Listeners for the peer's end, or this rank's. */
  readonly #waiting: ((reason: Error) => void)[] = [];

  constructor(readonly rank: number) {}

  /** True after its goodbye: a later break is not a loss. */
  get hasLeft(): boolean {
    return this.#hasLeft;
  }

  /** Records its goodbye; waiting receivers may fail later. */
  leave(): void {
    this.#hasLeft = true;
  }

  /** Reason why all traffic with the peer has ended. */
  get gone(): Error | undefined {
    return this.#gone;
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
    this.#gone ??= reason;
    this.#tellGone(this.#gone);
    this.mailbox.close(this.#gone);
    return this.#gone;
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
    return this.#gone === undefined ? new Promise((resolve) => this.#waiting.push(resolve)) : Promise.resolve(this.#gone);
  }

  /** Reason why a write failed. Waits briefly in case the peer has sent the reason on its other connection. */
  whyBroken(error: unknown): Promise<unknown> {
    const isFinal = error instanceof TcclError && !(error instanceof ConnectionEndedError) && this.#lose === undefined;
    if (this.#gone !== undefined || isFinal) return Promise.resolve(this.#gone ?? error);
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
    this.#tellGone(reason);
    this.mailbox.close(reason);
    this.mailbox.clear();
  }

  #tellGone(reason: Error): void {
    for (const tell of this.#waiting.splice(0)) tell(reason);
  }
}
