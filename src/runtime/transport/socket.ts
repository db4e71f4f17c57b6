import { createHmac, timingSafeEqual } from '#platform/crypto';
import { closeSync, openSync } from '#platform/files';
import { formatAddress, inZone, isLoopback, parseAddress, zoneOf } from '../bootstrap/address.js';
import { endedHere } from '../bootstrap/dial.js';
import { CHALLENGE_BYTES, ConnectorHandshake, purposes } from '../bootstrap/handshake.js';
import type { ConnectionKeys } from '../bootstrap/handshake.js';
import { sourceAddress, systemInterfaces } from '../bootstrap/interfaces.js';
import { Listener } from '../bootstrap/listener.js';
import { limitDial, Unanswered } from '#seam/bootstrap/liveness';
import type { Segment } from '../device/segment.js';
import { counted } from '../../counted.js';
import { defined } from '../../defined.js';
import { describeError, SystemError } from '../../errors.js';
import type { Network, NetworkTransportOptions } from './network.js';
import { SocketConnection, type ConnectionMeans } from './socket-connection.js';
import { SlotMemory, type SlotCounts } from './socket-memory.js';
import { systemCalls } from './socket-wire.js';
import { StripedTransport } from './striped.js';
import type { ConnectionSetUp, FifoSize, ReceiveConnection, SendConnection, Transport, TwoWayConnection } from './transport.js';
import { unlessAborted } from '../abort-signals.js';
import { connect, hostname, type Socket } from '../platform/platform.js';

const WELCOME_BYTES = 32;
/** Repetitions of a dial whose connection is cut during the handshake, as by a listener that this process answers too late. */
const RETRIES = 1;

/**
 * TCP. The sender listens and the receiver connects, because node:net reads into given memory only on sockets that connected;
 * where messages go both ways, the lower rank listens. Each side first proves that it knows the secret, as on the bootstrap
 * network:
 *
 *     receiver                          sender
 *        hello: who, to whom    ──►
 *                               ◄──     challenge
 *        proof                  ──►
 *                               ◄──     welcome: the sender's proof, then messages
 *        credits                ──►
 *
 * Messages are neither signed nor encrypted: an attacker on the network path can change them.
 *
 * Slots are in the rank's own segment on both sides. System calls, or node:net, write from and read into them; the only copy
 * is the kernel's. The frames are the same, so each end may use either.
 */
export class SocketTransport implements Transport {
  readonly name = 'socket';
  readonly size: FifoSize;
  readonly #options: NetworkTransportOptions;
  readonly #listeners = new Set<Listener>();

  constructor(options: NetworkTransportOptions) {
    this.#options = options;
    this.size = options.size;
  }

  /** @throws SystemError `NETWORK` when the host's address cannot be listened on; `OUT_OF_MEMORY`. */
  setUpSend(peer: number): Promise<ConnectionSetUp<SendConnection>> {
    return this.#listenFor(peer, { sends: this.size.steps, receives: 0 });
  }

  /** @throws SystemError `OUT_OF_MEMORY`. */
  // eslint-disable-next-line @typescript-eslint/require-await -- what it throws must come as a rejection
  async setUpReceive(peer: number): Promise<ConnectionSetUp<ReceiveConnection>> {
    return this.#dial(peer, { sends: 0, receives: this.size.steps + 1 });
  }

  /**
   * One socket for both ways: its data acknowledge what came, which two sockets do with packets of their own.
   * @throws SystemError `NETWORK`, `OUT_OF_MEMORY`.
   */
  async setUpBoth(peer: number): Promise<ConnectionSetUp<TwoWayConnection>> {
    const slots = { sends: this.size.steps, receives: this.size.steps + 1 };
    return this.#options.rank < peer ? this.#listenFor(peer, slots) : this.#dial(peer, slots);
  }

  /** Both ways with a program that listens already. @throws SystemError `OUT_OF_MEMORY` */
  setUpDial(peer: number): ConnectionSetUp<TwoWayConnection> {
    return this.#dial(peer, { sends: this.size.steps, receives: this.size.steps + 1 });
  }

