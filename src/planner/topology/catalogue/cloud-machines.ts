import type { FindingCode } from '../doctor/finding.js';
import { hybridCubeMesh, inventedSwitch, nitroSwitch, pex89000 } from './build.js';
import { below, type Domain, gpuAt, type Layout, nicAt, type Place } from './layout.js';

/** Sources of a machine of the catalogue. */
export interface Origin {
  /** Addresses of files and pages. */
  readonly sources: readonly string[];
  /** Facts that the sources give. */
  readonly known: string;
  /** Facts without a source, and the assumed values. */
  readonly assumed: string;
  /** Variables of NCCL that the provider's plugin or image sets, or that users set. */
  readonly variables?: Readonly<Record<string, string>>;
  /** Kind of network, which simulations count with. Default: by the cards, else verbs. */
  readonly network?: 'infiniband' | 'roce' | 'efa' | 'efa-v1' | 'slingshot' | 'tcpx';
}

/** Findings of the doctor that every machine of the type has, and so are no faults; each with its reason. */
export type Limits = Readonly<Partial<Record<FindingCode, string>>>;

/** A machine of a cloud or a shared cluster, described by the places of its devices. */
export interface CloudMachine {
  readonly name: string;
  readonly description: string;
  readonly aliases: readonly string[];
  readonly origin: Origin;
  readonly limits?: Limits;
  /** A layout, or the name of an equal machine of the catalogue. */
  readonly layout: Layout | string;
}

const OFI_NCCL = 'https://github.com/aws/aws-ofi-nccl/blob';
const AZURE_IMAGES = 'https://github.com/Azure/azhpc-images/blob/8e9d055f/topology';
const OCI_HPC = 'https://github.com/oracle-quickstart/oci-hpc/blob/b5285a68/samples/gpu';

/** Variables that AWS's plugin sets on all its machines with RDMA (src/platform-aws.cpp). */
const efaVariables = { NCCL_BUFFSIZE: '8388608', NCCL_P2P_NET_CHUNKSIZE: '524288' };
const efaNvlsVariables = { ...efaVariables, NCCL_NVLSTREE_MAX_CHUNKSIZE: '524288', NCCL_NVLS_CHUNKSIZE: '524288' };

const gen3 = inventedSwitch(3);
const gen4 = inventedSwitch(4);
const gen5 = inventedSwitch(5);

/** `0000:10:00.0` for 0x10. */
function bus(number: number): string {
  return `0000:${number.toString(16).padStart(2, '0')}:00.0`;
}

/** Two domains of equal size, cores and their second threads: of 48 each, `0-47,96-143` and `48-95,144-191`. */
function twoSockets(cores: number, first: readonly Place[], second: readonly Place[]): readonly Domain[] {
  const run = (socket: number) => [socket, socket + 2].map((part) => `${part * cores}-${(part + 1) * cores - 1}`).join(',');
  return [
    { numa: 0, cores: run(0), holds: first },
    { numa: 1, cores: run(1), holds: second },
  ];
}

/** p4d: two GPUs and a card at each of four switches, which exist in the file only; bus 10, 20, 90, a0. */
const p4d: Layout = {
  cpu: 'xeon-skylake',
  gpu: 'a100-sxm',
  gpuGeneration: 3,
  nvlink: 'switch',
  nic: { model: 'efa', generation: 3, latencyUs: 75 },
  domains: twoSockets(24, [p4dGroup(1, '10'), p4dGroup(2, '20')], [p4dGroup(3, '90'), p4dGroup(4, 'a0')]),
};

function p4dGroup(number: number, busNumber: string): Place {
  const at = (device: string) => `0000:${busNumber}:${device}.0`;
  return below(`ffff:ff:0${number}.0`, gen3, gpuAt(at('1c')), gpuAt(at('1d')), nicAt(at('1b')));
}

