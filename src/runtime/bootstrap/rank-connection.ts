import { SystemError } from '../../errors.js';

/** Identification of a message, so that messages of several operations can share a connection. */
export interface MessageHeader {
  /** 0 to 2^32 - 1. Messages of different spaces are independent. */
  readonly space: number;
  /** 0 to 255. The sender's operation, for comparison with the receiver's. */
  readonly operation: number;
  /** 0 to 2^32 - 1. A tag, or an operation's number. */
  readonly number: number;
}

export interface Message extends MessageHeader {
  readonly data: Uint8Array;
}

/** A connection that either side has ended. The reason may arrive on another connection, a little later. */
export class ConnectionEndedError extends SystemError {
  constructor(what: string) {
    super('NETWORK', `the connection ${what}`);
  }
}

/** Events of a connection for its owner. */
export interface ConnectionEvents {
  message?(message: Message): void;
  notice?(text: string): void;
  /** Called once, last, if the connection was welcomed. `cause` is undefined when either side sent a goodbye. */
  end(cause: Error | undefined): void;
}

/** A connection between two ranks, over a socket or a port of a page. */
export interface RankConnection {
  /** Sends a message. Resolves when its bytes may change. Rejects when the connection ends before. */
  send(header: MessageHeader, data: Uint8Array): Promise<void>;
  /** Sends a notice ahead of queued messages. */
  notify(text: string): void;
  /** Sends a goodbye and closes. Resolves when closed. */
  leave(): Promise<void>;
  /** Closes without a goodbye; a notice that was sent may still arrive. */
  destroy(): void;
}
