import { InputError } from '../../errors.js';
import { hexId, linkSpeeds, setCpuModel } from '../topology/catalogue/build.js';
import type { CpuModel } from '../topology/catalogue/cpus.js';
import type { GpuModel } from '../topology/catalogue/gpus.js';
import { maskOf } from '../topology/catalogue/layout.js';
import type { NicModel } from '../topology/catalogue/nics.js';
import { detectMachine } from '../topology/detect/detect-machine.js';
import type { MachineFiles } from '../topology/detect/machine-files.js';
import { childrenNamed, descendants, type XmlElement } from '../topology/xml/tree.js';
import type { KnownDevice } from './known-pci.js';
import { latencyOf, slotOf } from './tree-of-table.js';

/** A GPU or card at its place in the tree. */
export interface PlacedGpu {
  readonly device: KnownDevice;
  readonly model: GpuModel;
  /** Its link, by the driver. */
  readonly generation: number | undefined;
  readonly lanes: number | undefined;
}

export interface PlacedNic {
  readonly device: KnownDevice;
  readonly name: string;
  readonly model: NicModel;
  readonly speedMbps: number;
  /** False for an interface of sockets. */
  readonly isRdma: boolean;
}

/** All that is known or assumed about a host whose PCI tree is known. */
export interface PlacedHost {
  /** In the order of their numbers. */
  readonly gpus: readonly PlacedGpu[];
  readonly nics: readonly PlacedNic[];
  readonly cpu: CpuModel;
  /** NVLinks of GPU i to GPU j, or to NVSwitches. */
  readonly nvlinks: readonly (readonly number[])[] | 'switch';
  /** NUMA node of a device. */
  readonly numaOf: (device: KnownDevice) => number;
  /** CPUs of a NUMA node, as Linux lists them. */
  readonly coresOf: (numa: number) => string;
}

/**
 * The machine: its devices as files of /sys, which `tccl topo detect` and NCCL read.
 *
 * @throws InputError where a bus id is no bus id
 */
export function machineOfPci(host: PlacedHost): XmlElement {
  const files = new SysFiles(host);
  const isRdma = host.nics.some((nic) => nic.isRdma);
  const { root } = detectMachine(files, {
    gpus: host.gpus.map(({ device, model, generation, lanes }, dev) => ({
      busId: device.busId,
      dev,
      sm: model.sm,
      pciIds: { vendor: 0x10de, device: model.device, subsystemVendor: 0x10de, subsystemDevice: 0 },
      pciGeneration: generation ?? generationOf(device) ?? model.pciGeneration,
      pciLanes: lanes ?? lanesOf(device) ?? 16,
      nvlinks: linksOf(host, dev),
      c2c: model.c2c,
    })),
    network: isRdma ? 'ib' : 'socket',
    sockets: isRdma ? [] : host.nics.map(({ name }) => name),
  });
  for (const cpu of childrenNamed(root, 'cpu')) setCpuModel(cpu, host.cpu);
  completeNets(root, host);
  return root;
}

function linksOf({ nvlinks, gpus }: PlacedHost, from: number): { target: string; count: number }[] {
  if (nvlinks === 'switch') return [{ target: 'fffffff:ffff:ff', count: gpus[from]?.model.nvlinks ?? 0 }];
  return (nvlinks[from] ?? []).flatMap((count, to) => {
    const target = gpus[to]?.device.busId;
    return count === 0 || target === undefined ? [] : [{ target, count }];
  });
}

/** Facts of the cards' plugins, which /sys does not have. */
function completeNets(root: XmlElement, { nics }: PlacedHost): void {
  for (const element of descendants(root)) {
    if (element.name !== 'net') continue;
    const nic = nics.find(({ name }) => name === element.attributes.get('name'));
    if (nic === undefined) continue;
    element.attributes.set('latency', String(latencyOf(nic.model).latencyUs ?? 0));
    element.attributes.set('gdr', nic.isRdma && nic.model.gdr ? '1' : '0');
    if (nic.isRdma) element.attributes.set('maxconn', String(nic.model.maxConnections));
  }
  for (const element of descendants(root)) {
    element.attributes.delete('keep');
    element.attributes.delete('mlopart');
  }
}

