import { InvalidArgumentError } from '../../../errors.js';
import { didYouMean } from '../../../suggest.js';
import type { XmlElement } from '../xml/tree.js';
import {
  connectX8Switch,
  HIDDEN_NVSWITCH,
  hybridCubeMesh,
  pex8764,
  pex88096,
  pex89000,
  type PlacedGpu,
  type SwitchModel,
  TreeBuilder,
} from './build.js';
import { cpuModels } from './cpus.js';
import { familyOf, gpuModels, type GpuModel } from './gpus.js';
import { buildLayout } from './layout.js';
import { findModel, lookUpModel } from './lookup.js';
import { nicModels } from './nics.js';
import { type Limits, type Origin, type CloudMachine, cloudMachines } from './cloud-machines.js';

/** A whole machine of the catalogue. */
export interface Machine {
  /** `dgx-h100`. */
  readonly name: string;
  readonly description: string;
  /** Other spellings. */
  readonly aliases: readonly string[];
  /** Sources, facts and assumptions of cloud machines; others are described by their makers. */
  readonly origin?: Origin;
  readonly limits?: Limits;
  /** A new tree of it in the form of NCCL's dump, with ranks in the order of the GPUs. */
  build(): XmlElement;
}

const gpu = (id: string) => lookUpModel(id, gpuModels, 'GPU');
const nic = (id: string) => lookUpModel(id, nicModels, 'network card');
const cpu = (id: string) => lookUpModel(id, cpuModels, 'CPU');

/** Machines without PCI switches: each GPU and card has a root port of its own. */
const noSwitches: Limits = { 'gdr-too-far': 'it has no PCI switches; try NCCL_NET_GDR_LEVEL=PHB' };

/** Nobody has published a topology file of it. */
const rubinOrigin: Origin = {
  sources: [
    'https://wheelersnetwork.com',
    'https://github.com/NVIDIA/nccl/blob/12df1a11afad322be5a204a2db890161cbf8131d/src/graph/topo.h',
  ],
  known:
    'two Vera and four Rubin a tray, 18 trays, two ConnectX-9 of 800 Gb/s a GPU, 3.6 TB/s of NVLink a GPU; 31.2 GB/s a link, from NCCL 2.32.3',
  assumed:
    'compute capability 10.7, 36 links a GPU, the speed of C2C (twice that of GB300), bus ids and devices, and the PCI tree: a GPU and its two cards at a Gen6 switch inside a ConnectX',
};

/**
 * The machines, from the makers' user guides and recorded files. Bus ids are consecutive numbers unless a comment gives their
 * source.
 */
