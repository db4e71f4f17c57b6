import { InvalidArgumentError } from '../../errors.js';
import { didYouMean } from '../../suggest.js';
import { busIdNumber } from '../topology/build/attributes.js';
import { nvlink } from '../topology/catalogue/build.js';
import { cloneElement, descendants, detach, type XmlElement } from '../topology/xml/tree.js';
import { copyNic, freeBusId, named } from './machine-edits.js';

/** Changes of one device. */
export const deviceEdits = {
  'half-speed': 'half the speed of',
  'half-lanes': 'half the PCIe lanes of',
  'half-nvlinks': 'half the NVLinks of',
  'no-nvlinks': 'no NVLinks of',
  'add-nvlink': 'another NVLink between',
  another: 'another card like',
} as const;
export type DeviceEditName = keyof typeof deviceEdits;

/**
 * A change of a device: a network device by its name, a GPU as `gpu3`, a PCI switch by its bus id, or the NVLinks between two
 * GPUs as `gpu0+gpu3`.
 */
export interface DeviceEdit {
  readonly what: DeviceEditName;
  readonly device: string;
}

/** A change as a phrase: `half the PCIe lanes of gpu3`. */
export function describeEdit({ what, device }: DeviceEdit): string {
  return `${deviceEdits[what]} ${device}`;
}

/**
 * The machine with these changes, one after the other, as a new tree. An added card goes beside its model; an added GPU has its
 * NVLinks to NVSwitches, and none to other GPUs.
 *
 * @throws InvalidArgumentError where there is no such device, or nothing to change
 */
export function withDeviceEdits(machine: XmlElement, edits: readonly DeviceEdit[]): XmlElement {
  if (edits.length === 0) return machine;
  const root = cloneElement(machine);
  for (const edit of edits) apply(root, edit);
  return root;
}

function apply(root: XmlElement, { what, device: name }: DeviceEdit): void {
  const [first = name, second] = name.split('+');
  const element = deviceOf(root, first);
  const peer = second === undefined ? undefined : cardOf(deviceOf(root, second));
  const card = cardOf(element);
  const isGpu = element.name === 'gpu';
  const refuse = (why: string) => new InvalidArgumentError('ARGUMENT_RANGE', `${describeEdit({ what, device: name })}: ${why}`);
  switch (what) {
    case 'half-speed': {
      const mbps = Number(element.attributes.get('speed'));
      if (isGpu || !(mbps > 1)) throw refuse('only a network device with a speed has one');
      element.attributes.set('speed', String(Math.floor(mbps / 2)));
      return;
    }
    case 'half-lanes': {
      const lanes = Number(card?.attributes.get('link_width'));
      if (card === undefined || !(lanes > 1)) throw refuse('its PCIe link has no lanes to lose');
      card.attributes.set('link_width', String(Math.floor(lanes / 2)));
      return;
    }
    case 'half-nvlinks':
    case 'no-nvlinks': {
      const links = isGpu ? nvlinksOf(root, element, card, peer) : [];
      if (links.length === 0) throw refuse(peer === undefined ? 'it has no NVLinks' : 'no NVLink joins them');
      for (const link of links) {
        const count = Math.floor(Number(link.attributes.get('count') ?? 1) / 2);
        if (what === 'no-nvlinks' || count === 0) detach(link);
        else link.attributes.set('count', String(count));
      }
      return;
    }
    case 'add-nvlink': {
      const other = second === undefined ? undefined : deviceOf(root, second);
      if (!isGpu || other?.name !== 'gpu' || card === undefined || peer === undefined || peer === card)
        throw refuse('it joins two GPUs, as gpu0+gpu3');
      addNvlink(element, peer);
      addNvlink(other, card);
      return;
    }
    case 'another':
      if (card?.parent === undefined) throw refuse('it has no place on a PCI bus');
      if (isGpu) copyGpu(card, card.parent, root);
      else copyNic(card, card.parent, root);
  }
}

function nameOf({ name, attributes }: XmlElement): string {
  return name === 'gpu' ? `gpu${attributes.get('dev') ?? ''}` : (attributes.get('name') ?? '');
}

function deviceOf(root: XmlElement, name: string): XmlElement {
  const devices = [...named(root, 'gpu'), ...named(root, 'net')];
  const found = devices.find((device) => nameOf(device) === name) ?? named(root, 'pci').find((pci) => hasBusId(pci, name));
  if (found !== undefined) return found;
  throw new InvalidArgumentError('UNKNOWN_NAME', `the machine has no device ${name}${didYouMean(name, devices.map(nameOf))}`);
}

function hasBusId({ attributes }: XmlElement, name: string): boolean {
  return (
    /^[\da-f]{4,8}:[\da-f]{2}:[\da-f]{2}\.\d$/i.test(name) && busIdNumber(attributes.get('busid') ?? '') === busIdNumber(name)
  );
}

/** The PCI device that a GPU or network device is. */
function cardOf(device: XmlElement): XmlElement | undefined {
  let at: XmlElement | undefined = device;
  while (at !== undefined && at.name !== 'pci') at = at.parent;
  return at;
}

/** NVLinks of a GPU, and those of other GPUs that lead to it; of a pair those between the two. */
function nvlinksOf(root: XmlElement, gpu: XmlElement, card: XmlElement | undefined, peer: XmlElement | undefined): XmlElement[] {
  const busId = card?.attributes.get('busid');
  const own = new Set(descendants(gpu));
  const others = peer === undefined ? undefined : new Set(descendants(peer));
  const peerId = peer?.attributes.get('busid');
  return named(root, 'nvlink').filter((link) => {
    const target = link.attributes.get('target');
    return others === undefined
      ? own.has(link) || target === busId
      : (own.has(link) && target === peerId) || (others.has(link) && target === busId);
  });
}

/** One NVLink more from a GPU to the card of another. */
function addNvlink(gpu: XmlElement, { attributes }: XmlElement): void {
  const target = attributes.get('busid') ?? '';
  const known = gpu.children.find((child) => child.name === 'nvlink' && child.attributes.get('target') === target);
  if (known === undefined) nvlink(gpu, target, 1, attributes.get('class') ?? '');
  else known.attributes.set('count', String(Number(known.attributes.get('count') ?? 1) + 1));
}

function copyGpu(card: XmlElement, parent: XmlElement, root: XmlElement): void {
  const gpuIds = new Set(named(root, 'gpu').map((gpu) => cardOf(gpu)?.attributes.get('busid')));
  const next = (attribute: string) =>
    1 + Math.max(...named(root, 'gpu').map((gpu) => Number(gpu.attributes.get(attribute) ?? -1)));
  const [dev, rank] = [next('dev'), next('rank')];
  const copy = cloneElement(card, parent);
  copy.attributes.set('busid', freeBusId(root));
  for (const gpu of named(copy, 'gpu')) {
    gpu.attributes.set('dev', String(dev));
    if (gpu.attributes.has('rank')) gpu.attributes.set('rank', String(rank));
  }
  for (const link of named(copy, 'nvlink')) if (gpuIds.has(link.attributes.get('target'))) detach(link);
}
