import { nvLinkGBps } from '../../topology/bandwidths.js';
import { devicesOf } from '../../topology/doctor/inventory.js';
import { childrenNamed, type XmlElement } from '../../topology/xml/tree.js';

/** The parts that each host of a cluster has by its topology. Of several kinds of hosts, the lesser number. */
export interface HostNeeds {
  readonly gpus: number;
  /** Network devices. */
  readonly nets: number;
  /** Rate of the slowest network device, Gb/s; 0 without any. */
  readonly netGbps: number;
  readonly gpuLink: LinkNeed | undefined;
  readonly nicLink: LinkNeed | undefined;
  /** NVLinks of a GPU. */
  readonly nvlinks: number;
  /** GB/s that they carry together in one direction. */
  readonly nvlinkGBps: number;
  /** True if all of them go to NVSwitches. */
  readonly hasNvSwitch: boolean;
}

/** A PCIe link. */
export interface LinkNeed {
  /** GT/s of a lane. */
  readonly gtps: number;
  readonly lanes: number;
}

/** Parts of the hosts of a topology; an NVLink domain of several hosts gives those of one. */
export function needsOf(root: XmlElement): HostNeeds {
  const { gpus, nets } = devicesOf(root);
  const byHost = new Map<string, number>();
  for (const pci of new Map(gpus.map((gpu) => [gpu.pci, gpu.host]))) byHost.set(pci[1], (byHost.get(pci[1]) ?? 0) + 1);
  const nHosts = Math.max(1, byHost.size);
  const rates = nets.map(({ element }) => Number(element.attributes.get('speed')) / 1000).filter((rate) => rate > 0);
  return {
    gpus: least([...byHost.values()]),
    nets: Math.floor(nets.length / nHosts),
    netGbps: least(rates),
    gpuLink: leastLink(gpus.map(({ pci }) => linkOf(pci.element))),
    nicLink: leastLink(nets.map(({ pci }) => (pci === undefined ? undefined : linkOf(pci.element)))),
    nvlinks: least(gpus.map(({ element }) => nvlinksOf(element))),
    nvlinkGBps: Math.round(
      least(gpus.map(({ element }) => nvlinksOf(element) * nvLinkGBps(Number(element.attributes.get('sm'))))),
    ),
    hasNvSwitch: gpus.every(({ element }) => childrenNamed(element, 'nvlink').every(isToSwitch)),
  };
}

/** The lesser of each number. */
export function weakest(all: readonly HostNeeds[]): HostNeeds {
  return {
    gpus: least(all.map(({ gpus }) => gpus)),
    nets: least(all.map(({ nets }) => nets)),
    netGbps: least(all.map(({ netGbps }) => netGbps)),
    gpuLink: leastLink(all.map(({ gpuLink }) => gpuLink)),
    nicLink: leastLink(all.map(({ nicLink }) => nicLink)),
    nvlinks: least(all.map(({ nvlinks }) => nvlinks)),
    nvlinkGBps: least(all.map(({ nvlinkGBps }) => nvlinkGBps)),
    hasNvSwitch: all.every(({ hasNvSwitch }) => hasNvSwitch),
  };
}

/** The link of a PCI device by its attributes; undefined where they lack. */
export function linkOf(pci: XmlElement): LinkNeed | undefined {
  const gtps = Number.parseFloat(pci.attributes.get('link_speed') ?? '');
  const lanes = Number(pci.attributes.get('link_width'));
  return gtps > 0 && lanes > 0 ? { gtps, lanes } : undefined;
}

/** Sum of a GPU's NVLinks. */
export function nvlinksOf(gpu: XmlElement): number {
  return childrenNamed(gpu, 'nvlink').reduce((sum, link) => sum + (Number(link.attributes.get('count')) || 0), 0);
}

/** By the PCI class of the other end. */
function isToSwitch(link: XmlElement): boolean {
  return link.attributes.get('tclass') === '0x068000';
}

function least(values: readonly number[]): number {
  return values.length === 0 ? 0 : Math.min(...values);
}

function leastLink(links: readonly (LinkNeed | undefined)[]): LinkNeed | undefined {
  const known = links.filter((link) => link !== undefined);
  if (known.length < links.length || known.length === 0) return undefined;
  return { gtps: least(known.map(({ gtps }) => gtps)), lanes: least(known.map(({ lanes }) => lanes)) };
}
