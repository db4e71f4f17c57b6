import { createHash } from '#platform/crypto';
import { hostname } from '../platform/platform.js';
import { linkOf, textOf } from '../proc.js';

/** Identity of this process and its host. */
interface Identity {
  readonly hostname: string;
  readonly pid: number;
  /** See PeerInfo. */
  readonly hostHash: string;
  readonly processHash: string;
}

/**
 * @param hostId replaces the host's name and the kernel's boot id (`TCCL_HOSTID`): processes with different texts count as on
 *   different hosts even on the same one; with equal texts, as on one
 */
export function identify(hostId?: string): Identity {
  const name = hostname();
  const bootId = textOf('/proc/sys/kernel/random/boot_id').trim();
  // Containers that share a kernel may have equal process numbers, in different namespaces.
  const pidNamespace = linkOf('/proc/self/ns/pid') ?? '';
  return {
    hostname: name,
    pid: process.pid,
    hostHash: hash(hostId === undefined ? ['host', name, bootId] : ['host id', hostId]),
    processHash: hash(['process', name, bootId, pidNamespace, String(process.pid)]),
  };
}

function hash(parts: readonly string[]): string {
  return createHash('sha256').update(JSON.stringify(parts)).digest('hex').slice(0, 32);
}
