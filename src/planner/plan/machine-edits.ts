import { linkSpeeds, nvlink, type PciGeneration } from '../topology/catalogue/build.js';
import { cloneElement, descendants, detach, type XmlElement } from '../topology/xml/tree.js';

/** Changes of a machine's topology, for faults, questions and improvements that are tried. Each changes the tree that it gets. */
export type MachineEdit = (machine: XmlElement) => void;

/** Elements of a machine by name. */
export function named(machine: XmlElement, name: string): XmlElement[] {
  return [...descendants(machine)].filter((element) => element.name === name);
}

/** Leaves the first network devices. */
export const keepNics =
  (count: number): MachineEdit =>
  (machine) => {
    for (const net of named(machine, 'net').slice(count)) detach(net);
  };

/** Takes out the network device with this number. */
export const withoutNic =
  (dev: number): MachineEdit =>
  (machine) => {
    for (const net of named(machine, 'net')) if (Number(net.attributes.get('dev')) === dev) detach(net);
  };

export const scaleNicSpeed =
  (part: number): MachineEdit =>
  (machine) => {
    for (const net of named(machine, 'net')) net.attributes.set('speed', String(Number(net.attributes.get('speed') ?? 0) * part));
  };

export const setNicSpeed =
  (mbps: number): MachineEdit =>
  (machine) => {
    for (const net of named(machine, 'net')) net.attributes.set('speed', String(mbps));
  };

/** Network devices no longer reach the memory of GPUs. */
export const withoutGdr: MachineEdit = (machine) => {
  for (const net of named(machine, 'net')) net.attributes.set('gdr', '0');
};

export const withoutNvlinks: MachineEdit = (machine) => {
  for (const link of named(machine, 'nvlink')) detach(link);
};

export const halveNvlinks: MachineEdit = (machine) => {
  for (const link of named(machine, 'nvlink'))
    link.attributes.set('count', String(Math.max(1, Math.floor(Number(link.attributes.get('count') ?? 1) / 2))));
};

export function isNumbered(gpu: XmlElement, number: number): boolean {
  return Number(gpu.attributes.get('dev')) === number;
}

/** Takes NVLinks of one GPU out, at both ends; the fullest first. */
export const nvlinksDown =
  (gpuNumber: number, count: number): MachineEdit =>
  (machine) => {
    const gpus = named(machine, 'gpu');
    const gpu = gpus.find((each) => isNumbered(each, gpuNumber));
    const countOf = (link: XmlElement) => Number(link.attributes.get('count') ?? 1);
    const less = (link: XmlElement | undefined) => {
      if (link === undefined) return;
      if (countOf(link) > 1) link.attributes.set('count', String(countOf(link) - 1));
      else detach(link);
    };
    for (let down = 0; down < count && gpu !== undefined; down++) {
      const [fullest] = named(gpu, 'nvlink').sort((a, b) => countOf(b) - countOf(a));
      const target = fullest?.attributes.get('target');
      const other = gpus.find(({ parent }) => parent?.attributes.get('busid') === target);
      less(fullest);
      if (other !== undefined)
        less(named(other, 'nvlink').find(({ attributes }) => attributes.get('target') === gpu.parent?.attributes.get('busid')));
    }
  };

/** Joins each two GPUs by that many NVLinks, without NVSwitches. */
export const directNvlinks =
  (count: number): MachineEdit =>
  (machine) => {
    withoutNvlinks(machine);
    const gpus = named(machine, 'gpu').flatMap((gpu) =>
      gpu.parent === undefined ? [] : [{ gpu, device: gpu.parent.attributes }],
    );
    for (const { gpu, device } of gpus)
      for (const { device: other } of gpus)
        if (other !== device) nvlink(gpu, other.get('busid') ?? '', count, other.get('class') ?? '0x030200');
  };

/** Speed of a lane, GT/s; NaN where it is not given. */
export function laneSpeed(pci: XmlElement): number {
  return Number.parseFloat(pci.attributes.get('link_speed') ?? '');
}

export const limitPcie =
  (generation: PciGeneration): MachineEdit =>
  (machine) => {
    for (const pci of named(machine, 'pci'))
      if (laneSpeed(pci) > Number.parseFloat(linkSpeeds[generation])) pci.attributes.set('link_speed', linkSpeeds[generation]);
  };

export const limitLanes =
  (lanes: number): MachineEdit =>
  (machine) => {
    for (const pci of named(machine, 'pci'))
      if (Number(pci.attributes.get('link_width')) > lanes) pci.attributes.set('link_width', String(lanes));
  };

/** An edit of the machine's first network card alone. */
export const ofFirstNic =
  (edit: MachineEdit): MachineEdit =>
  (machine) => {
    const [nic] = nicDevices(machine);
    if (nic !== undefined) edit(nic);
  };

/** Puts a second network card beside each. */
export const doubleNics: MachineEdit = (machine) => {
  for (const nic of nicDevices(machine)) copyNic(nic, nic.parent ?? machine, machine);
};

/** PCI devices that hold NICs. */
export function nicDevices(machine: XmlElement): XmlElement[] {
  return named(machine, 'nic').flatMap(({ parent }) => (parent?.name === 'pci' ? [parent] : []));
}

/** Another card like that one, with numbers of its own. */
export function copyNic(device: XmlElement, parent: XmlElement, machine: XmlElement): void {
  const copy = cloneElement(device, parent);
  copy.attributes.set('busid', freeBusId(machine));
  for (const net of named(copy, 'net')) {
    const dev =
      1 +
      Math.max(
        ...named(machine, 'net')
          .filter((other) => other !== net)
          .map((other) => Number(other.attributes.get('dev') ?? 0)),
      );
    net.attributes.set('dev', String(dev));
    net.attributes.set('name', `added_${dev}`);
    net.attributes.set('guid', `0xadded0000000${dev.toString(16).padStart(3, '0')}`);
  }
}

/** A bus id that no device of a machine has. */
export function freeBusId(machine: XmlElement): string {
  const busIds = new Set(named(machine, 'pci').map((pci) => pci.attributes.get('busid')));
  let bus = 0;
  while (busIds.has(busIdOf(bus))) bus++;
  return busIdOf(bus);
}

/** A bus in a PCI domain that machines do not use. */
function busIdOf(bus: number): string {
  return `add0:${bus.toString(16).padStart(2, '0')}:00.0`;
}