/** p5: at each of eight switches a GPU and four cards, which the plugin joins: the first represents all. */
function p5(gpu: string): Layout {
  const group = (index: number) => {
    const first = 0x45 + index * 0x11;
    return below(bus(first), nitroSwitch, nicAt(bus(first + 0x0a)), gpuAt(bus(first + 0x0e)));
  };
  return {
    cpu: 'epyc-milan',
    gpu,
    nvlink: 'switch',
    nic: { model: 'efa-v2', speedMbps: 400_000, generation: 5, latencyUs: 75 },
    domains: twoSockets(48, [0, 1, 2, 3].map(group), [4, 5, 6, 7].map(group)),
  };
}

/** p5en: at each of four switches two GPUs and four cards, of which the plugin makes two. */
const p5en: Layout = {
  cpu: 'xeon-sapphire',
  gpu: 'h200-sxm',
  nvlink: 'switch',
  nic: { model: 'efa-v3', speedMbps: 400_000, generation: 5, latencyUs: 35 },
  domains: twoSockets(48, [0, 1].map(p5enGroup), [2, 3].map(p5enGroup)),
};

function p5enGroup(index: number): Place {
  const first = 0x45 + index * 0x19;
  return below(
    bus(first),
    nitroSwitch,
    nicAt(bus(first + 0x10)),
    nicAt(bus(first + 0x12)),
    gpuAt(bus(first + 0x14)),
    gpuAt(bus(first + 0x15)),
  );
}

/** p6-b200: two GPUs and two cards at each of four switches. */
const p6B200: Layout = {
  cpu: 'xeon-emerald',
  gpu: 'b200',
  nvlink: 'switch',
  nic: { model: 'efa-v4', latencyUs: 35 },
  domains: twoSockets(48, [0, 1].map(p6Group), [2, 3].map(p6Group)),
};

function p6Group(index: number): Place {
  const first = 0x45 + index * 0x11;
  return below(
    bus(first),
    nitroSwitch,
    nicAt(bus(first + 0x0a)),
    nicAt(bus(first + 0x0b)),
    gpuAt(bus(first + 0x0c)),
    gpuAt(bus(first + 0x0d)),
  );
}

/** GPUs at `0001:00:00.0` …, cards at `0101:00:00.0` …, as Azure numbers them. */
const azureGpu = (number: number) => gpuAt(`${number.toString(16).padStart(4, '0')}:00:00.0`);
const azureNic = (number: number) => nicAt(`01${number.toString(16).padStart(2, '0')}:00:00.0`);

const ndV2: Layout = {
  cpu: 'xeon-skylake',
  gpu: 'v100-sxm',
  gpuGeneration: 4,
  nvlink: hybridCubeMesh,
  nic: { model: 'connectx-5', generation: 4 },
  domains: [
    { numa: 0, cores: '0-19', holds: [...[1, 2, 3, 4].map(azureGpu), azureNic(1)] },
    { numa: 1, cores: '20-39', holds: [5, 6, 7, 8].map(azureGpu) },
  ],
};

const ndV4: Layout = {
  cpu: 'epyc-rome',
  gpu: 'a100-sxm',
  nvlink: 'switch',
  nic: { model: 'connectx-6' },
  domains: [
    { numa: 0, gpus: [3, 4], nics: [3, 4] },
    { numa: 1, gpus: [1, 2], nics: [1, 2] },
    { numa: 2, gpus: [0xd, 0xe], nics: [7, 8] },
    { numa: 3, gpus: [0xb, 0xc], nics: [5, 6] },
  ].map(({ numa, gpus, nics }) => ({
    numa,
    cores: `${numa * 24}-${numa * 24 + 23}`,
    holds: [below(`ffff:ff:0${numa + 1}.0`, gen4, ...gpus.map(azureGpu), ...nics.map(azureNic))],
  })),
};

function ndV5(gpu: string): Layout {
  const group = (gpuNumber: number, number: number) => below(`ffff:ff:0${number}.0`, gen5, azureGpu(gpuNumber), azureNic(number));
  return {
    cpu: 'xeon-sapphire',
    gpu,
    nvlink: 'switch',
    nic: { model: 'connectx-7' },
    domains: [
      { numa: 0, cores: '0-47', holds: [group(1, 1), group(2, 2), group(3, 3), group(8, 4)] },
      { numa: 1, cores: '48-95', holds: [group(9, 5), group(0xa, 6), group(0xb, 7), group(0xc, 8)] },
    ],
  };
}

