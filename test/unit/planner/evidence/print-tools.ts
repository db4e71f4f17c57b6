import { gpuModels } from '../../../../src/planner/topology/catalogue/gpus.js';
import { nicModels } from '../../../../src/planner/topology/catalogue/nics.js';
import { childrenNamed, descendants, type XmlElement } from '../../../../src/planner/topology/xml/tree.js';

/** A PCI device or bridge as a host has it: NCCL's files omit root ports and the lower ports of switches. */
interface Device {
  readonly busId: string;
  readonly element: XmlElement | undefined;
  readonly secondary: string | undefined;
  readonly numa: string;
  readonly children: Device[];
}

interface Root {
  readonly bus: string;
  readonly cpu: XmlElement;
  readonly devices: Device[];
}

/** Names of products as the driver prints them. */
export const products: Readonly<Record<string, string>> = {
  'v100-sxm': 'Tesla V100-SXM2-32GB',
  'v100-pcie': 'Tesla V100-PCIE-32GB',
  'a100-sxm': 'NVIDIA A100-SXM4-80GB',
  'a100-pcie': 'NVIDIA A100 80GB PCIe',
  'h100-sxm': 'NVIDIA H100 80GB HBM3',
  'h800-sxm': 'NVIDIA H800',
  h20: 'NVIDIA H20',
  'h200-sxm': 'NVIDIA H200',
  b200: 'NVIDIA B200',
  b300: 'NVIDIA B300 SXM6 AC',
  gh200: 'NVIDIA GH200 480GB',
  gb200: 'NVIDIA GB200',
  gb300: 'NVIDIA GB300',
  gb10: 'NVIDIA GB10',
};

/** Finds bus numbers that no device has. */
class Buses {
  readonly #used = new Map<string, Set<number>>();

  constructor(root: XmlElement) {
    for (const element of descendants(root)) {
      const busId = element.name === 'pci' ? element.attributes.get('busid') : undefined;
      if (busId !== undefined) this.#of(busId.slice(0, 4)).add(Number.parseInt(busId.slice(5, 7), 16));
    }
  }

  free(domain: string): string {
    const used = this.#of(domain);
    let bus = 0;
    while (used.has(bus)) bus++;
    used.add(bus);
    return `${domain}:${bus.toString(16).padStart(2, '0')}`;
  }

  #of(domain: string): Set<number> {
    const known = this.#used.get(domain) ?? new Set<number>();
    this.#used.set(domain, known);
    return known;
  }
}

/** Host bridges of a machine: one for each device of a CPU. */
function rootsOf(system: XmlElement): Root[] {
  const buses = new Buses(system);
  const device = (element: XmlElement): Device => {
    const busId = element.attributes.get('busid') ?? '';
    const inner = childrenNamed(element, 'pci');
    const numa = cpuOf(element).attributes.get('numaid') ?? '0';
    if (inner.length === 0) return { busId, element, secondary: undefined, numa, children: [] };
    const bus = buses.free(busId.slice(0, 4));
    const ports = inner.map((child, port): Device => {
      const id = `${bus}:${port.toString(16).padStart(2, '0')}.0`;
      return {
        busId: id,
        element: undefined,
        secondary: child.attributes.get('busid')?.slice(5, 7),
        numa,
        children: [device(child)],
      };
    });
    return { busId, element, secondary: bus.slice(5, 7), numa, children: ports };
  };
  return childrenNamed(system, 'cpu').flatMap((cpu) =>
    childrenNamed(cpu, 'pci').map((pci): Root => {
      const busId = pci.attributes.get('busid') ?? '';
      const bus = buses.free(busId.slice(0, 4));
      const port: Device = {
        busId: `${bus}:01.0`,
        element: undefined,
        secondary: busId.slice(5, 7),
        numa: cpu.attributes.get('numaid') ?? '0',
        children: [device(pci)],
      };
      return { bus, cpu, devices: [port] };
    }),
  );
}

function cpuOf(element: XmlElement): XmlElement {
  for (let at: XmlElement | undefined = element; at !== undefined; at = at.parent) if (at.name === 'cpu') return at;
  return element;
}

const value = (element: XmlElement | undefined, name: string) => element?.attributes.get(name) ?? '';
const hex = (element: XmlElement | undefined, name: string) => value(element, name).replace('0x', '').padStart(4, '0');

function gbpsOf(element: XmlElement | undefined): number {
  const lane: Readonly<Record<string, number>> = { '8.0': 0.984615, '16.0': 1.969231, '32.0': 3.938462, '64.0': 7.5625 };
  const [speed = ''] = value(element, 'link_speed').split(' ');
  return (lane[speed] ?? 0) * Number(value(element, 'link_width') || 16);
}