/** GT/s of a lane by the device's link; undefined where unknown or asleep. */
function gtpsOf(device: KnownDevice): number | undefined {
  if (device.capable !== undefined) return device.capable.gtps;
  const link = linkOfRate(device.gbps);
  return link?.gtps;
}

function lanesOf(device: KnownDevice): number | undefined {
  const own = device.capable?.width ?? linkOfRate(device.gbps)?.width;
  const port = device.above?.capable?.width;
  return own === undefined || port === undefined ? own : Math.min(own, port);
}

function generationOf(device: KnownDevice): number | undefined {
  const speeds = [gtpsOf(device), device.above?.capable?.gtps].filter((speed) => speed !== undefined);
  if (speeds.length === 0) return undefined;
  const slowest = Math.min(...speeds);
  return rates.find(([, gtps]) => gtps >= slowest)?.[0];
}

/** Generations, GT/s, and GB/s of a lane. */
const rates: readonly (readonly [generation: number, gtps: number, laneGBps: number])[] = [
  [1, 2.5, 0.25],
  [2, 5, 0.5],
  [3, 8, 0.9846],
  [4, 16, 1.9692],
  [5, 32, 3.9385],
  [6, 64, 7.5625],
];

/**
 * The link of so many GB/s, all lanes together: sixteen lanes where a generation has that rate with them, else the newest. GPUs
 * at rest have slower links, so less than half of generation 3 says nothing.
 */
function linkOfRate(gbps: number | undefined): { gtps: number; width: number } | undefined {
  if (gbps === undefined || gbps < 7) return undefined;
  for (const width of [16, 8, 4, 2, 1])
    for (const [, gtps, lane] of rates.slice(2)) if (Math.abs(lane * width - gbps) < 0.02 * gbps) return { gtps, width };
  return undefined;
}

/** A PCI switch by its ids: generation. */
const switchGenerations: Readonly<Record<string, 3 | 4 | 5 | 6>> = {
  '10b5:8764': 3,
  '10b5:8796': 3,
  '10b5:9765': 3,
  '10b5:9797': 3,
  '1000:c010': 4,
  '1000:c030': 5,
  '15b3:197d': 6,
};

/** The files of /sys that detection reads. */
class SysFiles implements MachineFiles {
  readonly #texts = new Map<string, string>();
  readonly #folders = new Map<string, Set<string>>();
  readonly #links = new Map<string, string>();

  constructor(host: PlacedHost) {
    const used = [...host.gpus.map(({ device }) => device), ...host.nics.map(({ device }) => device)];
    const generation = Math.max(3, ...host.gpus.map(({ model }) => model.pciGeneration));
    for (const device of used)
      for (let at: KnownDevice | undefined = device; at !== undefined; at = at.above) this.#addDevice(at, host, generation);
    for (const numa of new Set(used.map((device) => host.numaOf(device))))
      this.#write(`/sys/devices/system/node/node${numa}/cpumap`, maskOf(host.coresOf(numa)));
    this.#write('/sys/module/nvidia_peermem/version', '1');
    host.nics.forEach((nic, index) => {
      this.#addNic(nic, index);
    });
  }

  readText(path: string): string | undefined {
    const [, link = '', name = ''] = /^(\/sys\/bus\/pci\/devices\/[^/]+)\/(\w+)$/.exec(path) ?? [];
    const target = this.#links.get(link);
    return this.#texts.get(target === undefined ? path : `${target}/${name}`);
  }

