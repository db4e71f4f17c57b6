import { Buffer } from '#platform/bytes';
import { createHash, timingSafeEqual } from '#platform/crypto';
import { inspect } from '#platform/system';
import { describeText } from '../../describe-value.js';
import { describeError, InvalidArgumentError, SystemError } from '../../errors.js';
import { addressBytes, addressText, formatAddress, isLoopback, parseAddress, zoneOf } from './address.js';
import type { Address } from './address.js';
import { hostname, isIP, lookup, randomBytes } from '../platform/platform.js';
import { defined } from '../../defined.js';

/** Size of a unique id, the same as NCCL's. */
export const UNIQUE_ID_BYTES = 128;

/** Size of the secret in it. */
export const SECRET_BYTES = 32;

const PRINTABLE_PREFIX = 'tccl1:';
const MAGIC = 'tccl';
const FORMAT = 1;

/**
 * Origin of the root's address: the root itself; the user, as an `address` or as the `name` of a host; or the launcher, which
 * leaves the root to rank 0 too. Rank 0 may know its own name by another address than the other ranks do.
 */
const origins = ['root', 'address', 'name', 'launcher'] as const;
export type Origin = (typeof origins)[number];

let readSecret: (id: UniqueId) => Uint8Array;

/**
 * Address of a communicator's root, and the secret that its ranks share. Users pass it unchanged from the process that opened
 * the root to all ranks, as 128 bytes or as text. Anybody who has it can join; treat it as a password.
 *
 *     byte 0      4        5        6      7      8         24          40       72      80      112       120
 *          magic  format   family   flags  0      address   zone        secret   job     zeros   port, 0   checksum
 *                          4 or 6                 4 or 16   of fe80::
 */
export class UniqueId {
  /** Address of the root. */
  readonly root: Address;
  /** Origin of the address. */
  readonly origin: Origin;
  /** Tag of the job whose ranks meet at a `host:port`; 0 for a job without an id, or with a secret of its own. */
  readonly job: bigint;
  /** Private, so that neither `console.dir`, `JSON.stringify` nor a debugger's log shows it. */
  readonly #secret: Uint8Array;

  static {
    readSecret = (id) => id.#secret;
  }

  constructor(root: Address, secret: Uint8Array, origin: Origin = 'root', job = 0n) {
    if (secret.length !== SECRET_BYTES) {
      throw new InvalidArgumentError('UNIQUE_ID', `the secret of a unique id has ${SECRET_BYTES} bytes, not ${secret.length}`);
    }
    this.root = root;
    this.#secret = secret;
    this.origin = origin;
    this.job = job;
  }

  /** An id with a new random secret. */
  static create(root: Address, origin: Origin = 'root'): UniqueId {
    return new UniqueId(root, randomBytes(SECRET_BYTES), origin);
  }

  /**
   * Derives an id from `TCCL_COMM_ID=host:port` (IPv4, [IPv6] or a name) and, if given, a common secret. Both texts must be
   * the same on every rank.
   *
   * Without `commSecret` the id's secret follows from public text: it keeps out port scanners, other programs and misdirected
   * jobs, but nobody who knows the address and this protocol. A `commSecret` that nobody can guess (`openssl rand -hex 32`)
   * protects as much as an id made by the root. Jobs with different `jobId`s meet at one address without mixing.
   * @throws InvalidArgumentError `UNIQUE_ID` when the text is not host:port; SystemError `NETWORK` when the name is unknown.
   */
  static async fromHostPort(hostPort: string, commSecret = '', jobId = ''): Promise<UniqueId> {
    const named = parseAddress(hostPort);
    const isName = isIP(named.host) === 0;
    const host = isName ? await resolve(named.host) : named.host;
    const secret = createHash('sha256')
      .update(JSON.stringify(['tccl host:port', formatAddress(named).toLowerCase(), commSecret]))
      .digest();
    const origin = isName && named.host !== 'localhost' ? 'name' : 'address';
    return new UniqueId({ host, port: named.port }, secret, origin, jobTag(jobId));
  }

  /**
   * Reads a launcher's text: an id in its printable form, or `host:port` of rank 0.
   * @throws as {@link UniqueId.parse} and {@link UniqueId.fromHostPort}.
   */
  static async read(commId: string, commSecret?: string, jobId?: string): Promise<UniqueId> {
    const isId = commId.trim().startsWith(PRINTABLE_PREFIX) && !/^\d{1,5}$/.test(commId.trim().slice(PRINTABLE_PREFIX.length));
    return isId ? UniqueId.parse(commId) : UniqueId.fromHostPort(commId, commSecret, jobId); // a host may be called tccl1
  }

  /**
   * Reads the printable form.
   * @throws InvalidArgumentError `UNIQUE_ID`.
   */
  static parse(text: string): UniqueId {
    const trimmed = text.trim();
    if (!trimmed.startsWith(PRINTABLE_PREFIX)) {
      throw new InvalidArgumentError(
        'UNIQUE_ID',
        `${describeText(trimmed)} is not a unique id: those start with ${PRINTABLE_PREFIX}`,
      );
    }
    const body = trimmed.slice(PRINTABLE_PREFIX.length);
    const bytes = Buffer.from(body, 'base64url');
    if (bytes.toString('base64url') !== body) {
      throw new InvalidArgumentError(
        'UNIQUE_ID',
        'the unique id holds characters that are not base64url; was it cut or wrapped?',
      );
    }
    return UniqueId.fromBytes(bytes);
  }

