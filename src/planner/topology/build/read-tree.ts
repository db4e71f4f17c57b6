import { LOCAL_GBPS, pciLink, SPLIT_GPU_GBPS } from '../bandwidths.js';
import { parseBigInteger, parseUnsigned64 } from '../c-numbers.js';
import { CpuArch, CpuModel, CpuVendor } from '../system.js';
import { LinkType, NodeType } from '../types.js';
import { childNamed, type XmlElement } from '../xml/tree.js';
import {
  busIdNumber,
  elementError,
  floatOrZero,
  integerOr,
  isDoubtfulInteger,
  lookUp,
  requiredInteger,
  requiredText,
} from './attributes.js';
import { cpusOfMask } from './cpu-mask.js';
import { connect, type Draft, type DraftNode, MAX_LINKS_OF_NODE, MAX_NODES_OF_TYPE, type NetData } from './draft.js';
import { refusesPciP2p } from './geforce.js';
import { hashBytes } from './hash.js';
import type { Rules } from '../../versions/rules.js';

/**
 * The first walk over an XML: CPUs and the PCI trees below them become nodes and PCI links. A second walk (interconnect.ts) adds
 * links across the tree, such as NVLinks and C2C.
 */

/** State of a build. */
export interface Build {
  readonly draft: Draft;
  /** `host_hash` of each host met so far; its position is the host's system id. */
  readonly hostHashes: bigint[];
  /** NCCL_TOPO_SPLIT_MLOPART: true if the parts of a split GPU get DEV nodes of their own. */
  readonly splitGpus: boolean;
  readonly rules: Rules;
  /** A note for the user about something that NCCL accepts silently. */
  note(element: XmlElement, message: string): void;
}

/** Position of a walk in the tree. */
interface TreePosition {
  readonly parent: DraftNode;
  readonly systemId: number;
  readonly depth: number;
}

/** PCI classes by the beginning of `class` or `tclass`; all others are switches. */
export const pciClasses: readonly (readonly [string, NodeType])[] = [
  ['0x060400', NodeType.PCI],
  ['0x080100', NodeType.PCI],
  ['0x068000', NodeType.NVS],
  ['0x068001', NodeType.CPU],
  ['0x03', NodeType.GPU],
  ['0x02', NodeType.NIC],
];

const cpuArchs: readonly (readonly [string, number])[] = [
  ['x86_64', CpuArch.X86],
  ['arm64', CpuArch.ARM],
  ['ppc64', CpuArch.POWER],
];

const cpuVendors: readonly (readonly [string, number])[] = [
  ['GenuineIntel', CpuVendor.INTEL],
  ['AuthenticAMD', CpuVendor.AMD],
  ['CentaurHauls', CpuVendor.ZHAOXIN],
  ['  Shanghai  ', CpuVendor.ZHAOXIN],
];

/** A PCI tree deeper than this is no machine. */
const MAX_PCI_DEPTH = 256;

/** NCCL's value for a missing `maxconn`: its largest number of channels. */
const DEFAULT_MAX_CONNECTIONS = 64;

/** A NIC without `speed`, or with one that is not positive. */
const DEFAULT_SPEED_MBPS = 10000;

/** Number of the host of a `<cpu>`; a new hash makes a new host. */
export function systemIdOf(build: Build, cpu: XmlElement): number {
  const hash = parseUnsigned64(cpu.attributes.get('host_hash') ?? '0', 16);
  const known = build.hostHashes.indexOf(hash);
  return known >= 0 ? known : build.hostHashes.push(hash) - 1;
}

/** Adds a `<cpu>` and everything below it. */
export function addCpu(build: Build, element: XmlElement): void {
  const numaId = BigInt(requiredInteger(element, 'numaid'));
  const systemId = systemIdOf(build, element);
  const arch = lookUp(requiredText(element, 'arch'), cpuArchs, 0);
  const vendor = arch === CpuArch.X86 ? lookUp(requiredText(element, 'vendor'), cpuVendors, 0) : -1;
  const cpu = addNode(build, element, NodeType.CPU, systemId, numaId, {
    arch,
    vendor,
    model: cpuModel(element, vendor, build.rules),
    affinity: cpusOfMask(element.attributes.get('affinity') ?? ''),
  });

  for (const child of element.children) {
    if (child.name === 'pci') addPci(build, child, { parent: cpu, systemId, depth: 1 });
    if (child.name === 'nic') {
      // NICs that are no PCI devices: one NIC node for all of them.
      let nic: DraftNode | undefined = build.draft.find(NodeType.NIC, systemId, 0n);
      if (nic === undefined) {
        nic = addNode(build, child, NodeType.NIC, systemId, 0n, {});
        join(child, cpu, nic, LinkType.PCI, LOCAL_GBPS);
      }
      addNets(build, child, nic, systemId);
    }
  }
}