const ncA100V4: Layout = {
  cpu: 'epyc-milan',
  gpu: 'a100-pcie',
  nvlink: 'pairs',
  nic: { model: 'ethernet', speedMbps: 100_000, generation: 4 },
  domains: [0, 1, 2, 3].map((numa) => ({
    numa,
    cores: `${numa * 24}-${numa * 24 + 23}`,
    holds: numa === 0 ? [azureGpu(1), azureNic(1)] : [azureGpu(numa + 1)],
  })),
};

/** A3: at each of four switches two GPUs with `cards` cards. `groups` are the bus numbers. */
function gcp(gpu: string, cpu: string, cores: number, nic: Layout['nic'], groups: readonly GcpGroup[]): Layout {
  const places = groups.map(({ upstream, gpus, nics }) =>
    below(bus(upstream), gen5, ...gpus.map((at) => gpuAt(bus(at))), ...nics.map((at) => nicAt(bus(at)))),
  );
  return { cpu, gpu, nvlink: 'switch', nic, domains: twoSockets(cores, places.slice(0, 2), places.slice(2)) };
}

interface GcpGroup {
  readonly upstream: number;
  readonly gpus: readonly number[];
  readonly nics: readonly number[];
}

const a3High = gcp('h100-sxm', 'xeon-sapphire', 52, { model: 'gvnic' }, [
  { upstream: 0x01, gpus: [0x04, 0x05], nics: [0x06] },
  { upstream: 0x07, gpus: [0x0a, 0x0b], nics: [0x0c] },
  { upstream: 0x81, gpus: [0x84, 0x85], nics: [0x86] },
  { upstream: 0x87, gpus: [0x8a, 0x8b], nics: [0x8c] },
]);

const a3Mega = gcp('h100-sxm', 'xeon-sapphire', 52, { model: 'gvnic' }, [
  { upstream: 0x01, gpus: [0x04, 0x05], nics: [0x06, 0x07] },
  { upstream: 0x08, gpus: [0x0b, 0x0c], nics: [0x0d, 0x0e] },
  { upstream: 0x81, gpus: [0x84, 0x85], nics: [0x86, 0x87] },
  { upstream: 0x88, gpus: [0x8b, 0x8c], nics: [0x8d, 0x8e] },
]);

/** The groups of A3 Ultra and A4, numbered from the one card with a known bus id. */
const roceGroups: readonly GcpGroup[] = [0x8c, 0x93, 0xc3, 0xca].map((upstream) => ({
  upstream,
  gpus: [upstream + 3, upstream + 4],
  nics: [upstream + 5, upstream + 6],
}));

/** OCI's H100: the two levels of a switch, a GPU and a card with two ports below. */
const ociH100: Layout = {
  cpu: 'xeon-sapphire',
  gpu: 'h100-sxm',
  nvlink: 'switch',
  nic: { model: 'connectx-7', speedMbps: 180_000, ports: 2 },
  domains: [
    { numa: 0, cores: '0-55,112-167', holds: [0x08, 0x26, 0x3d, 0x54].map(ociGroup) },
    { numa: 1, cores: '56-111,168-223', holds: [0x82, 0xa1, 0xb9, 0xd1].map(ociGroup) },
  ],
};

function ociGroup(first: number): Place {
  return below(
    bus(first),
    pex89000,
    below(bus(first + 5), pex89000, gpuAt(bus(first + 7))),
    below(bus(first + 2), pex89000, nicAt(bus(first + 4))),
  );
}

