import { InvalidArgumentError } from '../../errors.js';
import { didYouMean } from '../../suggest.js';
import { nameMatcher } from './interfaces.js';

/** Settings of the bootstrap network in the environment. Each is undefined if its variable is unset or empty. */
export interface BootstrapEnvironment {
  /** `TCCL_SOCKET_IFNAME`: interfaces to use, as in NCCL: `eth0`, `=eth0`, `eth,ib`, `^docker,lo`. */
  readonly interfaceName: string | undefined;
  /** `TCCL_SOCKET_FAMILY`: `AF_INET` for IPv4 only, `AF_INET6` for IPv6 only. */
  readonly family: 4 | 6 | undefined;
  /** `TCCL_HOSTID`: replaces this host's name and boot id, to treat processes as on different hosts, or on one. */
  readonly hostId: string | undefined;
  /** `TCCL_COMM_SECRET`: a common secret of all ranks, if `TCCL_COMM_ID` is `host:port`. */
  readonly commSecret: string | undefined;
}

const families = { AF_INET: 4, AF_INET6: 6 } as const;

/** @throws InvalidArgumentError `ENVIRONMENT` for an invalid value. */
export function readBootstrapEnvironment(environment: Readonly<Record<string, string | undefined>>): BootstrapEnvironment {
  const read = (name: string) => (environment[name] === '' ? undefined : environment[name]);
  const interfaceName = read('TCCL_SOCKET_IFNAME');
  if (interfaceName !== undefined) nameMatcher(interfaceName);
  return {
    interfaceName,
    family: readFamily(read('TCCL_SOCKET_FAMILY')),
    hostId: read('TCCL_HOSTID'),
    commSecret: read('TCCL_COMM_SECRET'),
  };
}

function readFamily(text: string | undefined): 4 | 6 | undefined {
  if (text === undefined) return undefined;
  if (text === 'AF_INET' || text === 'AF_INET6') return families[text];
  throw new InvalidArgumentError(
    'ENVIRONMENT',
    `TCCL_SOCKET_FAMILY=${text} is neither AF_INET nor AF_INET6${didYouMean(text, Object.keys(families))}`,
  );
}
