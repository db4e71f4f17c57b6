import { describeText } from '../../../describe-value.js';
import { InputError, InvalidUsageError } from '../../../errors.js';
import { didYouMean } from '../../../suggest.js';
import { hostname, isIP, isIPv6, networkInterfaces } from '../../platform/platform.js';
import type { RankRange } from '../local-ranks.js';
import { defined } from '../../../defined.js';

/** A host of the user's list. */
export interface Host {
  /** The destination for ssh: a name of DNS or of the user's ssh configuration, or an address; perhaps with a user. */
  readonly name: string;
  /** Number of ranks that it takes; undefined where the user gave none. */
  readonly slots: number | undefined;
  /** `TCCL_SOCKET_IFNAME` of its ranks, where the host file gives one. */
  readonly interfaceName?: string;
}

/** A host with the ranks that it gets. */
export interface HostPlacement {
  readonly host: Host;
  readonly ranks: RankRange;
}

/** Limit of ranks of a host: larger numbers are typing errors. */
const MOST_SLOTS = 9999;

/**
 * Reads `a:4,b:4`, `me@a,[fd00::1]:2`. A host that comes several times gets the sum of its numbers.
 *
 * @throws InvalidUsageError `UNSUPPORTED` that says which part is wrong
 */
export function parseHostList(text: string): Host[] {
  const words = text.split(',').map((word) => word.trim());
  return merged(
    words.map((word) => {
      if (word === '') throw usage(`${describeText(text)} has an empty name: write for example a:4,b:4`);
      const host = parseHost(word);
      if (host === undefined)
        throw usage(
          `${describeText(word)} is no host: write HOST:RANKS, as in a:4,b:4; an IPv6 address in brackets, [fd00::1]:4`,
        );
      return host;
    }),
  );
}

/** Words of a host file that give the number of ranks: Open MPI has several. */
const slotWords = ['slots', 'count', 'cpu', 'cpus'];
/** Words of Open MPI and MPICH that do not affect the placement of ranks here. */
const otherWords = ['max_slots', 'max-slots', 'slots_max', 'max_cpus', 'binding', 'sockets', 'port'];
const userWords = ['user', 'username', 'user_name', 'user-name'];

/**
 * Reads a host file of Open MPI (`node0 slots=4 max_slots=8`) or of MPICH (`node0:4 ifname=eth1`), one host a line, `#`
 * before comments. A host that comes several times, as in the files of PBS and LSF, gets the sum of its numbers.
 *
 * @param file its name, for messages
 * @throws InputError `SYNTAX`, `CONTENT` with the line
 */
export function parseHostFile(text: string, file: string): Host[] {
  const hosts = text.split('\n').flatMap((full, index) => {
    const fail = (message: string) => new InputError('SYNTAX', message, { file, line: index + 1 });
    const line = full.replace(/#.*$/, '').trim();
    if (line === '') return [];
    const [first = '', ...settings] = line.replace(/\s*=\s*/g, '=').split(/\s+/);
    let host = parseHost(first);
    if (host === undefined) throw fail(`${describeText(first)} is no host: a line is HOST, HOST:RANKS or HOST slots=RANKS`);
    for (const setting of settings) {
      const [name = '', value = ''] = setting.split('=', 2);
      if (slotWords.includes(name)) {
        const slots = parseSlots(value);
        if (slots === undefined) throw fail(`${describeText(setting)} is not a number of ranks from 0 to ${MOST_SLOTS}`);
        host = { ...host, slots };
      } else if (userWords.includes(name)) {
        if (!/^\w[\w.-]*$/.test(value)) throw fail(`${describeText(setting)} is no user`);
        host = { ...host, name: `${value}@${host.name.replace(/^.*@/, '')}` };
      } else if (name === 'ifname' && value !== '') {
        host = { ...host, interfaceName: value };
      } else if (!otherWords.includes(name)) {
        const known = [...slotWords, ...userWords, 'ifname', ...otherWords];
        throw fail(
          `${describeText(setting)} has no meaning in a host file: a line is HOST, HOST:RANKS or HOST slots=RANKS${didYouMean(name, known)}`,
        );
      }
    }
    return [host];
  });
  if (hosts.length === 0) throw new InputError('CONTENT', 'names no host', { file });
  return merged(hosts);
}

/** True for the names and addresses that mean this host for certain. With another user, ssh is the way. */
export function isThisHost(name: string): boolean {
  const own = hostname();
  if (name === 'localhost' || name === own || name === own.replace(/\..*$/, '')) return true;
  if (isIP(name) === 0) return false;
  const addresses = Object.values(networkInterfaces()).flatMap((list) => list ?? []);
  return /^127\.|^::1$/.test(name) || addresses.some(({ address }) => address === name);
}

/**
 * Gives each host consecutive ranks, in the order of the list.
 *
 * @param nRanks number of ranks; left out, as many as the hosts take (one each where the list has no numbers)
 * @param remedy how the user gets room for more; left out, by a larger number in the list
 * @throws InvalidUsageError `UNSUPPORTED` when the hosts do not take so many
 */
export function placeRanks(hosts: readonly Host[], nRanks: number | undefined, remedy?: string): HostPlacement[] {
  const isCounted = hosts.some(({ slots }) => slots !== undefined);
  const slots = hosts.map((host) => host.slots ?? 1);
  const available = slots.reduce((sum, count) => sum + count, 0);
  const total = nRanks ?? available;
  if (total === 0) throw usage('the hosts take no rank: give one of them a number above 0, as in a:4');
  if (isCounted && total > available) {
    const raised = defined(slots[0]) + total - available;
    throw usage(
      `${total} ranks do not fit on the hosts, which take ${available}: ${remedy ?? `raise their numbers (${hosts[0]?.name ?? 'a'}:${raised})`}`,
    );
  }
  // Without numbers the hosts share the ranks; the first ones get the remainder.
  const share = (index: number) => Math.floor(total / hosts.length) + (index < total % hosts.length ? 1 : 0);
  let first = 0;
  return hosts.flatMap((host, index) => {
    const count = isCounted ? Math.min(defined(slots[index]), total - first) : share(index);
    const ranks = { first, count, total };
    first += count;
    return count === 0 ? [] : [{ host, ranks }];
  });
}

/** `a`, `a:4`, `me@a:4`, `[fd00::1]:4`. A name that begins with a dash would be an option of ssh. */
function parseHost(word: string): Host | undefined {
  const [, user = '', address, name, count] =
    /^([^\s@:[\]-][^\s@:[\]]*@)?(?:\[([\da-fA-F:.]+(?:%[\w.-]+)?)\]|([\w][\w.-]*))(?::(.*))?$/.exec(word) ?? [];
  const host = address ?? name;
  if (host === undefined || (address !== undefined && !isIPv6(address))) return undefined;
  const slots = count === undefined ? undefined : parseSlots(count);
  return count !== undefined && slots === undefined ? undefined : { name: user + host, slots };
}

function parseSlots(text: string): number | undefined {
  return /^\d{1,4}$/.test(text) ? Number(text) : undefined;
}

/** One entry a host, where it came first. */
function merged(hosts: readonly Host[]): Host[] {
  const byName = new Map<string, Host>();
  for (const host of hosts) {
    const before = byName.get(host.name);
    byName.set(host.name, before === undefined ? host : { ...before, slots: (before.slots ?? 1) + (host.slots ?? 1) });
  }
  return [...byName.values()];
}

function usage(message: string): InvalidUsageError {
  return new InvalidUsageError('UNSUPPORTED', message);
}
