import { inFile } from '../../errors.js';
import { completeSkeleton } from '../../topology/catalogue/complete.js';
import { validateTopology } from '../../topology/xml/validate.js';
import { writeXml } from '../../topology/xml/write.js';
import { printNotes, writeFile } from '../output.js';
import { readTopologyInput } from './input.js';
import { readHardware } from './load.js';

export interface CompleteOptions {
  readonly hardware?: string;
  readonly output?: string;
}

/** `tccl topo complete`. */
export function complete(name: string, options: CompleteOptions): void {
  const input = readTopologyInput(name);
  const hardware = options.hardware === undefined ? undefined : readHardware(options.hardware);
  const { root, notes } = inFile(input.fileName, () => {
    validateTopology(input.root);
    return completeSkeleton(input.root, hardware);
  });
  const text = writeXml(root);
  if (options.output === undefined) process.stdout.write(text);
  else writeFile(options.output, text);
  printNotes(notes);
}