const ociA100: Layout = {
  cpu: 'epyc-rome',
  gpu: 'a100-sxm',
  nvlink: 'switch',
  nic: { model: 'connectx-5', generation: 4, ports: 2 },
  domains: [
    { numa: 3, at: 0x01, gpus: [0x0f, 0x15], nics: [0x0c, 0x16] },
    { numa: 1, at: 0x40, gpus: [0x51, 0x54], nics: [0x48, 0x4c] },
    { numa: 7, at: 0x7f, gpus: [0x8d, 0x92], nics: [0x8a, 0x94] },
    { numa: 5, at: 0xbb, gpus: [0xd6, 0xda], nics: [0xc3, 0xd1] },
  ].map(({ numa, at, gpus, nics }) => ({
    numa,
    cores: `${numa * 8}-${numa * 8 + 7},${64 + numa * 8}-${64 + numa * 8 + 7}`,
    holds: [below(bus(at), gen4, ...gpus.map((each) => gpuAt(bus(each))), ...nics.map((each) => nicAt(bus(each))))],
  })),
};

const nebiusH100: Layout = {
  cpu: 'xeon-icelake',
  gpu: 'h100-sxm',
  nvlink: 'switch',
  nic: { model: 'connectx-7' },
  domains: [
    { numa: 0, cores: '0-79', holds: [0x8a, 0x8e, 0x92, 0x96].map(nebiusGroup) },
    { numa: 1, cores: '80-159', holds: [0xa8, 0xac, 0xb0, 0xb4].map(nebiusGroup) },
  ],
};

function nebiusGroup(first: number): Place {
  return below(bus(first), gen5, nicAt(bus(first + 2)), gpuAt(bus(first + 3)));
}

/** Four A100 whose every pair has four NVLinks, GPU i at NUMA domain 3 - i; cards at the domains of `nics`. */
function slingshot(cores: number, nics: readonly number[]): Layout {
  const links = [0, 1, 2, 3].map((from) => [0, 1, 2, 3].map((to) => (from === to ? 0 : 4)));
  return {
    cpu: 'epyc-milan',
    gpu: 'a100-sxm',
    nvlink: links,
    nic: { model: 'slingshot' },
    domains: [0, 1, 2, 3].map((numa) => ({
      numa,
      cores: `${numa * cores}-${(numa + 1) * cores - 1},${(numa + 4) * cores}-${(numa + 5) * cores - 1}`,
      // GPUs are numbered by bus id: the lowest one is at the last domain.
      holds: [gpuAt(bus(0x03 + (3 - numa) * 0x40)), ...(nics.includes(numa) ? [nicAt(bus(0x21 + numa * 0x40))] : [])],
    })),
  };
}

const dgxSpark: Layout = {
  cpu: 'gb10-cpu',
  gpu: 'gb10',
  nvlink: 'none',
  nic: { model: 'connectx-7', speedMbps: 200_000, generation: 5, lanes: 4 },
  domains: [{ numa: 0, cores: '0-19', holds: [gpuAt('000f:01:00.0'), nicAt('0000:01:00.0'), nicAt('0002:01:00.0')] }],
};

/** Variables that users of both set. */
const slingshotVariables = { NCCL_NET_GDR_LEVEL: 'PHB', NCCL_CROSS_NIC: '1' };

const ONE_NVSWITCH = 'the NVSwitches, which NCCL takes for one';