function netsOf(element: XmlElement | undefined): XmlElement[] {
  return element === undefined ? [] : childrenNamed(element, 'nic').flatMap((nic) => childrenNamed(nic, 'net'));
}

function gpuOf(element: XmlElement | undefined): XmlElement | undefined {
  return element === undefined ? undefined : childrenNamed(element, 'gpu')[0];
}

function productOf(element: XmlElement): string {
  const model = gpuModels.find(({ device }) => device === Number(value(element, 'device')));
  return products[model?.id ?? ''] ?? `NVIDIA ${model?.name ?? ''}`;
}

/** `0-3,8` of a mask. */
function coresOf(cpu: XmlElement): number[] {
  const mask = BigInt(`0x${value(cpu, 'affinity').replaceAll(',', '') || '0'}`);
  return Array.from({ length: 1024 }, (_, core) => core).filter((core) => ((mask >> BigInt(core)) & 1n) === 1n);
}

/** `lstopo --of xml` of hwloc 2. */
export function lstopoXml(system: XmlElement): string {
  const roots = rootsOf(system);
  let index = 100;
  const device = ({ busId, element, secondary, children }: Device, depth: number): string[] => {
    const type = secondary === undefined ? 'PCIDev' : 'Bridge';
    const bridge =
      secondary === undefined
        ? ''
        : ` bridge_type="1-1" depth="${depth}" bridge_pci="${busId.slice(0, 4)}:[${secondary}-${secondary}]"`;
    const ids =
      element === undefined
        ? '0604 [8086:352a] [8086:0000] 04'
        : `${hex(element, 'class').slice(0, 4)} [${hex(element, 'vendor')}:${hex(element, 'device')}] [${hex(element, 'subsystem_vendor')}:${hex(element, 'subsystem_device')}] a1`;
    const gpu = gpuOf(element);
    const os = [
      ...(gpu === undefined || element === undefined
        ? []
        : [
            `<object type="OSDev" gp_index="${index++}" name="nvml${value(gpu, 'dev')}" subtype="NVML" osdev_type="1">`,
            `<info name="GPUModel" value="${productOf(element)}"/>`,
            '</object>',
          ]),
      ...netsOf(element).flatMap((net) => [
        `<object type="OSDev" gp_index="${index++}" name="${value(net, 'name')}" osdev_type="3">`,
        '<info name="Port1State" value="4"/>',
        '</object>',
      ]),
    ];
    const link = ` pci_link_speed="${gbpsOf(element).toFixed(6)}"`;
    const body = [...children.flatMap((child) => device(child, depth + 1)), ...os];
    return [
      `<object type="${type}" gp_index="${index++}"${bridge} pci_busid="${busId}" pci_type="${ids}"${link}>`,
      ...body,
      '</object>',
    ];
  };
  const packages = childrenNamed(system, 'cpu').flatMap((cpu, number) => [
    `<object type="Package" os_index="${number}" gp_index="${index++}">`,
    ...cpuInfo(cpu).map(([name, text]) => `<info name="${name}" value="${text}"/>`),
    `<object type="NUMANode" os_index="${value(cpu, 'numaid')}" gp_index="${index++}" local_memory="68719476736"/>`,
    ...coresOf(cpu).map((core) => `<object type="PU" os_index="${core}" gp_index="${index++}"/>`),
    ...roots
      .filter((root) => root.cpu === cpu)
      .flatMap((root) => [
        `<object type="Bridge" gp_index="${index++}" bridge_type="0-1" depth="0" bridge_pci="${root.bus.slice(0, 4)}:[${root.bus.slice(5)}-ff]">`,
        ...root.devices.flatMap((each) => device(each, 1)),
        '</object>',
      ]),
    '</object>',
  ]);
  return [
    '<?xml version="1.0" encoding="UTF-8"?>',
    '<!DOCTYPE topology SYSTEM "hwloc2.dtd">',
    '<topology version="2.0">',
    '<object type="Machine" os_index="0" gp_index="1">',
    `<info name="Architecture" value="${archOf(system)}"/>`,
    ...packages,
    '</object>',
    '</topology>',
    '',
  ].join('\n');
}

function archOf(system: XmlElement): string {
  const arch = value(childrenNamed(system, 'cpu')[0], 'arch');
  return { arm64: 'aarch64', ppc64: 'ppc64le' }[arch] ?? arch;
}

