import { SystemError } from '../../errors.js';
import { checkOptionNames } from '../../option-names.js';
import { addCallerFrames, withCallerFrames } from '../caller-stack.js';
import { formatAddress, zoneOf } from './address.js';
import type { Address } from './address.js';
import { Desk } from './desk.js';
import { purposes, ROOT_RANK } from './handshake.js';
import { chooseInterface, systemInterfaces } from './interfaces.js';
import { Listener, sourceOf } from './listener.js';
import type { Notices } from './notices.js';
import { decodeCheckIn } from './set-up-message.js';
import type { HandshakeLimits } from './handshake-limits.js';
import { SECRET_BYTES, secretOf, UniqueId } from './unique-id.js';
import { hostname, randomBytes } from '../platform/platform.js';
import { graceMs } from '../failure/grace.js';

/** Address and time limits of a communicator's root. */
export interface RootOptions {
  /** Address to listen on; default: that of an interface chosen by the next two. */
  readonly host?: string | undefined;
  /** The network interface, in the syntax of `TCCL_SOCKET_IFNAME`. */
  readonly interfaceName?: string | undefined;
  /** IPv4 or IPv6 only. */
  readonly family?: 4 | 6 | undefined;
  /** Limits for connections before their proof. */
  readonly limits?: HandshakeLimits | undefined;
  /** After a conflict between ranks, time to wait for one more rank before the ranks get the error. */
  readonly settleMs?: number | undefined;
}

const rootOptionNames = Object.keys({
  host: true,
  interfaceName: true,
  family: true,
  limits: true,
  settleMs: true,
} satisfies Record<keyof RootOptions, true>);

/** Options of the root that this package opens for ranks of its own. */
interface RootSettings extends RootOptions {
  readonly notices?: Notices | undefined;
}

/** The meeting point of one communicator's ranks. It never keeps the process alive. */
export interface Root {
  readonly id: UniqueId;
  /** Resolves when every rank has its answer, or the root was closed. */
  readonly done: Promise<void>;
  /** Gives up: ranks without an answer time out. */
  close(): void;
}

/**
 * Opens a root in this process and returns the id for its ranks.
 * @throws InvalidArgumentError `ENVIRONMENT`, SystemError `NETWORK`: no interface fits, or none can be listened on;
 *   InvalidArgumentError `ARGUMENT_TYPE`, `UNKNOWN_NAME`: there is no such option.
 */
export async function getUniqueId(options: RootOptions = {}): Promise<UniqueId> {
  try {
    checkOptionNames('getUniqueId', options, rootOptionNames, "{ interfaceName: 'eth0' }");
  } catch (error) {
    throw addCallerFrames(error);
  }
  return (await withCallerFrames(startRoot(options))).id;
}

/** Like {@link getUniqueId}, but returns the root. */
export async function startRoot(options: RootSettings = {}): Promise<Root> {
  const host = options.host ?? chooseInterface(systemInterfaces(), options).host;
  const secret = Uint8Array.from(randomBytes(SECRET_BYTES));
  return open({ host, port: 0 }, secret, options, (address) => new UniqueId(address, secret));
}

/**
 * Opens the root at an address that the ranks know already (`TCCL_COMM_ID`). Rank 0 calls it before it connects; others may
 * have begun to look for it. For a host name, it listens on all interfaces: other hosts may know this one by another address
 * than the host itself.
 * @throws SystemError `NETWORK`.
 */
export async function listenAt(id: UniqueId, options: Omit<RootSettings, 'host'> = {}): Promise<Root> {
  const openOn = (host: string) => open({ host, port: id.root.port }, secretOf(id), options, () => id, id.job);
  if (id.origin !== 'name') {
    try {
      return await openOn(id.root.host);
    } catch (error) {
      throw advised(error);
    }
  }
  try {
    return await openOn('::');
  } catch (error) {
    const { cause } = error as { cause?: NodeJS.ErrnoException };
    if (cause?.code !== 'EAFNOSUPPORT' && cause?.code !== 'EADDRNOTAVAIL') throw advised(error);
    return openOn('0.0.0.0'); // a kernel without IPv6
  }
}

/** The error of a root's listener with the name of the setting that it comes from. */
function advised(error: unknown): unknown {
  if (!(error instanceof SystemError)) return error;
  const isElsewhere = (error.cause as NodeJS.ErrnoException | undefined)?.code === 'EADDRNOTAVAIL';
  const move = isElsewhere ? 'start rank 0 on the host that has it (with --nnodes: --node-rank 0 there), or ' : '';
  const text = `${error.message}; rank 0 listens on ${hostname()}: ${move}set TCCL_COMM_ID, commId or --rendezvous to an address of this host and a free port, the same on all ranks`;
  return new SystemError('NETWORK', text, { cause: error.cause });
}

async function open(
  at: Address,
  secret: Uint8Array,
  options: RootSettings,
  idOf: (bound: Address) => UniqueId,
  job = 0n,
): Promise<Root> {
  const desk = new Desk({
    secret,
    zone: zoneOf(at.host),
    settleMs: options.settleMs ?? graceMs.rootSettles,
    notices: options.notices,
    stopListening: () => listener.close(),
    addressOf: () => formatAddress(idOf(listener.address).root),
  });
  const listener = await Listener.open({
    ...at,
    secret,
    limits: options.limits,
    expects: (greeting) => {
      if (greeting.purpose !== purposes.checkIn || greeting.to !== ROOT_RANK) return false;
      return greeting.job === job ? true : 'other job';
    },
    onRefusal: (from, why) => desk.refused(from, why),
    admit: (_, openConnection, { socket }) => {
      const source = sourceOf(socket);
      const connection = openConnection({
        message: ({ data }) => desk.checkIn({ ...decodeCheckIn(data), source }, connection),
        end: () => desk.forget(connection),
      });
    },
  });
  return { id: idOf(listener.address), done: desk.done, close: () => desk.close() };
}
