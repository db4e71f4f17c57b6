import { counted } from '../../../counted.js';
import { type LogFinding, namedRanks } from './finding.js';
import { hasNvlink, isRdma, ranksByHost, settingsBehind } from '../job/hosts.js';
import type { LogPlace } from '../lines/line.js';
import type { LoggedCommunicator, LoggedLink, LoggedRank } from '../job/model.js';

interface Between {
  readonly from: LoggedRank;
  readonly link: LoggedLink;
}

/** Checks that NVLink carries all data inside a host, and RDMA directly from the GPU between hosts. */
export function checkTransports(communicator: LoggedCommunicator): LogFinding[] {
  const hosts = ranksByHost(communicator);
  const inside: Between[] = [];
  const between: Between[] = [];
  for (const from of communicator.ranks.values()) {
    for (const link of from.links) {
      const peer = communicator.ranks.get(link.peer);
      if (link.transport.family === 'COLLNET') continue;
      // Transports distinguish hosts where names do not: only ranks of one host share memory.
      const isInside =
        link.transport.family !== 'NET' ||
        (hosts !== undefined && peer !== undefined && peer !== from && peer.process.host === from.process.host);
      (isInside ? inside : between).push({ from, link });
    }
  }
  return [
    ...checkInside(communicator, hosts, inside),
    ...(hosts === undefined ? [] : checkNvls(communicator, hosts)),
    ...checkNetworks(communicator, between),
    ...checkGdr(communicator, between),
  ];
}

const p2pSettings = [
  ['NCCL_P2P_DISABLE', '0'],
  ['NCCL_P2P_LEVEL', undefined],
  ['NCCL_IGNORE_DISABLED_P2P', '0'],
] as const;

function checkInside(
  { id, ranks }: LoggedCommunicator,
  hosts: ReadonlyMap<string, readonly LoggedRank[]> | undefined,
  inside: readonly Between[],
): LogFinding[] {
  const findings: LogFinding[] = [];
  const shm = inside.filter(
    ({ from, link }) => link.transport.family === 'SHM' && hasNvlink(hosts?.get(from.process.host) ?? [from]),
  );
  const refused = [...ranks.values()].find(({ process }) => process.noP2p !== undefined)?.process.noP2p;
  const settings = settingsBehind(ranks.values(), p2pSettings);
  const why =
    settings !== ''
      ? `${settings} is set`
      : refused !== undefined
        ? `the driver refused P2P: '${refused.text}'`
        : "P2P between these GPUs is off: NVLink down, ACS or an IOMMU in a virtual machine, or containers that do not see each other's GPUs";
  if (shm.length > 0) {
    findings.push({
      code: 'shm-despite-nvlink',
      severity: 'error',
      kind: 'cost',
      explains: ['bandwidth-low'],
      communicator: id,
      ranks: ranksOf(shm),
      problem: `${counted(pairs(shm), 'pair')} of GPUs on hosts with NVLink ${pairs(shm) === 1 ? 'exchanges' : 'exchange'} data through the host's memory (${channelsOf(shm)} over SHM), as rank ${shm[0]?.from.rank ?? 0} with ${shm[0]?.link.peer ?? 0}`,
      cause: why,
      remedy:
        settings !== ''
          ? `unset ${settings.replaceAll(/=[^,]*/g, '')}`
          : '`nvidia-smi topo -p2p r` and `nvidia-smi nvlink -s`; the fabric manager, and that a container sees all GPUs of its job',
      places: placesOf(shm),
    });
  }
  const net = inside.filter(({ link }) => link.transport.family === 'NET');
  if (net.length > 0) {
    const off = settingsBehind(ranks.values(), [
      ['NCCL_P2P_DISABLE', '0'],
      ['NCCL_SHM_DISABLE', '0'],
    ]);
    // A user who switched both off wants to test the network.
    const isMeant = off.includes('NCCL_P2P_DISABLE') && off.includes('NCCL_SHM_DISABLE');
    findings.push({
      code: 'network-inside-host',
      severity: isMeant ? 'warning' : 'error',
      kind: 'cost',
      explains: ['bandwidth-low'],
      communicator: id,
      ranks: ranksOf(net),
      problem: `${counted(pairs(net), 'pair')} of ranks on one host ${pairs(net) === 1 ? 'talks' : 'talk'} over ${names(net)}, as rank ${net[0]?.from.rank ?? 0} with ${net[0]?.link.peer ?? 0} on ${net[0]?.from.process.host ?? ''}`,
      cause:
        off !== ''
          ? `${off} is set`
          : 'neither P2P nor shared memory works between them: containers with a /dev/shm or a host id of their own, or too small a /dev/shm',
      remedy:
        off !== ''
          ? `unset ${off.replaceAll(/=[^,]*/g, '')}`
          : "share /dev/shm (docker --ipc=host, a pod's emptyDir with medium: Memory) and the GPUs between containers of one host",
      places: placesOf(net),
    });
  }
  if (findings.length === 0 && refused !== undefined && settings === '') {
    findings.push({
      code: 'p2p-refused',
      severity: [...ranks.values()].every(({ completed }) => completed !== undefined) ? 'info' : 'warning',
      kind: 'risk',
      communicator: id,
      problem: `the driver refused P2P between GPUs of one host: '${refused.text}'`,
      cause: 'the GPUs or their PCIe topology do not support it, or ACS and IOMMU forbid it',
      remedy: 'check `nvidia-smi topo -p2p r`; switch ACS off in the BIOS or by setpci',
      places: [refused.place],
    });
  }
  return findings;
}