const madeMachines: readonly Machine[] = [
  define('dgx-1v', '8 x V100 SXM in the hybrid cube mesh, 4 x 100G', ['dgx-1', 'dgx1v'], dgx1V),
  define('dgx-2', '16 x V100 SXM on 6 NVSwitches, 8 x 100G', ['dgx2'], dgx2),
  define('dgx-a100', '8 x A100 SXM on 6 NVSwitches, 8 x 200G', ['dgxa100', 'hgx-a100-8'], () => dgxA100(false)),
  define('dgx-a100-storage', 'the same with the two 200G cards for storage', [], () => dgxA100(true)),
  define('hgx-a100-4', '4 x A100 SXM, every pair joined by 4 NVLinks, 2 x 200G', ['hgxa100x4'], hgxA100x4, noSwitches),
  define('dgx-h100', '8 x H100 SXM on 4 NVSwitches, 8 x 400G', ['dgxh100', 'hgx-h100-8'], () => dgxH100('h100-sxm', false)),
  define('dgx-h100-storage', 'the same with the two 200G cards for storage', [], () => dgxH100('h100-sxm', true)),
  define('dgx-h200', '8 x H200 SXM on 4 NVSwitches, 8 x 400G', ['dgxh200', 'hgx-h200-8'], () => dgxH100('h200-sxm', false)),
  define('hgx-h800-8', '8 x H800 SXM (8 NVLinks each), 8 x 400G', ['h800'], () => dgxH100('h800-sxm', false)),
  define('hgx-h20-8', '8 x H20, 8 x 400G', ['h20'], () => dgxH100('h20', false)),
  define('dgx-b200', '8 x B200 on 2 NVSwitches, 8 x 400G', ['dgxb200', 'hgx-b200-8'], () => dgxB200(false)),
  define('dgx-b200-storage', 'the same with the two 200G cards for storage', [], () => dgxB200(true)),
  define('dgx-b300', '8 x B300 on 2 NVSwitches, 8 x 800G', ['dgxb300', 'hgx-b300-8'], dgxB300),
  define('gh200', 'one Grace Hopper, 1 x 400G', ['grace-hopper'], () => graceHopper(1)),
  define('gh200-4', '4 Grace Hoppers on a board, every pair joined by 6 NVLinks, 4 x 400G', ['gh200x4'], () => graceHopper(4)),
  define('gb200-tray', 'a compute tray of NVL72: 2 Grace, 4 x GB200, 4 x 400G', ['gb200'], () => rack('gb200', 1)),
  define('gb200-nvl72', '18 such trays in one NVLink domain: 72 GPUs', ['nvl72'], () => rack('gb200', TRAYS_OF_RACK)),
  define('gb300-tray', 'a compute tray of NVL72: 2 Grace, 4 x GB300, 4 x 800G', ['gb300'], () => rack('gb300', 1)),
  define('gb300-nvl72', '18 such trays in one NVLink domain: 72 GPUs', [], () => rack('gb300', TRAYS_OF_RACK)),
  {
    ...define('vr200-tray', 'a compute tray of Vera Rubin NVL72 (NVL144): 2 Vera, 4 x VR200, 8 x 800G', ['vr200'], () =>
      rack('vr200', 1),
    ),
    origin: rubinOrigin,
  },
  {
    ...define('vr200-nvl72', '18 such trays in one NVLink domain: 72 GPUs of two dies', ['vr200-nvl144'], () =>
      rack('vr200', TRAYS_OF_RACK),
    ),
    origin: rubinOrigin,
  },
  define(
    'ac922',
    '2 x POWER9, 6 x V100 SXM with NVLinks to the CPUs, 2 x 100G',
    ['ac922-6', 'summit'],
    () => ac922(3),
    noSwitches,
  ),
  define('ac922-4', 'the same with 4 x V100 SXM', [], () => ac922(2), noSwitches),
];

/** All machines: those of the makers, then those of clouds. */
export const machines: readonly Machine[] = [...madeMachines, ...cloudMachines.map(cloudMachine)];

function cloudMachine({ layout, ...rest }: CloudMachine): Machine {
  return { ...rest, build: () => (typeof layout === 'string' ? machine(layout) : buildLayout(layout)) };
}

/** Names in this form are built on demand: `pcie-8-l40s`. */
const pcieBox = /^pcie-(\d+)-([a-z0-9-]+)$/;

/** Part of a rack, built on demand: `gb300-nvl16` has 4 trays. */
const partOfRack = /^(gb200|gb300|vr200)-nvl(\d+)$/;
type RackModel = 'gb200' | 'gb300' | 'vr200';
const GPUS_OF_TRAY = 4;
const TRAYS_OF_RACK = 18;

/** Least and most GPUs of a box. */
const pcieBoxSizes = { least: 2, most: 16 } as const;

/** Forms of names that are built on demand, for help texts. */
export const RACK_FORM = `gb200-nvlN, gb300-nvlN and vr200-nvlN, N a multiple of ${GPUS_OF_TRAY} up to ${GPUS_OF_TRAY * TRAYS_OF_RACK}, as gb300-nvl16`;
export const PCIE_BOX_FORM = `pcie-N-GPU, N from ${pcieBoxSizes.least} to ${pcieBoxSizes.most}, as pcie-8-l40s`;

