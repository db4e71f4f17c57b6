import { InvalidUsageError } from '../../errors.js';
import { parseAddress } from './address.js';
import type { PeerInfo } from './bootstrap.js';
import { firstHosts, nameRanks, ranksIn } from './rank-list.js';
import { defined } from '../../defined.js';
import { addTo } from '../../add-to.js';

/** A rank's description of itself in the first all-gather. */
export interface Introduction extends Omit<PeerInfo, 'device' | 'ip'> {
  /** Undefined: the rank gets a device name automatically. */
  readonly device: string | undefined;
  /** Address at which it accepts connections of other ranks. */
  readonly address: string;
}

/** A rank for errors: `rank 3 on host7 (10.0.0.7)`. */
export function placeOf(peers: readonly PeerInfo[], rank: number): string {
  const peer = peers[rank];
  return peer === undefined ? `rank ${rank}` : `rank ${rank} on ${peer.hostname} (${peer.ip})`;
}

/** The same before addresses are known to all: `rank 3 (process 123 on host7)`. */
export function processOf({ rank, pid, hostname }: PeerInfo): string {
  return `rank ${rank} (process ${pid} on ${hostname})`;
}

/** Most hosts that a text names. */
const MOST_HOSTS = 4;

/**
 * Adds to a text where the ranks are that it names, if the communicator has several hosts: `; ranks 2,3 are on host7 (10.0.0.7)`.
 * Leaves out ranks whose host the text has, such as one that another rank has added.
 * @param about rank that the text is about, named or not
 */
export function withHosts(text: string, peers: readonly PeerInfo[], about?: number): string {
  if (nodeOf(peers, 0).nNodes < 2) return text;
  const byHost = new Map<string, PeerInfo[]>();
  for (const rank of new Set([...ranksIn(text, peers.length), ...(about === undefined ? [] : [about])])) {
    const peer = peers[rank];
    if (peer === undefined || text.includes(placeOf(peers, rank))) continue;
    if (text.includes(processOf(peer)) && text.includes(`its host ${peer.ip} `)) continue;
    addTo(byHost, peer.hostHash, peer);
  }
  const parts = [...byHost.values()].map((those) => {
    const [{ hostname, ip } = { hostname: '', ip: '' }] = those;
    return `${nameRanks(those.map(({ rank }) => rank))} ${those.length > 1 ? 'are' : 'is'} on ${hostname} (${ip})`;
  });
  const clause = `; ${firstHosts(parts, MOST_HOSTS).join(', ')}`;
  return parts.length === 0 || text.includes(clause) ? text : text + clause;
}

/** The ranks on the host of `rank`, ascending. */
export function ranksOnHost(peers: readonly { readonly hostHash: string }[], rank: number): number[] {
  const host = peers[rank]?.hostHash;
  return peers.flatMap(({ hostHash }, other) => (hostHash === host ? [other] : []));
}

/** Number of the host of `rank`, and the number of hosts. Hosts are numbered in the order of their lowest ranks. */
export function nodeOf(
  peers: readonly { readonly hostHash: string }[],
  rank: number,
): { readonly node: number; readonly nNodes: number } {
  const hosts = new Map<string, number>();
  for (const { hostHash } of peers) if (!hosts.has(hostHash)) hosts.set(hostHash, hosts.size);
  return { node: defined(hosts.get(defined(peers[rank]).hostHash)), nNodes: hosts.size };
}

/**
 * Information on every rank after all have introduced themselves. A rank without a device gets `cpu:N`, where N is its index
 * among those of its host, or a later number if that name is taken.
 * @param introductions by rank; equal on all ranks, so all get the same result or error
 * @throws InvalidUsageError `DEVICE_DUPLICATE` when two ranks of a host name one device.
 */
export function peersOf(introductions: readonly Introduction[]): PeerInfo[] {
  const taken = new Map<string, number[]>();
  for (const { rank, hostHash, device } of introductions) {
    if (device !== undefined) addTo(taken, keyOf(hostHash, device), rank);
  }
  const clashes = [...taken.values()].filter((ranks) => ranks.length > 1);
  if (clashes.length > 0) {
    const parts = clashes.map((ranks) => {
      const { device, hostname } = defined(introductions[defined(ranks[0])]);
      return `${nameRanks(ranks)} all use device ${String(device)} of host ${hostname}`;
    });
    throw new InvalidUsageError('DEVICE_DUPLICATE', `${parts.join('; ')}; each rank needs a device of its own`, {
      ranks: clashes.flat().sort((a, b) => a - b),
    });
  }

  const localRanks = new Map<string, number>();
  return introductions.map((introduction) => {
    const { rank, hostHash, processHash, hostname, pid, version, address } = introduction;
    let slot = localRanks.get(hostHash) ?? 0;
    localRanks.set(hostHash, slot + 1);
    let device = introduction.device;
    if (device === undefined) {
      while (taken.has(keyOf(hostHash, `cpu:${slot}`))) slot++;
      device = `cpu:${slot}`;
      taken.set(keyOf(hostHash, device), [rank]);
    }
    return { rank, hostHash, processHash, hostname, pid, device, version, ip: parseAddress(address).host };
  });
}

function keyOf(hostHash: string, device: string): string {
  return `${hostHash} ${device}`;
}