  async #listenFor(peer: number, slots: SlotCounts): Promise<ConnectionSetUp<TwoWayConnection>> {
    const { segment, rank, host, secret } = this.#options;
    const memory = new SlotMemory(segment, this.size, slots);
    /** The last one: the peer dials again where a connection is cut before it has the welcome. */
    let admitted: Admitted | undefined;
    let arrive = (): void => undefined;
    const arrived = new Promise<void>((resolve) => (arrive = resolve));
    const listening = Listener.open({
      host,
      secret,
      expects: ({ purpose, from, to }) => purpose === purposes.data && from === peer && to === rank,
      admit: (_, __, { socket, keys }) => {
        socket.write(welcome(keys.send));
        admitted?.socket.destroy();
        admitted = { socket, means: this.#meansOf(peer, socket, false) };
        arrive();
      },
    });
    const refuse = (error: unknown): never => {
      memory.free();
      throw hasNoDescriptor(error)
        ? new SystemError('NETWORK', `rank ${rank} cannot listen for rank ${peer}: ${whyNot(error, segment)}`, {
            rank,
            cause: error,
          })
        : error;
    };
    const listener = await listening.catch(refuse);
    const stop = (): void => {
      listener.close();
      this.#listeners.delete(listener);
    };
    let spare: Descriptor;
    try {
      spare = new Descriptor();
    } catch (error) {
      stop();
      return refuse(error);
    }
    this.#listeners.add(listener);
    const cancel = (): void => {
      spare.close();
      stop();
      memory.free();
      admitted?.socket.destroy();
    };
    return {
      get info() {
        spare.close();
        return Buffer.from(formatAddress(listener.address));
      },
      connect: async (_, signal) => {
        try {
          await unlessAborted(arrived, signal);
          stop();
          const { socket, means } = defined(admitted);
          return new SocketConnection(socket, peer, memory, means);
        } catch (error) {
          cancel();
          throw error;
        }
      },
      cancel,
    };
  }

  #dial(peer: number, slots: SlotCounts): ConnectionSetUp<TwoWayConnection> {
    const { segment, rank, host, nic, secret, placeOf } = this.#options;
    const memory = new SlotMemory(segment, this.size, slots);
    return {
      info: new Uint8Array(),
      connect: async (info, signal) => {
        const address = inZone(parseAddress(Buffer.from(info).toString()), zoneOf(host));
        const connected = (welcomed: Socket): SocketConnection =>
          new SocketConnection(welcomed, peer, memory, this.#meansOf(peer, welcomed, true));
        const localAddress = nic === undefined ? undefined : sourceAddress(nic, address.host, systemInterfaces());
        const attempt = async (retries: number): Promise<SocketConnection> => {
          const dial = new Dial(new ConnectorHandshake(secret, { purpose: purposes.data, from: rank, to: peer }), connected);
          const socket = connect({
            ...address,
            ...(localAddress === undefined ? {} : { localAddress }),
            noDelay: true,
            keepAlive: true,
            keepAliveInitialDelay: 5000,
            onread: dial.onread,
          });
          limitDial(socket);
          try {
            return await unlessAborted(dial.run(socket), signal);
          } catch (error) {
            socket.destroy();
            if (retries === 0 || signal.aborted || !dial.wasCut(error)) throw error;
            return attempt(retries - 1);
          }
        };
        try {
          return await attempt(RETRIES);
        } catch (error) {
          memory.free();
          if (error === signal.reason) throw error;
          throw new SystemError(
            'NETWORK',
            `rank ${rank} on ${hostname()} (${localAddress ?? host}) cannot reach ${placeOf?.(peer) ?? `rank ${peer}`} for data at ${formatAddress(address)}: ` +
              whyNot(error, segment) +
              adviceFor(error, address.host),
            { rank: peer, cause: error },
          );
        }
      },
      cancel: () => memory.free(),
    };
  }

  close(): void {
    for (const listener of this.#listeners) listener.close();
    this.#listeners.clear();
  }

  /** Called before the other side can send anything after the handshake, because system calls must read those bytes. */
  #meansOf(peer: number, socket: Socket, readsInPlace: boolean): ConnectionMeans {
    const { whyGone, ended, placeOf, libc } = this.#options;
    return { whyGone, ended, place: placeOf?.(peer), system: systemCalls(libc, socket), readsInPlace };
  }
}

/** TCP, which works everywhere. */
export const socketNetwork: Network = {
  name: 'socket',
  logName: 'NET/Socket',
  choosesNics: false,
  refusal: () => undefined,
  doubt: () => undefined,
  version: () => undefined,
  open(options) {
    const { sockets = 1 } = options;
    const transport = new SocketTransport(options);
    return sockets > 1 ? new StripedTransport(Array.from({ length: sockets }, () => transport)) : transport;
  },
};