/**
 * A machine of the catalogue, or a box of PCIe cards (`pcie-8-l40s`), by name.
 *
 * @throws InvalidArgumentError `UNKNOWN_NAME`, with the nearest name.
 */
export function machine(name: string): XmlElement {
  const found = findMachine(name);
  if (found !== undefined) return found.build();
  const names = machines.map((entry) => entry.name);
  throw new InvalidArgumentError(
    'UNKNOWN_NAME',
    `the catalogue has no machine ${JSON.stringify(name)}${suggestMachine(name)}; it has ${names.join(', ')}, ${RACK_FORM}, and ${PCIE_BOX_FORM}`,
  );
}

/** `; did you mean pcie-8-l40s?`, or the empty string. */
export function suggestMachine(name: string): string {
  const count = pcieBox.exec(name.toLowerCase())?.[1];
  const gpus = Math.min(Math.max(Number(count), pcieBoxSizes.least), pcieBoxSizes.most);
  const [, model, size = ''] = partOfRack.exec(name.toLowerCase()) ?? [];
  if (model !== undefined) {
    const trays = Math.min(Math.max(Math.round(Number(size) / GPUS_OF_TRAY), 1), TRAYS_OF_RACK);
    return `; did you mean ${model}-nvl${trays * GPUS_OF_TRAY}?`;
  }
  const boxes = count === undefined ? [] : gpuModels.map(({ id }) => `pcie-${gpus}-${id}`);
  return didYouMean(name, [...machines.flatMap((entry) => [entry.name, ...entry.aliases]), ...boxes]);
}

/** The same without a throw: undefined when the catalogue has no such name. */
export function findMachine(name: string): Machine | undefined {
  const lower = name.toLowerCase();
  const found = machines.find((entry) => entry.name === lower || entry.aliases.includes(lower));
  if (found !== undefined) return found;
  const [, ofRack, size] = partOfRack.exec(lower) ?? [];
  if (ofRack !== undefined) return rackPart(lower, ofRack as RackModel, Number(size));
  const [, count, model] = pcieBox.exec(lower) ?? [];
  const gpuModel = model === undefined ? undefined : findModel(model, gpuModels);
  const gpus = Number(count);
  if (gpuModel === undefined || gpus < pcieBoxSizes.least || gpus > pcieBoxSizes.most) return undefined;
  const limits = pcieLimits(gpus, gpuModel);
  return define(lower, `${gpus} x ${gpuModel.name} in PCIe slots`, [], () => pcieMachine(gpus, gpuModel), limits);
}

/** Boards of GPUs by the model, the makers' own machine. */
const boards: Readonly<Record<string, string>> = {
  'v100-sxm': 'dgx-1v',
  'a100-sxm': 'dgx-a100',
  'h100-sxm': 'dgx-h100',
  'h200-sxm': 'dgx-h200',
  'h800-sxm': 'hgx-h800-8',
  h20: 'hgx-h20-8',
  b200: 'dgx-b200',
  b300: 'dgx-b300',
  gb10: 'dgx-spark',
};

/** The name of the machine that usually has GPUs of a model (its id, or `h100` for the first of several), for their number. */
export function machineOfGpus(model: string, count: number): string | undefined {
  const found = gpuModels.find(({ id }) => id === model || familyOf({ id }) === model);
  if (found === undefined) return undefined;
  const { id, nvlink } = found;
  if (id === 'gb200' || id === 'gb300' || id === 'vr200') return findMachine(`${id}-nvl${count}`)?.name ?? `${id}-nvl72`;
  if (id === 'gh200') return count === 4 ? 'gh200-4' : 'gh200';
  if (id === 'a100-sxm' && count === 4) return 'hgx-a100-4';
  const board = boards[id];
  if (board !== undefined) return board;
  const { least, most } = pcieBoxSizes;
  return nvlink === 'none' || nvlink === 'pair' ? `pcie-${Math.min(Math.max(count, least), most)}-${id}` : undefined;
}