function checkNvls({ id }: LoggedCommunicator, hosts: ReadonlyMap<string, readonly LoggedRank[]>): LogFinding[] {
  const told = [...hosts.values()].flat().filter(({ nvls }) => nvls !== undefined);
  const without = told.filter(({ nvls }) => nvls?.available === false);
  if (without.length === 0 || without.length === told.length) return [];
  return [
    {
      code: 'nvls-mixed',
      severity: 'warning',
      communicator: id,
      ranks: without.map(({ rank }) => rank),
      problem: `${namedRanks(without.map(({ rank }) => rank))} ${without.length === 1 ? 'has' : 'have'} no NVLink SHARP, the other ${told.length - without.length} have; so none uses it`,
      cause: 'fabric manager, driver or NVSwitch differ between these hosts',
      remedy: 'compare `nvidia-smi -q` (Fabric) and the fabric manager of these hosts',
      places: without
        .slice(0, 4)
        .map(({ nvls }) => nvls?.place)
        .filter((place) => place !== undefined),
    },
  ];
}

function checkNetworks({ id, ranks }: LoggedCommunicator, between: readonly Between[]): LogFinding[] {
  const socket = between.filter(({ link }) => link.transport.network === 'Socket');
  if (socket.length === 0) return [];
  const rdma = between.filter(({ link }) => isRdma(link.transport.network));
  const settings = settingsBehind(ranks.values(), [
    ['NCCL_NET', 'IB'],
    ['NCCL_IB_DISABLE', '0'],
    ['NCCL_IB_HCA', undefined],
  ]);
  if (rdma.length > 0) {
    return [
      {
        code: 'network-mixed',
        severity: 'error',
        communicator: id,
        ranks: ranksOf(socket),
        problem: `${namedRanks(ranksOf(socket))} ${ranksOf(socket).length === 1 ? 'uses' : 'use'} ${names(socket)} and ${namedRanks(ranksOf(rdma))} ${names(rdma)}: they cannot talk to each other`,
        cause: settings === '' ? 'on some hosts NCCL found no RDMA device or no plugin' : `${settings} is set on some of them`,
        remedy: 'compare the lines NET/IB and NET/Plugin of these hosts',
        places: placesOf(socket),
      },
    ];
  }
  const devices = (record: LoggedRank) =>
    [...record.process.devices].find(([network, { devices: list }]) => isRdma(network) && list.length > 0);
  const having = [...ranks.values()].filter((record) => devices(record) !== undefined);
  const [first] = having;
  const found = first === undefined ? undefined : devices(first);
  if (found !== undefined) {
    const [network, { devices: list, place }] = found;
    return [
      {
        code: 'socket-despite-ib',
        severity: 'error',
        kind: 'cost',
        explains: ['bandwidth-low'],
        communicator: id,
        ranks: ranksOf(socket),
        problem: `${channelsOf(socket)} between hosts go over NET/Socket, though ${namedRanks(having.map(({ rank }) => rank))} found ${counted(list.length, 'device')} of NET/${network} (${list
          .slice(0, 4)
          .map(({ name }) => name)
          .join(', ')}${list.length > 4 ? ', …' : ''})`,
        cause:
          settings !== ''
            ? `${settings} is set`
            : having.length < ranks.size
              ? 'the other ranks found none, so all fall back to sockets'
              : 'a plugin or setting chose sockets',
        remedy:
          settings !== ''
            ? `unset ${settings.replaceAll(/=[^,]*/g, '')}`
            : 'compare NET/IB lines of all hosts; check `ibv_devinfo` and /dev/infiniband in the containers',
        places: [...placesOf(socket).slice(0, 3), place],
      },
    ];
  }
  const without = [...ranks.values()].find(({ process }) => process.devices.get('IB')?.devices.length === 0);
  if (without === undefined && settings === '') return [];
  const isFast = [...ranks.values()].some(({ nvlink }) => nvlink);
  return [
    {
      code: 'no-rdma',
      severity: isFast ? 'warning' : 'info',
      communicator: id,
      ranks: ranksOf(socket),
      problem: `hosts talk over TCP (${channelsOf(socket)} over NET/Socket)${isFast ? ', though their GPUs have NVLink' : ''}`,
      cause: settings !== '' ? `${settings} is set` : 'NCCL found no InfiniBand or RoCE device',
      remedy:
        'if the hosts have such cards: check `ibv_devinfo`, and that containers get /dev/infiniband and an unlimited memlock; in a cloud, install its plugin',
      places: [
        ...(without?.process.devices.get('IB')?.place === undefined
          ? []
          : [without.process.devices.get('IB')?.place].filter((place) => place !== undefined)),
        ...placesOf(socket).slice(0, 3),
      ],
    },
  ];
}