/**
 * Keeps a file descriptor for the socket that will be accepted, until the other side learns of the listener. Without one, that
 * side alone would get an error: the connection is dropped.
 */
class Descriptor {
  /** Of a file that every system has. */
  #fd = openSync(process.execPath, 'r');

  close(): void {
    if (this.#fd >= 0) closeSync(this.#fd);
    this.#fd = -1;
  }
}

interface Admitted {
  readonly socket: Socket;
  readonly means: ConnectionMeans;
}

/**
 * The receiver's way to its connection. One reader reads everything, because a socket that reads into given memory does so
 * from its first byte: first two handshake messages of known lengths, then frames.
 */
class Dial {
  readonly onread = { buffer: () => this.#room(), callback: (bytes: number) => this.#read(bytes) };
  readonly #greeting = Buffer.alloc(CHALLENGE_BYTES + WELCOME_BYTES);
  #have = 0;
  #keys: ConnectionKeys | undefined;
  #socket: Socket | undefined;
  #connection: SocketConnection | undefined;
  #resolve: (connection: SocketConnection) => void = () => undefined;
  #reject: (error: Error) => void = () => undefined;

  constructor(
    readonly handshake: ConnectorHandshake,
    readonly connected: (socket: Socket) => SocketConnection,
  ) {}

  run(socket: Socket): Promise<SocketConnection> {
    this.#socket = socket;
    socket.write(this.handshake.hello);
    return new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
      socket.on('error', reject);
      socket.on('close', () => reject(new SystemError('NETWORK', 'the other side closed the connection')));
    });
  }

  /** True if `error` is the end of a connection that was made, before the other side had answered the proof. */
  wasCut(error: unknown): boolean {
    const isOfDial = error instanceof Unanswered || (error as NodeJS.ErrnoException).syscall === 'connect';
    return this.#have < this.#greeting.length && !isOfDial;
  }

  #room(): Uint8Array {
    if (this.#connection !== undefined) return this.#connection.room();
    return this.#greeting.subarray(this.#have, this.#have < CHALLENGE_BYTES ? CHALLENGE_BYTES : undefined);
  }

  #read(bytes: number): boolean {
    if (this.#connection !== undefined) {
      this.#connection.read(bytes);
      return true;
    }
    this.#have += bytes;
    if (this.#have === CHALLENGE_BYTES) {
      const { proof, keys } = this.handshake.answer(this.#greeting.subarray(0, CHALLENGE_BYTES));
      this.#keys = keys;
      this.#socket?.write(proof);
    } else if (this.#have === this.#greeting.length) this.#checkWelcome();
    return true;
  }

  #checkWelcome(): void {
    if (this.#socket === undefined || this.#keys === undefined) return;
    if (!timingSafeEqual(welcome(this.#keys.receive), this.#greeting.subarray(CHALLENGE_BYTES))) {
      this.#reject(new SystemError('NETWORK', 'the program that listens there does not know the secret of this communicator'));
      return;
    }
    this.#connection = this.connected(this.#socket);
    this.#resolve(this.#connection);
  }
}

function hasNoDescriptor(error: unknown): boolean {
  const { code, cause } = error as NodeJS.ErrnoException;
  return code === 'EMFILE' || code === 'ENFILE' || (cause instanceof Error && hasNoDescriptor(cause));
}

/** Text of why a connection cannot be made; if descriptors ran out, with the remedy. */
function whyNot(error: unknown, { communicators }: Segment): string {
  if (!hasNoDescriptor(error)) return describeError(error);
  return `this process has no file descriptor left, with ${counted(communicators, 'communicator')} open; close communicators that are not needed, or raise the limit (ulimit -n)`;
}

/** Advice for a failed dial to another host, by the code of its error. */
function adviceFor(error: unknown, host: string): string {
  if (isLoopback(host) || hasNoDescriptor(error) || !(error instanceof Unanswered || 'syscall' in (error as Error))) return '';
  const remedy = endedHere(error)
    ? `check on ${hostname()} that the interface to that network is up`
    : 'let TCP connections on any port through the firewalls between the hosts';
  return `; ${remedy}, or name another network of all hosts with TCCL_SOCKET_IFNAME`;
}

/** Proof of the listening side, which is the first to use its direction's key. */
export function welcome(key: Uint8Array): Buffer {
  return createHmac('sha256', key).update('data').digest();
}
