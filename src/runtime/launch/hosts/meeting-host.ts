import { addressBytes, addressText, isLinkLocal, isLoopback } from '../../bootstrap/address.js';
import { readBootstrapEnvironment } from '../../bootstrap/environment.js';
import { InvalidArgumentError } from '../../../errors.js';
import { chooseInterface, systemInterfaces } from '../../bootstrap/interfaces.js';
import { isIP } from '../../platform/platform.js';
import type { Environment } from '../environment.js';
import { freeAddress } from '../meeting-point.js';

/**
 * An address of this host where the ranks of a job can meet: of the interface that the user named; else the one by which
 * ssh came here or, seen from another host, left here; else of the interface that ranks would choose.
 *
 * @param seenAs this host's address in a connection of ssh, if there is one
 * @throws InvalidArgumentError `ENVIRONMENT` when no interface matches, or the excluded ones leave only loopback
 * @throws SystemError `NETWORK` when none is up
 */
export async function meetingAddress(env: Environment, seenAs: string | undefined): Promise<string> {
  const { interfaceName, family } = readBootstrapEnvironment(env);
  const interfaces = systemInterfaces();
  const bytes = addressBytes(seenAs ?? '');
  if (interfaceName === undefined && family === undefined && bytes !== undefined) {
    const address = addressText(bytes);
    const isOurs = interfaces.some((candidate) => candidate.address === address);
    if (isOurs && !isLoopback(address) && !isLinkLocal(address)) return freeAddress(address);
  }
  const { name, host } = chooseInterface(interfaces, { interfaceName, family });
  if (isLoopback(host) && interfaceName?.trim().startsWith('^') === true) {
    const excluded = interfaces.filter((candidate) => !isLoopback(candidate.address)).map((other) => other.name);
    throw new InvalidArgumentError(
      'ENVIRONMENT',
      `TCCL_SOCKET_IFNAME=${interfaceName} leaves only ${name} (${host}), which other hosts cannot reach; it excludes ${[...new Set(excluded)].join(', ') || 'nothing else'}`,
    );
  }
  return freeAddress(host);
}

/** Addresses of both ends in the text of `SSH_CONNECTION`: client and its port, server and its port. */
export function endsOf(sshConnection: string): { readonly client?: string; readonly server?: string } {
  const [client = '', , server = ''] = sshConnection.split(' ');
  return { ...(isIP(client) === 0 ? {} : { client }), ...(isIP(server) === 0 ? {} : { server }) };
}
