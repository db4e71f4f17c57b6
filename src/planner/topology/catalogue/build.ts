import { createElement, type XmlElement } from '../xml/tree.js';
import type { CpuModel } from './cpus.js';
import type { GpuModel } from './gpus.js';
import type { NicModel } from './nics.js';

/**
 * Builds topology trees by code. Attributes are set in the order in which NCCL sets and dumps them; GPUs and network devices are
 * numbered in the order in which they are added.
 */

/** The kernel's name of a PCI generation's speed. */
export const linkSpeeds = { 3: '8.0 GT/s PCIe', 4: '16.0 GT/s PCIe', 5: '32.0 GT/s PCIe', 6: '64.0 GT/s PCIe' } as const;
export type PciGeneration = keyof typeof linkSpeeds;

/** Target of an NVLink to an NVSwitch that is not visible, as NCCL writes it. */
export const HIDDEN_NVSWITCH = 'fffffff:ffff:ff';
export const NVSWITCH_CLASS = '0x068000';

/** A PCI switch: vendor, device, subsystem. */
export interface SwitchModel {
  readonly vendor: number;
  readonly device: number;
  readonly subsystemVendor: number;
  readonly subsystemDevice: number;
  readonly generation: PciGeneration;
}

/** PLX PEX 8764, the Gen3 switch of V100 machines. */
export const pex8764: SwitchModel = {
  vendor: 0x10b5,
  device: 0x8764,
  subsystemVendor: 0x10b5,
  subsystemDevice: 0x8764,
  generation: 3,
};
/** Broadcom PEX 88096, Gen4. It appears as two levels, which NCCL makes one. */
export const pex88096: SwitchModel = {
  vendor: 0x1000,
  device: 0xc010,
  subsystemVendor: 0x1000,
  subsystemDevice: 0xa096,
  generation: 4,
};
/** Broadcom PEX 890xx, Gen5. */
export const pex89000: SwitchModel = {
  vendor: 0x1000,
  device: 0xc030,
  subsystemVendor: 0x1000,
  subsystemDevice: 0x0004,
  generation: 5,
};
/** A Gen5 switch in virtual machines of AWS. */
export const nitroSwitch: SwitchModel = {
  vendor: 0x1d0f,
  device: 0x0200,
  subsystemVendor: 0x1d0f,
  subsystemDevice: 0x0200,
  generation: 5,
};
/** A switch that exists only in the topology file of a virtual machine. */
export function inventedSwitch(generation: PciGeneration): SwitchModel {
  return { vendor: 0, device: 0, subsystemVendor: 0, subsystemDevice: 0, generation };
}
/** The PCI switch inside a ConnectX-8, Gen6. */
export const connectX8Switch: SwitchModel = {
  vendor: 0x15b3,
  device: 0x197d,
  subsystemVendor: 0x15b3,
  subsystemDevice: 0,
  generation: 6,
};

/**
 * NVLinks of the hybrid cube mesh of DGX-1, as NVIDIA's guide draws it: two quads, in each four pairs with one or two links, and
 * each GPU with one partner in the other quad.
 */
export const hybridCubeMesh: readonly (readonly number[])[] = [
  [0, 1, 1, 2, 2, 0, 0, 0],
  [1, 0, 2, 1, 0, 2, 0, 0],
  [1, 2, 0, 2, 0, 0, 1, 0],
  [2, 1, 2, 0, 0, 0, 0, 1],
  [2, 0, 0, 0, 0, 1, 1, 2],
  [0, 2, 0, 0, 1, 0, 2, 1],
  [0, 0, 1, 0, 1, 2, 0, 2],
  [0, 0, 0, 1, 2, 1, 2, 0],
];

/** A GPU in a tree under construction. */
export interface PlacedGpu {
  readonly element: XmlElement;
  readonly busId: string;
  readonly model: GpuModel;
}

/** A port in a tree under construction; ports of a card count from 1. */
interface PlacedNet {
  readonly element: XmlElement;
  readonly busId: string;
  readonly model: NicModel;
  readonly port: number;
}

export class TreeBuilder {
  readonly system: XmlElement = createElement('system', undefined, [['version', '1']]);
  readonly gpus: PlacedGpu[] = [];
  readonly #domain: number;
  readonly #firstRank: number;
  readonly #hostHash: bigint | undefined;
  readonly #nets: PlacedNet[] = [];
  #nextBus = 1;

  constructor(options: { readonly firstRank?: number; readonly hostHash?: bigint; readonly domain?: number } = {}) {
    this.#firstRank = options.firstRank ?? 0;
    this.#hostHash = options.hostHash;
    this.#domain = options.domain ?? 0;
  }

  /** A bus id that is not used yet: 0000:01:00.0, 0000:02:00.0 … */
  freeBusId(): string {
    return `${hex(this.#domain, 4)}:${hex(this.#nextBus++, 2)}:00.0`;
  }

