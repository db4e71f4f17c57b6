import { counted } from '../../../counted.js';
import type { LogFinding } from './finding.js';
import { isRdma, ranksByHost } from '../job/hosts.js';
import type { LoggedCommunicator, LoggedRank } from '../job/model.js';

/** Checks that NICs of a host carry the same number of channels. */
export function checkNics(communicator: LoggedCommunicator): LogFinding[] {
  const hosts = ranksByHost(communicator);
  if (hosts === undefined) return [];
  return [...hosts].flatMap(([host, local]) => checkHost(communicator, host, local));
}

/** @returns by NIC, the number of channels on which data leave the host through it; a channel's ring and tree count once */
export function channelsByNic(local: readonly LoggedRank[]): Map<number, number> {
  const nics = new Map<number, { low: number; high: number }>();
  for (const { links } of local) {
    for (const { transport, end, low, high } of links) {
      if (end !== 'send' || transport.family !== 'NET' || transport.nic === undefined || !isRdma(transport.network)) continue;
      const bits = nics.get(transport.nic) ?? { low: 0, high: 0 };
      nics.set(transport.nic, { low: bits.low | low, high: bits.high | high });
    }
  }
  return new Map([...nics].map(([nic, { low, high }]) => [nic, ones(low) + ones(high)]));
}

function ones(bits: number): number {
  let count = 0;
  for (let rest = bits; rest !== 0; rest &= rest - 1) count++;
  return count;
}

function checkHost({ id }: LoggedCommunicator, host: string, local: readonly LoggedRank[]): LogFinding[] {
  const nics = channelsByNic(local);
  // Half-made connections are uneven by chance.
  if (nics.size === 0 || local.some(({ completed }) => completed === undefined)) return [];
  const findings: LogFinding[] = [];
  const counts = [...nics.values()];
  const least = Math.min(...counts);
  const most = Math.max(...counts);
  const places = local
    .flatMap(({ links }) => links.filter(({ end, transport }) => end === 'send' && transport.family === 'NET'))
    .slice(0, 4)
    .map(({ place }) => place);
  const list = [...nics]
    .sort(([a], [b]) => a - b)
    .map(([nic, count]) => `NIC ${nic}: ${count}`)
    .join(', ');
  if (most >= 2 * least && most - least >= 2) {
    findings.push({
      code: 'nic-uneven',
      severity: 'warning',
      kind: 'risk',
      communicator: id,
      ranks: local.map(({ rank }) => rank),
      problem: `on ${host} one NIC carries ${most} channels and another ${least} (${list}): the full one limits all`,
      cause: 'GPUs share NICs unevenly: by the PCIe topology, by NCCL_IB_HCA, or because some ranks are not in the communicator',
      remedy: `see tccl graph with this machine's topology, and whether all NICs are up (ibstat on ${host})`,
      places,
    });
  }
  const merged = local.some(({ process }) => process.mergedNics);
  const listed = local
    .flatMap(({ process }) => [...process.devices])
    .find(([network, { devices }]) => isRdma(network) && devices.length > 0);
  if (!merged && listed !== undefined) {
    const [, { devices, place }] = listed;
    const used = new Set(local.flatMap(({ links }) => links.map(({ transport }) => transport.nic)));
    const unused = devices.filter(({ number }) => !used.has(number));
    if (unused.length > 0 && local.length >= devices.length) {
      findings.push({
        code: 'nic-unused',
        severity: 'warning',
        kind: 'risk',
        communicator: id,
        ranks: local.map(({ rank }) => rank),
        problem: `${host} has ${counted(devices.length, 'NIC')} and uses ${devices.length - unused.length}: nothing goes by ${unused
          .map(({ name, number }) => `${name} (${number})`)
          .slice(0, 8)
          .join(', ')}`,
        cause: 'they are slower, farther from the GPUs, or on a rail that other hosts lack (a management or storage network)',
        remedy: 'name those that are meant for NCCL in NCCL_IB_HCA, or mend those that should carry data',
        places: [place, ...places],
      });
    }
  }
  return findings;
}
