import type { Introduction } from '../../bootstrap/bootstrap.js';
import type { BootstrapEnvironment } from '../../bootstrap/environment.js';
import type { UniqueId } from '../../bootstrap/unique-id.js';
import { chooseInterface, systemInterfaces, type ChosenInterface } from '#seam/bootstrap/interfaces';

/** The ranks of each host, hosts in the order of their lowest ranks. */
export function ranksByHost({ peers }: Introduction): number[][] {
  const byHost = new Map<string, number[]>();
  for (const { hostHash, rank } of peers) {
    const ranks = byHost.get(hostHash);
    if (ranks === undefined) byHost.set(hostHash, [rank]);
    else ranks.push(rank);
  }
  return [...byHost.values()];
}

/** Address of this host for ranks that share no memory with this one. */
export function dataHost({ localRanks, nRanks }: Introduction, network: BootstrapEnvironment, id: UniqueId): string {
  // Between ranks of one host, data stay on the host.
  if (localRanks.length === nRanks && network.family !== 6) return '127.0.0.1';
  return interfaceFor(network, id).host;
}

/** Network interface that ranks of this host listen on. */
export function interfaceFor(network: BootstrapEnvironment, id: UniqueId): ChosenInterface {
  return chooseInterface(systemInterfaces(), { ...network, root: { host: id.root.host, origin: id.origin } });
}