  list(path: string): readonly string[] {
    return [...(this.#folders.get(path) ?? [])].sort();
  }

  resolve(path: string): string | undefined {
    return this.#links.get(path) ?? (this.#folders.has(path) ? path : undefined);
  }

  #addDevice(device: KnownDevice, host: PlacedHost, generation: number): void {
    const link = `/sys/bus/pci/devices/${device.busId}`;
    if (this.#links.get(link) === pathOf(device)) return;
    if (!/^[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-9a-f]$/.test(device.busId))
      throw new InputError('CONTENT', `${device.busId} is no bus id`, { line: device.place.line });
    const path = pathOf(device);
    this.#links.set(link, path);
    // NCCL takes all functions of a card for its first one.
    const first = link.replace(/[0-9a-f]{2}\.[0-9a-f]$/, '00.0');
    if (!this.#links.has(first)) this.#links.set(first, path);
    const gpu = host.gpus.find((each) => each.device === device);
    const nic = host.nics.find((each) => each.device === device);
    const known = switchGenerations[`${idText(device.vendor)}:${idText(device.device)}`] ?? generation;
    // The board with which NCCL knows Broadcom's Gen4 switch.
    const board = `${idText(device.vendor)}:${idText(device.device)}` === '1000:c010' ? 0xa096 : 0;
    const subsystem = device.subsystem ?? [device.vendor ?? 0, board];
    const assumed = nic === undefined ? known : slotOf(nic).generation;
    const values: readonly (readonly [string, string | undefined])[] = [
      [
        'class',
        gpu?.model.pciClass ?? nic?.model.pciClass ?? (device.isBridge ? '0x060400' : `0x${device.classCode ?? '0000'}00`),
      ],
      ['vendor', hexId(nic?.model.vendor ?? device.vendor ?? 0)],
      ['device', hexId(nic?.model.device ?? device.device ?? 0)],
      ['subsystem_vendor', hexId(subsystem[0])],
      ['subsystem_device', hexId(subsystem[1])],
      ['max_link_speed', speedText(gtpsOf(device), assumed)],
      ['max_link_width', String(lanesOf(device) ?? 16)],
      ['numa_node', String(host.numaOf(device))],
    ];
    for (const [name, value] of values) if (value !== undefined) this.#write(`${path}/${name}`, value);
  }

  #addNic({ device, name, speedMbps, isRdma }: PlacedNic, index: number): void {
    if (!isRdma) {
      this.#links.set(`/sys/class/net/${name}/device`, pathOf(device));
      this.#write(`/sys/class/net/${name}/speed`, String(speedMbps));
      return;
    }
    const folder = `/sys/class/infiniband/${name}`;
    this.#links.set(`${folder}/device`, pathOf(device));
    this.#write(`${folder}/ports/1/state`, '4: ACTIVE');
    this.#write(`${folder}/ports/1/rate`, `${speedMbps / 1000} Gb/sec`);
    const guid = (0x9803_9b03_0001_0000n + BigInt(index)).toString(16);
    this.#write(`${folder}/sys_image_guid`, guid.replaceAll(/(....)(?=.)/g, '$1:'));
  }

  #write(path: string, text: string): void {
    this.#texts.set(path, text);
    for (let at = path; at.lastIndexOf('/') > 0; at = at.slice(0, at.lastIndexOf('/'))) {
      const parent = at.slice(0, at.lastIndexOf('/'));
      const names = this.#folders.get(parent) ?? new Set<string>();
      names.add(at.slice(parent.length + 1));
      this.#folders.set(parent, names);
    }
  }
}

function idText(id: number | undefined): string {
  return (id ?? 0).toString(16).padStart(4, '0');
}

function pathOf(device: KnownDevice): string {
  if (device.above !== undefined) return `${pathOf(device.above)}/${device.busId}`;
  return `/sys/devices/pci${device.busId.slice(0, 7)}/${device.busId}`;
}

function speedText(gtps: number | undefined, generation: number): string {
  const found = rates.find(([, rate]) => rate === gtps)?.[0] ?? generation;
  if (found === 3 || found === 4 || found === 5 || found === 6) return linkSpeeds[found];
  return found === 2 ? '5.0 GT/s PCIe' : '2.5 GT/s PCIe';
}
