import { isLinkLocal, isLoopback } from '../bootstrap/address.js';
import type { Channels } from '../algorithms/connections/channels.js';
import type { BootstrapEnvironment } from '../bootstrap/environment.js';
import {
  addressesByName,
  nameMatcher,
  unusedInterfaces,
  type ChosenInterface,
  type Interface,
  type Nic,
} from '../bootstrap/interfaces.js';
import type { UniqueId } from '../bootstrap/unique-id.js';
import { railsOf, shareSubnet } from './rails.js';
import type { RankLocation } from './location.js';

/** Everything that decides which interfaces of a host carry data. */
interface NicChoice {
  /** All running interfaces of this host, and the settings for the choice among them. */
  readonly interfaces: readonly Interface[];
  readonly network: BootstrapEnvironment;
  readonly id: Pick<UniqueId, 'root' | 'origin'>;
  readonly channels: Channels;
  readonly localRanks: readonly number[];
  /** Address of data that no NIC is planned for. */
  readonly host: string;
  /** NICs of this host that were considered; undefined where all ranks are on one host. */
  readonly own: RankLocation | undefined;
  /** The other hosts, by name. */
  readonly others: readonly { readonly hostname: string; readonly nics: readonly Nic[] }[];
}

/**
 * The NICs of this host in the lines of NCCL's log: the addresses of those that carry data, and for each other interface the
 * reason why it does not.
 */
export function nicLines(choice: NicChoice): string[] {
  const { interfaces } = choice;
  const used = usedNics(choice);
  const using = used.map(({ name, host }, index) => ` [${index}]${name}:${host}<0>`).join('');
  const addresses = addressesByName(interfaces);
  const idle = [...addresses].filter(([name]) => !used.some((nic) => nic.name === name));
  return [
    `NET/Socket : Using${using}`,
    ...idle.map(([name, own]) => `NET/Socket : ${name} (${own.join(', ')}) is not used: ${whyIdle(name, own, choice, used)}`),
    ...unusedInterfaces(() => true, addresses).map((text) => `NET/Socket : ${text.replace(' (', ' is not used (')}`),
  ];
}

/** The NICs that carry data of this host's ranks, in the order of their numbers. */
function usedNics({ channels, localRanks, own, host, interfaces }: NicChoice): ChosenInterface[] {
  const planned = channels.rings.flatMap(({ nics }) => localRanks.flatMap((rank) => nics[rank] ?? []));
  const names = planned.sort((a, b) => a.dev - b.dev).map(({ name }) => name);
  const found = [...new Set(names)].flatMap((name) => own?.nics.find((nic) => nic.name === name) ?? []);
  if (found.length > 0) return found;
  const address = host.replace(/%.*/, '');
  return [{ name: interfaces.find((each) => each.address === address)?.name ?? '', host }];
}

/** Reason why an interface carries no data. */
function whyIdle(
  name: string,
  addresses: readonly string[],
  { network, id, own, others }: NicChoice,
  used: readonly ChosenInterface[],
): string {
  const { interfaceName = '', family } = network;
  if (interfaceName !== '' && !nameMatcher(interfaceName)(name)) return `TCCL_SOCKET_IFNAME=${interfaceName}`;
  if (own === undefined) return 'data of ranks of one host stay on the host';
  const reason = own.unconnected?.[name];
  if (reason !== undefined) return reason;
  const nic = own.nics.find((candidate) => candidate.name === name);
  if (nic !== undefined) return whyNoRail(nic, own, others);
  if (addresses.every(isLoopback)) return 'loopback';
  if (family !== undefined && !addresses.some((address) => address.includes(':') === (family === 6)))
    return `TCCL_SOCKET_FAMILY=AF_INET${family === 6 ? '6' : ''}`;
  if (id.origin !== 'root' && id.origin !== 'launcher' && used.some((each) => each.name === own.nics[0]?.name))
    return `the ranks meet at ${id.root.host}, which is not in its subnet; TCCL_SOCKET_IFNAME can name it`;
  return `${own.nics[0]?.name ?? 'another interface'} comes first by its name; TCCL_SOCKET_IFNAME can name it`;
}

/** Reason why no channel uses a NIC that could carry data. */
function whyNoRail(nic: Nic, own: RankLocation, others: NicChoice['others']): string {
  if (!own.nicsNamed && isLinkLocal(nic.host)) return 'it has only a link-local address';
  const hosts = [own.nics, ...others.map(({ nics }) => nics)];
  if (railsOf(own.nics, hosts, own.nicsNamed).includes(nic)) return 'no channel needs it';
  const without = others.find(({ nics }) => !nics.some((other) => shareSubnet(nic, other)));
  return `host ${without?.hostname ?? ''} has no connected interface in its subnet`;
}