export const cloudMachines: readonly CloudMachine[] = [
  {
    name: 'aws-p4d',
    description: 'AWS p4d.24xlarge: 8 x A100 SXM, 4 x 100G EFA, PCIe Gen3',
    aliases: ['p4d', 'p4d.24xlarge', 'p4de', 'p4de.24xlarge', 'aws-p4de'],
    origin: {
      sources: [`${OFI_NCCL}/2daf7d30/topology/p4d-24xl-topo.xml`, `${OFI_NCCL}/2daf7d30/src/platform-aws.cpp`],
      known:
        'bus ids, switches, NUMA nodes and links, from the file that the plugin gives NCCL; latency and variables, from the plugin',
      assumed: `NCCL_PROTO, which the plugin sets where cards may not write in order (its times are those of Simple); ${ONE_NVSWITCH}`,
      variables: { ...efaVariables, NCCL_PROTO: 'Simple' },
      network: 'efa-v1',
    },
    limits: { 'gpu-link-slow': 'its PCIe is Gen3' },
    layout: p4d,
  },
  {
    name: 'aws-p5',
    description: 'AWS p5.48xlarge: 8 x H100 SXM, 32 x 100G EFA, which the plugin makes 8 x 400G',
    aliases: ['p5', 'p5.48xlarge'],
    origin: {
      sources: [`${OFI_NCCL}/67125bf2/topology/p5.48xl-topo.xml`, `${OFI_NCCL}/2daf7d30/src/nccl_ofi_topo.cpp`],
      known:
        'bus ids, switches and NUMA nodes, from a former file of the plugin; four cards made one with Gen5 x16, latency and variables, from the plugin',
      assumed: `the links of the switches (Gen5 x16, as on p5en); ${ONE_NVSWITCH}`,
      variables: efaNvlsVariables,
      network: 'efa',
    },
    layout: p5('h100-sxm'),
  },
  {
    name: 'aws-p5e',
    description: 'AWS p5e.48xlarge: the same with H200 SXM',
    aliases: ['p5e', 'p5e.48xlarge'],
    origin: {
      sources: [`${OFI_NCCL}/2daf7d30/src/platform-aws.cpp`],
      known: 'latency and variables, from the plugin, which treats it as p5',
      assumed: 'the PCI tree: that of p5',
      variables: efaNvlsVariables,
      network: 'efa',
    },
    layout: p5('h200-sxm'),
  },
  {
    name: 'aws-p5en',
    description: 'AWS p5en.48xlarge: 8 x H200 SXM, 16 x 200G EFA, which the plugin makes 8 x 400G',
    aliases: ['p5en', 'p5en.48xlarge'],
    origin: {
      sources: [
        `${OFI_NCCL}/a090e25d/tests/unit/fixtures/topology/p5en/topology.xml`,
        `${OFI_NCCL}/2daf7d30/src/nccl_ofi_topo.cpp`,
      ],
      known:
        'bus ids, switches, links, CPU, from a recorded machine; names of all cards, from public logs; two cards made one with Gen5 x16, latency and variables, from the plugin',
      assumed: `the GPUs at the third and fourth switch (as at the first two); ${ONE_NVSWITCH}`,
      variables: { ...efaNvlsVariables, NCCL_NETDEVS_POLICY: 'MAX:1' },
      network: 'efa',
    },
    layout: p5en,
  },
  {
    name: 'aws-p6-b200',
    description: 'AWS p6-b200.48xlarge: 8 x B200, 8 x 400G EFA',
    aliases: ['p6-b200', 'p6-b200.48xlarge'],
    origin: {
      sources: [
        `${OFI_NCCL}/a090e25d/tests/unit/fixtures/topology/p6-b200/topology.xml`,
        `${OFI_NCCL}/2daf7d30/src/platform-aws.cpp`,
      ],
      known: 'bus ids, switches, links, CPU, from a recorded machine; latency and variables, from the plugin',
      assumed: `bus ids at the third and fourth switch (counted on); ${ONE_NVSWITCH}`,
      variables: { ...efaNvlsVariables, NCCL_NETDEVS_POLICY: 'MAX:1' },
      network: 'efa',
    },
    layout: p6B200,
  },
  {
    name: 'azure-nd-v2',
    description: 'Azure ND40rs v2: 8 x V100 SXM in the hybrid cube mesh, 1 x 100G',
    aliases: ['ndv2', 'nd40rs_v2', 'standard_nd40rs_v2'],
    origin: {
      sources: [`${AZURE_IMAGES}/ndv2-topo.xml`],
      known: 'bus ids, NUMA nodes and links (the file gives the GPUs Gen4, which they do not have), from the file in the image',
      assumed: 'the order of the GPUs in the mesh (that of DGX-1); it differs between virtual machines',
      network: 'infiniband',
    },
    limits: { 'nic-across-sockets': 'it has one card', 'gdr-too-far': 'its file has no PCI switches' },
    layout: ndV2,
  },
  {
    name: 'azure-nd-v4',
    description: 'Azure ND96asr v4: 8 x A100 SXM, 8 x 200G',
    aliases: ['ndv4', 'nd96asr_v4', 'standard_nd96asr_v4', 'nd96amsr_a100_v4', 'standard_nd96amsr_a100_v4'],
    origin: {
      sources: [`${AZURE_IMAGES}/ndv4-topo.xml`],
      known: 'bus ids, switches, NUMA nodes and links, from the file in the image',
      assumed: ONE_NVSWITCH,
      network: 'infiniband',
    },
    layout: ndV4,
  },
  {
    name: 'azure-nd-h100-v5',
    description: 'Azure ND96isr H100 v5: 8 x H100 SXM, 8 x 400G',
    aliases: ['ndv5', 'azure-nd-v5', 'nd96isr_h100_v5', 'standard_nd96isr_h100_v5'],
    origin: {
      sources: [`${AZURE_IMAGES}/ndv5-topo.xml`],
      known: 'bus ids, switches, NUMA nodes and links, from the file in the image',
      assumed: ONE_NVSWITCH,
      network: 'infiniband',
    },
    layout: ndV5('h100-sxm'),
  },
  {
    name: 'azure-nd-h200-v5',
    description: 'Azure ND96isr H200 v5: 8 x H200 SXM, 8 x 400G',
    aliases: ['nd96isr_h200_v5', 'standard_nd96isr_h200_v5'],
    origin: {
      sources: [`${AZURE_IMAGES}/ndv5-topo.xml`],
      known: 'bus ids, switches, NUMA nodes and links, from the file in the image, which is that of H100 v5',
      assumed: ONE_NVSWITCH,
      network: 'infiniband',
    },
    layout: ndV5('h200-sxm'),
  },
  {
    name: 'azure-nd-v6',
    description: 'Azure ND128isr GB200 v6: a compute tray of NVL72, 4 x GB200, 4 x 400G',
    aliases: ['ndv6', 'azure-nd-gb200-v6', 'standard_nd128isr_ndr_gb200_v6'],
    origin: {
      sources: ['https://github.com/Azure/azhpc-images/blob/8e9d055f/components/customizations/ndv6.sh'],
      known: 'that the image brings no topology file',
      assumed: 'the whole tree: that of gb200-tray',
      network: 'infiniband',
    },
    layout: 'gb200-tray',
  },
  {
    name: 'azure-nc-a100-v4',
    description: 'Azure NC96ads A100 v4: 4 x A100 PCIe, bridged in pairs, 1 x 100G Ethernet',
    aliases: ['ncv4', 'azure-nc-v4', 'nc96ads_a100_v4', 'standard_nc96ads_a100_v4'],
    origin: {
      sources: [`${AZURE_IMAGES}/ncv4-topo.xml`],
      known: 'bus ids and NUMA nodes, from the file in the image; that NVLink joins pairs, from public reports',
      assumed: 'links (Gen4 x16; the file leaves them empty) and which GPUs are a pair (the file links each GPU to itself)',
    },
    limits: { 'gdr-off': 'its network is Ethernet with sockets' },
    layout: ncA100V4,
  },
  {
    name: 'gcp-a3-high',
    description: 'Google Cloud a3-highgpu-8g: 8 x H100 SXM, 4 x 200G with GPUDirect-TCPX',
    aliases: ['a3-high', 'a3-highgpu-8g'],
    origin: {
      sources: [
        'https://github.com/google/tcpgpudmarxd/blob/a6e09b3f/src/a3vm_gpu_rxq_configurator.cc',
        'https://github.com/google/nccl-plugin-gpudirecttcpx/blob/4b8ea7f2/src/net_tcpx.cc',
      ],
      known: 'bus ids of GPUs and cards and which card serves which GPUs; connections and latency, from the plugin',
      assumed: `the switches (one for two GPUs and a card, Gen5 x16); ${ONE_NVSWITCH}`,
      network: 'tcpx',
    },
    layout: a3High,
  },
  {
    name: 'gcp-a3-mega',
    description: 'Google Cloud a3-megagpu-8g: 8 x H100 SXM, 8 x 200G with GPUDirect-TCPXO',
    aliases: ['a3-mega', 'a3-megagpu-8g'],
    origin: {
      sources: [
        'https://github.com/GoogleCloudPlatform/cluster-toolkit/tree/main/examples/machine-learning/a3-megagpu-8g',
        'https://github.com/dstackai/dstack/blob/master/examples/misc/a3mega-clusters/README.md',
      ],
      known: 'bus ids of the cards, from their names (enp6s0 … enp142s0); eight cards, 1800 Gb/s with the one for other traffic',
      assumed: `bus ids of the GPUs and the switches (one for two GPUs and two cards, Gen5 x16); ${ONE_NVSWITCH}`,
      network: 'tcpx',
    },
    layout: a3Mega,
  },
  {
    name: 'gcp-a3-ultra',
    description: 'Google Cloud a3-ultragpu-8g: 8 x H200 SXM, 8 x 400G RoCE',
    aliases: ['a3-ultra', 'a3-ultragpu-8g'],
    origin: {
      sources: ['https://github.com/GoogleCloudPlatform/cluster-toolkit/discussions/3478'],
      known: 'GPUs, and a ConnectX-7 for each',
      assumed: `the PCI tree: two GPUs and two cards at a Gen5 switch; ${ONE_NVSWITCH}`,
      network: 'roce',
    },
    layout: gcp('h200-sxm', 'xeon-emerald', 56, { model: 'connectx-7' }, roceGroups),
  },
  {
    name: 'gcp-a4',
    description: 'Google Cloud a4-highgpu-8g: 8 x B200, 8 x 400G RoCE',
    aliases: ['a4', 'a4-highgpu-8g'],
    origin: {
      sources: ['https://github.com/dstackai/dstack/pull/3152'],
      known: 'GPUs, and a ConnectX-7 with RoCE for each',
      assumed: `the PCI tree: two GPUs and two cards at a Gen5 switch; ${ONE_NVSWITCH}`,
      network: 'roce',
    },
    layout: gcp('b200', 'xeon-emerald', 56, { model: 'connectx-7' }, roceGroups),
  },
  {
    name: 'gcp-a4x',
    description: 'Google Cloud a4x-highgpu-4g: a compute tray of NVL72, 4 x GB200, 4 x 400G RoCE',
    aliases: ['a4x', 'a4x-highgpu-4g'],
    origin: {
      sources: ['https://docs.nvidia.com/aicr/integrator-guide/gke-gb-200-networking.md'],
      known: 'four RoCE cards for four GPUs (rdma-0 to rdma-3)',
      assumed: 'the whole tree: that of gb200-tray',
      network: 'roce',
    },
    layout: 'gb200-tray',
  },
  {
    name: 'oci-h100',
    description: 'Oracle BM.GPU.H100.8: 8 x H100 SXM, 8 cards of 2 x 200G RoCE',
    aliases: ['bm.gpu.h100.8'],
    origin: {
      sources: [`${OCI_HPC}/H100-topology.xml`],
      known: 'bus ids, switches, NUMA nodes, and 180 Gb/s for each port, from the file for NCCL_TOPO_FILE',
      assumed: `the upper links of the switches (Gen5; the file says 5.0 GT/s); ${ONE_NVSWITCH}`,
      network: 'roce',
    },
    layout: ociH100,
  },
  {
    name: 'oci-a100',
    description: 'Oracle BM.GPU4.8: 8 x A100 SXM, 8 cards of 2 x 100G RoCE',
    aliases: ['bm.gpu4.8'],
    origin: {
      sources: [`${OCI_HPC}/topo-flattened.xml`],
      known: 'bus ids, switches, NUMA nodes and links, from the file for NCCL_TOPO_FILE',
      assumed: `the ports of the cards (two of 100 Gb/s); ${ONE_NVSWITCH}`,
      network: 'roce',
    },
    layout: ociA100,
  },
  {
    name: 'coreweave-h100',
    description: 'CoreWeave gd-8xh100ib-i128: 8 x H100 SXM, 8 x 400G',
    aliases: ['gd-8xh100ib-i128'],
    origin: {
      sources: ['https://docs.coreweave.com/docs/platform/instances/gpu-instances'],
      known: '8 GPUs, InfiniBand for each',
      assumed: 'the whole tree: that of dgx-h100',
      network: 'infiniband',
    },
    layout: 'dgx-h100',
  },
  {
    name: 'nebius-h100',
    description: 'Nebius gpu-h100-sxm: 8 x H100 SXM, 8 x 400G',
    aliases: ['gpu-h100-sxm'],
    origin: {
      sources: ['https://github.com/nebius/nccl-topology/blob/e83c1ce2/nccl-topo-h100-v1.xml'],
      known:
        'bus ids, switches, NUMA nodes, links, speeds and CPU model (that of the virtual machine), from the file for NCCL_TOPO_FILE',
      assumed: `the numbers of the cards (by bus id; the file numbers those of the second node first); ${ONE_NVSWITCH}`,
      network: 'infiniband',
    },
    layout: nebiusH100,
  },
  {
    name: 'lambda-h100',
    description: 'Lambda 1-Click Cluster: 8 x H100 SXM, 8 x 400G',
    aliases: ['lambda-1cc-h100'],
    origin: {
      sources: ['https://docs.lambda.ai/public-cloud/1-click-clusters/'],
      known: 'GPUs, 400 Gb/s InfiniBand in rails, 3200 Gb/s a node',
      assumed: 'the whole tree: that of dgx-h100',
      network: 'infiniband',
    },
    layout: 'dgx-h100',
  },
  {
    name: 'polaris',
    description: 'ALCF Polaris: 4 x A100 SXM, every pair joined by 4 NVLinks, 2 x 200G Slingshot',
    aliases: [],
    origin: {
      sources: ['https://docs.alcf.anl.gov/polaris/hardware-overview/machine-overview'],
      known: 'NVLinks, NUMA nodes of GPUs and cards, CPU, from the matrix of the operator',
      assumed: 'bus ids; links of the cards (Gen4 x16)',
      variables: slingshotVariables,
      network: 'slingshot',
    },
    limits: {
      'nic-across-sockets': 'two of its four NUMA nodes have a card',
      'gdr-too-far': 'it has no PCI switches; its users set NCCL_NET_GDR_LEVEL=PHB',
    },
    layout: slingshot(8, [0, 2]),
  },
  {
    name: 'perlmutter',
    description: 'NERSC Perlmutter: 4 x A100 SXM, every pair joined by 4 NVLinks, 4 x 200G Slingshot',
    aliases: [],
    origin: {
      sources: ['https://docs.nersc.gov/systems/perlmutter/architecture/'],
      known: 'GPUs, cards, CPU, and PCIe Gen4 from each to the CPU',
      assumed: 'bus ids; GPU i at NUMA node 3 - i (as on Polaris), a card at each node',
      variables: slingshotVariables,
      network: 'slingshot',
    },
    limits: { 'gdr-too-far': 'it has no PCI switches; its users set NCCL_NET_GDR_LEVEL=PHB' },
    layout: slingshot(16, [0, 1, 2, 3]),
  },
  {
    name: 'dgx-spark',
    description: 'DGX Spark: one GB10, one 200G port as 2 cards of PCIe Gen5 x4',
    aliases: ['spark', 'gb10'],
    origin: {
      sources: ['https://github.com/tonyd2wild/DeepSeek-v4-Flash-Vision-Exp-DSpark-1M-NVFP4-KV-2x-DGX-Spark/pull/35'],
      known: 'that a port shows as two cards of x4 each (rocep1s0f0, roceP2p1s0f0), and that GPU Direct RDMA is off',
      assumed: 'the link of the GPU (Gen5 x16), and that one of the two ports is connected',
      network: 'roce',
    },
    limits: { 'nic-link-slow': 'each half of a port has four lanes', 'gdr-off': 'GB10 has no GPU Direct RDMA' },
    layout: dgxSpark,
  },
];