  /** A NUMA domain; `firstCore` and `cores` give its affinity. */
  cpu(model: CpuModel, numaId: number, firstCore: number, cores: number): XmlElement {
    return this.cpuWithMask(model, numaId, cpuMask(firstCore, cores));
  }

  /** A NUMA domain whose cores are not consecutive; `mask` in Linux's form. */
  cpuWithMask(model: CpuModel, numaId: number, mask: string): XmlElement {
    const element = createElement('cpu', this.system);
    if (this.#hostHash !== undefined) element.attributes.set('host_hash', `0x${this.#hostHash.toString(16)}`);
    element.attributes.set('numaid', String(numaId));
    element.attributes.set('affinity', mask);
    setCpuModel(element, model);
    return element;
  }

  pciSwitch(parent: XmlElement, model: SwitchModel, busId = this.freeBusId()): XmlElement {
    return pciElement(
      parent,
      busId,
      '0x060400',
      {
        vendor: model.vendor,
        device: model.device,
        subsystemVendor: model.subsystemVendor,
        subsystemDevice: model.subsystemDevice,
      },
      model.generation,
      16,
    );
  }

  /** A GPU below a CPU or switch; `generation` and `lanes` where its slot gives it less than it has. */
  gpu(
    parent: XmlElement,
    model: GpuModel,
    options: { busId?: string; generation?: PciGeneration; lanes?: number } = {},
  ): PlacedGpu {
    const busId = options.busId ?? this.freeBusId();
    const pci = pciElement(
      parent,
      busId,
      model.pciClass,
      { vendor: 0x10de, device: model.device },
      options.generation ?? model.pciGeneration,
      options.lanes ?? 16,
    );
    const index = this.gpus.length;
    const element = createElement('gpu', pci, [
      ['dev', String(index)],
      ['sm', String(model.sm)],
      ['rank', String(this.#firstRank + index)],
      ['gdr', model.gdr ? '1' : '0'],
    ]);
    const placed = { element, busId, model };
    this.gpus.push(placed);
    return placed;
  }

  /** A network card, below a CPU or switch; with one port unless `ports` gives another number. */
  nic(
    parent: XmlElement,
    model: NicModel,
    options: {
      busId?: string;
      speedMbps?: number;
      latencyUs?: number;
      generation?: PciGeneration;
      lanes?: number;
      ports?: number;
    } = {},
  ): void {
    const busId = options.busId ?? this.freeBusId();
    const pci = pciElement(
      parent,
      busId,
      model.pciClass,
      { vendor: model.vendor, device: model.device },
      options.generation ?? model.pciGeneration,
      options.lanes ?? 16,
    );
    const nic = createElement('nic', pci);
    const ports = options.ports ?? 1;
    const firstDev = this.#nets.length;
    for (let port = 1; port <= ports; port++) {
      const dev = this.#nets.length;
      const element = addNet(nic, model, {
        name: `${model.prefix}${dev}`,
        dev,
        speedMbps: options.speedMbps ?? model.speedMbps,
        ...(options.latencyUs === undefined ? {} : { latencyUs: options.latencyUs }),
        ...(ports === 1 ? {} : { port }),
        guidOf: firstDev,
      });
      this.#nets.push({ element, busId, model, port });
    }
  }

  /** Numbers GPUs and ports again, in the order of bus ids, as CUDA and the drivers of virtual machines count them. */
  numberByBusId(): void {
    this.gpus.sort((a, b) => (a.busId < b.busId ? -1 : 1));
    this.gpus.forEach(({ element }, index) => {
      element.attributes.set('dev', String(index)).set('rank', String(this.#firstRank + index));
    });
    this.#nets.sort((a, b) => (a.busId === b.busId ? a.port - b.port : a.busId < b.busId ? -1 : 1));
    let firstDev = 0;
    this.#nets.forEach(({ element, model, port }, dev) => {
      if (port === 1) firstDev = dev;
      element.attributes.set('name', `${model.prefix}${dev}`).set('dev', String(dev)).set('guid', guidOf(firstDev));
    });
  }

  /** NVLinks of all GPUs to NVSwitches, shared out as evenly as they go. */
  nvSwitches(busIds: readonly string[], linksPerGpu?: readonly number[]): void {
    for (const { element, model } of this.gpus) {
      const counts = linksPerGpu ?? busIds.map((_, index) => Math.ceil((model.nvlinks - index) / busIds.length));
      busIds.forEach((target, index) => {
        nvlink(element, target, counts[index] ?? 0, NVSWITCH_CLASS);
      });
    }
  }

  /** NVLinks between GPUs: `counts[i][j]` of GPU i to GPU j. */
  nvlinkMatrix(counts: readonly (readonly number[])[]): void {
    this.gpus.forEach(({ element }, from) => {
      this.gpus.forEach((to, index) => {
        const count = counts[from]?.[index] ?? 0;
        if (count > 0) nvlink(element, to.busId, count, to.model.pciClass);
      });
    });
  }

  /** NVLinks of neighbours that a bridge joins: 0 and 1, 2 and 3 … */
  nvlinkPairs(count: number): void {
    this.nvlinkMatrix(this.gpus.map((_, from) => this.gpus.map((__, to) => ((from ^ 1) === to ? count : 0))));
  }

  /** NVLinks of each GPU to the CPU above it (POWER9). */
  nvlinksToCpu(count: number): void {
    // The bridge on the CPU's side; NCCL reads its class only.
    for (const { element } of this.gpus) nvlink(element, '0004:04:00.0', count, '0x068001');
  }

  /** The chip-to-chip links of the GPUs that have them. */
  c2c(): void {
    for (const { element, model } of this.gpus) addC2c(element, model);
  }
}

/** Attributes of a `<cpu>` that name its model. */
export function setCpuModel(cpu: XmlElement, model: CpuModel): void {
  setMissing(cpu, [['arch', model.arch]]);
  if (model.cpuid === undefined) return;
  setMissing(cpu, [
    ['vendor', model.cpuid.vendor],
    ['familyid', String(model.cpuid.family)],
    ['modelid', String(model.cpuid.model)],
  ]);
}

export function nvlink(gpu: XmlElement, target: string, count: number, tclass: string): void {
  createElement('nvlink', gpu, [
    ['target', target],
    ['count', String(count)],
    ['tclass', tclass],
  ]);
}

export function addC2c(gpu: XmlElement, model: GpuModel): void {
  if (model.c2c === undefined) return;
  createElement('c2c', gpu, [
    ['bw', String(model.c2c.bandwidthMBps)],
    ['count', String(model.c2c.count)],
  ]);
}

/** Adds a port of a card, in the form of NCCL's dump. */
export function addNet(
  nic: XmlElement,
  model: NicModel,
  net: {
    readonly name: string;
    readonly dev: number;
    readonly speedMbps: number;
    readonly latencyUs?: number;
    readonly port?: number;
    /** First device of the card: ports of a card have one guid. */
    readonly guidOf?: number;
  },
): XmlElement {
  return createElement('net', nic, [
    ['name', net.name],
    ['dev', String(net.dev)],
    ['latency', String(net.latencyUs ?? 0)],
    ['speed', String(net.speedMbps)],
    ['port', String(net.port ?? (model.gdr ? 1 : 0))],
    ['guid', guidOf(net.guidOf ?? net.dev)],
    ['maxconn', String(model.maxConnections)],
    ['gdr', model.gdr ? '1' : '0'],
    ['net', '1'],
  ]);
}

function guidOf(dev: number): string {
  return `0x${(0x98039b0300010000n + BigInt(dev) * 0x10000n).toString(16)}`;
}

/** Sets the attributes that the element does not have yet, as NCCL does when it completes a file. */
export function setMissing(element: XmlElement, attributes: readonly (readonly [string, string])[]): void {
  for (const [name, value] of attributes) if (!element.attributes.has(name)) element.attributes.set(name, value);
}

interface PciIds {
  readonly vendor: number;
  readonly device: number;
  readonly subsystemVendor?: number;
  readonly subsystemDevice?: number;
}

function pciElement(
  parent: XmlElement,
  busId: string,
  pciClass: string,
  ids: PciIds,
  generation: PciGeneration,
  lanes: number,
): XmlElement {
  return createElement('pci', parent, [
    ['busid', busId],
    ['class', pciClass],
    ['vendor', hexId(ids.vendor)],
    ['device', hexId(ids.device)],
    ['subsystem_vendor', hexId(ids.subsystemVendor ?? ids.vendor)],
    ['subsystem_device', hexId(ids.subsystemDevice ?? 0)],
    ['link_speed', linkSpeeds[generation]],
    ['link_width', String(lanes)],
  ]);
}

/** `0x10de`. */
export function hexId(value: number): string {
  return `0x${hex(value, 4)}`;
}

function hex(value: number, digits: number): string {
  return value.toString(16).padStart(digits, '0');
}

/** The mask of consecutive cores in Linux's form: groups of 32 bits, the highest first. */
function cpuMask(firstCore: number, cores: number): string {
  const mask = ((1n << BigInt(cores)) - 1n) << BigInt(firstCore);
  const groups = Math.ceil((firstCore + cores) / 32);
  return Array.from({ length: groups }, (_, index) => {
    const shift = BigInt((groups - 1 - index) * 32);
    return ((mask >> shift) & 0xffff_ffffn).toString(16).padStart(8, '0');
  }).join(',');
}