  /**
   * Reads the 128 bytes.
   * @throws InvalidArgumentError `UNIQUE_ID`.
   */
  static fromBytes(input: Uint8Array): UniqueId {
    const bytes = Buffer.from(input);
    if (bytes.length !== UNIQUE_ID_BYTES) {
      throw new InvalidArgumentError(
        'UNIQUE_ID',
        `a unique id has ${UNIQUE_ID_BYTES} bytes, this one has ${bytes.length}; was it cut?`,
      );
    }
    if (bytes.toString('latin1', 0, 4) !== MAGIC)
      throw new InvalidArgumentError('UNIQUE_ID', 'these 128 bytes are not a unique id of tccl');
    if (bytes[4] !== FORMAT) {
      throw new InvalidArgumentError(
        'UNIQUE_ID',
        `the unique id has format ${bytes[4]}, this tccl knows format ${FORMAT}: use one version everywhere`,
      );
    }
    if (!timingSafeEqual(checksum(bytes), bytes.subarray(120))) {
      throw new InvalidArgumentError('UNIQUE_ID', 'the unique id is damaged: its checksum differs');
    }
    const origin = origins[defined(bytes[6])];
    const address = bytes[5] === 4 ? bytes.subarray(8, 12) : bytes[5] === 6 ? bytes.subarray(8, 24) : undefined;
    if (origin === undefined || address === undefined)
      throw new InvalidArgumentError('UNIQUE_ID', 'the unique id holds an unknown kind of address');
    const zone = bytes.toString('latin1', 24, 40).replace(/\0+$/, '');
    const host = addressText(address);
    const root = { host: zone === '' ? host : `${host}%${zone}`, port: bytes.readUInt16BE(112) };
    return new UniqueId(root, Uint8Array.from(bytes.subarray(40, 72)), origin, bytes.readBigUInt64LE(72));
  }

  /** The 128 bytes for {@link UniqueId.fromBytes}. They contain the secret. */
  toBytes(): Uint8Array {
    const bytes = Buffer.alloc(UNIQUE_ID_BYTES);
    const address = addressBytes(this.root.host);
    if (address === undefined) throw new InvalidArgumentError('UNIQUE_ID', `"${this.root.host}" is not an IP address`);
    bytes.write(MAGIC, 0, 'latin1');
    bytes[4] = FORMAT;
    bytes[5] = address.length === 4 ? 4 : 6;
    bytes[6] = origins.indexOf(this.origin);
    bytes.set(address, 8);
    bytes.write(zoneOf(this.root.host) ?? '', 24, 16, 'latin1');
    bytes.set(this.#secret, 40);
    bytes.writeBigUInt64LE(this.job, 72);
    bytes.writeUInt16BE(this.root.port, 112);
    bytes.set(checksum(bytes), 120);
    return bytes;
  }

  /** The printable form for {@link UniqueId.parse}. It contains the secret: do not log it. */
  toString(): string {
    return PRINTABLE_PREFIX + Buffer.from(this.toBytes()).toString('base64url');
  }

  /** The root's address, for logs. JSON leaves the secret out, so send {@link UniqueId.toString} to other ranks. */
  toJSON(): { readonly root: string } {
    return { root: formatAddress(this.root) };
  }

  /** @internal The same for `console.log`. */
  [inspect.custom](): string {
    return `UniqueId { root: '${formatAddress(this.root)}' }`;
  }
}

/** The secret of an id. Not a member of the class, because printing an object may evaluate its getters. */
export function secretOf(id: UniqueId): Uint8Array {
  return Uint8Array.from(readSecret(id));
}

/** 64 bits of a hash; 0 for an empty id. */
function jobTag(jobId: string): bigint {
  return jobId === '' ? 0n : createHash('sha256').update(jobId).digest().readBigUInt64LE();
}

function checksum(bytes: Uint8Array): Uint8Array {
  return createHash('sha256').update(bytes.subarray(0, 120)).digest().subarray(0, 8);
}

/**
 * Resolves a host name. Many systems map their own name to a loopback address in /etc/hosts, which other hosts cannot reach,
 * so any other address of the name is preferred.
 */
async function resolve(name: string): Promise<string> {
  try {
    const found = await lookup(name);
    const reachable = found.find(({ address }) => !isLoopback(address)) ?? found[0];
    if (reachable !== undefined) return reachable.address;
  } catch (error) {
    throw new SystemError(
      'NETWORK',
      `the host name "${name}" of the root cannot be resolved on ${hostname()} (${describeError(error)}): check TCCL_COMM_ID or --rendezvous, or give an address`,
      { cause: error },
    );
  }
  throw new SystemError('NETWORK', `the host name "${name}" of the root has no address`);
}
