import { describeText } from '../../describe-value.js';
import { InvalidArgumentError } from '../../errors.js';
import { isIP, isIPv6 } from '../platform/platform.js';
import { defined } from '../../defined.js';

/** Address of a listening socket. */
export interface Address {
  /** An IPv4 or IPv6 address or a host's name. A link-local IPv6 address has its zone: `fe80::1%eth0`. */
  readonly host: string;
  /** 1 to 65535. */
  readonly port: number;
}

/** `10.0.0.1:29500`, `[fe80::1%eth0]:29500`, `node7:29500`. */
export function formatAddress({ host, port }: Address): string {
  // No isIPv6(): its first call compiles a long regular expression, which the start of every job would wait for.
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}

/**
 * Reads what {@link formatAddress} writes.
 * @throws InvalidArgumentError `UNIQUE_ID` on anything else.
 */
export function parseAddress(text: string): Address {
  const match = /^(?:\[([^\]]+)\]|([^:[\]\s]+)):(\d{1,5})$/.exec(text.trim());
  const bracketed = match?.[1];
  const host = bracketed ?? match?.[2];
  const port = Number(match?.[3]);
  if (host === undefined || (bracketed !== undefined && !isIPv6(bracketed))) {
    throw new InvalidArgumentError(
      'UNIQUE_ID',
      `${describeText(text)} is not an address: write IPV4:PORT, [IPV6]:PORT or HOSTNAME:PORT`,
    );
  }
  if (port < 1 || port > 65535) {
    throw new InvalidArgumentError('UNIQUE_ID', `the port ${port} in ${describeText(text)} is not between 1 and 65535`);
  }
  return { host, port };
}

/** True if an address (not a name) can only be reached from its own host. */
export function isLoopback(host: string): boolean {
  const bytes = addressBytes(host);
  if (bytes?.length !== 16) return bytes?.[0] === 127;
  const hex = Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
  return /^0{31}1$|^0{20}ffff7f/.test(hex);
}

export function isLinkLocal(host: string): boolean {
  return /^fe[89ab]/i.test(host) && isIPv6(host);
}

/** A link-local address with this host's name of the zone, because zone names are local to each host. */
export function inZone(address: Address, zone: string | undefined): Address {
  if (!isLinkLocal(address.host) || zone === undefined) return address;
  return { host: `${withoutZone(address.host)}%${zone}`, port: address.port };
}

export function zoneOf(host: string): string | undefined {
  const percent = host.indexOf('%');
  return percent < 0 ? undefined : host.slice(percent + 1);
}

function withoutZone(host: string): string {
  const percent = host.indexOf('%');
  return percent < 0 ? host : host.slice(0, percent);
}

/** The 4 or 16 bytes of an address without its zone; undefined for a name. */
export function addressBytes(host: string): Uint8Array | undefined {
  const family = isIP(host);
  if (family === 4) return Uint8Array.from(host.split('.'), Number);
  if (family === 6) return ipv6Bytes(withoutZone(host));
  return undefined;
}

/** Inverse of {@link addressBytes}, IPv6 in its shortest form. */
export function addressText(bytes: Uint8Array): string {
  if (bytes.length === 4) return bytes.join('.');
  const groups = Array.from({ length: 8 }, (_, i) => ((defined(bytes[2 * i]) << 8) | defined(bytes[2 * i + 1])).toString(16));
  return new URL(`http://[${groups.join(':')}]/`).hostname.slice(1, -1);
}

function ipv6Bytes(host: string): Uint8Array {
  // A URL's host has the canonical form, in which an embedded IPv4 address is written in hexadecimal too.
  const [head = '', tail] = new URL(`http://[${host}]/`).hostname.slice(1, -1).split('::');
  const front = head === '' ? [] : head.split(':');
  const back = tail === undefined || tail === '' ? [] : tail.split(':');
  const groups = [...front, ...Array<string>(8 - front.length - back.length).fill('0'), ...back];
  return Uint8Array.from(groups.flatMap((group) => [parseInt(group, 16) >> 8, parseInt(group, 16) & 0xff]));
}
