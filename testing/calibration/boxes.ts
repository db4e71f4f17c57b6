import { InputError } from '../../src/errors.js';
import { pex88096, pex89000, TreeBuilder } from '../../src/planner/topology/catalogue/build.js';
import { cpuModels } from '../../src/planner/topology/catalogue/cpus.js';
import { gpuModels } from '../../src/planner/topology/catalogue/gpus.js';
import { nicModels } from '../../src/planner/topology/catalogue/nics.js';
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

/** Name of {@link h100Board} among machines of the catalogue. */
export const H100_BOARD = 'four H100 of a board';

/**
 * Hosts of Snellius: four H100, every pair joined by six NVLinks, each with a port of 200 Gb/s at the same socket. Their log has
 * bus ids and sockets; links of the cards are assumed.
 */
export function h100Board(): XmlElement {
  const cpu = cpuModels.find(({ id }) => id === 'epyc-genoa');
  const h100 = gpuModels.find(({ id }) => id === 'h100-sxm');
  const connectX7 = nicModels.find(({ id }) => id === 'connectx-7');
  if (cpu === undefined || h100 === undefined || connectX7 === undefined)
    throw new InputError('CONTENT', 'the catalogue has no EPYC Genoa, no H100 or no ConnectX-7');
  const tree = new TreeBuilder();
  for (let socket = 0; socket < 2; socket++) {
    const numa = tree.cpu(cpu, socket, socket * 32, 32);
    for (let slot = 0; slot < 2; slot++) {
      const shared = tree.pciSwitch(numa, pex89000);
      tree.gpu(shared, h100);
      tree.nic(shared, connectX7, { speedMbps: 200_000 });
    }
  }
  tree.nvlinkMatrix([0, 1, 2, 3].map((gpu) => [0, 1, 2, 3].map((other) => (gpu === other ? 0 : 6))));
  return tree.system;
}
