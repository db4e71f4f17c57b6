import { linkSpeeds, setMissing } from '../catalogue/build.js';
import { childWith, createElement, descendants, type XmlElement } from '../xml/tree.js';
import type { CpuDetector } from './detect-cpus.js';
import type { MachineFiles, ProbedGpu } from './machine-files.js';

/** `0000:1b:00.0`: domain, bus, device, function. */
const busIdForm = /^[0-9a-fA-F]{4}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-9a-fA-F]$/;

/** NCCL's class for a device whose class /sys does not have. */
const classes = { gpu: '0x03', nic: '0x02' } as const;

/**
 * The PCI tree above requested devices, as NCCL builds it from /sys. Of each switch only the port towards the CPU appears; a step
 * up skips the port of the device.
 *
 *     /sys/devices/pci0000:17/0000:17:00.0/0000:18:00.0/0000:19:04.0/0000:1a:00.0
 *                  CPU         root port    switch       its port     device
 *                  <cpu> ◄─────────────────  <pci> ◄────────────────  <pci>
 *
 * An element of a file with the same bus id stays in place and gets its missing attributes.
 */
export class PciDetector {
  readonly #files: MachineFiles;
  readonly #cpus: CpuDetector;
  readonly #byBusId = new Map<string, XmlElement>();
  readonly #filled = new Set<XmlElement>();

  constructor(files: MachineFiles, cpus: CpuDetector, system: XmlElement) {
    this.#files = files;
    this.#cpus = cpus;
    for (const element of descendants(system)) {
      const busId = element.name === 'pci' ? element.attributes.get('busid') : undefined;
      if (busId !== undefined && !this.#byBusId.has(busId)) this.#byBusId.set(busId, element);
    }
  }

  /**
   * The `<pci>` of a device, added to the tree with all switches above it. Ids and link of a GPU are the driver's if available.
   */
  device(busId: string, kind: keyof typeof classes, probed?: ProbedGpu): XmlElement {
    const element = this.#element(busId.toLowerCase());
    setMissing(element, [['class', classes[kind]]]);
    this.#fill(element, probed);
    return element;
  }

  #element(busId: string): XmlElement {
    const known = this.#byBusId.get(busId);
    if (known !== undefined) return known;
    const element = createElement('pci', undefined, [['busid', busId]]);
    this.#byBusId.set(busId, element);
    return element;
  }

  /** Sets missing attributes of the element and those above it, and adds it to the tree if necessary. */
  #fill(element: XmlElement, probed?: ProbedGpu): void {
    if (this.#filled.has(element)) return;
    this.#filled.add(element);
    const busId = element.attributes.get('busid') ?? '';
    const path = this.#files.resolve(`/sys/bus/pci/devices/${busId}`);
    // The only attribute of /sys that overrides a file's.
    const deviceClass = path === undefined ? undefined : this.#files.readText(`${path}/class`);
    if (deviceClass !== undefined) element.attributes.set('class', deviceClass);
    setMissing(element, this.#ids(path, probed));
    setMissing(element, this.#link(path, probed));
    this.#addSwitchLinks(element, busId);

    if (element.parent === undefined) insertByBusId(this.#parent(path), element);
    if (element.parent?.name === 'pci') this.#fill(element.parent);
    else if (element.parent?.name === 'cpu') this.#cpus.fill(element.parent);
  }

  #ids(path: string | undefined, probed: ProbedGpu | undefined): [string, string][] {
    if (probed?.pciIds !== undefined) {
      const { vendor, device, subsystemVendor, subsystemDevice } = probed.pciIds;
      const hex = (id: number) => `0x${id.toString(16)}`;
      return [
        ['vendor', hex(vendor)],
        ['device', hex(device)],
        ['subsystem_vendor', hex(subsystemVendor)],
        ['subsystem_device', hex(subsystemDevice)],
      ];
    }
    if (path === undefined) return [];
    return ['vendor', 'device', 'subsystem_vendor', 'subsystem_device'].flatMap((name): [string, string][] => {
      const text = this.#files.readText(`${path}/${name}`);
      return text === undefined ? [] : [[name, text]];
    });
  }

  #link(path: string | undefined, probed: ProbedGpu | undefined): [string, string][] {
    if (probed !== undefined) {
      // NCCL writes this if the driver reports no speed, and then reads it as Gen3.
      const speed = (probed.pciGeneration === undefined ? undefined : speedTexts.get(probed.pciGeneration)) ?? '16.0 GT/s';
      return [
        ['link_speed', speed],
        ['link_width', String(probed.pciLanes ?? 16)],
      ];
    }
    if (path === undefined)
      return [
        ['link_speed', ''],
        ['link_width', ''],
      ];
    return [
      ['link_speed', this.#slowerSpeed(path)],
      ['link_width', String(this.#fewerLanes(path))],
    ];
  }

  #parent(path: string | undefined): XmlElement {
    if (path === undefined) return this.#cpus.cpu('-1');
    const above = path.split('/').slice(-3, -1);
    const [upper = '', port = ''] = above;
    if (busIdForm.test(port) && busIdForm.test(upper)) return this.#element(upper);
    return this.#cpus.cpu(this.#files.readText(`${path}/numa_node`) ?? '-1');
  }

  /** The speed of the device or of its port, whichever is slower. */
  #slowerSpeed(path: string): string {
    const own = this.#files.readText(`${path}/max_link_speed`) ?? '';
    const port = this.#files.readText(`${parentOf(path)}/max_link_speed`) ?? '';
    // An unreadable one does not limit.
    const speed = (text: string) => {
      const value = Number.parseFloat(text);
      return Number.isNaN(value) ? Infinity : value;
    };
    return speed(port) < speed(own) ? port : own;
  }

  /** 0 where one of the two is unknown: NCCL then counts 16. */
  #fewerLanes(path: string): number {
    const lanes = (folder: string) => Number.parseInt(this.#files.readText(`${folder}/max_link_width`) ?? '0', 10) || 0;
    return Math.min(lanes(path), lanes(parentOf(path)));
  }

  /** Links to other switches, from Broadcom's driver. */
  #addSwitchLinks(element: XmlElement, busId: string): void {
    if (element.attributes.get('vendor') !== '0x1000') return;
    for (const target of this.#files.list(`/sys/kernel/pci_switch_link/virtual_switch_links/${busId}`)) {
      if (!busIdForm.test(target) || this.#files.resolve(`/sys/bus/pci/devices/${target}`) === undefined) continue;
      if (childWith(element, 'pcilink', 'target', target) === undefined) createElement('pcilink', element, [['target', target]]);
    }
  }
}

/** NCCL's texts for the speeds of PCI generations. */
const speedTexts = new Map<number, string>([
  [1, '2.5 GT/s PCIe'],
  [2, '5.0 GT/s PCIe'],
  ...Object.entries(linkSpeeds).map(([generation, text]) => [Number(generation), text] as const),
]);

function parentOf(path: string): string {
  return path.slice(0, path.lastIndexOf('/'));
}

/** Keeps devices below one parent in the order of their bus ids. */
function insertByBusId(parent: XmlElement, element: XmlElement): void {
  const busId = element.attributes.get('busid') ?? '';
  const after = parent.children.findIndex((child) => (child.attributes.get('busid') ?? '') > busId);
  parent.children.splice(after < 0 ? parent.children.length : after, 0, element);
  element.parent = parent;
}
