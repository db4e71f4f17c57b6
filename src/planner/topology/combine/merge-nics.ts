import { InputError } from '../../../errors.js';
import type { Parameters } from '../../parameters.js';
import { compareVersions } from '../../versions/version.js';
import { busIdNumber, integerOr } from '../build/attributes.js';
import { PathType, PATH_TYPE_PORT } from '../types.js';
import { childNamed, cloneElement, createElement, descendants, type XmlElement } from '../xml/tree.js';
import { trimUnused } from './trim-unused.js';

/** NCCL's InfiniBand plugin joins this many devices at most into one. */
const MAX_DEVICES_OF_NIC = 8;

/** The class of a PCI switch, as NCCL compares it here: the whole text. */
const SWITCH_CLASS = '0x060400';

/** Plane of a merged device in the InfiniBand plugin: this bit, and one for each plane in it. */
const MERGED_PLANE_BIT = 0x4000;

/**
 * Joins network devices into virtual ones as NCCL does at its start: first the groups of NCCL_NET_FORCE_MERGE, then all that are
 * at most NCCL_NET_MERGE_LEVEL apart (default: two ports of one card). A virtual device has the sum of its parts' speeds, and is
 * below their common PCI device, or a new one.
 *
 * Changes the tree. Devices in a user's dump are not merged yet, because NCCL dumps before it merges.
 *
 * @throws InputError where NCCL refuses a group, or one spans CPUs.
 */
export function mergeNics(system: XmlElement, parameters: Parameters): void {
  const nics = mergeable(system);
  const groups = groupsOf(nics, parameters);
  if (groups.length === 0) return;

  for (const part of groups.flat()) part.attributes.set('net', '0');
  groups.forEach((parts, position) => addVirtualNic(system, parts, nics.length + position, planeIndexes(nics)));

  for (const element of descendants(system)) {
    const isUsed =
      element.name === 'gpu' ||
      (element.name === 'net' && ['net', 'gin', 'coll'].some((use) => integerOr(element, use, use === 'net' ? 1 : 0) !== 0));
    if (isUsed) element.attributes.set('keep', '1');
  }
  trimUnused(system);
}

/** Since then the InfiniBand plugin joins the ports of a card (`ncclIbMergedDevs` in net_ib.cc), and since 2.24 NCCL itself. */
const PORTS_MERGED_SINCE = '2.20.3';

/** True if the version of NCCL joins the ports of a card at its start, unless a variable forbids it. */
export function canJoinPorts({ ncclVersion }: Parameters): boolean {
  return compareVersions(ncclVersion, PORTS_MERGED_SINCE) >= 0;
}

/**
 * The machine as NCCL has it once it has started: with {@link mergeNics}, where the version does that and the variables let it.
 * For machines that are described as they are built; a topology file stays as it is, because NCCL reads it so.
 */
export function asStarted(machine: XmlElement, parameters: Parameters): XmlElement {
  const isAllowed = canJoinPorts(parameters) && parameters.ibMergeNics !== 0;
  const isJoined = isAllowed && mergeGroups(machine, parameters).length > 0;
  const started = isJoined ? cloneElement(machine) : machine;
  if (isJoined) mergeNics(started, parameters);
  asBuilt.set(started, machine);
  return started;
}

/** Machines of {@link asStarted}, with those that they were made of. */
const asBuilt = new WeakMap<XmlElement, XmlElement>();

/** A machine of {@link asStarted} after a start with another version or other variables; another one stays as it is. */
export function startedAgain(machine: XmlElement, parameters: Parameters): XmlElement {
  const built = asBuilt.get(machine);
  return built === undefined ? machine : asStarted(built, parameters);
}

/** The network devices that NCCL would join, by virtual device. @throws InputError as {@link mergeNics} */
export function mergeGroups(system: XmlElement, parameters: Parameters): XmlElement[][] {
  return groupsOf(mergeable(system), parameters);
}

function mergeable(system: XmlElement): XmlElement[] {
  return [...descendants(system)]
    .filter((element) => element.name === 'net' && element.attributes.has('dev') && element.attributes.has('name'))
    .filter((element) => integerOr(element, 'net', 1) !== 0)
    .sort((a, b) => integerOr(a, 'dev', 0) - integerOr(b, 'dev', 0));
}

function groupsOf(nics: readonly XmlElement[], parameters: Parameters): XmlElement[][] {
  const forced = forcedGroups(nics, parameters.netForceMerge);
  return [...forced, ...nearGroups(nics, new Set(forced.flat()), parameters)].filter((parts) => parts.length > 1);
}

