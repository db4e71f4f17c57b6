import { SystemError } from '../../errors.js';
import type { Address } from './address.js';
import { BootstrapConnection } from './connection.js';
import type { ConnectionEvents } from './rank-connection.js';
import { CHALLENGE_BYTES, ConnectorHandshake, otherJobAnswer } from './handshake.js';
import type { Greeting } from './handshake.js';
import { readExactly } from './read-exactly.js';
import { clearTimeout, connect, random, setTimeout, sleep, type Socket } from '../platform/platform.js';
import { onAbort } from '../abort-signals.js';

interface DialOptions {
  readonly address: Address;
  readonly secret: Uint8Array;
  readonly greeting: Greeting;
  readonly events: ConnectionEvents;
  /** Aborts the attempts; the dial rejects with its reason. */
  readonly signal: AbortSignal;
  /** Notices for the other side before the goodbye, in case the dial is aborted when that side already uses the connection. */
  readonly news?: readonly string[];
  /** Called after each failed attempt before the next one; an error that it throws ends the dial. */
  readonly onFailure?: (error: Error) => void;
}

/** The process that listens there belongs to another job: it answers so, or refuses the proof of this one's secret. */
export class OtherJob extends SystemError {}

/** True for an error of a connection of which no packet has left this host. */
export function endedHere(error: unknown): boolean {
  return ['ENETUNREACH', 'EADDRNOTAVAIL', 'ENETDOWN'].includes((error as NodeJS.ErrnoException).code ?? '');
}

/** An attempt without an answer within this time is repeated. */
const ATTEMPT_MS = 5000;
const SHORTEST_PAUSE_MS = 10;
const LONGEST_PAUSE_MS = 500;

/**
 * Connects and authenticates, repeatedly until it succeeds: the other side may not listen yet, or may have closed this
 * connection in favour of others.
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
    // Ranks that failed together should not retry together.
    await sleep(pauseMs * (0.75 + random() / 2), { signal, ref: false });
    pauseMs = Math.min(LONGEST_PAUSE_MS, pauseMs * 1.5);
  }
}

/** Connects and authenticates once. */
export async function attempt({ address, secret, greeting, events, signal, news }: DialOptions): Promise<BootstrapConnection> {
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
  const stopListening = onAbort(signal, () => {
    if (connection === undefined) socket.destroy();
    else void connection.leave(news); // the acceptor may already use it, so it gets a goodbye
  });
  try {
    const handshake = new ConnectorHandshake(secret, greeting);
    const challenge = await challenged(socket, handshake.hello);
    if (otherJobAnswer.equals(challenge))
      throw new OtherJob('NETWORK', 'another job meets there: compare --job-id or TCCL_JOB_ID');
    const { proof, keys } = handshake.answer(challenge);
    socket.write(proof);
    // From here on the acceptor may use this connection: no time limit may break it.
    connection = new BootstrapConnection(socket, keys, events);
    await connection.welcomed;
    return connection;
  } catch (error) {
    if (!signal.aborted) socket.destroy();
    if (failure !== undefined || connection === undefined) throw failure ?? error;
    throw new OtherJob(
      'NETWORK',
      'the other side refused the connection, probably because of another id or another TCCL_COMM_SECRET',
      { cause: error },
    );
  } finally {
    stopListening();
  }
}

async function challenged(socket: Socket, hello: Buffer): Promise<Buffer> {
  const timer = setTimeout(() => socket.destroy(new SystemError('NETWORK', 'no answer')), ATTEMPT_MS).unref();
  try {
    socket.write(hello);
    return await readExactly(socket, CHALLENGE_BYTES);
  } finally {
    clearTimeout(timer);
  }
}
