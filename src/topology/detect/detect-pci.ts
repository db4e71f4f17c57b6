import { createElement, type XmlElement } from '../xml/tree.js';
import type { CpuDetector } from './detect-cpus.js';
import type { MachineFiles } from './machine-files.js';

/** `0000:1b:00.0`: domain, bus, device, function. */
const busIdForm = /^[0-9a-fA-F]{4}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-9a-fA-F]$/;

/**
 * The PCI tree above the devices that are asked for, as NCCL builds it from /sys. Of each switch, only the port towards
 * the CPU appears: a step up passes over the port that the device is plugged into.
 *
 *     /sys/devices/pci0000:17/0000:17:00.0/0000:18:00.0/0000:19:04.0/0000:1a:00.0
 *                  CPU         root port    switch       its port     device
 *                  <cpu> ◄─────────────────  <pci> ◄────────────────  <pci>
 */
export class PciDetector {
  readonly #files: MachineFiles;
  readonly #cpus: CpuDetector;
  readonly #byBusId = new Map<string, XmlElement>();

  constructor(files: MachineFiles, cpus: CpuDetector) {
    this.#files = files;
    this.#cpus = cpus;
  }

  /**
   * The `<pci>` of a device, put at its place in the tree with all switches above it. `link` is what the driver says of
   * the device's link, where it says more than /sys.
   */
  device(busId: string, link: { readonly speed?: string | undefined; readonly lanes?: number | undefined } = {}): XmlElement {
    const id = busId.toLowerCase();
    const known = this.#byBusId.get(id);
    if (known !== undefined) return known;
    const path = this.#files.resolve(`/sys/bus/pci/devices/${id}`);
    const element = createElement('pci', undefined, [['busid', id]]);
    this.#byBusId.set(id, element);
    for (const name of ['class', 'vendor', 'device', 'subsystem_vendor', 'subsystem_device']) {
      const text = path === undefined ? undefined : this.#files.readText(`${path}/${name}`);
      if (text !== undefined) element.attributes.set(name, text);
    }
    element.attributes.set('link_speed', link.speed ?? this.#slowerSpeed(path));
    element.attributes.set('link_width', String(link.lanes ?? this.#fewerLanes(path)));
    this.#addSwitchLinks(element, id);
    insertByBusId(this.#parent(path), element);
    return element;
  }

  #parent(path: string | undefined): XmlElement {
    if (path === undefined) return this.#cpus.cpu('-1');
    const above = path.split('/').slice(-3, -1);
    const [upper = '', port = ''] = above;
    if (busIdForm.test(port) && busIdForm.test(upper)) return this.device(upper);
    return this.#cpus.cpu(this.#files.readText(`${path}/numa_node`) ?? '-1');
  }

  /** The speed of the device or of the port it is plugged into, whichever is slower. */
  #slowerSpeed(path: string | undefined): string {
    if (path === undefined) return '';
    const own = this.#files.readText(`${path}/max_link_speed`) ?? '';
    const port = this.#files.readText(`${parentOf(path)}/max_link_speed`) ?? '';
    // An unreadable one does not limit.
    const speed = (text: string) => { const value = Number.parseFloat(text); return Number.isNaN(value) ? Infinity : value; };
    return speed(port) < speed(own) ? port : own;
  }

  /** 0 where one of the two does not say: NCCL then counts 16. */
  #fewerLanes(path: string | undefined): number {
    if (path === undefined) return 0;
    const lanes = (folder: string) => Number.parseInt(this.#files.readText(`${folder}/max_link_width`) ?? '0', 10) || 0;
    return Math.min(lanes(path), lanes(parentOf(path)));
  }

  /** Links to other switches that Broadcom's driver tells. */
  #addSwitchLinks(element: XmlElement, busId: string): void {
    if (element.attributes.get('vendor') !== '0x1000') return;
    for (const target of this.#files.list(`/sys/kernel/pci_switch_link/virtual_switch_links/${busId}`)) {
      if (busIdForm.test(target) && this.#files.resolve(`/sys/bus/pci/devices/${target}`) !== undefined) {
        createElement('pcilink', element, [['target', target]]);
      }
    }
  }
}

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
