import { counted } from '../../../counted.js';
import type { LogFinding } from './finding.js';
import { isRdma } from '../job/hosts.js';
import type { LogModel } from '../job/model.js';

/** Checks that hosts list as many RDMA devices as their peers do. */
export function checkNicCounts({ processes }: LogModel): LogFinding[] {
  const byHost = new Map<string, { names: Set<string>; place: LogFinding['places'][number] }>();
  for (const { host, devices } of processes)
    for (const [network, { devices: list, place }] of devices) {
      if (!isRdma(network) || list.length === 0) continue;
      const known = byHost.get(host) ?? { names: new Set<string>(), place };
      byHost.set(host, known);
      for (const { name } of list) known.names.add(name);
    }
  const sizes = [...byHost.values()].map(({ names }) => names.size);
  const most = Math.max(0, ...sizes);
  const fewer = [...byHost].filter(([, { names }]) => names.size < most);
  const [first] = fewer;
  // Half of the hosts or more may be of another kind.
  if (first === undefined || fewer.length >= byHost.size / 2) return [];
  const [host, { names }] = first;
  const peers = [...byHost.values()].filter((peer) => peer.names.size === most);
  const missing = [...(peers[0]?.names ?? [])].filter((name) => peers.every((peer) => peer.names.has(name)) && !names.has(name));
  return [
    {
      code: 'nics-fewer',
      severity: 'warning',
      kind: 'cost',
      explains: ['bandwidth-low', 'nic-uneven'],
      problem: `${fewer.length === 1 ? `${host} lists` : `${host} and ${counted(fewer.length - 1, 'more host')} list`} ${counted(names.size, 'NIC')}, ${counted(peers.length, 'other host')} ${most}${missing.length === 0 ? '' : `: ${host} lacks ${missing.slice(0, 8).join(', ')}`}`,
      cause: 'a port that is down, a NIC that failed or is not given to the container, or another NCCL_IB_HCA on that host',
      remedy: `\`ibstat\` and \`lspci -vvv\` on ${host} (port state, a device that is gone); compare NCCL_IB_HCA and the devices of the containers of all hosts`,
      places: fewer.slice(0, 4).map(([, { place }]) => place),
    },
  ];
}
