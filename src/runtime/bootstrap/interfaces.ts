import { readdirSync, readFileSync } from '#platform/files';
import { InvalidArgumentError, SystemError } from '../../errors.js';
import { didYouMean } from '../../suggest.js';
import { addressBytes, isLinkLocal, isLoopback, zoneOf } from './address.js';
import type { Origin } from './unique-id.js';
import { createServer, networkInterfaces } from '../platform/platform.js';
import { defined } from '../../defined.js';
import { addTo } from '../../add-to.js';

/** One address of a running network interface. An interface with several addresses is listed once for each. */
export interface Interface {
  readonly name: string;
  /** Without zone. */
  readonly address: string;
  readonly netmask: string;
  readonly family: 4 | 6;
}

/** The user's settings, and the address of the root if known. */
interface InterfacePreference {
  /**
   * `TCCL_SOCKET_IFNAME`, in NCCL's syntax: names or their beginnings, separated by commas; a leading `=` means whole names,
   * `^` all interfaces but these, `^=` all but these whole names.
   */
  readonly interfaceName?: string | undefined;
  /** `TCCL_SOCKET_FAMILY`: only addresses of this family. */
  readonly family?: 4 | 6 | undefined;
  /** Address of the root, and its origin; undefined at the root itself. */
  readonly root?: { readonly host: string; readonly origin: Origin } | undefined;
}

/** The chosen interface. */
export interface ChosenInterface {
  readonly name: string;
  /** Address to bind and to send to others; a link-local address has its zone. */
  readonly host: string;
}

/** An address that a rank can use for data, with the subnet that it reaches directly. */
export interface Nic extends ChosenInterface {
  readonly netmask: string;
}

/** The running interfaces of this host, in the kernel's order: IPv4 first, then global IPv6, then link-local. */
export function systemInterfaces(): Interface[] {
  return Object.entries(networkInterfaces()).flatMap(([name, addresses = []]) =>
    addresses.map(({ address, netmask, family }) => ({ name, address, netmask, family: family === 'IPv4' ? 4 : 6 })),
  );
}

/**
 * Chooses the interface that a rank or root listens on, in NCCL's order: those that the user named; loopback, if the root is
 * there; the subnet of a root address that the user or the launcher chose; InfiniBand's names; all that is neither docker,
 * loopback nor a bridge of virtual machines; docker; loopback; the bridges. Within an interface, an address of the root's
 * family is preferred. Unlike NCCL's, a list of excluded names leaves loopback out where another interface is left.
 * @throws InvalidArgumentError `ENVIRONMENT` when nothing matches the user's names or family, with a list of the interfaces.
 * @throws SystemError `NETWORK` when no interface is up.
 */
export function chooseInterface(interfaces: readonly Interface[], wish: InterfacePreference = {}): ChosenInterface {
  const { name, host } = chooseNics(interfaces, wish)[0];
  return { name, host };
}

/**
 * All interfaces that are as good as the one that {@link chooseInterface} chooses, which is the first; behind an address that
 * the launcher chose also those that ranks would choose without it. Throws like it.
 */
export function chooseNics(interfaces: readonly Interface[], wish: InterfacePreference = {}): readonly [Nic, ...Nic[]] {
  const { interfaceName = '', family, root } = wish;
  const usable = interfaces.filter((candidate) => family === undefined || candidate.family === family);
  if (interfaceName !== '') {
    const matches = nameMatcher(interfaceName);
    const named = usable.filter(({ name }) => matches(name));
    const outward = named.filter(({ address }) => !isLoopback(address));
    // Nobody who excludes an interface asks for loopback.
    const chosen = preferred(/^\s*\^/.test(interfaceName) && outward.length > 0 ? outward : named, root?.host);
    if (!isSome(chosen)) throw nothingMatches(interfaceName, family, interfaces);
    return chosen;
  }

  if (root !== undefined) {
    const near = isLoopback(root.host)
      ? // /etc/hosts may map a name to a loopback address on this host only.
        interfaces.filter(({ address }) => root.origin !== 'name' && isLoopback(address))
      : usable.filter((candidate) => root.origin !== 'root' && inSubnet(candidate, root.host));
    const chosen = preferred(near, root.host);
    if (isSome(chosen)) {
      if (root.origin !== 'launcher' || isLoopback(root.host)) return chosen;
      const others = usual(usable, root.host).filter(({ name }) => !chosen.some((near) => near.name === name));
      return [chosen[0], ...chosen.slice(1), ...others];
    }
  }
  const chosen = usual(usable, root?.host);
  if (isSome(chosen)) return chosen;
  if (interfaces.length > 0) throw nothingMatches(undefined, family, interfaces);
  throw new SystemError('NETWORK', 'no network interface is up, not even loopback (lo)');
}

