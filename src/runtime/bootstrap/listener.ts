import { describeError, SystemError } from '../../errors.js';
import { formatAddress, isLinkLocal, zoneOf } from './address.js';
import type { Address } from './address.js';
import { BootstrapConnection } from './connection.js';
import type { ConnectionEvents } from './rank-connection.js';
import { AcceptorHandshake, CONNECTOR_PROOF_BYTES, HELLO_BYTES, otherJobAnswer } from './handshake.js';
import type { ConnectionKeys, Greeting } from './handshake.js';
import { readExactly } from './read-exactly.js';
import { defaultHandshakeLimits } from './handshake-limits.js';
import type { HandshakeLimits } from './handshake-limits.js';
import { clearTimeout, createServer, setTimeout, type AddressInfo, type Server, type Socket } from '../platform/platform.js';

export interface ListenerOptions {
  readonly host: string;
  /** 0 or undefined: any free port. */
  readonly port?: number | undefined;
  /** Connectors wait until it is set. */
  readonly secret: Uint8Array | Promise<Uint8Array>;
  readonly limits?: HandshakeLimits | undefined;
  /** Returns true if a greeting is for this listener, `other job` if it is for the listener of another job at this address. */
  readonly expects: (greeting: Greeting) => boolean | 'other job';
  /** Called when a connector at an IP address is refused: its job is another one, or it does not know the secret. */
  readonly onRefusal?: ((from: string, why: Refusal) => void) | undefined;
  /**
   * Called when a connector has proved that it knows the secret; must `open` the connection immediately, or take over the socket.
   */
  readonly admit: (greeting: Greeting, open: (events: ConnectionEvents) => BootstrapConnection, admitted: Admitted) => void;
}

/** Reason why a connector is refused that speaks this protocol. */
export type Refusal = 'other job' | 'other secret';

/** A connection whose connector has proved that it knows the secret, and has not been answered yet. */
interface Admitted {
  readonly socket: Socket;
  readonly keys: ConnectionKeys;
}

/**
 * A listening socket that passes on authenticated connections only; others are closed without notice. It never keeps the process
 * alive.
 */
export class Listener {
  readonly address: Address;
  readonly #server: Server;
  readonly #options: ListenerOptions;
  readonly #limits: HandshakeLimits;
  /** Connections before their proof, oldest first. */
  readonly #unproved = new Set<Socket>();

  /** @throws SystemError `NETWORK` when the address cannot be listened on. */
  static async open(options: ListenerOptions): Promise<Listener> {
    const server = createServer({ noDelay: true, keepAlive: true, keepAliveInitialDelay: 5000 });
    const { host, port = 0 } = options;
    await new Promise<void>((resolve, reject) => {
      server.once('error', (error: NodeJS.ErrnoException) =>
        reject(
          new SystemError('NETWORK', `cannot listen on ${formatAddress({ host, port })}: ${whyNot(error)}`, { cause: error }),
        ),
      );
      server.listen({ host, port, backlog: 4096 }, resolve);
    });
    return new Listener(server, options);
  }

  private constructor(server: Server, options: ListenerOptions) {
    this.#server = server;
    this.#options = options;
    this.#limits = options.limits ?? defaultHandshakeLimits;
    const bound = server.address() as AddressInfo;
    const zone = zoneOf(options.host);
    this.address = { host: isLinkLocal(bound.address) && zone !== undefined ? options.host : bound.address, port: bound.port };
    server.unref();
    server.removeAllListeners('error');
    server.on('error', () => undefined); // a connection that could not be taken for lack of file descriptors comes again
    server.on('connection', (socket) => void this.#receive(socket));
  }

  /** Stops listening, and closes connections that were not admitted yet. */
  close(): void {
    this.#server.close();
    for (const socket of this.#unproved) socket.destroy();
  }

  async #receive(socket: Socket): Promise<void> {
    socket.unref();
    socket.on('error', () => undefined); // reported by its close event
    const timer = setTimeout(() => socket.destroy(), this.#limits.timeMs).unref();
    this.#unproved.add(socket);
    const [oldest] = this.#unproved;
    if (oldest !== undefined && this.#unproved.size > this.#limits.connections) {
      this.#unproved.delete(oldest);
      oldest.destroy();
    }
    try {
      await this.#authenticate(socket);
    } catch {
      socket.destroy(); // a connector without proof is ignored
    } finally {
      clearTimeout(timer);
      this.#unproved.delete(socket);
    }
  }

  async #authenticate(socket: Socket): Promise<void> {
    const { expects, secret, admit, onRefusal } = this.#options;
    const handshake = AcceptorHandshake.begin(await readExactly(socket, HELLO_BYTES));
    const expected = handshake !== undefined && expects(handshake.greeting);
    if (expected === 'other job') {
      onRefusal?.(sourceOf(socket), expected);
      socket.write(otherJobAnswer);
      socket.destroySoon();
      return;
    }
    if (!expected) return void socket.destroy();
    socket.write(handshake.challenge);
    const proof = await readExactly(socket, CONNECTOR_PROOF_BYTES);
    const keys = handshake.verify(await secret, proof);
    if (keys === undefined) onRefusal?.(sourceOf(socket), 'other secret');
    if (keys === undefined || socket.destroyed) return void socket.destroy();
    this.#unproved.delete(socket);
    const open = (events: ConnectionEvents): BootstrapConnection => {
      const connection = new BootstrapConnection(socket, keys, events);
      connection.welcome();
      return connection;
    };
    admit(handshake.greeting, open, { socket, keys });
  }
}

/** IP address that a connection comes from; an IPv4 address in its own form. */
export function sourceOf({ remoteAddress = '' }: Socket): string {
  return remoteAddress.replace(/^::ffff:(?=[\d.]+$)/i, '');
}

function whyNot(error: NodeJS.ErrnoException): string {
  switch (error.code) {
    case 'EADDRINUSE':
      return 'the port is in use, by another program or by another communicator that is being set up';
    case 'EADDRNOTAVAIL':
      return 'the address is not one of this host';
    default:
      return describeError(error);
  }
}