/** Groups of NCCL_NET_FORCE_MERGE: `mlx5_0,mlx5_1;mlx5_2:1,mlx5_3:1`. */
function forcedGroups(nics: readonly XmlElement[], wish: string | undefined): XmlElement[][] {
  return (wish ?? '')
    .split(';')
    .filter((group) => group !== '')
    .map((group) => {
      const wanted = group
        .split(',')
        .slice(0, MAX_DEVICES_OF_NIC)
        .map((entry) => entry.split(':'))
        .filter(([name]) => name !== '');
      const parts = nics.filter((nic) =>
        wanted.some(
          ([name, port]) =>
            nic.attributes.get('name') === name &&
            (port === undefined || port === '' || Number(port) === integerOr(nic, 'port', 0)),
        ),
      );
      if (wanted.length === 0 || parts.length !== wanted.length) {
        const names = nics.map((nic) => nic.attributes.get('name')).join(', ');
        throw new InputError(
          'ENVIRONMENT',
          `NCCL_NET_FORCE_MERGE: "${group}" names ${wanted.length} devices and ${parts.length} of them are here; there are ${names}`,
        );
      }
      return parts;
    });
}

/** Groups of the other devices, each within the merge level of the group's first device. */
function nearGroups(nics: readonly XmlElement[], placed: Set<XmlElement>, parameters: Parameters): XmlElement[][] {
  const railOf = (nic: XmlElement) => integerOr(nic, 'rail', -1);
  const groups: XmlElement[][] = [];
  for (const nic of nics) {
    if (placed.has(nic)) continue;
    placed.add(nic);
    const group = [nic];
    for (const other of nics) {
      if (group.length === MAX_DEVICES_OF_NIC) break;
      if (placed.has(other) || distance([nic, other]).type > parameters.netMergeLevel) continue;
      if (parameters.netMergePolicy === 'RAIL' && (railOf(nic) === -1 || railOf(nic) !== railOf(other))) continue;
      group.push(other);
      placed.add(other);
    }
    groups.push(group);
  }
  return groups;
}

/** Path type between network devices, and the nearest element above all of them. */
function distance(nics: readonly XmlElement[]): { readonly type: PathType; readonly common: XmlElement | undefined } {
  const lines = nics.map(lineFromRoot);
  const [shortest = []] = [...lines].sort((a, b) => a.length - b.length);
  let depth = 0;
  while (depth < shortest.length && lines.every((line) => line[depth] === shortest[depth])) depth++;
  const common = shortest[depth - 1];
  return { type: typeOfDistance(lines, depth, common), common };
}

function typeOfDistance(lines: readonly (readonly XmlElement[])[], depth: number, common: XmlElement | undefined): PathType {
  // Functions of one PCI device differ in the last digit of their bus ids only.
  const busIds = lines.flatMap((line) => (line[depth] === undefined ? [] : [line[depth].attributes.get('busid')]));
  if (busIds.length > 0 && busIds.every((busId) => busId !== undefined && busId.slice(0, -1) === busIds[0]?.slice(0, -1))) {
    return PATH_TYPE_PORT;
  }
  switch (common?.name) {
    case undefined:
      return PathType.DIS;
    case 'system':
      return PathType.SYS;
    case 'cpu':
      return PathType.PHB;
    case 'nic':
    case 'net':
      return PATH_TYPE_PORT;
    default: {
      const isChild = (line: readonly XmlElement[]) => {
        const pci = line.at(-1)?.parent?.parent;
        return pci?.name !== 'pci' || pci.parent === common;
      };
      return lines.every(isChild) ? PathType.PIX : PathType.PXB;
    }
  }
}

/** The elements from `<system>` down to this one. */
function lineFromRoot(element: XmlElement): XmlElement[] {
  const line: XmlElement[] = [];
  for (let above: XmlElement | undefined = element; above !== undefined; above = above.parent) line.unshift(above);
  return line;
}