function rackPart(name: string, model: RackModel, gpus: number): Machine | undefined {
  const trays = gpus / GPUS_OF_TRAY;
  if (!Number.isInteger(trays) || trays < 1 || trays > TRAYS_OF_RACK) return undefined;
  const what = trays === 1 ? 'a tray' : `${trays} trays`;
  const part = define(name, `${what} of an NVL72 rack in one NVLink domain: ${gpus} GPUs`, [], () => rack(model, trays));
  return model === 'vr200' ? { ...part, origin: rubinOrigin } : part;
}

function define(
  name: string,
  description: string,
  aliases: readonly string[],
  build: () => XmlElement,
  limits?: Limits,
): Machine {
  return { name, description, aliases, build, ...(limits === undefined ? {} : { limits }) };
}

/** Two Broadwell sockets, each with two PEX switches of two GPUs and a card. */
function dgx1V(): XmlElement {
  const tree = new TreeBuilder();
  for (let socket = 0; socket < 2; socket++) {
    const numa = tree.cpu(cpu('xeon-e5v4'), socket, socket * 20, 20);
    for (let bridge = 0; bridge < 2; bridge++) {
      const pciSwitch = tree.pciSwitch(numa, pex8764);
      tree.gpu(pciSwitch, gpu('v100-sxm'));
      tree.gpu(pciSwitch, gpu('v100-sxm'));
      tree.nic(pciSwitch, nic('connectx-5'), { speedMbps: 100_000, generation: 3 });
    }
  }
  tree.nvlinkMatrix(hybridCubeMesh);
  return tree.system;
}

/** Two Skylake sockets with two levels of PEX switches: two GPUs and a card at each switch of the second level. */
function dgx2(): XmlElement {
  const tree = new TreeBuilder();
  for (let socket = 0; socket < 2; socket++) {
    const numa = tree.cpu(cpu('xeon-skylake'), socket, socket * 24, 24);
    for (let upper = 0; upper < 2; upper++) {
      const upperSwitch = tree.pciSwitch(numa, pex8764);
      for (let lower = 0; lower < 2; lower++) {
        const lowerSwitch = tree.pciSwitch(upperSwitch, pex8764);
        tree.gpu(lowerSwitch, gpu('v100-sxm'));
        tree.gpu(lowerSwitch, gpu('v100-sxm'));
        tree.nic(lowerSwitch, nic('connectx-5'), { speedMbps: 100_000, generation: 3 });
      }
    }
  }
  tree.nvSwitches(nvSwitchBusIds(6));
  return tree.system;
}

/**
 * Two Rome sockets of four NUMA domains each, from a recorded DGX A100 (shared by Keysight). Each domain with GPUs has a PEX
 * 88096, which appears as several levels, with two GPUs and a card beside each; storage cards are at two other domains.
 *
 *     01 ─┬─ 03 ── 05 ── GPU 07
 *         ├─ 0a ─┬─ NIC 0c
 *         │      └─ 0d ── GPU 0f
 *         └─ 10 ── NIC 12
 */
