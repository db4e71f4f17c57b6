import { linkSpeeds, nvlink, nvSwitchClass } from '../catalogue/build.js';
import { gpuModels } from '../catalogue/gpus.js';
import { createElement, type XmlElement } from '../xml/tree.js';
import { CpuDetector } from './detect-cpus.js';
import { addNetwork, type NetworkKind } from './detect-network.js';
import { PciDetector } from './detect-pci.js';
import type { MachineFiles, ProbedGpu } from './machine-files.js';

export interface DetectOptions {
  /** What the driver says of the GPUs; without it they are known by their PCI ids, and their NVLinks not at all. */
  readonly gpus?: readonly ProbedGpu[];
  /** Why the driver could not be asked, for a note about GPUs that are there all the same. */
  readonly noDriver?: string;
  /** `auto`: InfiniBand and RoCE where a port is active, else sockets. */
  readonly network?: NetworkKind | 'auto';
  /** Adds a device for each of so many CPU ranks, below the NUMA nodes in blocks. */
  readonly cpuRanks?: number;
}

export interface DetectedMachine {
  readonly root: XmlElement;
  /** What was left out or could not be seen, one line each. */
  readonly notes: readonly string[];
}

/**
 * The topology of a machine from its /sys and /proc, as NCCL builds it when it is given no file: NUMA nodes with
 * affinity and CPU model, PCI switches with speed and width, GPUs, network devices. GPUs get ranks in the order of
 * `dev`.
 */
export function detectMachine(files: MachineFiles, options: DetectOptions = {}): DetectedMachine {
  const root = createElement('system', undefined, [['version', '1']]);
  const notes: string[] = [];
  const cpus = new CpuDetector(files, root);
  cpus.addAll();
  const pcis = new PciDetector(files, cpus);

  const hasRdmaDriver = hasGpuDirect(files);
  const gpus = new GpuAdder(files, pcis, hasRdmaDriver);
  if (options.gpus === undefined) notes.push(...gpus.addByPciId(options.noDriver ?? 'NVML was not asked'));
  else for (const gpu of [...options.gpus].sort((a, b) => a.dev - b.dev)) gpus.addProbed(gpu);

  const [firstCpu] = root.children;
  if (firstCpu !== undefined) {
    notes.push(...addNetwork(files, pcis, firstCpu, options.network ?? 'auto', hasRdmaDriver));
  }
  if (options.cpuRanks !== undefined) addCpuDevices(root, options.cpuRanks);
  return { root, notes };
}

/** Whether a NIC can reach the memory of GPUs: by NVIDIA's peer memory module, or DMA-BUF of the open driver. */
function hasGpuDirect(files: MachineFiles): boolean {
  return files.list('/sys/module/nvidia_peermem').length > 0
    || files.list('/sys/kernel/mm/memory_peers/nv_mem').length > 0
    || (files.readText('/proc/driver/nvidia/version') ?? '').includes('Open Kernel Module');
}

/** How the kernel writes the speeds of PCI generations. */
const speedTexts = new Map<number, string>([
  [1, '2.5 GT/s PCIe'], [2, '5.0 GT/s PCIe'], ...Object.entries(linkSpeeds).map(([generation, text]) => [Number(generation), text] as const),
]);

/** Adds GPUs in the order of their ranks. */
class GpuAdder {
  readonly #files: MachineFiles;
  readonly #pcis: PciDetector;
  readonly #gdr: string;
  #ranks = 0;

  constructor(files: MachineFiles, pcis: PciDetector, hasRdmaDriver: boolean) {
    this.#files = files;
    this.#pcis = pcis;
    this.#gdr = hasRdmaDriver ? '1' : '0';
  }

  addProbed(gpu: ProbedGpu): void {
    const speed = gpu.pciGeneration === undefined ? undefined : speedTexts.get(gpu.pciGeneration);
    const element = this.#add(this.#pcis.device(gpu.busId, { speed, lanes: gpu.pciLanes }), gpu.dev, gpu.sm);
    for (const { target, count } of gpu.nvlinks) {
      // An end that the machine does not show is an NVSwitch, as in NCCL.
      const tclass = this.#files.readText(`/sys/bus/pci/devices/${target}/class`) ?? nvSwitchClass;
      nvlink(element, target, count, tclass);
    }
    if (gpu.c2c !== undefined) createElement('c2c', element, [['bw', String(gpu.c2c.bandwidthMBps)], ['count', String(gpu.c2c.count)]]);
  }

  /** NVIDIA's display and 3D controllers; gives back what a person should know. */
  addByPciId(noDriver: string): string[] {
    const unknown: string[] = [];
    for (const busId of this.#files.list('/sys/bus/pci/devices')) {
      const read = (name: string) => this.#files.readText(`/sys/bus/pci/devices/${busId}/${name}`) ?? '';
      if (read('vendor') !== '0x10de' || !read('class').startsWith('0x03')) continue;
      const model = gpuModels.find(({ device }) => device === Number(read('device')));
      const pci = this.#pcis.device(busId);
      if (model === undefined) unknown.push(`${busId} (device ${read('device')})`);
      else this.#add(pci, this.#ranks, model.sm);
    }
    return [
      ...(this.#ranks === 0 ? [] : [`${noDriver}: NVLinks are not in it, and compute capabilities are those of the catalogue`]),
      ...(unknown.length === 0 ? [] : [`GPUs that the catalogue does not know have no <gpu>: ${unknown.join(', ')}; tccl topo complete --hardware adds them`]),
    ];
  }

  #add(pci: XmlElement, dev: number, sm: number): XmlElement {
    return createElement('gpu', pci, [['dev', String(dev)], ['sm', String(sm)], ['rank', String(this.#ranks++)], ['gdr', this.#gdr]]);
  }
}

/**
 * A device for each CPU rank: a GPU node below its NUMA node, at a bus id that no machine has. Rank r of n is put on
 * node r·nodes/n, so that neighbours in rank are neighbours in memory. Its link stands for the node's memory.
 */
export function addCpuDevices(root: XmlElement, ranks: number): void {
  const nodes = root.children.filter((cpu) => /[1-9a-fA-F]/.test(cpu.attributes.get('affinity') ?? ''));
  const places = nodes.length > 0 ? nodes : root.children;
  for (let rank = 0; rank < ranks; rank++) {
    const cpu = places[Math.floor((rank * places.length) / ranks)];
    if (cpu === undefined) return;
    const busId = `fffe:${(rank >> 5).toString(16).padStart(2, '0')}:${(rank & 31).toString(16).padStart(2, '0')}.0`;
    const pci = createElement('pci', cpu, [
      ['busid', busId], ['class', '0x030200'], ['vendor', '0x0000'], ['device', '0x0000'],
      ['subsystem_vendor', '0x0000'], ['subsystem_device', '0x0000'], ['link_speed', linkSpeeds[6]], ['link_width', '16'],
    ]);
    // No compute capability: nothing of a GPU but its place.
    createElement('gpu', pci, [['dev', String(rank)], ['sm', '0'], ['rank', String(rank)], ['gdr', '0']]);
  }
}
