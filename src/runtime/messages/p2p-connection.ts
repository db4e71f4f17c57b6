import type { Bootstrap } from '../bootstrap/bootstrap.js';
import { orWhyNot } from '../transport/peers.js';
import type { Bed } from '../progress/sleeper.js';
import type { ReceiveConnection, SendConnection, Transport } from '../transport/transport.js';

/** What a connection's tag grows by for the receiver's answer. */
const ANSWER = 1;

/** How long the other end may be waited for before this one asks whether it is still there. */
const WATCH_AFTER_MS = 500;

/** What connections between two ranks are made with. */
export interface Dialling {
  readonly bootstrap: Pick<Bootstrap, 'send' | 'recv' | 'watch' | 'whyGone'>;
  readonly transport: Transport;
  /** Tells this connection's messages on the bootstrap network from those of others; the next tag is its, too. */
  readonly tag: number;
  /** Called when there may be something new. */
  readonly onNews: () => void;
  /** Ends set-ups. */
  readonly signal: AbortSignal;
}

/** An end of a connection that is made when it is first needed, while its user goes on. */
abstract class Lazy<C extends SendConnection | ReceiveConnection> {
  readonly shared = false;
  /** Once both ends have met. */
  connection: C | undefined;
  readonly #connecting: Promise<C>;
  #failure: Error | undefined;
  #listening = false;
  #waitsSinceMs: number | undefined;
  #watches = false;

  constructor(
    readonly peer: number,
    protected readonly dialling: Dialling,
  ) {
    this.#connecting = this.connect();
    this.#connecting.then(
      (connection) => {
        this.connection = connection;
        if (dialling.signal.aborted) connection.abort(dialling.signal.reason as Error);
        else if (this.#listening) connection.onNews(dialling.onNews);
        dialling.onNews();
      },
      (error: unknown) => {
        this.#failure = error as Error;
        if (!dialling.signal.aborted) dialling.onNews();
      },
    );
  }

  protected abstract connect(): Promise<C>;

  /** Whether only asking again tells what is new. While it is being made, `onNews` calls. */
  get polled(): boolean {
    return this.connection?.polled === true;
  }

  /** Resolves when both ends have met, rejects where they cannot. */
  async met(): Promise<void> {
    await this.#connecting;
  }

  /** Whether news are wanted; while they are, the connection keeps the process alive. */
  listen(wanted: boolean): void {
    if (this.#listening === wanted) return;
    this.#listening = wanted;
    this.connection?.onNews(wanted ? this.dialling.onNews : undefined);
  }

  /** Names what wakes this thread: what is not polled calls `onNews` itself. */
  sleepOn(bed: Bed): void {
    const { connection } = this;
    if (connection !== undefined && connection.fd >= 0) bed.onFd(connection.fd, true, !connection.flush());
  }

  /** Why nothing more can come or go, if so. */
  failure(): Error | undefined {
    if (this.#failure !== undefined) return this.#failure;
    try {
      this.connection?.check();
      return undefined;
    } catch (error) {
      return error as Error;
    }
  }

  /** Throws {@link failure}. Who waits for the connection to be made calls it again and again. */
  check(): void {
    const failure = this.failure();
    if (failure !== undefined) throw failure;
    if (this.connection === undefined && !this.#watches) this.#watch();
  }

  /** A peer that shares no other connection with this rank would close without a word. */
  #watch(): void {
    const now = performance.now();
    this.#waitsSinceMs ??= now;
    if (now - this.#waitsSinceMs < WATCH_AFTER_MS) return;
    this.#watches = true;
    this.dialling.bootstrap.watch(this.peer);
  }

  async close(): Promise<void> {
    await this.connection?.close();
  }

  abort(reason: Error): void {
    this.connection?.abort(reason);
  }
}

/** The end that sends. */
export class LazySender extends Lazy<SendConnection> {
  protected override async connect(): Promise<SendConnection> {
    const { bootstrap, transport, tag, signal } = this.dialling;
    const setUp = await transport.setUpSend(this.peer);
    const gone = new AbortController();
    try {
      await bootstrap.send(this.peer, tag, setUp.info);
    } catch (error) {
      setUp.cancel();
      throw error;
    }
    // The answer says only that the peer has connected, but its absence is noticed: a peer that left or died never connects.
    bootstrap.recv(this.peer, tag + ANSWER).catch((error: unknown) => gone.abort(error));
    return setUp.connect(new Uint8Array(), AbortSignal.any([signal, gone.signal]));
  }
}

/** The end that receives. */
export class LazyReceiver extends Lazy<ReceiveConnection> {
  protected override async connect(): Promise<ReceiveConnection> {
    const { bootstrap, transport, tag, signal } = this.dialling;
    const info = await bootstrap.recv(this.peer, tag);
    const setUp = await transport.setUpReceive(this.peer);
    const connection = await orWhyNot(bootstrap, this.peer, setUp.connect(info, signal), signal);
    // Where it cannot be told, the peer is gone or this rank is leaving, which the connection tells, too.
    bootstrap.send(this.peer, tag + ANSWER, new Uint8Array()).catch(() => undefined);
    return connection;
  }
}