function cpuModel(element: XmlElement, vendor: number, { newerIntelCpus, amdCpuModels }: Rules): number {
  if (vendor === CpuVendor.AMD && amdCpuModels) return amdModels.get(requiredInteger(element, 'familyid')) ?? CpuModel.AMD_ZEN12;
  if (vendor !== CpuVendor.INTEL && vendor !== CpuVendor.ZHAOXIN) return -1;
  const family = requiredInteger(element, 'familyid');
  const model = requiredInteger(element, 'modelid');
  if (vendor === CpuVendor.ZHAOXIN) return family === 7 && model === 0x5b ? CpuModel.YONGFENG : -1;
  if (family !== 6 || model < 0x55) return CpuModel.INTEL_BDW;
  if (newerIntelCpus === 'as skylake') return CpuModel.INTEL_SKL;
  if (model >= 0xcf || (newerIntelCpus === 'granite rapids' && graniteRapids.has(model))) return CpuModel.INTEL_ERP;
  return model >= 0x8f ? CpuModel.INTEL_SRP : CpuModel.INTEL_SKL;
}

/** Models of Granite Rapids and Sierra Forest, which are newer than Emerald Rapids (0xcf). */
const graniteRapids: ReadonlySet<number> = new Set([0xad, 0xae, 0xaf]);

/** Generations of AMD CPUs by `familyid`: CPUID's, or family + 16 × extended family, which versions before 2.31 dump. */
const amdModels: ReadonlyMap<number, number> = new Map([
  [25, CpuModel.AMD_ZEN34],
  [0xaf, CpuModel.AMD_ZEN34],
  [26, CpuModel.AMD_ZEN5],
  [0xbf, CpuModel.AMD_ZEN5],
]);

/**
 * Adds a `<pci>`: its GPUs, or its NIC, or, if it is a switch, itself and everything below it. A NIC below a bridge hides
 * everything else below that bridge, as in NCCL.
 */
function addPci(build: Build, element: XmlElement, { parent, systemId, depth }: TreePosition): void {
  if (depth > MAX_PCI_DEPTH)
    throw elementError(element, `PCI devices are nested deeper than ${MAX_PCI_DEPTH} levels`, 'TOO_LARGE');
  const type = lookUp(requiredText(element, 'class'), pciClasses, NodeType.PCI);
  const busId = busIdNumber(requiredText(element, 'busid'));
  const bandwidthGBps = pciBandwidth(build, element);

  for (const child of element.children) {
    if (child.name !== 'gpu') continue;
    // A GPU that no rank uses hides the rest of its PCI device.
    if (!child.attributes.has('rank')) return;
    const at = { parent, systemId, busId, bandwidthGBps };
    if (!build.rules.hardwareNodes) {
      addPlainGpu(build, element, child, at);
      return;
    }
    addGpu(build, element, child, at);
  }

  let node: DraftNode | undefined;
  const nicElement = childNamed(element, 'nic');
  if (nicElement !== undefined) {
    const localId = BigInt.asUintN(56, build.rules.nicOfFunction ? busId : busId & ~0xfn);
    let nic: DraftNode | undefined = build.draft.find(NodeType.NIC, systemId, localId);
    if (nic === undefined) nic = node = addNode(build, element, NodeType.NIC, systemId, localId, {});
    else build.note(element, 'its bus id is used before, so NCCL takes it for the same NIC and does not connect it here');
    addNets(build, nicElement, nic, systemId);
    if (element.children.some((child) => child.name === 'pci')) {
      build.note(element, 'holds a <nic> and <pci> devices: NCCL looks at the <nic> only, and does not see the devices');
    }
  } else if (type === NodeType.PCI) {
    if (build.draft.find(NodeType.PCI, systemId, busId) !== undefined) build.note(element, 'another <pci> has the same bus id');
    node = addNode(build, element, NodeType.PCI, systemId, busId, { device: deviceNumber(element) });
    for (const child of element.children) {
      // NCCL takes any child but a pcilink for a device: a <gpu> here fails for its missing attributes. Older versions know
      // no pcilink.
      const isDevice = child.name === 'pci' || child.name === 'gpu' || (child.name === 'pcilink' && !build.rules.pciLinks);
      if (isDevice) addPci(build, child, { parent: node, systemId, depth: depth + 1 });
    }
  }
  if (node !== undefined) join(element, node, parent, LinkType.PCI, bandwidthGBps);
}

