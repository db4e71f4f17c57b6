import { InputError } from '../../src/errors.js';
import { pex88096, TreeBuilder } from '../../src/planner/topology/catalogue/build.js';
import { cpuModels } from '../../src/planner/topology/catalogue/cpus.js';
import { gpuModels } from '../../src/planner/topology/catalogue/gpus.js';
import type { XmlElement } from '../../src/planner/topology/xml/tree.js';

/** Name of {@link l40sBox} among machines of the catalogue. */
export const L40S_BOX = 'eight L40S below one switch';

/**
 * The measured L40S, whose source does not describe their box. What all of them move together says that they share one slot:
 * two reach 20 GB/s each, four 5.1 each with any collective, which is what one Gen4 x16 link carries of 20.4 GB/s.
 */
export function l40sBox(): XmlElement {
  const cpu = cpuModels.find(({ id }) => id === 'epyc-milan');
  const l40s = gpuModels.find(({ id }) => id === 'l40s');
  if (cpu === undefined || l40s === undefined) throw new InputError('CONTENT', 'the catalogue has no EPYC Milan or no L40S');
  const tree = new TreeBuilder();
  const shared = tree.pciSwitch(tree.cpu(cpu, 0, 0, 64), pex88096);
  for (let gpu = 0; gpu < 8; gpu++) tree.gpu(shared, l40s);
  return tree.system;
}

/** Settings with which NCCL does what the measured box shows: more than two of its GPUs meet in memory of the host. */
export function l40sEnvironment(gpus: number): Readonly<Record<string, string>> {
  return gpus > 2 ? { NCCL_P2P_DISABLE: '1' } : {};
}
