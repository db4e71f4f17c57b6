import { describeError } from '../../errors.js';
import type { RanksByHost } from '../../planner/schedule/ranks-by-host.js';
import { formatAddress } from '../bootstrap/address.js';
import type { Bootstrap } from '../bootstrap/bootstrap.js';
import type { Nic } from '../bootstrap/interfaces.js';
import { decodeJson, encodeJson } from '../bootstrap/json.js';
import type { RankLocation } from './location.js';
import { withoutNics } from './lost-nics.js';
import { railsOf, shareSubnet } from './rails.js';
import {
  clearTimeout,
  connect,
  createServer,
  setImmediate,
  setTimeout,
  type AddressInfo,
  type Server,
} from '../platform/platform.js';
import { defined } from '../../defined.js';

/** Time for an answer: the kernel tries at 0, 1 and 3 s, and knows after some 3 s that an address has no neighbour. */
const ANSWER_MS = 4000;

/** A NIC of a host and one of the next host, in one subnet. */
interface Pair {
  readonly own: Nic;
  readonly other: Nic;
}

/** A pair that is not connected: names of the NICs, and the reason. */
interface Failure {
  readonly own: string;
  readonly other: string;
  readonly why: string;
}

/** By NIC, the port at which its host waits. */
type Ports = Readonly<Record<string, number>>;

/**
 * Leaves out NICs that share a subnet's numbers with NICs of other hosts, but no network: bridges of containers, separate
 * networks, and those that a firewall closes. The lowest rank of each host connects to the next host over each of them:
 *
 *     host 0 ──► host 1 ──► … ──► last host ──► host 0
 *
 * The first NIC of a host is not tried, because the ranks have met over it, nor are NICs that the user named. Every rank calls it
 * with the same locations and gets the same ones back.
 */
export async function connectedNics(
  bootstrap: Bootstrap,
  locations: readonly (RankLocation | undefined)[],
  hosts: RanksByHost,
): Promise<readonly (RankLocation | undefined)[]> {
  const leaders = hosts.map(([leader = 0]) => leader);
  const pairs = pairsToTry(leaders.map((leader) => locations[leader]));
  if (pairs.every(({ length }) => length === 0)) return locations;

  const own = leaders.indexOf(bootstrap.rank);
  const next = (own + 1) % hosts.length;
  const others = defined(pairs[(own + hosts.length - 1) % hosts.length]);
  const listeners = new Map<string, Server>();
  try {
    for (const { other } of own < 0 ? [] : others) listeners.set(other.name, await listenOn(other.host));
    const ports = Object.fromEntries([...listeners].map(([name, server]) => [name, portOf(server)]));
    const portsOfHosts = await gather<Ports>(bootstrap, own < 0 ? undefined : ports);
    const tried = own < 0 ? [] : await tryAll(defined(pairs[own]), portsOfHosts[defined(leaders[next])] ?? {});
    const failures = await gather<readonly Failure[]>(bootstrap, own < 0 ? undefined : tried);
    return withoutFailed(bootstrap, locations, hosts, (host) => failures[defined(leaders[host])] ?? []);
  } finally {
    for (const server of listeners.values()) server.close();
  }
}

/** By host: pairs with the next host that channels would use, without those of two first NICs. */
function pairsToTry(locations: readonly (RankLocation | undefined)[]): Pair[][] {
  const hosts = locations.map((location) => location?.nics ?? []);
  const used = hosts.map((nics, host) => railsOf(nics, hosts, locations[host]?.nicsNamed ?? false));
  return used.map((nics, host) => {
    const next = (host + 1) % hosts.length;
    if (locations[host]?.nicsNamed === true || locations[next]?.nicsNamed === true) return [];
    return nics.flatMap((own) => {
      const other = used[next]?.find((nic) => shareSubnet(own, nic));
      if (other === undefined || (own === hosts[host]?.[0] && other === hosts[next]?.[0])) return [];
      return [{ own, other }];
    });
  });
}

/** A listener at an address; at none if the address has gone. */
function listenOn(host: string): Promise<Server> {
  const server = createServer({}, (socket) => socket.destroy()).unref();
  return new Promise((resolve) => {
    server.on('error', () => resolve(server));
    server.listen({ host, port: 0 }, () => resolve(server));
  });
}

function portOf(server: Server): number {
  return (server.address() as AddressInfo | null)?.port ?? 0;
}

async function tryAll(pairs: readonly Pair[], ports: Ports): Promise<Failure[]> {
  const tried = await Promise.all(
    pairs.map(async ({ own, other }): Promise<Failure[]> => {
      const why = await whyUnreached(own, { host: other.host, port: ports[other.name] ?? 0 });
      return why === undefined ? [] : [{ own: own.name, other: other.name, why }];
    }),
  );
  return tried.flat();
}

/** Reason why a NIC does not reach an address; undefined if it does. */
function whyUnreached(own: Nic, { host, port }: { readonly host: string; readonly port: number }): Promise<string | undefined> {
  if (port === 0) return Promise.resolve(`that host cannot listen on ${host}`);
  const where = `${formatAddress({ host, port })} from ${own.host}`;
  return new Promise((resolve) => {
    const socket = connect({ host, port, localAddress: own.host });
    // An answer may wait in the kernel if this thread was busy.
    const timer = setTimeout(() => setImmediate(() => end(`no answer within ${ANSWER_MS / 1000} s at ${where}`)), ANSWER_MS);
    const end = (why: string | undefined): void => {
      clearTimeout(timer);
      socket.destroy();
      resolve(why);
    };
    socket.once('connect', () => end(undefined));
    socket.on('error', (error) => end(`${describeError(error)}, from ${own.host}`));
  });
}

/** Words of all ranks; undefined for ranks without one. */
async function gather<Word>(bootstrap: Bootstrap, word: Word | undefined): Promise<(Word | undefined)[]> {
  const words = await bootstrap.allGather(word === undefined ? new Uint8Array() : encodeJson(word));
  return words.map((bytes) => (bytes.length === 0 ? undefined : (decodeJson(bytes) as Word)));
}

/** The locations without NICs of a failed pair. A host keeps its first NIC. */
function withoutFailed(
  { peers }: Bootstrap,
  locations: readonly (RankLocation | undefined)[],
  hosts: RanksByHost,
  failuresOf: (host: number) => readonly Failure[],
): (RankLocation | undefined)[] {
  const nameOf = (host: number): string => defined(peers[defined(hosts[host]?.[0])]).hostname;
  const left = [...locations];
  hosts.forEach((ranks, host) => {
    const next = (host + 1) % hosts.length;
    const previous = (host + hosts.length - 1) % hosts.length;
    const reasons = new Map(
      failuresOf(previous).map(({ other, why }) => [other, `${nameOf(previous)} does not reach it: ${why}`]),
    );
    for (const { own, why } of failuresOf(host)) reasons.set(own, `it does not reach ${nameOf(next)}: ${why}`);
    for (const rank of ranks) {
      const location = locations[rank];
      if (location === undefined) continue;
      const lost = location.nics.slice(1).flatMap(({ name }): [string, string][] => {
        const why = reasons.get(name);
        return why === undefined ? [] : [[name, why]];
      });
      left[rank] = withoutNics(location, Object.fromEntries(lost));
    }
  });
  return left;
}