function dgxA100(withStorage: boolean): XmlElement {
  const tree = new TreeBuilder();
  const domains = [
    { numa: 3, buses: ['01', '03', '05', '07', '0a', '0c', '0d', '0f', '10', '12'] },
    { numa: 1, buses: ['41', '43', '45', '47', '49', '4b', '4c', '4e', '50', '54'] },
    { numa: 7, buses: ['81', '83', '85', '87', '8b', '8d', '8e', '90', '92', '94'] },
    { numa: 5, buses: ['b1', 'b3', 'b5', 'b7', 'b8', 'ba', 'bb', 'bd', 'be', 'cc'] },
  ];
  for (const { numa, buses } of domains) {
    const [top, left, leftEnd, gpu0, middle, nic0, middleEnd, gpu1, right, nic1] = buses.map((bus) => `0000:${bus}:00.0`);
    const domain = tree.cpu(cpu('epyc-rome'), numa, numa * 16, 16);
    const upstream = tree.pciSwitch(domain, pex88096, top);
    tree.gpu(tree.pciSwitch(tree.pciSwitch(upstream, pex88096, left), pex88096, leftEnd), gpu('a100-sxm'), at(gpu0));
    const center = tree.pciSwitch(upstream, pex88096, middle);
    tree.nic(center, nic('connectx-6'), at(nic0));
    tree.gpu(tree.pciSwitch(center, pex88096, middleEnd), gpu('a100-sxm'), at(gpu1));
    tree.nic(tree.pciSwitch(upstream, pex88096, right), nic('connectx-6'), at(nic1));
  }
  if (withStorage) {
    for (const [numa, busId] of [
      [0, '0000:61:00.0'],
      [4, '0000:e1:00.0'],
    ] as const) {
      tree.nic(tree.cpu(cpu('epyc-rome'), numa, numa * 16, 16), nic('connectx-6'), { busId });
    }
  }
  tree.nvSwitches(['0000:c4:00.0', '0000:c5:00.0', '0000:c6:00.0', '0000:c7:00.0', '0000:c8:00.0', '0000:c9:00.0']);
  return tree.system;
}

function at(busId: string | undefined): { busId?: string } {
  return busId === undefined ? {} : { busId };
}

/** Two Milan sockets; no PCI switch and no NVSwitch. */
function hgxA100x4(): XmlElement {
  const tree = new TreeBuilder();
  for (let socket = 0; socket < 2; socket++) {
    const numa = tree.cpu(cpu('epyc-milan'), socket, socket * 32, 32);
    tree.gpu(numa, gpu('a100-sxm'));
    tree.gpu(numa, gpu('a100-sxm'));
    tree.nic(numa, nic('connectx-6'));
  }
  tree.nvlinkMatrix(everyPair(tree.gpus, 4));
  return tree.system;
}

/**
 * Two Sapphire Rapids sockets; each GPU shares a PEX 890xx port with one card. Bus ids are those of NVIDIA's DGX H100
 * user guide; of its NVLinks, 5, 4, 4 and 5 go to the four NVSwitches.
 */
function dgxH100(model: string, withStorage: boolean): XmlElement {
  const tree = new TreeBuilder();
  const slots = [
    [
      ['18', '1b'],
      ['40', '43'],
      ['4f', '52'],
      ['5e', '61'],
    ],
    [
      ['9a', '9d'],
      ['c0', 'c3'],
      ['ce', 'd1'],
      ['dc', 'df'],
    ],
  ];
  slots.forEach((pairs, socket) => {
    const numa = tree.cpu(cpu('xeon-sapphire'), socket, socket * 56, 56);
    for (const [nicBus = '', gpuBus = ''] of pairs) {
      const upstream = (Number.parseInt(nicBus, 16) - 2).toString(16).padStart(2, '0');
      const pciSwitch = tree.pciSwitch(numa, pex89000, `0000:${upstream}:00.0`);
      tree.nic(pciSwitch, nic('connectx-7'), { busId: `0000:${nicBus}:00.0` });
      tree.gpu(pciSwitch, gpu(model), { busId: `0000:${gpuBus}:00.0` });
    }
    if (withStorage)
      tree.nic(numa, nic('connectx-7'), { busId: socket === 0 ? '0000:29:00.0' : '0000:aa:00.0', speedMbps: 200_000 });
  });
  const switches = ['0000:05:00.0', '0000:06:00.0', '0000:07:00.0', '0000:08:00.0'];
  // 8 links of an H800 go evenly to the four.
  tree.nvSwitches(switches, gpu(model).nvlinks === 18 ? [5, 4, 4, 5] : undefined);
  return tree.system;
}