/** The interfaces of the first kind of names that this host has. */
function usual(usable: readonly Interface[], rootHost: string | undefined): Nic[] {
  for (const pattern of ['ib', '^docker,lo,virbr', 'docker', 'lo', 'virbr']) {
    const matches = nameMatcher(pattern);
    const chosen = preferred(
      usable.filter(({ name }) => matches(name)),
      rootHost,
    );
    if (isSome(chosen)) return chosen;
  }
  return [];
}

/** Returns a function that tests whether `pattern`, in the syntax of `TCCL_SOCKET_IFNAME`, includes a name. */
export function nameMatcher(pattern: string): (name: string) => boolean {
  const [, not = '', exact = '', list = ''] = /^(\^?)(=?)(.*)$/s.exec(pattern.trim()) ?? [];
  const names = list
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '');
  if (names.length === 0) {
    throw new InvalidArgumentError(
      'ENVIRONMENT',
      `TCCL_SOCKET_IFNAME=${pattern} names no interface: write for example eth0, =eth0, eth,ib or ^docker,lo`,
    );
  }
  return (name) => names.some((wanted) => (exact === '' ? name.startsWith(wanted) : name === wanted)) !== (not !== '');
}

/** One address of each interface, of the root's family if it has one; without a root, of the first interface's family. */
function preferred(candidates: readonly Interface[], rootHost: string | undefined): Nic[] {
  const [first] = candidates;
  if (first === undefined) return [];
  const family = rootHost === undefined ? first.family : addressBytes(rootHost)?.length === 16 ? 6 : 4;
  return [...new Set(candidates.map(({ name }) => name))].flatMap((name) => {
    const ofName = candidates.filter((candidate) => candidate.name === name);
    const chosen = ofName.find((candidate) => candidate.family === family) ?? ofName[0];
    return chosen === undefined ? [] : [nicOf(chosen)];
  });
}

function nicOf({ name, address, netmask }: Interface): Nic {
  return { name, host: isLinkLocal(address) ? `${address}%${name}` : address, netmask };
}

function isSome<T>(list: readonly T[]): list is readonly [T, ...T[]] {
  return list.length > 0;
}

function inSubnet(candidate: Interface, host: string): boolean {
  // Every link has the subnet fe80::/64; the zone distinguishes them.
  if (isLinkLocal(host) && zoneOf(host) !== undefined && zoneOf(host) !== candidate.name) return false;
  return reaches(nicOf(candidate), host);
}

/** True if an address is in the subnet of a NIC. */
export function reaches(nic: Pick<Nic, 'host' | 'netmask'>, host: string): boolean {
  const [own, mask, other] = [nic.host, nic.netmask, host].map(addressBytes);
  if (own === undefined || mask === undefined || other?.length !== own.length) return false;
  return own.every((byte, i) => (byte & defined(mask[i])) === (defined(other[i]) & defined(mask[i])));
}

/**
 * Address to connect from, so that data to `target` use a NIC. Undefined where the kernel must choose: another interface is in
 * the target's subnet, or the zone of a link-local address names the interface already.
 */
