import { counted } from '../../../../counted.js';
import { type Gid, gidKind, type RdmaPort } from '../../../readers/rdma.js';
import type { LogFinding } from '../finding.js';
import type { LogModel } from '../../job/model.js';
import { hasEnded } from '../../job/outcome.js';
import { isSeen, onHost, outputsOf, partOfDown } from './outputs.js';

/** Ports and GID tables of RDMA devices. */
export function checkRdma(model: LogModel): LogFinding[] {
  return [
    ...outputsOf(model, 'ports').flatMap(({ facts: { ports }, ...output }) => [
      ...checkPorts(ports, output.host, model),
      ...checkGids(
        ports.flatMap(({ gids }) => gids),
        onHost(output),
        model,
      ),
    ]),
    ...outputsOf(model, 'gids').flatMap(({ facts: { gids }, ...output }) => checkGids(gids, onHost(output), model)),
  ];
}

function checkPorts(all: readonly RdmaPort[], host: string, model: LogModel): LogFinding[] {
  const on = onHost({ host });
  // The ports of the fabric are alike; others, such as those for management, may be slow or unused.
  const kindOf = ({ layer, card }: RdmaPort) => `${layer} ${card}`;
  const fabric = mostCommon(all.filter(({ isActive }) => isActive === true).map(kindOf));
  const ports = fabric === undefined ? all : all.filter((port) => kindOf(port) === fabric);
  const up = ports.filter(({ isActive }) => isActive === true);
  const down = ports.filter(({ isActive }) => isActive === false);
  const named = ({ device, port, physical }: RdmaPort) => `${device}:${port}${physical === '' ? '' : ` (${physical})`}`;
  const findings: LogFinding[] = [];
  if (down.length > 0) {
    findings.push({
      code: 'port-down',
      ...partOfDown(
        model,
        host,
        down.map(({ device }) => device),
        up.length > down.length,
        ['ib-retry-exceeded', 'nic-unused', 'net-mismatch', 'bandwidth-low'],
      ),
      problem: `${down.map(named).slice(0, 6).join(', ')} ${down.length === 1 ? 'is' : 'are'} not active${on}, ${
        up.length === 0 ? 'and no other port is' : `${counted(up.length, 'other port')} ${up.length === 1 ? 'is' : 'are'}`
      }`,
      cause: 'cable, transceiver, switch port or subnet manager; or a port that is meant to be unused',
      remedy:
        "look at cable and transceiver (`mlxlink -d <device> -m`), the switch's port, and whether a subnet manager runs (sminfo)",
      places: down.slice(0, 4).map(({ place }) => place),
    });
  }
  const best = Math.max(0, ...up.map(({ rate = 0 }) => rate));
  const slow = up.filter(({ rate }) => rate !== undefined && rate < best);
  if (slow.length > 0 && slow.length < up.length / 2) {
    findings.push({
      code: 'port-slow',
      severity: 'warning',
      kind: 'cost',
      explains: ['bandwidth-low', 'nic-unused'],
      problem: `${slow
        .map(({ device, port, rate }) => `${device}:${port} has ${rate ?? ''} Gb/s`)
        .slice(0, 4)
        .join(', ')}${on}, others ${best}`,
      cause: 'a management or storage NIC, or a link that trained down',
      remedy: 'leave it out with NCCL_IB_HCA if it is not meant for NCCL; else check cable and switch port',
      places: slow.slice(0, 4).map(({ place }) => place),
    });
  }
  return findings;
}

/** RoCE needs a GID of an IP address that other hosts can route to. */
function checkGids(all: readonly Gid[], on: string, model: LogModel): LogFinding[] {
  const roce = all.filter(({ version, gid }) => gidKind(gid) !== 'none' && (version !== '' || gidKind(gid) !== 'global'));
  const [first] = roce;
  if (first === undefined || roce.some(({ gid }) => gidKind(gid) !== 'link-local')) return [];
  if (roce.every(({ version }) => version === '')) return [];
  const isHarmless = hasEnded(model);
  return [
    {
      code: 'gid-link-local',
      severity: isHarmless ? 'info' : 'error',
      kind: isHarmless ? 'note' : 'fault',
      explains: ['ib-retry-exceeded', 'ib-gid-missing', 'ib-queue-pair', 'ib-peer-unreachable', 'ib-rails-unreachable'],
      problem: `all GIDs${on} are link-local (${first.gid} of ${first.device}): no GID of RoCE v2 with an address that another host can reach${isSeen(model, 'ib-retry-exceeded', 'ib-gid-missing') ? ', as the errors of its queue pairs show' : ''}`,
      cause:
        'the interface of the NIC has no IPv4 address in this network namespace (a pod without one, DHCP that failed, an interface that is not configured)',
      remedy:
        '`ip addr` in the container; give the RoCE interface an IPv4 address, or use the host network; then `show_gids` must have a row with v2 and an IPv4 address, and NCCL finds it by itself (2.21 and later) or by NCCL_IB_GID_INDEX',
      source: 'NVIDIA/nccl#769',
      places: roce.slice(0, 4).map(({ place }) => place),
    },
  ];
}

function mostCommon(names: readonly string[]): string | undefined {
  const counts = new Map<string, number>();
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1);
  return [...counts].sort(([, a], [, b]) => b - a)[0]?.[0];
}
