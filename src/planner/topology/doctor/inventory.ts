import type { Parameters } from '../../parameters.js';
import { pciLink } from '../bandwidths.js';
import { parseInteger } from '../c-numbers.js';
import type { System } from '../system.js';
import { childNamed, childrenNamed, type XmlElement } from '../xml/tree.js';
import type { Findings } from './finding.js';
import type { Measure } from './measure.js';

/** A topology with lists of its devices, which the checks read. */
export interface Inventory {
  readonly root: XmlElement;
  readonly cpus: readonly XmlElement[];
  /** All PCI devices and switches, parents before children. */
  readonly pcis: readonly PciDevice[];
  readonly gpus: readonly GpuDevice[];
  readonly nets: readonly NetDevice[];
  readonly parameters: Parameters;
  /** The graph, if it can be built. */
  readonly graph: { readonly system: System; readonly measure: Measure } | undefined;
  readonly findings: Findings;
}

export interface PciDevice {
  readonly element: XmlElement;
  readonly cpu: XmlElement;
  readonly parent: PciDevice | undefined;
  readonly children: PciDevice[];
  /** `host_hash` and bus id, lower case. */
  readonly key: string;
  /** Of its link, as NCCL computes it; 0 where attributes are missing. */
  readonly bandwidthGBps: number;
}

export interface GpuDevice {
  readonly element: XmlElement;
  readonly pci: PciDevice;
  readonly host: string;
}

export interface NetDevice {
  readonly element: XmlElement;
  /** Undefined for a NIC that is no PCI device. */
  readonly pci: PciDevice | undefined;
  readonly cpu: XmlElement;
  /** As NCCL computes it. */
  readonly bandwidthGBps: number;
}

/** Lists of all devices of a tree. */
export function devicesOf(root: XmlElement): Pick<Inventory, 'cpus' | 'pcis' | 'gpus' | 'nets'> {
  const cpus = childrenNamed(root, 'cpu');
  const pcis: PciDevice[] = [];
  const gpus: GpuDevice[] = [];
  const nets: NetDevice[] = [];

  const addNets = (parent: XmlElement, cpu: XmlElement, pci: PciDevice | undefined): void => {
    for (const nic of childrenNamed(parent, 'nic')) {
      for (const element of childrenNamed(nic, 'net')) nets.push({ element, pci, cpu, bandwidthGBps: netGBps(element) });
    }
  };
  const addPcis = (parent: XmlElement, cpu: XmlElement, above: PciDevice | undefined): void => {
    for (const element of childrenNamed(parent, 'pci')) {
      const pci: PciDevice = {
        element,
        cpu,
        parent: above,
        children: [],
        key: deviceKey(cpu, element.attributes.get('busid') ?? ''),
        bandwidthGBps: pciLink(integer(element, 'link_width', 0), element.attributes.get('link_speed') ?? '').bandwidthGBps,
      };
      above?.children.push(pci);
      pcis.push(pci);
      for (const gpu of childrenNamed(element, 'gpu')) gpus.push({ element: gpu, pci, host: hostOf(cpu) });
      addNets(element, cpu, pci);
      addPcis(element, cpu, pci);
    }
  };
  for (const cpu of cpus) {
    addNets(cpu, cpu, undefined);
    addPcis(cpu, cpu, undefined);
  }
  return { cpus, pcis, gpus, nets };
}

function hostOf(cpu: XmlElement): string {
  return cpu.attributes.get('host_hash') ?? '';
}

/** Key of a bus id on the host of that CPU. */
export function deviceKey(cpu: XmlElement, busId: string): string {
  return `${hostOf(cpu)} ${busId.toLowerCase()}`;
}

/** The number that NCCL reads; `fallback` if the attribute is missing. */
export function integer(element: XmlElement, name: string, fallback: number): number {
  const text = element.attributes.get(name);
  return text === undefined ? fallback : parseInteger(text);
}

/** Mb/s below which NCCL puts 10 Gb/s. */
function netGBps(net: XmlElement): number {
  const speed = integer(net, 'speed', 0);
  return (speed > 0 ? speed : 10_000) / 8000;
}

/** True if some GPU of the device, or of one below, has a rank. */
export function isInUse(pci: PciDevice): boolean {
  return childNamed(pci.element, 'gpu')?.attributes.has('rank') === true || pci.children.some(isInUse);
}

/** `GPU 3`, by its `dev`. */
export function gpuName(gpu: GpuDevice): string {
  return `GPU ${gpu.element.attributes.get('dev') ?? '?'}`;
}
