import { statSync } from 'node:fs';
import { networkInterfaces } from 'node:os';
import { SystemError } from '../../errors.js';
import { detectMachine, type DetectedMachine } from '../../planner/topology/detect/detect-machine.js';
import type { NetworkKind } from '../../planner/topology/detect/detect-network.js';
import type { XmlElement } from '../../planner/topology/xml/tree.js';
import { filesOfMachine } from './node-files.js';
import { askNvml } from './nvml.js';

export interface DetectHereOptions {
  /** Root of the machine's file system; `/` is the running machine, a folder one that was captured. */
  readonly root?: string;
  readonly network?: NetworkKind | 'auto';
  /** A device for each of so many CPU ranks. */
  readonly cpuRanks?: number;
  /** A topology to begin with, as NCCL begins with `NCCL_TOPO_FILE`. */
  readonly file?: XmlElement;
}

/**
 * The topology of the running machine, or of one whose /sys and /proc were copied into a folder.
 *
 * @throws SystemError `FILE` where the root is no folder.
 */
export function detect(options: DetectHereOptions = {}): DetectedMachine {
  const { root = '/', network, cpuRanks, file } = options;
  if (statSync(root, { throwIfNoEntry: false })?.isDirectory() !== true)
    throw new SystemError('FILE', 'is no folder', { file: root });
  // The driver and the system's list of addresses tell of the running machine only.
  const isHere = root === '/';
  const nvml = isHere && cpuRanks === undefined ? askNvml() : undefined;
  return detectMachine(filesOfMachine(root), {
    ...(nvml === undefined ? {} : 'gpus' in nvml ? { gpus: nvml.gpus } : { noDriver: nvml.reason }),
    ...(network === undefined ? {} : { network }),
    ...(cpuRanks === undefined ? {} : { cpuRanks }),
    ...(isHere ? { interfaces: Object.keys(networkInterfaces()) } : {}),
    ...(file === undefined ? {} : { file }),
  });
}
