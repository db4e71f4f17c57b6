import { once } from '#platform/events';
import { SystemError } from '../../errors.js';
import { formatAddress, isLoopback, parseAddress } from '../bootstrap/address.js';
import { UniqueId } from '../bootstrap/unique-id.js';
import { createServer, randomBytes, randomInt, type AddressInfo } from '../platform/platform.js';

/** Variables with the address of the ranks' meeting point, and with the secret and the id of the job; they may be empty. */
export type MeetingPoint = Readonly<Record<'TCCL_COMM_ID' | 'TCCL_COMM_SECRET' | 'TCCL_JOB_ID', string>>;

/**
 * Ports on loopback, and those that a job's number selects: below the kernel's range for outgoing connections (32768 and up),
 * above the ports of known services. Between hosts a free port is from that range, like those of the ranks, so that one rule of
 * a firewall is enough.
 */
export const fixedPorts = { first: 20_000, end: 32_768 };
const ATTEMPTS = 100;

/**
 * A free address on this host's loopback, and a secret for it.
 *
 * The first rank opens the root there for each communicator. A root in the launcher would make every start some 35 ms slower, a
 * fifth of the time of four empty Node jobs.
 *
 * @throws SystemError `NETWORK` when no port is free
 */
export async function localMeetingPoint(): Promise<MeetingPoint> {
  return meetingPointAt(await freeAddress('127.0.0.1'));
}

/** A job's meeting point: `address` is `host:port`, the secret is new. */
export function meetingPointAt(address: string): MeetingPoint {
  return { TCCL_COMM_ID: address, TCCL_COMM_SECRET: randomBytes(32).toString('hex'), TCCL_JOB_ID: '' };
}

/** The same at an address that the launcher chose, so that it does not limit the NICs of data to one subnet. */
export function chosenMeetingPoint(address: string): MeetingPoint {
  return { TCCL_COMM_ID: UniqueId.create(parseAddress(address), 'launcher').toString(), TCCL_COMM_SECRET: '', TCCL_JOB_ID: '' };
}

/**
 * `host:port` with a port of this host's address on which nobody listens.
 *
 * @throws SystemError `NETWORK` when no port is free
 */
export async function freeAddress(host: string): Promise<string> {
  let refusal: unknown;
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const server = createServer().listen(isLoopback(host) ? randomInt(fixedPorts.first, fixedPorts.end) : 0, host);
    try {
      await once(server, 'listening');
      return formatAddress({ host, port: (server.address() as AddressInfo).port });
    } catch (error) {
      refusal = error;
    } finally {
      server.close();
    }
  }
  throw new SystemError(
    'NETWORK',
    `the ranks have no meeting point: none of the ports tried on ${host} is free (${(refusal as Error).message})`,
    { cause: refusal },
  );
}