/** Two Emerald Rapids sockets; each GPU shares a PEX 890xx port with one card; 9 NVLinks to each of two NVSwitches. */
function dgxB200(withStorage: boolean): XmlElement {
  return eightWithCards('xeon-emerald', 'b200', 'connectx-7', pex89000, withStorage);
}

/** Two Granite Rapids sockets; each GPU is below the switch inside a ConnectX-8. */
function dgxB300(): XmlElement {
  return eightWithCards('xeon-granite', 'b300', 'connectx-8', connectX8Switch, false);
}

function eightWithCards(cpuId: string, gpuId: string, nicId: string, switchModel: SwitchModel, withStorage: boolean): XmlElement {
  const tree = new TreeBuilder();
  for (let socket = 0; socket < 2; socket++) {
    const numa = tree.cpu(cpu(cpuId), socket, socket * 56, 56);
    for (let slot = 0; slot < 4; slot++) {
      const pciSwitch = tree.pciSwitch(numa, switchModel);
      tree.gpu(pciSwitch, gpu(gpuId));
      tree.nic(pciSwitch, nic(nicId));
    }
    if (withStorage) tree.nic(numa, nic('connectx-7'), { speedMbps: 200_000 });
  }
  tree.nvSwitches(nvSwitchBusIds(2));
  return tree.system;
}

/** Each Grace is a NUMA domain with one Hopper and one card, each at a root port of its own. */
function graceHopper(count: number): XmlElement {
  const tree = new TreeBuilder();
  for (let superchip = 0; superchip < count; superchip++) {
    const numa = tree.cpu(cpu('grace'), superchip, superchip * 72, 72);
    const domain = (number: number) => number.toString(16).padStart(4, '0');
    tree.gpu(numa, gpu('gh200'), { busId: `${domain(superchip * 2)}:01:00.0` });
    tree.nic(numa, nic('connectx-7'), { busId: `${domain(superchip * 2 + 1)}:01:00.0` });
  }
  if (count > 1) tree.nvlinkMatrix(everyPair(tree.gpus, 6));
  tree.c2c();
  return tree.system;
}

/**
 * Trays of an NVL72 rack: two Grace, each with two GPUs and two cards; on GB200 at root ports of their own (bus ids of
 * `nvidia-smi topo`), on GB300 each GPU behind a ConnectX-8 (bus ids of a recorded tray). VR200 has Vera and two cards a GPU.
 * NCCL sees one hidden NVSwitch; several trays are fused, each host with its own hash.
 */
function rack(model: RackModel, trays: number): XmlElement {
  const whole = new TreeBuilder();
  const cpuModel = model === 'vr200' ? { name: 'vera', cores: 88 } : { name: 'grace', cores: 72 };
  for (let tray = 0; tray < trays; tray++) {
    const tree = new TreeBuilder({ firstRank: tray * 4, hostHash: BigInt(0x1000 + tray) });
    for (let grace = 0; grace < 2; grace++) {
      const numa = tree.cpu(cpu(cpuModel.name), grace, grace * cpuModel.cores, cpuModel.cores);
      for (let half = 0; half < 2; half++) {
        const gpuDomain = `00${grace}${8 + half}`;
        if (model === 'gb200') {
          tree.gpu(numa, gpu(model), { busId: `${gpuDomain}:01:00.0` });
          tree.nic(numa, nic('connectx-7'), { busId: `00${grace}${half * 2}:03:00.0` });
        } else {
          const pciSwitch = tree.pciSwitch(numa, connectX8Switch, `${gpuDomain}:01:00.0`);
          tree.gpu(pciSwitch, gpu(model), { busId: `${gpuDomain}:06:00.0` });
          tree.nic(pciSwitch, nic(model === 'gb300' ? 'connectx-8' : 'connectx-9'), { busId: `${gpuDomain}:03:00.0` });
          if (model === 'vr200') tree.nic(pciSwitch, nic('connectx-9'), { busId: `${gpuDomain}:04:00.0` });
        }
      }
    }
    tree.nvSwitches([HIDDEN_NVSWITCH]);
    tree.c2c();
    for (const numa of tree.system.children) {
      numa.parent = whole.system;
      whole.system.children.push(numa);
    }
  }
  return whole.system;
}

