import { nvLinkGBps, pciLink } from '../../topology/bandwidths.js';
import { CpuArch, CpuModel, CpuVendor } from '../../topology/system.js';
import { parseXml } from '../../topology/xml/parse.js';
import type { XmlElement } from '../../topology/xml/tree.js';
import type { LoggedMachine, LoggedWire } from '../job/system-block.js';

/**
 * The topology of a machine that NCCL printed (NCCL_DEBUG_SUBSYS=GRAPH), in the form of a file. Missing values get usual ones:
 * links of 16 lanes if that fits the bandwidth, GPU Direct RDMA, the compute capability by the bandwidth of an NVLink.
 *
 * @returns undefined where it is no machine: without CPU or GPU
 */
export function loggedTopology(machine: LoggedMachine): XmlElement | undefined {
  const tree = new Map<string, LoggedWire[]>();
  const nvlinks = new Map<string, LoggedWire[]>();
  const nets = new Map<string, LoggedWire[]>();
  const addTo = (map: Map<string, LoggedWire[]>, wire: LoggedWire) => {
    const known = map.get(wire.from) ?? [];
    if (known.length === 0) map.set(wire.from, known);
    if (!known.some(({ to }) => to === wire.to)) known.push(wire);
  };
  for (const printed of machine.wires) {
    // Versions that split GPUs write DEV for the hardware that has the links of one.
    const wire = { ...printed, from: printed.from.replace(/^DEV/, 'GPU'), to: printed.to.replace(/^DEV/, 'GPU') };
    if (wire.type === 'PCI') addTo(tree, wire);
    else if (wire.type === 'NVL') addTo(nvlinks, wire);
    else if (wire.type === 'NET') addTo(nets, wire);
  }
  const gpus = [...tree.values()].flat().filter(({ to }) => to.startsWith('GPU'));
  const cpus = machine.cpus.filter(({ name }) => tree.has(name));
  if (cpus.length === 0 || gpus.length === 0) return undefined;
  const sm = computeCapability(
    [...nvlinks.values()].flat().map(({ gbps }) => gbps),
    Math.max(...[...nvlinks.values()].map((links) => links.reduce((sum, { gbps }) => sum + gbps, 0)), 0),
    Math.max(...gpus.map(({ gbps }) => gbps)),
  );
  const ranks = new Map(gpus.map(({ to, detail }, index) => [to, Number(/^\d{1,6}$/.exec(detail)?.[0] ?? index)]));
  const devices = new Map([...ranks].sort(([, a], [, b]) => a - b).map(([name], dev) => [name, dev]));

  const linksOf = (name: string): string =>
    (nvlinks.get(name) ?? [])
      .map(({ to, gbps }) => {
        const count = Math.max(1, Math.round(gbps / nvLinkGBps(sm)));
        const isGpu = to.startsWith('GPU');
        return `<nvlink target="${isGpu ? busIdOf(to) : 'fffffff:ffff:ff'}" count="${count}" tclass="${isGpu ? '0x030200' : '0x068000'}"/>`;
      })
      .join('');
  const ports = (name: string): string =>
    `<nic>${(nets.get(name) ?? []).map(({ to, gbps, detail }) => port(to, gbps, detail)).join('')}</nic>`;
  const device = ({ to, gbps }: LoggedWire, depth: number): string => {
    if (to.startsWith('NIC') && gbps > 1000) return ports(to);
    const kind = to.startsWith('GPU') ? '0x030200' : to.startsWith('NIC') ? '0x020000' : '0x060400';
    const inside = to.startsWith('GPU')
      ? `<gpu dev="${devices.get(to) ?? 0}" sm="${sm}" rank="${devices.get(to) ?? 0}" gdr="1">${linksOf(to)}</gpu>`
      : to.startsWith('NIC')
        ? ports(to)
        : below(to, depth + 1);
    return `<pci busid="${busIdOf(to)}" class="${kind}" ${linkAttributes(gbps)}>${inside}</pci>`;
  };
  const below = (name: string, depth: number): string =>
    depth > MOST_DEPTH ? '' : (tree.get(name) ?? []).map((wire) => device(wire, depth)).join('');
  return parseXml(
    `<system version="1">${cpus
      .map(
        ({ name, arch, vendor, model }) =>
          `<cpu numaid="${localId(name)}" ${cpuAttributes(arch, vendor, model)}>${below(name, 0)}</cpu>`,
      )
      .join('')}</system>`,
  ).root;
}