function cpuInfo(cpu: XmlElement): [string, string][] {
  if (value(cpu, 'vendor') === '')
    return [['CPUModel', value(cpu, 'arch') === 'ppc64' ? 'POWER9, altivec supported' : 'Neoverse-V2']];
  const family = Number(value(cpu, 'familyid'));
  return [
    ['CPUVendor', value(cpu, 'vendor')],
    ['CPUFamilyNumber', String(family > 15 ? 15 + ((family - 15) >> 4) : family)],
    ['CPUModelNumber', value(cpu, 'modelid')],
  ];
}

/** `lstopo-no-graphics`, which does not name bridges. */
export function lstopoText(system: XmlElement): string {
  const roots = rootsOf(system);
  const device = ({ busId, element, secondary, children }: Device, indent: string): string[] => {
    if (secondary !== undefined) return [`${indent}PCIBridge`, ...children.flatMap((child) => device(child, `${indent}  `))];
    const gpu = gpuOf(element);
    const name = gpu === undefined ? (hex(element, 'class').startsWith('0207') ? 'InfiniBand' : 'Ethernet') : '3D';
    return [
      `${indent}PCI ${busId.replace(/^0000:/, '')} (${name})`,
      ...(gpu === undefined ? [] : [`${indent}  GPU(NVML) "nvml${value(gpu, 'dev')}"`]),
      ...netsOf(element).map((net) => `${indent}  OpenFabrics "${value(net, 'name')}"`),
    ];
  };
  const packages = childrenNamed(system, 'cpu').flatMap((cpu, number) => [
    `  Package L#${number}`,
    `    NUMANode L#${number} (P#${value(cpu, 'numaid')} 1007GB)`,
    ...coresOf(cpu).map(
      (core) =>
        `    L2 L#${core} (2048KB) + L1d L#${core} (48KB) + L1i L#${core} (32KB) + Core L#${core} + PU L#${core} (P#${core})`,
    ),
    ...roots
      .filter((root) => root.cpu === cpu)
      .flatMap((root) => ['    HostBridge', ...root.devices.flatMap((each) => device(each, '      '))]),
  ]);
  return ['Machine (2014GB total)', ...packages, ''].join('\n');
}

function describe(element: XmlElement | undefined): [kind: string, name: string] {
  if (element === undefined) return ['PCI bridge', 'Intel Corporation Device [8086:352a]'];
  const ids = `[${hex(element, 'vendor')}:${hex(element, 'device')}]`;
  if (gpuOf(element) !== undefined)
    return ['3D controller', `NVIDIA Corporation ${productOf(element).replace(/^(?:NVIDIA|Tesla) /, '')} ${ids}`];
  const nic = nicModels.find(
    ({ device, vendor }) => device === Number(value(element, 'device')) && vendor === Number(value(element, 'vendor')),
  );
  if (netsOf(element).length > 0)
    return [nic?.pciClass === '0x020700' ? 'Infiniband controller' : 'Ethernet controller', `${nic?.name ?? ''} ${ids}`];
  return ['PCI bridge', `Broadcom / LSI ${ids}`];
}

/** `lspci -vvvnn`. */
export function lspciList(system: XmlElement): string {
  const link = (element: XmlElement | undefined) => {
    const [speed = '32.0'] = value(element, 'link_speed').split(' ');
    return `Speed ${Number(speed === '' ? 32 : speed)}GT/s, Width x${value(element, 'link_width') || '16'}`;
  };
  const device = ({ busId, element, secondary, numa, children }: Device): string[] => {
    const [kind, name] = describe(element);
    const board = `${hex(element, 'subsystem_vendor')}:${hex(element, 'subsystem_device')}`;
    return [
      `${busId} ${kind} [${element === undefined ? '0604' : hex(element, 'class').slice(0, 4)}]: ${name} (rev a1)`,
      ...(element === undefined ? [] : [`\tSubsystem: Board [${board}]`]),
      '\tControl: I/O- Mem+ BusMaster+',
      `\tNUMA node: ${numa}`,
      ...(secondary === undefined
        ? []
        : [`\tBus: primary=${busId.slice(5, 7)}, secondary=${secondary}, subordinate=ff, sec-latency=0`]),
      `\t\tLnkCap:\tPort #0, ${link(element ?? children[0]?.element)}, ASPM not supported`,
      '',
      ...children.flatMap(device),
    ];
  };
  return rootsOf(system)
    .flatMap((root) => root.devices.flatMap(device))
    .join('\n');
}