export function sourceAddress(nic: Nic, target: string, interfaces: readonly Interface[]): string | undefined {
  if (isLinkLocal(nic.host) || addressBytes(nic.host)?.length !== addressBytes(target)?.length) return undefined;
  if (reaches(nic, target)) return nic.host;
  return interfaces.some((other) => inSubnet(other, target)) ? undefined : nic.host;
}

/**
 * Throws if a rank would listen on loopback while the root is on another host, whose ranks could not reach it.
 * @throws SystemError `NETWORK` with the interfaces that are not in use, and why
 */
export async function checkReaches({ name, host }: ChosenInterface, rootHost: string): Promise<void> {
  if (!isLoopback(host) || isLoopback(rootHost) || (await isOwn(rootHost))) return;
  const running = new Set(systemInterfaces().map((each) => each.name));
  const excluded = [...running].filter((other) => other !== name).map((other) => `${other} (not in TCCL_SOCKET_IFNAME)`);
  const others = [...excluded, ...unusedInterfaces((other) => other !== name, running)];
  throw new SystemError(
    'NETWORK',
    `this rank can listen only on ${name} (${host}), which the host of the root, ${rootHost}, does not reach; other interfaces of this host: ${others.join(', ') || 'none'}`,
  );
}

/** True if an address belongs to this host, even to an interface without a link. */
async function isOwn(address: string): Promise<boolean> {
  const server = createServer();
  return new Promise((resolve) => {
    server.once('error', (error: NodeJS.ErrnoException) => resolve(error.code !== 'EADDRNOTAVAIL'));
    server.listen(0, address, () => server.close(() => resolve(true)));
  });
}

function nothingMatches(
  interfaceName: string | undefined,
  family: 4 | 6 | undefined,
  interfaces: readonly Interface[],
): InvalidArgumentError {
  const addresses = addressesByName(interfaces);
  const unused = interfaceName === undefined ? [] : unusedInterfaces(nameMatcher(interfaceName), addresses);
  const list = [...[...addresses].map(([name, own]) => `${name} (${own.join(', ')})`), ...unused].join('; ');
  const wish = [
    interfaceName === undefined ? undefined : `TCCL_SOCKET_IFNAME=${interfaceName}`,
    family === undefined ? undefined : `TCCL_SOCKET_FAMILY=AF_INET${family === 6 ? '6' : ''}`,
  ]
    .filter((part) => part !== undefined)
    .join(' with ');
  const hint = interfaceName === undefined ? '' : didYouMean(interfaceName.replace(/^\^?=?/, ''), addresses.keys());
  return new InvalidArgumentError(
    'ENVIRONMENT',
    `no network interface matches ${wish}; there are: ${list === '' ? 'none' : list}${hint}`,
  );
}

/** Addresses of each interface. */
export function addressesByName(interfaces: readonly Interface[]): Map<string, string[]> {
  const addresses = new Map<string, string[]>();
  for (const { name, address } of interfaces) addTo(addresses, name, address);
  return addresses;
}

/** Interfaces with such names, beside those that run, each with the reason why it does not: down, without link or address. */
export function unusedInterfaces(
  matches: (name: string) => boolean,
  running: Pick<ReadonlyMap<string, unknown>, 'has'>,
  folder = '/sys/class/net',
): string[] {
  try {
    return readdirSync(folder).flatMap((name) =>
      matches(name) && !running.has(name) ? [`${name} (${whyUnused(name, folder)})`] : [],
    );
  } catch {
    return [];
  }
}

/** Reason why an interface does not run. Throws where the system does not show it. */
export function whyUnused(name: string, folder = '/sys/class/net'): 'down' | 'no link' | 'no address' {
  const read = (file: string): string => readFileSync(`${folder}/${name}/${file}`, 'utf8').trim();
  const isUp = (Number(read('flags')) & 1) !== 0;
  return !isUp ? 'down' : read('operstate').endsWith('down') ? 'no link' : 'no address';
}
