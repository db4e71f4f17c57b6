import { InputError } from '../../../errors.js';
import { parseBigInteger } from '../c-numbers.js';
import {
  childNamed,
  childrenNamed,
  cloneElement,
  createElement,
  descendants,
  describeElement,
  type XmlElement,
} from '../xml/tree.js';
import { addC2c, addNet, hexId, HIDDEN_NVSWITCH, linkSpeeds, nvlink, NVSWITCH_CLASS, setCpuModel, setMissing } from './build.js';
import type { GpuModel } from './gpus.js';
import type { GpuGroup, Hardware, NicGroup } from './hardware.js';
import { HARDWARE_FORM } from './hardware-form.js';
import type { NicModel } from './nics.js';

/** A completed topology. */
export interface Completed {
  /** A new tree; the given one is not changed. */
  readonly root: XmlElement;
  /** Notes for the user, one line each. */
  readonly notes: readonly string[];
}

/**
 * Completes a topology as NCCL does on the machine: adds the devices of the description to the PCI tree, and sets missing
 * attributes; existing ones stay, even if wrong. Then every GPU gets a rank, in the order of `dev`, unless the file has ranks
 * already.
 *
 * Without a description, only ranks are added.
 *
 * @throws InputError `CONTENT` where the file has no place for a device, or more places than devices and no bus ids.
 */
export function completeSkeleton(skeleton: XmlElement, hardware?: Hardware): Completed {
  const root = cloneElement(skeleton);
  const notes: string[] = [];
  if (hardware !== undefined) {
    for (const group of hardware.gpus) placeGpus(root, group, notes);
    for (const group of hardware.nics) placeNics(root, group);
    if (hardware.cpu !== undefined) for (const cpu of childrenNamed(root, 'cpu')) setCpuModel(cpu, hardware.cpu);
  }
  giveRanks(root, notes);
  return { root, notes };
}

/** True if the file lacks devices or ranks, which a graph needs. */
export function isSkeleton(root: XmlElement): boolean {
  for (const element of descendants(root)) if (element.name === 'gpu' && element.attributes.has('rank')) return false;
  return true;
}

function placeGpus(root: XmlElement, group: GpuGroup, notes: string[]): void {
  const { model } = group;
  const isPlace = (pci: XmlElement) => classOf(pci).startsWith('0x03') || childNamed(pci, 'gpu') !== undefined;
  const places = chooseSlots(root, group, isPlace, (pci) => childNamed(pci, 'gpu')?.attributes.has('sm') ?? false);
  let dev =
    1 +
    Math.max(
      -1,
      ...[...descendants(root)].filter(({ name }) => name === 'gpu').map((gpu) => Number(gpu.attributes.get('dev') ?? -1)),
    );
  const gpus = places.map((pci) => {
    completePci(pci, { vendor: 0x10de, device: model.device }, model.pciGeneration, model.pciClass);
    const gpu = childNamed(pci, 'gpu') ?? createElement('gpu', pci);
    if (!gpu.attributes.has('dev')) gpu.attributes.set('dev', String(dev++));
    setMissing(gpu, [
      ['sm', String(model.sm)],
      ['gdr', model.gdr ? '1' : '0'],
    ]);
    return gpu;
  });
  addNvlinks(gpus, places, group);
  for (const gpu of gpus) if (childNamed(gpu, 'c2c') === undefined) addC2c(gpu, model);
  if (group.nvlink === 'none' && model.nvlink !== 'none' && group.count > 1) notes.push(unknownWiring(model));
}

function unknownWiring(model: GpuModel): string {
  return (
    `${model.name} has ${model.nvlinks} NVLinks, but what they join differs by machine: none were added; ` +
    'say "with nvlink pairs" or "with nvlink switch", or give the links of GPU i to GPU j as rows in YAML'
  );
}

function addNvlinks(gpus: readonly XmlElement[], places: readonly XmlElement[], { model, nvlink: wiring }: GpuGroup): void {
  gpus.forEach((gpu, from) => {
    if (childNamed(gpu, 'nvlink') !== undefined) return;
    // NCCL also writes a hidden switch when a virtual machine does not see the real ones.
    if (wiring === 'switch') nvlink(gpu, HIDDEN_NVSWITCH, model.nvlinks, NVSWITCH_CLASS);
    places.forEach((place, to) => {
      const count =
        wiring === 'pairs' ? ((from ^ 1) === to ? model.nvlinks : 0) : typeof wiring === 'string' ? 0 : (wiring[from]?.[to] ?? 0);
      if (count > 0) nvlink(gpu, place.attributes.get('busid') ?? '', count, classOf(place));
    });
  });
}

