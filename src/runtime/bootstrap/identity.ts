import { createHash } from 'node:crypto';
import { readFileSync, readlinkSync } from 'node:fs';
import { hostname } from 'node:os';

/** Who this process is, and where. */
export interface Identity {
  readonly hostname: string;
  readonly pid: number;
  /** See PeerInfo. */
  readonly hostHash: string;
  readonly processHash: string;
}

/**
 * @param hostId Stands for the host instead of its name and the kernel's boot id (`TCCL_HOSTID`): processes that give
 *   different texts count as on different hosts, also where they share one; with equal texts, as on one.
 */
export function identify(hostId?: string): Identity {
  const name = hostname();
  const bootId = orEmpty(() => readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim());
  // Containers that share a kernel may repeat each other's process numbers, in different namespaces.
  const pidNamespace = orEmpty(() => readlinkSync('/proc/self/ns/pid'));
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

/** Systems without /proc do without what is there. */
function orEmpty(read: () => string): string {
  try {
    return read();
  } catch {
    return '';
  }
}