/** Checks GPUDirect RDMA by direction, because PCIe machines use it to receive only. */
function checkGdr({ id, ranks }: LoggedCommunicator, between: readonly Between[]): LogFinding[] {
  const rdma = between.filter(({ link }) => isRdma(link.transport.network));
  const settings = settingsBehind(ranks.values(), [
    ['NCCL_NET_GDR_LEVEL', undefined],
    ['NCCL_NET_GDR_READ', '1'],
    ['NCCL_IB_CUDA_SUPPORT', '1'],
    ['NCCL_DMABUF_ENABLE', '1'],
  ]);
  const unset = `unset ${settings.replaceAll(/=[^,]*/g, '')}`;
  const receiving = rdma.filter(({ link }) => link.end === 'receive');
  const judged = receiving.length > 0 ? receiving : rdma;
  const without = judged.filter(({ link }) => link.transport.gdr !== true);
  if (judged.length === 0 || without.length === 0) return [];
  if (without.length === judged.length) {
    return [
      {
        code: 'gdr-off',
        severity: 'warning',
        communicator: id,
        problem: `no NIC reaches GPU memory directly: all ${channelsOf(without)} over ${names(without)} are without GDRDMA and go through the host's memory`,
        kind: 'cost',
        explains: ['bandwidth-low'],
        ...gdrReason(
          ranks.values(),
          settings,
          settings === ''
            ? 'a run with NCCL_NET_GDR_LEVEL=PHB (or SYS) first: if GDRDMA appears, it was the distance, and the setting stays if it is faster; else `lsmod` (nvidia-peermem) or a kernel with DMA-BUF; `nvidia-smi topo -m` shows the distances'
            : unset,
        ),
        places: placesOf(without),
      },
    ];
  }
  // Ranks without any in two lines or more: a single line may have lost its end.
  const suspects = ranksOf(without).filter((rank) => {
    const own = judged.filter(({ from }) => from.rank === rank);
    return own.every(({ link }) => link.transport.gdr !== true) && own.reduce((sum, { link }) => sum + link.channels, 0) >= 2;
  });
  if (suspects.length === 0) return [];
  const shown = without.filter(({ from }) => suspects.includes(from.rank));
  const hosts = [...new Set(shown.map(({ from }) => from.process.host))];
  return [
    {
      code: 'gdr-mixed',
      severity: suspects.length > 1 ? 'error' : 'warning',
      kind: 'cost',
      explains: ['bandwidth-low'],
      communicator: id,
      ranks: suspects,
      problem: `${namedRanks(suspects)} on ${hosts.slice(0, 4).join(', ')} ${suspects.length === 1 ? 'has' : 'have'} no GDRDMA, while ${counted(ranksOf(judged).length - suspects.length, 'other rank')} ${ranksOf(judged).length - suspects.length === 1 ? 'has' : 'have'}: they slow down every ring through them`,
      cause:
        settings === '' ? 'nvidia-peermem is not loaded there, or these GPUs are farther from their NIC' : `${settings} is set`,
      remedy:
        settings === ''
          ? 'compare with the other ranks: `lsmod` (nvidia-peermem) or a kernel with DMA-BUF, and `nvidia-smi topo -m` for the distance of GPU and NIC'
          : unset,
      places: placesOf(shown),
    },
  ];
}