function pciBandwidth(build: Build, element: XmlElement): number {
  const width = requiredInteger(element, 'link_width');
  const speed = requiredText(element, 'link_speed');
  const { bandwidthGBps, known } = pciLink(width, speed);
  if (!known)
    build.note(element, `link_speed="${speed}" matches no speed that NCCL knows, so it counts as Gen3: ${bandwidthGBps} GB/s`);
  if (isDoubtfulInteger(element, 'link_width'))
    build.note(element, `NCCL reads link_width="${element.attributes.get('link_width') ?? ''}" as ${width}`);
  if (!(bandwidthGBps > 0))
    throw elementError(
      element,
      `link_width ${width} gives a link of ${bandwidthGBps} GB/s; write the number of lanes, or 0 for 16`,
    );
  return bandwidthGBps;
}

/** Adds a `<gpu>` for versions without DEV nodes: the GPU node has the links. */
function addPlainGpu(build: Build, pci: XmlElement, element: XmlElement, at: GpuPlace): void {
  const gpu = addNode(build, element, NodeType.GPU, at.systemId, at.busId, {
    rank: requiredInteger(element, 'rank'),
    sm: requiredInteger(element, 'sm'),
    dev: requiredInteger(element, 'dev'),
    gdr: requiredInteger(element, 'gdr') !== 0,
    refusesPciP2p: element.attributes.has('p2p') ? integerOr(element, 'p2p', 1) === 0 : refusesPciP2p(deviceNumber(pci)),
    mloPart: -1,
    parent: undefined,
  });
  if (build.rules.gpuLinksToItself) linkTo(element, gpu, gpu, LinkType.LOC, LOCAL_GBPS);
  join(element, gpu, at.parent, LinkType.PCI, at.bandwidthGBps);
}

/** Parent of a `<gpu>`. */
interface GpuPlace {
  readonly parent: DraftNode;
  readonly systemId: number;
  readonly busId: bigint;
  readonly bandwidthGBps: number;
}

/** Adds one `<gpu>`: a GPU node for the rank, and the DEV node of the hardware unless it exists. */
function addGpu(build: Build, pci: XmlElement, element: XmlElement, at: GpuPlace): void {
  const { draft } = build;
  const { systemId } = at;
  const devId = devLocalId(build, element, at.busId);
  const sm = requiredInteger(element, 'sm');
  let dev = draft.find(NodeType.DEV, systemId, devId);
  if (dev === undefined) {
    dev = addNode(build, element, NodeType.DEV, systemId, devId, {
      device: deviceNumber(pci),
      dev: requiredInteger(element, 'dev'),
      sm,
      gpuCount: 0,
    });
    join(element, dev, at.parent, LinkType.PCI, at.bandwidthGBps);
    for (const sibling of devsOfGpu(build, element, systemId, devId)) {
      if (sibling !== dev) join(element, dev, sibling, LinkType.LOC, SPLIT_GPU_GBPS);
    }
  } else if (pci.children.filter((child) => child.name === 'gpu')[0] === element) {
    build.note(pci, 'its bus id is used by a GPU before, so NCCL takes both for one GPU');
  }

  const localId = (BigInt(dev.data.gpuCount) << 40n) | BigInt.asUintN(40, devId);
  const gpu = addNode(build, element, NodeType.GPU, systemId, localId, {
    rank: requiredInteger(element, 'rank'),
    sm,
    dev: requiredInteger(element, 'dev'),
    gdr: requiredInteger(element, 'gdr') !== 0,
    refusesPciP2p: element.attributes.has('p2p') ? integerOr(element, 'p2p', 1) === 0 : refusesPciP2p(deviceNumber(pci)),
    mloPart: integerOr(element, 'mlopart', -1),
    parent: dev,
  });
  join(element, dev, gpu, LinkType.LOC, LOCAL_GBPS);
  dev.data.gpuCount++;
}

