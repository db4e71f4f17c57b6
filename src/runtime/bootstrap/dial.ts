import { connect } from 'node:net';
import type { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { SystemError } from '../../errors.js';
import type { Address } from './address.js';
import { BootstrapConnection } from './connection.js';
import type { ConnectionEvents } from './connection.js';
import { CHALLENGE_BYTES, ConnectorHandshake } from './handshake.js';
import type { Greeting } from './handshake.js';
import { readExactly } from './read-exactly.js';

export interface DialOptions {
  readonly address: Address;
  readonly secret: Uint8Array;
  readonly greeting: Greeting;
  readonly events: ConnectionEvents;
  /** Ends the attempts; the dial rejects with its reason. */
  readonly signal: AbortSignal;
  /** What the other side is to know before a goodbye, should the dial be ended when it may count on the connection already. */
  readonly news?: readonly string[];
  /** Told of each attempt that failed, as there is another after it; what it throws ends the dial. */
  readonly onFailure?: (error: Error) => void;
}

/** An attempt that found nobody to talk to within this time is begun anew. */
const ATTEMPT_MS = 5000;
const SHORTEST_PAUSE_MS = 10;
const LONGEST_PAUSE_MS = 500;

/**
 * Connects and authenticates, again and again until it works: whom it looks for may not listen yet, or may have
 * closed this connection in favour of others.
 */
export async function dial(options: DialOptions): Promise<BootstrapConnection> {
  const { signal, onFailure } = options;
  let pauseMs = SHORTEST_PAUSE_MS;
  while (true) {
    signal.throwIfAborted();
    try {
      return await attempt(options);
    } catch (error) {
      signal.throwIfAborted();
      onFailure?.(error as Error);
    }
    // Ranks that failed together should not come again together.
    await sleep(pauseMs * (0.75 + Math.random() / 2), undefined, { signal, ref: false }).catch(() => signal.throwIfAborted());
    pauseMs = Math.min(LONGEST_PAUSE_MS, pauseMs * 1.5);
  }
}

async function attempt({ address, secret, greeting, events, signal, news }: DialOptions): Promise<BootstrapConnection> {
  const socket = connect({
    host: address.host,
    port: address.port,
    noDelay: true,
    keepAlive: true,
    keepAliveInitialDelay: 5000,
  }).unref();
  let failure: Error | undefined;
  socket.on('error', (error) => (failure = error));
  let connection: BootstrapConnection | undefined;
  const abort = () => {
    if (connection === undefined) socket.destroy();
    else void connection.leave(news); // the acceptor may count on it already, so it gets a goodbye
  };
  signal.addEventListener('abort', abort);
  try {
    const handshake = new ConnectorHandshake(secret, greeting);
    const challenge = await challenged(socket, handshake.hello);
    const { proof, keys } = handshake.answer(challenge);
    socket.write(proof);
    // From here on the acceptor may count on this connection: no time limit may break it.
    connection = new BootstrapConnection(socket, keys, events);
    await connection.welcomed;
    return connection;
  } catch (error) {
    if (!signal.aborted) socket.destroy();
    if (failure !== undefined || connection === undefined) throw failure ?? error;
    throw new SystemError('NETWORK', 'turned away, as happens with another id or another TCCL_COMM_SECRET', { cause: error });
  } finally {
    signal.removeEventListener('abort', abort);
  }
}

async function challenged(socket: Socket, hello: Buffer): Promise<Buffer> {
  const timer = setTimeout(
    () => socket.destroy(new SystemError('NETWORK', `nothing answers there as tccl does within ${ATTEMPT_MS} ms`)),
    ATTEMPT_MS,
  ).unref();
  try {
    socket.write(hello);
    return await readExactly(socket, CHALLENGE_BYTES);
  } finally {
    clearTimeout(timer);
  }
}