function addVirtualNic(system: XmlElement, parts: readonly XmlElement[], dev: number, planes: ReadonlyMap<number, number>): void {
  const [first] = parts;
  if (first === undefined) return;
  const nicParent = placeOfVirtualNic(system, parts, first);
  const nic = childNamed(nicParent, 'nic') ?? createElement('nic', nicParent);
  const sum = parts.reduce((speed, part) => speed + integerOr(part, 'speed', 0), 0);
  const rails = new Set(parts.map((part) => integerOr(part, 'rail', -1)));
  const [rail = -1] = rails.size === 1 ? rails : [];
  const plane = parts.reduce((bits, part) => bits | (1 << (planes.get(integerOr(part, 'plane', -1)) ?? 0)), MERGED_PLANE_BIT);
  const copied = (name: string) => {
    const value = first.attributes.get(name);
    return value === undefined ? [] : [[name, value] as const];
  };
  createElement('net', nic, [
    ['name', parts.map((part) => part.attributes.get('name') ?? '').join('+')],
    ['dev', String(dev)],
    ['latency', '0'],
    ['speed', String(sum)],
    ...copied('port'),
    ...(rail === -1 ? [] : [['rail', String(rail)] as const]),
    ['plane', String(plane)],
    ...copied('guid'),
    ...copied('maxconn'),
    ...copied('gdr'),
    ['net', '1'],
  ]);
}

/** The element below which the virtual device's `<nic>` belongs. */
function placeOfVirtualNic(system: XmlElement, parts: readonly XmlElement[], first: XmlElement): XmlElement {
  const { type, common } = distance(parts);
  let above = common;
  while (above !== undefined && above.name !== 'pci' && above.name !== 'system') above = above.parent;
  const shared = above?.name === 'pci' ? above : common;
  if (shared === undefined || shared.name === 'system') {
    throw new InputError(
      'CONTENT',
      `network devices of different NUMA domains cannot become one: ${parts.map((part) => part.attributes.get('name') ?? '').join(', ')}`,
      { ncclResult: 4 },
    );
  }
  const width = type === PathType.PHB || type === PathType.PXB || type === PathType.PIX ? linkWidth(shared, new Set(parts)) : 0;
  const needsOwn = shared.name === 'cpu' || (shared.name === 'pci' && shared.attributes.get('class') === SWITCH_CLASS);
  const place = needsOwn ? newPciDevice(system, shared, first) : shared;

  // The link up to the common device carries the traffic of all parts.
  if (width > 0) {
    for (const element of new Set([place, shared])) {
      if (element.name === 'pci') element.attributes.set('link_width', String(width));
    }
  }
  return place;
}

/** A PCI device for a virtual NIC: a copy of its first part's, with the next free bus id. */
function newPciDevice(system: XmlElement, parent: XmlElement, first: XmlElement): XmlElement {
  const pci = first.parent?.parent;
  if (pci?.name !== 'pci') {
    throw new InputError(
      'CONTENT',
      `${first.attributes.get('name') ?? 'a network device'} is below no PCI device, so it cannot be merged`,
      { ncclResult: 3 },
    );
  }
  const taken = new Set<string | undefined>();
  for (const element of descendants(system)) {
    if (element.name === 'pci') taken.add(element.attributes.get('busid'));
  }
  let busId = busIdNumber(pci.attributes.get('busid') ?? '');
  do busId++;
  while (taken.has(busIdText(busId)));
  return createElement('pci', parent, [['busid', busIdText(busId)], ...[...pci.attributes].filter(([name]) => name !== 'busid')]);
}

/** Lanes that lead to those devices below an element: of each PCI device the smaller of its own and what is below. */
function linkWidth(parent: XmlElement, parts: ReadonlySet<XmlElement>): number {
  const below = (element: XmlElement): { found: boolean; width: number } => {
    const own = element.name === 'pci' ? integerOr(element, 'link_width', 0) : 0;
    const children = element.children.map(below).filter(({ found }) => found);
    const sum = children.reduce((width, child) => width + child.width, 0);
    if (children.length === 0 && !parts.has(element)) return { found: false, width: 0 };
    if (sum === 0) return { found: true, width: own };
    return { found: true, width: own > 0 ? Math.min(own, sum) : sum };
  };
  return parent.children.map(below).reduce((width, child) => width + child.width, 0);
}

/** Plane number → its position among the planes in use; unset planes are the first. */
function planeIndexes(nics: readonly XmlElement[]): Map<number, number> {
  const planes = [...new Set([-1, ...nics.map((nic) => integerOr(nic, 'plane', -1))])];
  return new Map(planes.map((plane, index) => [plane, index]));
}

/** `0000:1b:00.0` for 0x1b000. */
function busIdText(busId: bigint): string {
  const digits = busId.toString(16).padStart(9, '0');
  const end = digits.length;
  return `${digits.slice(0, end - 5)}:${digits.slice(end - 5, end - 3)}:${digits.slice(end - 3, end - 1)}.${digits.slice(end - 1)}`;
}