/** Bits of a bus id with the part of a split GPU: the lowest is set if there are parts, the next is the part. */
const partMask = 3n;

/** A node that has the links of a GPU. */
export type DraftHardware = DraftNode<typeof NodeType.DEV> | DraftNode<typeof NodeType.GPU>;

/** Local id of the hardware for a `<gpu>` on that bus. */
export function devLocalId(build: Build, gpu: XmlElement, busId: bigint): bigint {
  if ((busId & partMask) !== 0n && build.rules.hardwareNodes) {
    throw elementError(
      gpu,
      `bus id ${busId.toString(16)} of a GPU must end in function 0 or 4, because NCCL marks parts of a GPU there`,
    );
  }
  const part = integerOr(gpu, 'mlopart', -1);
  if (part === -1 || !build.splitGpus || !build.rules.hardwareNodes) return busId;
  if (part > 1) throw elementError(gpu, `mlopart="${part}": NCCL knows parts 0 and 1 only`);
  return busId | (((BigInt(part) << 1n) | 1n) & partMask);
}

/** The hardware of a GPU: its GPU node, or DEV nodes, one for each of its parts. */
export function devsOfGpu(build: Build, element: XmlElement, systemId: number, localId: bigint): DraftHardware[] {
  if (!build.rules.hardwareNodes) {
    const gpu = build.draft.find(NodeType.GPU, systemId, BigInt.asUintN(56, localId));
    return gpu === undefined ? [] : [gpu];
  }
  const base = BigInt.asUintN(56, localId) & ~partMask;
  const devs: DraftNode<typeof NodeType.DEV>[] = [];
  for (let part = 0n; part <= partMask; part++) {
    const dev = build.draft.find(NodeType.DEV, systemId, base | part);
    if (dev !== undefined) devs.push(dev);
  }
  if (devs.length > 2) throw elementError(element, 'a GPU can have two parts at most');
  return devs.length < 2 ? devs : build.draft.all(NodeType.DEV).filter((dev) => devs.includes(dev));
}

/** Vendor, device, subsystem vendor and subsystem device as one number, 16 bits each. */
function deviceNumber(pci: XmlElement): bigint {
  const part = (name: string, shift: bigint) => parseBigInteger(pci.attributes.get(name) ?? '0', 0) << shift;
  return BigInt.asUintN(
    64,
    part('vendor', 48n) + part('device', 32n) + part('subsystem_vendor', 16n) + part('subsystem_device', 0n),
  );
}

/** Adds the devices of network plugins below a `<nic>`. */
function addNets(build: Build, nicElement: XmlElement, nic: DraftNode, systemId: number): void {
  for (const element of nicElement.children) {
    if (element.name !== 'net') continue;
    // Without a number it is not a device of a plugin in use.
    if (!element.attributes.has('dev')) continue;
    if (integerOr(element, 'net', 1) !== 0) addNet(build, element, nic, systemId);
    if (integerOr(element, 'gin', 0) !== 0) addPluginDevice(build, element, nic, systemId, NodeType.GIN);
    if (integerOr(element, 'rma', 0) !== 0) addPluginDevice(build, element, nic, systemId, NodeType.RMA);
  }
}