/** Fabrics whose NICs do not support it with NCCL, by the names of their devices. */
const fabrics = [
  {
    device: /^hfi1/,
    cause: 'Omni-Path (hfi1) has no GPUDirect RDMA through verbs, which NCCL uses',
    remedy: 'use the PSM2 or OPX provider of libfabric with aws-ofi-nccl, or live with it',
  },
  {
    device: /^(?:cxi|hsn)/,
    cause: 'Slingshot (cxi) needs the libfabric plugin for GPUDirect RDMA',
    remedy: 'use aws-ofi-nccl with FI_PROVIDER=cxi',
  },
] as const;

function gdrReason(
  ranks: Iterable<LoggedRank>,
  settings: string,
  remedy: string,
): { readonly cause: string; readonly remedy: string } {
  if (settings !== '') return { cause: `${settings} is set`, remedy };
  const names = new Set(
    [...ranks].flatMap(({ process }) => [...process.devices.values()].flatMap(({ devices }) => devices.map(({ name }) => name))),
  );
  const fabric = fabrics.find(({ device }) => [...names].some((name) => device.test(name)));
  if (fabric !== undefined) return fabric;
  const far = [...ranks]
    .flatMap(({ searches }) => [...searches.values()].map(({ result }) => result.typeInter))
    .find((type) => /^(?:PHB|NODE|SYS)$/.test(type));
  return {
    cause:
      far === undefined
        ? 'GPU and NIC meet at the host bridge (PHB) or farther, which NCCL takes for too far unless NCCL_NET_GDR_LEVEL allows it; or nvidia-peermem and DMA-BUF are missing'
        : `GPU and NIC are ${far} apart, and NCCL allows GPUDirect RDMA up to PXB unless NCCL_NET_GDR_LEVEL says more`,
    remedy,
  };
}

function ranksOf(between: readonly Between[]): number[] {
  return [...new Set(between.map(({ from }) => from.rank))].sort((a, b) => a - b);
}

function pairs(between: readonly Between[]): number {
  return new Set(between.map(({ from, link }) => `${Math.min(from.rank, link.peer)} ${Math.max(from.rank, link.peer)}`)).size;
}

function channelsOf(between: readonly Between[]): string {
  return counted(
    between.reduce((sum, { link }) => sum + link.channels, 0),
    'connection',
  );
}

function names(between: readonly Between[]): string {
  return [...new Set(between.map(({ link }) => link.transport.name))].join(' and ');
}

function placesOf(between: readonly Between[]): LogPlace[] {
  return between.slice(0, 6).map(({ link }) => link.place);
}