/** `lspci -tvnn`. */
export function lspciTree(system: XmlElement): string {
  // Each part of a line goes on in the column after it.
  const device = ({ busId, element, secondary, children }: Device): string[] => {
    const id = busId.slice(8);
    if (secondary === undefined) return [`${id}  ${describe(element)[1]}`];
    return branch(`${id}-[${secondary}]`, children.map(device));
  };
  const branch = (head: string, groups: string[][]): string[] => {
    const lone = groups.length === 1;
    return groups.flatMap((lines, group) => {
      const isLast = group === groups.length - 1;
      return lines.map((line, index) => {
        const pad = ' '.repeat(head.length);
        if (lone) return index === 0 ? `${head}----${line}` : `${pad}    ${line}`;
        const start = group === 0 && index === 0 ? `${head}--` : `${pad}  `;
        const mark = index > 0 ? (isLast ? '  ' : '| ') : isLast ? '\\-' : '+-';
        return `${start}${mark}${line}`;
      });
    });
  };
  const roots = rootsOf(system);
  return roots
    .flatMap(({ bus, devices }, number) => {
      const isLast = number === roots.length - 1;
      return branch(`[${bus}]`, devices.map(device)).map((line, index) => {
        const mark = index > 0 ? (isLast ? '   ' : ' | ') : number === 0 ? '-+-' : isLast ? ' \\-' : ' +-';
        return `${mark}${line}`;
      });
    })
    .join('\n');
}

/** `nvidia-smi -L`. */
export function gpuList(system: XmlElement): string {
  return gpusOf(system)
    .map((pci, index) => `GPU ${index}: ${productOf(pci)} (UUID: GPU-4f2e0000-0000-0000-0000-00000000000${index % 10})`)
    .join('\n');
}

function gpusOf(system: XmlElement): XmlElement[] {
  return [...descendants(system)].filter((element) => element.name === 'pci' && gpuOf(element) !== undefined);
}

/** `ibstat`, for the speeds of ports. */
export function portList(system: XmlElement): string {
  return [...descendants(system)]
    .filter(({ name }) => name === 'net')
    .map(
      (net) =>
        `CA '${value(net, 'name')}'\n\tPort 1:\n\t\tState: Active\n\t\tPhysical state: LinkUp\n\t\tRate: ${Number(value(net, 'speed')) / 1000}`,
    )
    .join('\n');
}

/** A line of Slurm. */
export function gresLine(system: XmlElement): string {
  const gpus = gpusOf(system);
  const type = (gpus[0] === undefined ? '' : productOf(gpus[0]))
    .replace(/^(?:NVIDIA|Tesla) /, '')
    .toLowerCase()
    .replaceAll(/[ -]/g, '_');
  return `NodeName=gpu01 Arch=x86_64 CoresPerSocket=56\n   Gres=gpu:${type}:${gpus.length}(S:0-1)\n   CfgTRES=cpu=224,mem=2000G,gres/gpu=${gpus.length}\n`;
}

/** Labels of a node of Kubernetes. */
export function nodeLabels(system: XmlElement): string {
  const gpus = gpusOf(system);
  const product = gpus[0] === undefined ? '' : productOf(gpus[0]).replaceAll(' ', '-');
  return [
    'Name:               gpu01',
    'Labels:             beta.kubernetes.io/arch=amd64',
    '                    kubernetes.io/hostname=gpu01',
    `                    nvidia.com/gpu.count=${gpus.length}`,
    `                    nvidia.com/gpu.product=${product}`,
    'Capacity:',
    `  nvidia.com/gpu:     ${gpus.length}`,
    '',
  ].join('\n');
}

/** `lscpu`. */
export function cpuReport(system: XmlElement): string {
  const [cpu] = childrenNamed(system, 'cpu');
  if (cpu === undefined) return '';
  const info = Object.fromEntries(cpuInfo(cpu));
  const rows = [
    ['Architecture', archOf(system)],
    ['Vendor ID', info['CPUVendor']],
    ['Model name', info['CPUModel'] ?? 'a processor'],
    ['CPU family', info['CPUFamilyNumber']],
    ['Model', info['CPUModelNumber']],
  ];
  return rows.flatMap(([name, text]) => (text === undefined ? [] : [`${name ?? ''}:  ${text}`])).join('\n');
}

/** True if the bus ids are those of real buses: virtual machines have switches only in the file for NCCL. */
export function hasRealBuses(system: XmlElement): boolean {
  const parents = new Map<string, XmlElement | undefined>();
  for (const element of descendants(system)) {
    if (element.name !== 'pci') continue;
    const bus = (element.attributes.get('busid') ?? '').slice(0, 7);
    if (parents.has(bus)) return false;
    parents.set(bus, element);
    const above = element.parent?.attributes.get('busid');
    if (above !== undefined && above.slice(0, 4) !== bus.slice(0, 4)) return false;
  }
  return true;
}
