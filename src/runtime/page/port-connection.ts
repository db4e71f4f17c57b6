import {
  ConnectionEndedError,
  type ConnectionEvents,
  type MessageHeader,
  type RankConnection,
} from '../bootstrap/rank-connection.js';

/** A MessagePort of a browser. */
export interface Port {
  postMessage(value: unknown, transferList?: readonly object[]): void;
  onmessage: ((event: { readonly data: unknown; readonly ports: readonly Port[] }) => void) | null;
  close(): void;
}

/** A channel of ports: structured clone carries them from one worker to another. */
export function makeChannel(): { readonly port1: Port; readonly port2: Port } {
  return new MessageChannel() as unknown as { port1: Port; port2: Port };
}

/** Values on the port of a connection. */
type Carried =
  | { readonly kind: 'welcome' }
  | { readonly kind: 'message'; readonly header: MessageHeader; readonly data: Uint8Array }
  | { readonly kind: 'notice'; readonly text: string }
  | { readonly kind: 'goodbye' };

/** A connection between two ranks of a page. */
export class PortConnection implements RankConnection {
  /** Resolves when the other rank has taken the connection; rejects when it ends before. */
  readonly welcomed: Promise<void>;
  readonly #port: Port;
  readonly #events: ConnectionEvents;
  #isOpen = true;
  #resolveWelcomed: () => void = () => undefined;
  #rejectWelcomed: (error: Error) => void = () => undefined;

  constructor(port: Port, events: ConnectionEvents) {
    this.#port = port;
    this.#events = events;
    this.welcomed = new Promise((resolve, reject) => {
      this.#resolveWelcomed = resolve;
      this.#rejectWelcomed = reject;
    });
    this.welcomed.catch(() => undefined); // the rank that accepts does not wait
    port.onmessage = ({ data }) => this.#take(data as Carried);
  }

  /** Confirms the connection to the rank that dialled. */
  welcome(): this {
    this.#post({ kind: 'welcome' });
    return this;
  }

  send(header: MessageHeader, data: Uint8Array): Promise<void> {
    if (!this.#isOpen) return Promise.reject(new ConnectionEndedError('is not open'));
    this.#post({ kind: 'message', header, data });
    return Promise.resolve();
  }

  notify(text: string): void {
    if (this.#isOpen) this.#post({ kind: 'notice', text });
  }

  leave(): Promise<void> {
    if (this.#isOpen) {
      this.#post({ kind: 'goodbye' });
      this.end(undefined);
    }
    return Promise.resolve();
  }

  destroy(): void {
    this.end(new ConnectionEndedError('was closed by this side'));
  }

  /** Ends the connection: with a goodbye if `cause` is undefined. What was posted before still arrives. */
  end(cause: Error | undefined): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.#port.close();
    this.#rejectWelcomed(cause ?? new ConnectionEndedError('was closed by the other side'));
    this.#events.end(cause);
  }

  #post(carried: Carried): void {
    this.#port.postMessage(carried);
  }

  #take(carried: Carried): void {
    if (!this.#isOpen) return;
    switch (carried.kind) {
      case 'welcome':
        this.#resolveWelcomed();
        return;
      case 'message':
        this.#events.message?.({ ...carried.header, data: carried.data });
        return;
      case 'notice':
        this.#events.notice?.(carried.text);
        return;
      case 'goodbye':
        this.end(undefined);
    }
  }
}
