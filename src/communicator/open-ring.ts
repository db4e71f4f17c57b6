import type { Bootstrap } from '../bootstrap/bootstrap.js';
import type { BootstrapEnvironment } from '../bootstrap/environment.js';
import { chooseInterface, systemInterfaces } from '../bootstrap/interfaces.js';
import type { UniqueId } from '../bootstrap/unique-id.js';
import { Ring, RING_FIFO } from '../collectives/ring.js';
import type { Libc } from '../device/libc.js';
import { connectRing } from '../transport/ring.js';
import { ShmTransport } from '../transport/shm.js';
import { SocketTransport } from '../transport/socket.js';
import type { Joined } from './join-segment.js';

/** What a ring among the ranks of a communicator needs to know. */
export interface RingParts {
  readonly bootstrap: Bootstrap;
  readonly joined: Joined;
  readonly libc: Libc | undefined;
  readonly id: UniqueId;
  readonly network: BootstrapEnvironment;
  /** Ends the attempt. */
  readonly signal: AbortSignal;
}

/**
 * Connects all ranks in a ring, host by host, so that data leave and enter each host once: through shared memory where
 * neighbours share it, over sockets elsewhere. Throws as connectRing.
 */
export async function openRing({ bootstrap, joined, libc, id, network, signal }: RingParts): Promise<Ring> {
  const { segment, shared } = joined;
  const { rank, peers, localRanks } = bootstrap;
  const shm = new ShmTransport({ segment, localRanks, size: RING_FIFO });
  const socket = new SocketTransport({ segment, rank, host: dataHost(bootstrap, id, network), secret: id.secret, size: RING_FIFO });
  const ring = await connectRing(bootstrap, hostByHost(peers), (peer) => (shared && localRanks.includes(peer) ? shm : socket), signal);
  return new Ring(segment, libc, ring);
}

/** The ranks of the first rank's host, then those of the next host's … */
function hostByHost(peers: Bootstrap['peers']): number[] {
  const hosts = new Map<string, number[]>();
  for (const { rank, hostHash } of peers) {
    const ranks = hosts.get(hostHash);
    if (ranks === undefined) hosts.set(hostHash, [rank]);
    else ranks.push(rank);
  }
  return [...hosts.values()].flat();
}

/** Where this rank listens for data: nobody else's business where all ranks are on one host. */
function dataHost({ localRanks, nRanks }: Bootstrap, id: UniqueId, { interfaceName, family }: BootstrapEnvironment): string {
  if (localRanks.length === nRanks && family !== 6) return '127.0.0.1';
  return chooseInterface(systemInterfaces(), { interfaceName, family, root: { host: id.root.host, origin: id.origin } }).host;
}