/**
 * IBM AC922: two POWER9, each with `perSocket` V100. The six links of a GPU are shared out over its CPU (tclass
 * 0x068001) and the other GPUs of the socket: two each for three GPUs, three each for two.
 */
function ac922(perSocket: 2 | 3): XmlElement {
  const tree = new TreeBuilder();
  const links = 6 / perSocket;
  const sockets = [
    { numaId: 0, gpuDomain: '0004', nicDomain: '0003' },
    { numaId: 8, gpuDomain: '0035', nicDomain: '0033' },
  ];
  sockets.forEach(({ numaId, gpuDomain, nicDomain }, socket) => {
    const numa = tree.cpu(cpu('power9'), numaId, socket * 88, 88);
    for (let index = 0; index < perSocket; index++) {
      tree.gpu(numa, gpu('v100-sxm'), { busId: `${gpuDomain}:0${index + 1}:00.0`, lanes: 8 });
    }
    tree.nic(numa, nic('connectx-5'), { busId: `${nicDomain}:01:00.0`, generation: 4, lanes: 8 });
  });
  const sameSocket = (a: number, b: number) => a !== b && Math.floor(a / perSocket) === Math.floor(b / perSocket);
  tree.nvlinkMatrix(tree.gpus.map((_, from) => tree.gpus.map((__, to) => (sameSocket(from, to) ? links : 0))));
  tree.nvlinksToCpu(links);
  return tree.system;
}

/** Limits of such a server. */
function pcieLimits(gpus: number, model: GpuModel): Limits | undefined {
  return {
    ...(gpus <= MOST_WITHOUT_SWITCH ? noSwitches : {}),
    ...(model.gdr ? {} : { 'gdr-off': 'GeForce cards have no GPU Direct RDMA' }),
  };
}

const MOST_WITHOUT_SWITCH = 4;

/**
 * A server for cards, Genoa: up to four GPUs on one socket, each in a slot of its own; more over two sockets, with a
 * switch for up to four GPUs and a 200G card at each switch. Cards with NVLink are bridged in pairs.
 */
function pcieMachine(count: number, model: GpuModel): XmlElement {
  const tree = new TreeBuilder();
  const card = { generation: model.pciGeneration > 4 ? 5 : 4, speedMbps: 200_000 } as const;
  if (count <= MOST_WITHOUT_SWITCH) {
    const numa = tree.cpu(cpu('epyc-genoa'), 0, 0, 64);
    for (let index = 0; index < count; index++) tree.gpu(numa, model);
    tree.nic(numa, nic('connectx-7'), card);
  } else {
    const switchModel = model.pciGeneration > 4 ? pex89000 : model.pciGeneration === 4 ? pex88096 : pex8764;
    let left = count;
    for (let socket = 0; socket < 2; socket++) {
      const numa = tree.cpu(cpu('epyc-genoa'), socket, socket * 64, 64);
      let here = Math.ceil(left / (2 - socket));
      left -= here;
      while (here > 0) {
        const pciSwitch = tree.pciSwitch(numa, switchModel);
        for (let slot = 0; slot < 4 && here > 0; slot++, here--) tree.gpu(pciSwitch, model);
        tree.nic(pciSwitch, nic('connectx-7'), card);
      }
    }
  }
  if (model.nvlink === 'pair') tree.nvlinkPairs(model.nvlinks);
  return tree.system;
}

function everyPair(gpus: readonly PlacedGpu[], links: number): number[][] {
  return gpus.map((_, from) => gpus.map((__, to) => (from === to ? 0 : links)));
}

function nvSwitchBusIds(count: number): string[] {
  return Array.from({ length: count }, (_, index) => `0000:c${index}:00.0`);
}
