import type { PciDevice } from '../readers/lspci.js';
import { fullBusId, type PciBranch, type PciTree } from '../readers/pci-tree.js';
import type { HostFacts, Sourced } from './facts.js';
import { branchesOf, branchOfListed, treeOfList } from './pci-devices.js';

/** A device of the one tree that all outputs give together. */
export interface KnownDevice extends Omit<PciBranch, 'branches' | 'busId'> {
  /** Invented for bridges in the text of lstopo. */
  readonly busId: string;
  readonly numa: number | undefined;
  /** Best link of the device, from `LnkCap`. */
  readonly capable: { readonly gtps: number; readonly width: number } | undefined;
  readonly above: KnownDevice | undefined;
  readonly root: KnownRoot;
}

export interface KnownRoot {
  readonly number: number;
  readonly numa: number | undefined;
  readonly cores: readonly number[];
}

/** The tree, and the output that has its form. */
export interface KnownPci {
  readonly source: Sourced<unknown>;
  readonly devices: readonly KnownDevice[];
}

/** The tree of a host; undefined where no output has one. */
export function knownPci(host: HostFacts): KnownPci | undefined {
  const lists = host.pciLists.flatMap((list) => {
    const tree = treeOfList(list.value);
    return tree === undefined ? [] : [{ ...list, value: tree }];
  });
  const trees = [...host.trees, ...lists].filter(({ value }) => branchesOf(value).length > 0);
  // Bus ids of bridges and places in the machine, then bus ids alone, then places alone.
  const rank = ({ value }: Sourced<PciTree>) =>
    (branchesOf(value).every(({ busId }) => busId !== undefined) ? 2 : 0) + (value.command === 'lstopo' ? 1 : 0);
  const [best] = [...trees].sort((a, b) => rank(b) - rank(a));
  if (best === undefined) return undefined;
  const details = detailsOf(host);
  const devices: KnownDevice[] = [];
  best.value.roots.forEach(({ numa, cores, branches }, number) => {
    const root = { number, numa, cores };
    const visit = (branch: PciBranch, above: KnownDevice | undefined, depth: number): void => {
      const device = knownDevice(branch, above, root, depth, details);
      devices.push(device);
      for (const inner of branch.branches) visit(inner, device, depth + 1);
    };
    for (const branch of branches) visit(branch, undefined, 0);
  });
  return { source: best, devices };
}

/** Everything about a device in all outputs, by bus id. */
interface Details {
  readonly branches: ReadonlyMap<string, readonly PciBranch[]>;
  readonly listed: ReadonlyMap<string, readonly PciDevice[]>;
  readonly numa: ReadonlyMap<string, number>;
}

function detailsOf(host: HostFacts): Details {
  const listed = groupBy(
    host.pciLists.flatMap(({ value }) => value),
    ({ busId }) => (busId === '' ? undefined : fullBusId(busId)),
  );
  const branches = groupBy(
    [
      ...host.trees.flatMap(({ value }) => branchesOf(value)),
      ...[...listed.values()].flatMap((devices) => devices.map(branchOfListed)),
    ],
    ({ busId }) => busId,
  );
  const numa = new Map<string, number>();
  for (const { value } of host.trees)
    for (const root of value.roots)
      for (const { busId } of branchesOf({ ...value, roots: [root] }))
        if (busId !== undefined && root.numa !== undefined) numa.set(busId, root.numa);
  for (const [busId, devices] of listed)
    for (const device of devices) if (device.numa !== undefined) numa.set(busId, device.numa);
  return { branches, listed, numa };
}

function groupBy<Item>(items: readonly Item[], keyOf: (item: Item) => string | undefined): Map<string, Item[]> {
  const groups = new Map<string, Item[]>();
  for (const item of items) {
    const key = keyOf(item);
    if (key !== undefined) groups.set(key, [...(groups.get(key) ?? []), item]);
  }
  return groups;
}

function knownDevice(
  branch: PciBranch,
  above: KnownDevice | undefined,
  root: KnownRoot,
  depth: number,
  { branches, listed, numa }: Details,
): KnownDevice {
  const busId = branch.busId ?? inventedBusId(branch, depth);
  const all = [branch, ...(branches.get(busId) ?? [])];
  const first = <Value>(pick: (each: PciBranch) => Value | undefined): Value | undefined =>
    all.map(pick).find((value) => value !== undefined);
  const capable = (listed.get(busId) ?? []).map((device) => device.capable).find((link) => link !== undefined);
  return {
    busId,
    isBridge: branch.isBridge,
    classCode: first((each) => each.classCode),
    vendor: first((each) => each.vendor),
    device: first((each) => each.device),
    subsystem: first((each) => each.subsystem),
    description: first((each) => (each.description === '' ? undefined : each.description)) ?? '',
    gbps: first((each) => each.gbps),
    names: first((each) => (each.names.length === 0 ? undefined : each.names)) ?? [],
    product: first((each) => (each.product === '' ? undefined : each.product)) ?? '',
    isActive: first((each) => each.isActive),
    numa: numa.get(busId) ?? root.numa,
    capable,
    above,
    root,
    place: branch.place,
  };
}

/** A bus id that no device has, in the order of those below the bridge. */
function inventedBusId(bridge: PciBranch, depth: number): string {
  const ids = (branch: PciBranch): string[] => [branch.busId ?? '', ...branch.branches.flatMap(ids)];
  const [least = '0000:00'] = ids(bridge)
    .filter((id) => id !== '')
    .sort();
  return `${least.slice(0, 7)}:1f.${(depth & 15).toString(16)}`;
}
