import { detect } from '../../runtime/detect/detect.js';
import { inFile, InvalidArgumentError, InvalidUsageError } from '../../errors.js';
import { machineOf } from '../../planner/evidence/machine-of-tools.js';
import { parametersFromEnvironment } from '../../planner/parameters.js';
import { type Completed, completeSkeleton } from '../../planner/topology/catalogue/complete.js';
import { descendants, type XmlElement } from '../../planner/topology/xml/tree.js';
import { validateTopology } from '../../planner/topology/xml/validate.js';
import { writeXml } from '../../planner/topology/xml/write.js';
import { printData, printNotes, writeFile } from '../output.js';
import { readTopologyInput } from './input.js';
import { mergeOnRequest, readHardware } from './load.js';

export interface CompleteOptions {
  readonly hardware?: string;
  readonly machine?: string;
  readonly mergeNics?: boolean;
  readonly output?: string;
}

/** `tccl topo complete`. */
export function complete(name: string, options: CompleteOptions): void {
  const { hardware: description, machine } = options;
  if (description !== undefined && machine !== undefined) {
    throw new InvalidArgumentError('UNSUPPORTED', '--hardware and --machine both describe the devices; give one of them');
  }
  const input = readTopologyInput(name);
  const hardware = description === undefined ? undefined : readHardware(description);
  const { root, notes } = inFile(input.fileName, () => {
    if (input.evidence !== undefined) {
      if (machine === undefined) return machineOf(input.evidence, hardware);
      throw new InvalidUsageError(
        'UNSUPPORTED',
        '--machine does not go with a matrix of nvidia-smi, which describes one already',
      );
    }
    validateTopology(input.root);
    return machine === undefined ? completeSkeleton(input.root, hardware) : completeFromMachine(input.root, machine);
  });
  const mergeNotes = mergeOnRequest(
    root,
    parametersFromEnvironment(process.env).parameters,
    input.fileName,
    options.mergeNics === true,
  );
  const text = writeXml(root);
  if (options.output === undefined) printData(text);
  else writeFile(options.output, text);
  printNotes([...mergeNotes, ...notes]);
}

/** NCCL's topology from the file on that machine. */
function completeFromMachine(file: XmlElement, machine: string): Completed {
  const detected = detect({ root: machine, file });
  if ([...descendants(detected.root)].some(({ name }) => name === 'gpu')) return detected;
  throw new InvalidUsageError(
    'UNSUPPORTED',
    `no GPU found on the machine at ${machine}, so NCCL would not start there; describe the devices with --hardware`,
  );
}
