import type { Bootstrap } from '../bootstrap/bootstrap.js';
import { clockMs } from '../platform/platform.js';
import { orWhyNot } from '../transport/peers.js';
import type { WakeSources } from '../progress/parking.js';
import type { ReceiveConnection, SendConnection, Transport } from '../transport/transport.js';
import { withAnySignal } from '../abort-signals.js';
import { graceMs } from '../failure/grace.js';

/** Added to a connection's tag for the receiver's answer. */
const ANSWER = 1;

/** Means to make a connection between two ranks. */
export interface Dialling {
  readonly bootstrap: Pick<Bootstrap, 'send' | 'recv' | 'watch' | 'waitFor' | 'whyGone'>;
  readonly transport: Transport;
  /** Tag of this connection's messages on the bootstrap network; the next tag also belongs to it. */
  readonly tag: number;
  /** Called when there may be news. */
  readonly onNews: () => void;
  /** Aborts set-ups. */
  readonly signal: AbortSignal;
}

/** One end of a connection that is made at first use, in the background. */
abstract class Lazy<C extends SendConnection | ReceiveConnection> {
  readonly shared = false;
  /** Set once both ends are connected. */
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

  /** True if news is found only by polling. During set-up, `onNews` is called. */
  get polled(): boolean {
    return this.connection?.polled === true;
  }

  /** Resolves when both ends are connected; rejects if they cannot be. */
  async met(): Promise<void> {
    await this.#connecting;
  }

  /** Enables or disables news; while enabled, the connection keeps the process alive. */
  listen(wanted: boolean): void {
    if (this.#listening === wanted) return;
    this.#listening = wanted;
    this.connection?.onNews(wanted ? this.dialling.onNews : undefined);
  }

  /** Adds the wake sources; connections that are not polled call `onNews` themselves. */
  abstract wakeOn(sources: WakeSources): void;

  /** The error after which no data move any more, if there is one. */
  failure(): Error | undefined {
    if (this.#failure !== undefined) return this.#failure;
    try {
      this.connection?.check();
      return undefined;
    } catch (error) {
      return error as Error;
    }
  }

  /** Throws {@link failure}. Called repeatedly while the connection is being made. */
  check(): void {
    const failure = this.failure();
    if (failure !== undefined) throw failure;
    if (this.connection === undefined && !this.#watches) this.#watch();
  }

  /** Watches the peer during set-up: without another connection to this rank, it would leave unnoticed. */
  #watch(): void {
    const now = clockMs();
    this.#waitsSinceMs ??= now;
    if (now - this.#waitsSinceMs < graceMs.lateMessage) return;
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
  override wakeOn(sources: WakeSources): void {
    this.connection?.wakeOn(sources, 'slot');
  }

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
    // The answer only means that the peer has connected, but a peer that left or died never answers, which is noticed.
    bootstrap.recv(this.peer, tag + ANSWER).catch((error: unknown) => gone.abort(error));
    return withAnySignal([signal, gone.signal], (either) => setUp.connect(new Uint8Array(), either));
  }
}

/** The end that receives. */
export class LazyReceiver extends Lazy<ReceiveConnection> {
  override wakeOn(sources: WakeSources): void {
    this.connection?.wakeOn(sources, 'message');
  }

  protected override async connect(): Promise<ReceiveConnection> {
    const { bootstrap, transport, tag, signal } = this.dialling;
    const info = await bootstrap.recv(this.peer, tag);
    const setUp = await transport.setUpReceive(this.peer);
    const connection = await orWhyNot(bootstrap, this.peer, setUp.connect(info, signal), signal);
    // A failure means that the peer has gone or this rank is leaving, which the connection reports as well.
    bootstrap.send(this.peer, tag + ANSWER, new Uint8Array()).catch(() => undefined);
    return connection;
  }
}
