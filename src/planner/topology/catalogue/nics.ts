import { descendants, type XmlElement } from '../xml/tree.js';

/** Models of network cards that NCCL distinguishes. */
export interface NicModel {
  readonly id: string;
  readonly name: string;
  /** Other spellings, lower case. */
  readonly aliases: readonly string[];
  readonly vendor: number;
  readonly device: number;
  /** 0x0207 InfiniBand, 0x0200 Ethernet. */
  readonly pciClass: '0x020700' | '0x020000';
  readonly pciGeneration: 3 | 4 | 5 | 6;
  /** Speed of one port, Mb/s, unless a description says another. */
  readonly speedMbps: number;
  /** Number of connections that the plugin allows: NCCL's IB transport has 131072, sockets 65536, EFA 1024. */
  readonly maxConnections: number;
  /** True if it can read and write GPU memory (GPU Direct RDMA). */
  readonly gdr: boolean;
  /** Beginning of its device names. */
  readonly prefix: string;
  /** The kind of network that it alone is for. */
  readonly network?: 'efa' | 'efa-v1' | 'slingshot';
}

/** Speeds are from the makers' data sheets, devices from the PCI ID repository. */
export const nicModels: readonly NicModel[] = [
  connectX('connectx-5', 'ConnectX-5', 0x1017, 3, 100_000),
  connectX('connectx-6', 'ConnectX-6', 0x101b, 4, 200_000),
  connectX('connectx-7', 'ConnectX-7', 0x1021, 5, 400_000),
  connectX('connectx-8', 'ConnectX-8', 0x1023, 6, 800_000),
  connectX('connectx-9', 'ConnectX-9', 0x1025, 6, 800_000),
  { ...connectX('bluefield-3', 'BlueField-3', 0xa2dc, 5, 400_000), aliases: ['bf3', 'bluefield3'] },
  // p4d has the first, p5 the second, p5en the third, p6 the fourth.
  efa('efa', 'Elastic Fabric Adapter', ['aws efa'], 0xefa0, 4, 100_000),
  efa('efa-v2', 'Elastic Fabric Adapter, second generation', [], 0xefa1, 4, 100_000),
  efa('efa-v3', 'Elastic Fabric Adapter, third generation', [], 0xefa2, 5, 200_000),
  efa('efa-v4', 'Elastic Fabric Adapter, fourth generation', [], 0xefa3, 5, 400_000),
  {
    id: 'slingshot',
    name: 'Slingshot 11 (Cassini)',
    aliases: ['cassini', 'cxi'],
    vendor: 0x17db,
    device: 0x0501,
    pciClass: '0x020000',
    pciGeneration: 4,
    speedMbps: 200_000,
    maxConnections: 1024,
    gdr: true,
    prefix: 'cxi',
    network: 'slingshot',
  },
  // GPUDirect-TCPX reads and writes GPU memory, although connections are sockets.
  {
    id: 'gvnic',
    name: 'Google Virtual NIC',
    aliases: ['gve'],
    vendor: 0x1ae0,
    device: 0x0042,
    pciClass: '0x020000',
    pciGeneration: 5,
    speedMbps: 200_000,
    maxConnections: 65_536,
    gdr: true,
    prefix: 'eth',
  },
  {
    id: 'ethernet',
    name: 'Ethernet card',
    aliases: ['eth', 'socket', 'tcp'],
    vendor: 0x8086,
    device: 0x1563,
    pciClass: '0x020000',
    pciGeneration: 3,
    speedMbps: 10_000,
    maxConnections: 65_536,
    gdr: false,
    prefix: 'eth',
  },
];

function efa(
  id: string,
  name: string,
  aliases: readonly string[],
  device: number,
  pciGeneration: NicModel['pciGeneration'],
  speedMbps: number,
): NicModel {
  return {
    id,
    name,
    aliases,
    vendor: 0x1d0f,
    device,
    pciClass: '0x020000',
    pciGeneration,
    speedMbps,
    maxConnections: 1024,
    gdr: true,
    prefix: 'rdmap',
    network: device === 0xefa0 ? 'efa-v1' : 'efa',
  };
}

function connectX(
  id: string,
  name: string,
  device: number,
  pciGeneration: NicModel['pciGeneration'],
  speedMbps: number,
): NicModel {
  const number = id.replace('connectx-', '');
  return {
    id,
    name,
    aliases: [`cx${number}`, `cx-${number}`, `connectx${number}`, `connectx ${number}`],
    vendor: 0x15b3,
    device,
    pciClass: '0x020700',
    pciGeneration,
    speedMbps,
    maxConnections: 131_072,
    gdr: true,
    prefix: 'mlx5_',
  };
}

/** The slowest ConnectX whose port has at least that speed, or the fastest. */
export function nicOfSpeed(speedMbps: number): NicModel {
  const bySpeed = nicModels.filter(({ id }) => id.startsWith('connectx-')).sort((a, b) => a.speedMbps - b.speedMbps);
  return bySpeed.find((nic) => nic.speedMbps >= speedMbps) ?? (bySpeed[bySpeed.length - 1] as NicModel);
}

/** The kind of network that cards of a machine are for, where they tell. */
export function networkOfCards(root: XmlElement): NicModel['network'] {
  for (const pci of descendants(root)) {
    const [vendor, device] = [pci.attributes.get('vendor'), pci.attributes.get('device')].map(Number);
    const model = nicModels.find((known) => known.vendor === vendor && known.device === device);
    if (model?.network !== undefined) return model.network;
  }
  return undefined;
}
