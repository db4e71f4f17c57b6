import type { LoggedCommunicator, LoggedRank, LogModel } from './model.js';

/**
 * The ranks of a communicator by host, or undefined where host names do not distinguish machines, as in containers with equal
 * names: a device occurs twice, or NCCL reports another count of nodes.
 */
export function ranksByHost({ ranks, nNodes, nRanks }: LoggedCommunicator): Map<string, LoggedRank[]> | undefined {
  const hosts = new Map<string, LoggedRank[]>();
  for (const record of ranks.values()) {
    const host = hosts.get(record.process.host);
    if (host === undefined) hosts.set(record.process.host, [record]);
    else host.push(record);
  }
  if (nNodes !== undefined && (hosts.size > nNodes || (ranks.size === nRanks && hosts.size !== nNodes))) return undefined;
  for (const local of hosts.values()) {
    const devices = local.flatMap(({ busId }) => (busId === undefined ? [] : [busId]));
    if (new Set(devices).size !== devices.length) return undefined;
  }
  return hosts;
}

/** `dmesg-gpu17.txt`, `journalctl.node9.log`, `gpu17_dmesg.log` */
const kernelFile =
  /(?:^|\/)(?:(?:dmesg|journal(?:ctl)?|kern(?:el)?|syslog|messages)[-_.](?<after>[\w.-]*\d[\w.-]*?)|(?<before>[\w.-]*\d[\w.-]*?)[-_.](?:dmesg|journal(?:ctl)?|kern(?:el)?|syslog|messages))(?:\.(?:txt|log|out|gz))*$/i;

/** The host that a file is of, by its name or folder; '' where they name none. */
export function hostOfFile(file: number, { files, processes, tools }: Pick<LogModel, 'files' | 'processes' | 'tools'>): string {
  const heading = tools.find(({ place, host }) => place.file === file && host !== '')?.host;
  if (heading !== undefined) return heading;
  const name = files[file] ?? '';
  const { after, before } = kernelFile.exec(name)?.groups ?? {};
  const known = new Set(processes.map(({ host }) => host));
  return after ?? before ?? name.split(/[/]/).find((part) => known.has(part)) ?? '';
}

/** True if any rank of a host detected NVLink. */
export function hasNvlink(local: readonly LoggedRank[]): boolean {
  return local.some(({ nvlink }) => nvlink);
}

/** True for InfiniBand or RoCE, by NCCL's own code or a vendor's plugin. */
export function isRdma(network: string | undefined): boolean {
  return network !== undefined && network !== 'Socket';
}

/** A setting's value in any of the processes, with the first that has it. */
function settingOf(ranks: Iterable<LoggedRank>, name: string): string | undefined {
  for (const { process } of ranks) {
    const value = process.environment.get(name)?.value;
    if (value !== undefined) return value;
  }
  return undefined;
}

/** `NCCL_P2P_DISABLE=1 is set`, for those of the names that are set to something else than `harmless`; empty otherwise. */
export function settingsBehind(
  ranks: Iterable<LoggedRank>,
  names: readonly (readonly [name: string, harmless: string | undefined])[],
): string {
  const all = [...ranks];
  return names
    .flatMap(([name, harmless]) => {
      const value = settingOf(all, name);
      return value === undefined || value === harmless ? [] : [`${name}=${value}`];
    })
    .join(', ');
}
