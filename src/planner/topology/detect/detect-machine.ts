import { fuseTopologies } from '../combine/fuse.js';
import { trimUnused } from '../combine/trim-unused.js';
import { parseXml } from '../xml/parse.js';
import { childrenNamed, cloneElement, createElement, descendants, type XmlElement } from '../xml/tree.js';
import { addCpuDevices } from './cpu-devices.js';
import { CpuDetector } from './detect-cpus.js';
import { addGpu, type FoundGpu, findGpus } from './detect-gpus.js';
import { addNetwork, findNetwork, type NetDevice, type NetworkKind } from './detect-network.js';
import { PciDetector } from './detect-pci.js';
import { cachedFiles, type MachineFiles, type ProbedGpu } from './machine-files.js';

/** Options of detection: facts that no file has, and the requested network devices. */
export interface DetectOptions {
  /** The driver's answer about the GPUs; without it they are identified by their PCI ids, without NVLinks. */
  readonly gpus?: readonly ProbedGpu[];
  /** Reason why the driver is not available, for a note about existing GPUs. */
  readonly noDriver?: string;
  /** `auto`: InfiniBand and RoCE where a port is active, else sockets. */
  readonly network?: NetworkKind | 'auto';
  /** Interfaces that have an address, in the system's order; without it, those that /sys shows as up. */
  readonly interfaces?: readonly string[];
  /** Interfaces for sockets that the caller chose; without it, those of `interfaces` that NCCL would choose. */
  readonly sockets?: readonly string[];
  /**
   * Number of CPU ranks, each of which gets a device below the NUMA nodes, in blocks; or the NUMA node of each by the kernel's
   * number, undefined for a place in the blocks. GPUs are then ignored.
   */
  readonly cpuRanks?: number | readonly (number | undefined)[];
  /**
   * A topology to begin with, like `NCCL_TOPO_FILE` in NCCL: devices of the machine and missing attributes are added, and
   * branches without a GPU or network device of the machine are removed. Default: {@link DEFAULT_FILE} of the machine, if it
   * exists.
   */
  readonly file?: XmlElement;
}

/** A machine, read from its files. */
export interface DetectedMachine {
  readonly root: XmlElement;
  /** Devices that were left out or could not be read, one line each. */
  readonly notes: readonly string[];
}

/** NCCL's default path of a topology, which some virtual machines have. */
const DEFAULT_FILE = '/var/run/nvidia-topologyd/virtualTopology.xml';

/**
 * Detects the topology of a machine from its /sys and /proc, as the ranks of a job with one process for each GPU do together:
 * each finds its own GPU and all network devices, and these are fused in the order of `dev`. A machine without GPUs, or with CPU
 * ranks, has all its NUMA nodes.
 *
 * @throws InputError where the machine's {@link DEFAULT_FILE} is no XML
 */
export function detectMachine(machine: MachineFiles, options: DetectOptions = {}): DetectedMachine {
  const files = cachedFiles(machine);
  const found = options.cpuRanks === undefined ? findGpus(files, options) : { gpus: [], unknown: [], notes: [] };
  const network = findNetwork(files, options.network ?? 'auto', options.interfaces, options.sockets);
  const notes = [...found.notes, ...network.notes];

  if (found.gpus.length === 0) {
    const { root, cpus, pcis } = beginView(files, undefined);
    cpus.addAll();
    for (const busId of found.unknown) pcis.device(busId, 'gpu');
    addNetwork(root, pcis, network.devices);
    for (const element of descendants(root)) element.attributes.delete('keep');
    if (options.cpuRanks !== undefined) addCpuDevices(root, options.cpuRanks);
    return { root, notes: [...notes, ...(options.file === undefined ? [] : ['no GPU found: the file is left aside'])] };
  }
  const file = options.file ?? readDefaultFile(files, notes);
  const views = found.gpus.map((gpu, rank) => viewOfRank(files, file, gpu, rank, network.devices));
  const root = fuseTopologies(views) ?? createSystem();
  if (file !== undefined) notes.push(...describeMissing(file, root));
  return { root, notes };
}

/** Devices that one rank finds. */
function viewOfRank(
  files: MachineFiles,
  file: XmlElement | undefined,
  gpu: FoundGpu,
  rank: number,
  nets: readonly NetDevice[],
): XmlElement {
  const { root, pcis } = beginView(files, file);
  addGpu(files, pcis.device(gpu.busId, 'gpu', gpu.probed), gpu, rank);
  addNetwork(root, pcis, nets);
  trimUnused(root);
  return root;
}

interface View {
  readonly root: XmlElement;
  readonly cpus: CpuDetector;
  readonly pcis: PciDetector;
}

function beginView(files: MachineFiles, file: XmlElement | undefined): View {
  const root = file === undefined ? createSystem() : cloneElement(file);
  const cpus = new CpuDetector(files, root);
  return { root, cpus, pcis: new PciDetector(files, cpus, root) };
}

function createSystem(): XmlElement {
  return createElement('system', undefined, [['version', '1']]);
}

function readDefaultFile(files: MachineFiles, notes: string[]): XmlElement | undefined {
  const text = files.readText(DEFAULT_FILE);
  if (text === undefined) return undefined;
  notes.push(`it begins with ${DEFAULT_FILE}, as NCCL does where NCCL_TOPO_FILE is not set`);
  return parseXml(text, { fileName: DEFAULT_FILE }).root;
}

/** Places of devices in the file without a device of the machine. */
function describeMissing(file: XmlElement, root: XmlElement): string[] {
  const here = new Set([...descendants(root)].map((element) => element.attributes.get('busid')));
  const gone = [...descendants(file)].filter(
    (element) =>
      element.name === 'pci' && childrenNamed(element, 'pci').length === 0 && !here.has(element.attributes.get('busid')),
  );
  if (gone.length === 0) return [];
  return [
    `left out, because no GPU or network device of the machine is there: ${gone.map((pci) => pci.attributes.get('busid') ?? '?').join(' ')}`,
  ];
}