function placeNics(root: XmlElement, group: NicGroup): void {
  const hasNet = (pci: XmlElement) => childNamed(childNamed(pci, 'nic') ?? pci, 'net') !== undefined;
  const places = chooseSlots(root, group, (pci) => classOf(pci).startsWith('0x02') || hasNet(pci), hasNet);
  let dev = [...descendants(root)].filter(({ name }) => name === 'net').length;
  for (const pci of places) {
    completePci(pci, group.model, group.model.pciGeneration, group.model.pciClass);
    if (hasNet(pci)) continue;
    const nic = childNamed(pci, 'nic') ?? createElement('nic', pci);
    addNet(nic, group.model, { name: `${group.model.prefix}${dev}`, dev, speedMbps: group.speedMbps });
    dev++;
  }
}

/** The elements of the devices of a group, by bus id or by class, in the order of bus ids, as drivers count. */
function chooseSlots(
  root: XmlElement,
  group: {
    readonly model: GpuModel | NicModel;
    readonly count: number;
    readonly isAll?: boolean;
    readonly at: readonly string[];
  },
  isPlace: (pci: XmlElement) => boolean,
  isTaken: (pci: XmlElement) => boolean,
): XmlElement[] {
  const what = `${group.count} x ${group.model.name}`;
  const ends = [...descendants(root)].filter((element) => element.name === 'pci' && childNamed(element, 'pci') === undefined);
  if (group.at.length > 0) {
    return group.at.map((busId) => {
      const found = ends.find((pci) => busIdOf(pci) === busNumber(busId));
      if (found !== undefined) return found;
      throw new InputError('CONTENT', `${what}: the file has no PCI device at ${busId}; it has ${list(ends)}`);
    });
  }
  const free = ends.filter((pci) => isPlace(pci) && !isTaken(pci));
  // A file that has its devices, and lacks only attributes.
  const candidates = free.length === 0 ? ends.filter(isPlace) : free;
  if (candidates.length === group.count || (group.isAll === true && candidates.length > 0))
    return candidates.sort((a, b) => Number(busIdOf(a) - busIdOf(b)));
  const place = candidates[0] ?? root;
  throw new InputError(
    'CONTENT',
    candidates.length < group.count
      ? `${what}: the file has ${candidates.length === 0 ? 'no place' : `places for ${candidates.length} only`} (PCI devices of that class)${
          candidates.length === 0 ? '' : `, at ${list(candidates)}`
        }`
      : `${what}: the file has ${candidates.length} places, at ${list(candidates)}; say which, as in ${HARDWARE_FORM}`,
    place.line > 0 ? { line: place.line, column: place.column } : {},
  );
}

function completePci(
  pci: XmlElement,
  ids: { readonly vendor: number; readonly device: number },
  generation: keyof typeof linkSpeeds,
  pciClass: string,
): void {
  setMissing(pci, [
    ['class', pciClass],
    ['vendor', hexId(ids.vendor)],
    ['device', hexId(ids.device)],
    ['subsystem_vendor', hexId(ids.vendor)],
    ['subsystem_device', hexId(0)],
    ['link_speed', linkSpeeds[generation]],
    ['link_width', '16'],
  ]);
}

/** Adds ranks in the order of `dev`, as `torchrun` and `mpirun` do, unless the file has ranks. */
function giveRanks(root: XmlElement, notes: string[]): void {
  const gpus = [...descendants(root)].filter((element) => element.name === 'gpu');
  const without = gpus.filter((gpu) => !gpu.attributes.has('rank'));
  if (without.length < gpus.length) {
    if (without.length > 0) {
      notes.push(
        `${without.length} of ${gpus.length} GPUs have no rank (the first: ${describeElement(without[0] ?? root)}): NCCL leaves them out`,
      );
    }
    return;
  }
  const order = (gpu: XmlElement) => Number(gpu.attributes.get('dev') ?? Infinity);
  [...gpus]
    .sort((a, b) => order(a) - order(b))
    .forEach((gpu, rank) => {
      const gdr = gpu.attributes.get('gdr');
      // NCCL sets rank before gdr.
      gpu.attributes.delete('gdr');
      gpu.attributes.set('rank', String(rank));
      gpu.attributes.set('gdr', gdr ?? '1');
    });
}

function classOf(pci: XmlElement): string {
  return pci.attributes.get('class') ?? '';
}

function busIdOf(pci: XmlElement): bigint {
  return busNumber(pci.attributes.get('busid') ?? '');
}

function busNumber(busId: string): bigint {
  return parseBigInteger(busId.replaceAll(/[.:]/g, ''), 16);
}

function list(places: readonly XmlElement[]): string {
  const shown = places
    .slice(0, 16)
    .map((pci) => pci.attributes.get('busid') ?? '?')
    .join(' ');
  return places.length > 16 ? `${shown} …` : shown === '' ? 'none' : shown;
}