const MOST_DEPTH = 16;
/** NVLinks of usual GPUs, the newest first, of which the bandwidth is a whole multiple. */
const smWithNvlink = [100, 90, 80, 86, 60];
const MOST_NVLINKS = 18;
const MOST_VOLTA_GBPS = 120.1;

/** @param most NVLinks of one GPU, GB/s; @param pciGBps the best PCI link of a GPU */
function computeCapability(gbps: readonly number[], most: number, pciGBps: number): number {
  const fits = (sm: number) =>
    gbps.every((each) => {
      const count = each / nvLinkGBps(sm);
      return count < MOST_NVLINKS + 0.5 && Math.abs(count - Math.round(count)) * nvLinkGBps(sm) < 0.11;
    });
  const sm = gbps.length === 0 ? 80 : (smWithNvlink.find(fits) ?? 80);
  // V100 and A100 have NVLinks of one speed: the older one has six, and PCI of the third generation.
  return sm === 80 && most > 0 && most <= MOST_VOLTA_GBPS && pciGBps < 12.1 ? 70 : sm;
}

function port(name: string, gbps: number, detail: string): string {
  const dev = Number.parseInt(localId(name), 16);
  // Newer versions add the exact bandwidth after guid, port and whether the network reduces.
  const exact = Number(/\/(\d{1,6}\.\d{1,9})$/.exec(detail)?.[1] ?? gbps);
  return `<net name="net${dev}" dev="${dev}" speed="${Math.round(exact * 8000)}" port="1" guid="0x${(dev + 1).toString(16)}" maxconn="131072" gdr="1"/>`;
}

const speeds = ['16.0 GT/s PCIe', '32.0 GT/s PCIe', '8.0 GT/s PCIe', '64.0 GT/s PCIe', '5.0 GT/s PCIe', '2.5 GT/s PCIe'];

function linkAttributes(gbps: number): string {
  for (const width of [16, 8, 4, 2, 1])
    for (const speed of speeds)
      if (Math.abs(pciLink(width, speed).bandwidthGBps - gbps) < 0.051) return `link_speed="${speed}" link_width="${width}"`;
  return 'link_speed="16.0 GT/s PCIe" link_width="16"';
}

const intelModels: Readonly<Record<number, number>> = {
  [CpuModel.INTEL_BDW]: 79,
  [CpuModel.INTEL_SKL]: 85,
  [CpuModel.INTEL_SRP]: 143,
  [CpuModel.INTEL_ERP]: 207,
};

function cpuAttributes(arch: number, vendor: number, model: number): string {
  const affinity = 'affinity="ffffffff,ffffffff"';
  if (arch === CpuArch.ARM) return `${affinity} arch="arm64"`;
  if (arch === CpuArch.POWER) return `${affinity} arch="ppc64"`;
  if (vendor === CpuVendor.AMD) return `${affinity} arch="x86_64" vendor="AuthenticAMD" familyid="143" modelid="49"`;
  if (vendor === CpuVendor.ZHAOXIN) return `${affinity} arch="x86_64" vendor="  Shanghai  " familyid="7" modelid="91"`;
  return `${affinity} arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="${intelModels[model] ?? 79}"`;
}

/** `GPU/0-17000` as `0000:17:00.0`; versions before several systems write `GPU/17000`. */
function busIdOf(name: string): string {
  const digits = localId(name).padStart(8, '0');
  const [, domain = '', bus = '', device = '', part = '0'] = /^(\w*)(\w\w)(\w\w)(\w)$/.exec(digits) ?? [];
  return `${domain.padStart(4, '0')}:${bus}:${device}.${part}`;
}

function localId(name: string): string {
  return /(?:[-/])([0-9a-fA-F]+)$/.exec(name)?.[1] ?? '0';
}
