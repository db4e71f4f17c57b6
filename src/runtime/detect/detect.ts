import { statSync } from '#platform/files';
import { SystemError } from '../../errors.js';
import { detectMachine, type DetectedMachine } from '../../planner/topology/detect/detect-machine.js';
import type { NetworkKind } from '../../planner/topology/detect/detect-network.js';
import type { XmlElement } from '../../planner/topology/xml/tree.js';
import { filesOfMachine } from './node-files.js';
import { askNvml } from './nvml.js';
import { networkInterfaces } from '../platform/platform.js';

interface DetectHereOptions {
  /** Root of the machine's file system; `/` is the running machine, another folder a captured one. */
  readonly root?: string;
  readonly network?: NetworkKind | 'auto';
  /** Interfaces for sockets; without it, those that NCCL would choose. */
  readonly sockets?: readonly string[];
  /** Number of CPU ranks to add a device for, or the NUMA node of each. */
  readonly cpuRanks?: number | readonly (number | undefined)[];
  /** A topology to begin with, like `NCCL_TOPO_FILE` in NCCL. */
  readonly file?: XmlElement;
}

/**
 * Detects the topology of the running machine, or of one whose /sys and /proc were copied to a folder.
 *
 * @throws SystemError `FILE` if the root is not a folder.
 */
export function detect(options: DetectHereOptions = {}): DetectedMachine {
  const { root = '/', network, sockets, cpuRanks, file } = options;
  if (statSync(root, { throwIfNoEntry: false })?.isDirectory() !== true)
    throw new SystemError('FILE', 'is not a folder', { file: root });
  // The driver and the system's list of addresses describe only the running machine.
  const isHere = root === '/';
  const nvml = isHere && cpuRanks === undefined ? askNvml() : undefined;
  return detectMachine(filesOfMachine(root), {
    ...(nvml === undefined ? {} : 'gpus' in nvml ? { gpus: nvml.gpus } : { noDriver: nvml.reason }),
    ...(network === undefined ? {} : { network }),
    ...(sockets === undefined ? {} : { sockets }),
    ...(cpuRanks === undefined ? {} : { cpuRanks }),
    ...(isHere ? { interfaces: Object.keys(networkInterfaces()) } : {}),
    ...(file === undefined ? {} : { file }),
  });
}
