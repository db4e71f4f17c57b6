import type { PciDevice } from '../readers/lspci.js';
import { describedBranch, fullBusId, type PciBranch, type PciTree } from '../readers/pci-tree.js';
import type { GpuModel } from '../topology/catalogue/gpus.js';
import { gpuOfProduct } from '../topology/catalogue/products.js';
import { gpuOfDescription, gpuOfDevice } from './models.js';

/** All devices of a tree, bridges included. */
export function branchesOf(tree: PciTree): PciBranch[] {
  const all = (branch: PciBranch): PciBranch[] => [branch, ...branch.branches.flatMap(all)];
  return tree.roots.flatMap(({ branches }) => branches.flatMap(all));
}

/** The GPUs of a tree: those that CUDA and NVML name, else by their class or description. */
export function gpusOf(tree: PciTree): PciBranch[] {
  const all = branchesOf(tree).filter(({ isBridge }) => !isBridge);
  const named = all.filter(({ names }) => names.some(({ kind }) => kind === 'gpu'));
  if (named.length > 0) return named;
  const compute = all.filter(
    ({ classCode, vendor, description }) =>
      (classCode === '0302' && (vendor === undefined || vendor === NVIDIA)) || isGpuDescription(description, classCode),
  );
  if (compute.length > 0) return compute;
  return all.filter(({ classCode, vendor }) => classCode?.startsWith('03') === true && vendor === NVIDIA);
}

const NVIDIA = 0x10de;

/** True for a GPU of NVIDIA in the words of lspci, not for its sound and USB functions, and switches. */
export function isGpuDescription(description: string, classCode?: string): boolean {
  if (!/NVIDIA/i.test(description) || (classCode !== undefined && !classCode.startsWith('03'))) return false;
  return !/NVSwitch|Audio|USB|UCSI|Bridge:|bridge|Infiniband|Ethernet|Memory controller|Host|ConnectX|BlueField/i.test(
    description,
  );
}

/** True for an NVSwitch. */
export function isNvSwitch({ description, classCode, vendor }: PciBranch): boolean {
  return /NVSwitch/i.test(description) || (vendor === NVIDIA && classCode === '0680');
}

/** The model of a GPU by the driver's name, then by PCI ids, then by description. */
export function gpuModelOf(
  branch: Partial<Pick<PciBranch, 'product' | 'vendor' | 'device' | 'description'>>,
): GpuModel | undefined {
  const { product = '', vendor, device, description = '' } = branch;
  const byId = vendor === NVIDIA && device !== undefined ? gpuOfDevice(device) : undefined;
  return gpuOfProduct(product) ?? byId ?? gpuOfDescription(description);
}

/** The tree that the buses of bridges in `lspci -vvv` show; undefined where they were not kept. */
export function treeOfList(devices: readonly PciDevice[]): PciTree | undefined {
  const [first] = devices;
  if (first === undefined || !devices.some(({ secondary }) => secondary !== undefined)) return undefined;
  const busOf = (busId: string) => fullBusId(busId).slice(0, 7);
  const parents = new Map(
    devices.flatMap((device) =>
      device.secondary === undefined ? [] : [[`${fullBusId(device.busId).slice(0, 5)}${device.secondary}`, device] as const],
    ),
  );
  const below = (device: PciDevice): PciDevice[] =>
    device.secondary === undefined
      ? []
      : devices.filter(
          (other) => busOf(other.busId) === `${fullBusId(device.busId).slice(0, 5)}${device.secondary ?? ''}` && other !== device,
        );
  const branch = (device: PciDevice, depth: number): PciBranch => ({
    ...branchOfListed(device),
    isBridge: device.secondary !== undefined,
    branches: depth > DEEPEST ? [] : below(device).map((inner) => branch(inner, depth + 1)),
  });
  const known = devices.filter(({ busId }) => busId !== '');
  const roots = new Map<string, PciDevice[]>();
  for (const device of known) {
    const bus = busOf(device.busId);
    if (parents.has(bus)) continue;
    roots.set(bus, [...(roots.get(bus) ?? []), device]);
  }
  return {
    command: 'lspci -vvv',
    host: undefined,
    product: undefined,
    cpu: new Map(),
    roots: [...roots.values()].map((members) => ({
      numa: undefined,
      cores: [],
      branches: members.map((each) => branch(each, 0)),
    })),
    place: first.place,
  };
}

const DEEPEST = 100;

/** A device of a list, without its place in the tree. */
export function branchOfListed({ busId, description, subsystem, place }: PciDevice): PciBranch {
  const [, code] = /^[^:[]*\[([0-9a-f]{4})\]:/i.exec(description) ?? [];
  const [, word = ''] = /^([\w ]+?)(?: \[[0-9a-f]{4}\])?:/i.exec(description) ?? [];
  return { ...describedBranch(fullBusId(busId), description, place), classCode: code ?? classNames[word], subsystem };
}

const classNames: Readonly<Record<string, string>> = {
  '3D controller': '0302',
  'VGA compatible controller': '0300',
  'Infiniband controller': '0207',
  'Ethernet controller': '0200',
  'PCI bridge': '0604',
  Bridge: '0680',
};
