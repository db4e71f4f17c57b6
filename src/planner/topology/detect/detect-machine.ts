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

/** Options of detection: facts that no file has, and the network devices that are wanted. */
export interface DetectOptions {
  /** The driver's answer about the GPUs; without it they are known by their PCI ids, and their NVLinks are not known. */
  readonly gpus?: readonly ProbedGpu[];
  /** Reason why the driver could not be asked, for a note about GPUs that exist nevertheless. */
  readonly noDriver?: string;
  /** `auto`: InfiniBand and RoCE where a port is active, else sockets. */
  readonly network?: NetworkKind | 'auto';
  /** Interfaces that have an address, in the system's order; without it, those that /sys shows as up. */
  readonly interfaces?: readonly string[];
  /** Interfaces for sockets that the caller chose; without it, those of `interfaces` that NCCL would choose. */
  readonly sockets?: readonly string[];
  /**
   * Number of CPU ranks, each of which gets a device below the NUMA nodes, in blocks; or the NUMA node of each, by the kernel's
   * number, where undefined is a place in the blocks. GPUs are not looked for then.
   */
  readonly cpuRanks?: number | readonly (number | undefined)[];
  /**
   * A topology to begin with, as NCCL begins with `NCCL_TOPO_FILE`: what it says stays, devices of the machine are put at
   * their bus ids, attributes that it lacks are set, and what no GPU or network device of the machine is below goes.
   * Without it, {@link DEFAULT_FILE} of the machine where there is one.
   */
  readonly file?: XmlElement;
}

/** A machine, read from its files. */
export interface DetectedMachine {
  readonly root: XmlElement;
  /** Devices that were left out or could not be read, one line each. */
  readonly notes: readonly string[];
}

/** Path where NCCL looks for a topology when no variable names one; some virtual machines have it. */
const DEFAULT_FILE = '/var/run/nvidia-topologyd/virtualTopology.xml';

/**
 * The topology of a machine from its /sys and /proc, as the ranks of a job with one process a GPU find it together: each
 * finds its own GPU and all network devices, and these are fused in the order of ranks. Ranks are in the order of `dev`.
 * A machine without GPUs, or with CPU ranks, has all its NUMA nodes.
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

/** Places of devices in the file that nothing of the machine is at. */
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
