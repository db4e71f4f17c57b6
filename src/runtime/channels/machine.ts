import { readFileSync } from '#platform/files';
import { describeError, inFile, InputError, SystemError } from '../../errors.js';
import { addCpuDevices } from '../../planner/topology/detect/cpu-devices.js';
import { parseXml } from '../../planner/topology/xml/parse.js';
import { descendants, detach, type XmlElement } from '../../planner/topology/xml/tree.js';
import { validateTopology } from '../../planner/topology/xml/validate.js';
import type { Nic } from '../bootstrap/interfaces.js';
import { detect } from '../detect/detect.js';

/** A rank of this host, with its place in the topology. */
interface PlacedRank {
  /** See PeerInfo. */
  readonly device: string;
  /** The kernel's number of the NUMA node that has its memory. */
  readonly numaNode: number | undefined;
}

/** This machine with a GPU node for each of some ranks, below its NUMA node, and a NET node for each of some NICs. */
export function detectedMachine(ranks: readonly PlacedRank[], nics: readonly Nic[]): XmlElement {
  const { root } = detect({
    network: 'socket',
    sockets: nics.map(({ name }) => name),
    cpuRanks: ranks.map(({ numaNode }) => numaNode),
  });
  return root;
}

/**
 * The machine of a topology file. The rank with device `cpu:N` is the GPU whose `dev` is N; a file without GPUs gets one for
 * each rank, below its NUMA node.
 *
 * @throws SystemError `FILE`; InputError where the file is no topology, or lacks the GPU of a rank
 */
export function machineOfFile(file: string, ranks: readonly PlacedRank[]): XmlElement {
  const { root } = parseXml(readText(file), { fileName: file });
  inFile(file, () => validateTopology(root));
  const gpus = [...descendants(root)].filter(({ name }) => name === 'gpu');
  if (gpus.length === 0) {
    addCpuDevices(
      root,
      ranks.map(({ numaNode }) => numaNode),
    );
    return root;
  }
  const used = ranks.map(({ device }, index) => {
    const dev = /^cpu:(\d+)$/.exec(device)?.[1] ?? String(index);
    const gpu = gpus.find(({ attributes }) => attributes.get('dev') === dev);
    if (gpu !== undefined) return gpu;
    throw new InputError('CONTENT', `has no <gpu dev="${dev}">, which stands for the rank with device ${device}: add it`, {
      file,
    });
  });
  for (const gpu of gpus) if (!used.includes(gpu)) detach(gpu);
  used.forEach((gpu, rank) => gpu.attributes.set('rank', String(rank)));
  return root;
}

function readText(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    throw new SystemError('FILE', `TCCL_TOPO_FILE cannot be read: ${describeError(error)}`, { file, cause: error });
  }
}
