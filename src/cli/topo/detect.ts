import { detect } from '../../runtime/detect/detect.js';
import type { NetworkKind } from '../../planner/topology/detect/detect-network.js';
import { descendants } from '../../planner/topology/xml/tree.js';
import { writeXml } from '../../planner/topology/xml/write.js';
import { printData, printNotes, writeFile } from '../output.js';

export interface DetectOptions {
  readonly root: string;
  readonly ranks?: number;
  readonly net: NetworkKind | 'auto';
  readonly output?: string;
}

/** `tccl topo detect`. */
export function detectTo(options: DetectOptions): void {
  const { root, notes } = detect({
    root: options.root,
    network: options.net,
    ...(options.ranks === undefined ? {} : { cpuRanks: options.ranks }),
  });
  const text = writeXml(root);
  if (options.output === undefined) printData(text);
  else writeFile(options.output, text);
  const hasGpu = [...descendants(root)].some(({ name }) => name === 'gpu');
  printNotes(hasGpu ? notes : [...notes, 'no GPU found; --ranks N adds a device for each of N CPU ranks']);
}