function addNet(build: Build, element: XmlElement, nic: DraftNode, systemId: number): void {
  const dev = requiredInteger(element, 'dev');
  const guid = element.attributes.get('guid');
  const asic =
    guid === undefined
      ? BigInt.asUintN(64, (BigInt(systemId) << 56n) | BigInt.asUintN(56, BigInt(dev)))
      : build.rules.guidWithoutPrefix || guid.startsWith('0x')
        ? parseUnsigned64(guid, 16)
        : 0n;
  const bandwidthGBps = netBandwidth(element);
  if (build.draft.find(NodeType.NET, systemId, BigInt(dev)) !== undefined) {
    build.note(element, `another network device has number ${dev} too: NCCL finds paths to the first only`);
  }
  const data: NetData = {
    dev,
    asic,
    bandwidthGBps,
    ...carried(element),
    pciId: pciIdOf(element, asic),
    isConnectX8: isConnectX8(element),
    latencyUs: floatOrZero(element, 'latency'),
    port: integerOr(element, 'port', 0),
    gdr: integerOr(element, 'gdr', 0) !== 0,
    maxChannels: integerOr(element, 'maxconn', DEFAULT_MAX_CONNECTIONS),
    coll: integerOr(element, 'coll', 0) !== 0,
    rail: build.rules.railsAndPlanes ? integerOr(element, 'rail', -1) : -1,
    plane: build.rules.railsAndPlanes ? integerOr(element, 'plane', -1) : -1,
  };
  join(element, nic, addNode(build, element, NodeType.NET, systemId, BigInt(dev), data), LinkType.NET, bandwidthGBps);
}

function addPluginDevice(
  build: Build,
  element: XmlElement,
  nic: DraftNode,
  systemId: number,
  type: typeof NodeType.GIN | typeof NodeType.RMA,
): void {
  const dev = requiredInteger(element, 'dev');
  const bandwidthGBps = netBandwidth(element);
  join(element, nic, addNode(build, element, type, systemId, BigInt(dev), { dev, bandwidthGBps }), LinkType.NET, bandwidthGBps);
}

function netBandwidth(element: XmlElement): number {
  const speedMbps = integerOr(element, 'speed', 0);
  return Math.fround((speedMbps > 0 ? speedMbps : DEFAULT_SPEED_MBPS) / 8000);
}

/** An attribute of our own, which NCCL skips (plan/overrides.ts sets it). */
function carried(element: XmlElement): Pick<NetData, 'carriesGBps'> {
  const mbps = integerOr(element, 'carries', 0);
  return mbps > 0 ? { carriesGBps: mbps / 8000 } : {};
}

/** Devices of vendor 0x15b3 that NCCL counts as a ConnectX-8. */
const connectX8Devices: ReadonlySet<bigint> = new Set([0x1023n, 0x2100n]);

function isConnectX8(element: XmlElement): boolean {
  const ids = pciAbove(element)?.attributes;
  const number = (name: string) => parseBigInteger(ids?.get(name) ?? '', 0);
  return number('vendor') === 0x15b3n && connectX8Devices.has(number('device'));
}

/** The nearest PCI device above a network device. */
function pciAbove(element: XmlElement): XmlElement | undefined {
  let above = element.parent;
  while (above !== undefined && above.name !== 'pci') above = above.parent;
  return above;
}

/** NCCL's hash of the bus id of the nearest PCI device above, or of the card's GUID where there is none. */
function pciIdOf(element: XmlElement, asic: bigint): bigint {
  const busId = pciAbove(element)?.attributes.get('busid');
  if (busId !== undefined) return hashBytes(Uint8Array.from(busId, (character) => character.charCodeAt(0)));
  const bytes = new Uint8Array(8);
  new DataView(bytes.buffer).setBigUint64(0, asic, true);
  return hashBytes(bytes);
}

/** A new node, or an error where NCCL has no room for it. */
export function addNode<Type extends NodeType>(
  build: Build,
  element: XmlElement,
  type: Type,
  systemId: number,
  localId: bigint,
  data: DraftNode<Type>['data'],
): DraftNode<Type> {
  const node = build.draft.add(type, systemId, localId, data);
  if (node === undefined)
    throw elementError(element, `NCCL has room for ${MAX_NODES_OF_TYPE} nodes of one type only`, 'TOO_LARGE');
  return node;
}

/** Links in both directions, the one from `a` first. */
export function join(element: XmlElement, a: DraftNode, b: DraftNode, type: LinkType, bandwidthGBps: number): void {
  linkTo(element, a, b, type, bandwidthGBps);
  linkTo(element, b, a, type, bandwidthGBps);
}

/** A link in one direction. */
export function linkTo(element: XmlElement, from: DraftNode, to: DraftNode, type: LinkType, bandwidthGBps: number): void {
  if (!connect(from, to, type, bandwidthGBps)) {
    throw elementError(element, `NCCL has room for ${MAX_LINKS_OF_NODE} links of one node only`, 'TOO_LARGE');
  }
}
