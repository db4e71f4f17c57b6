import { readFileSync } from '#platform/files';
import { describeError, InputError } from '../errors.js';
import { nvlsChannelsOf } from '../planner/graph/merge/nvls.js';
import { defaultParameters } from '../planner/parameters.js';
import { buildSystem } from '../planner/topology/build/build-system.js';
import { withoutEmptyBranches } from '../planner/topology/combine/prune.js';
import { detectMachine } from '../planner/topology/detect/detect-machine.js';
import { findPaths } from '../planner/topology/paths/find-paths.js';
import { Reach } from '../planner/topology/paths/reach.js';
import { PathType, pathTypeNames } from '../planner/topology/types.js';
import { parseXml } from '../planner/topology/xml/parse.js';
import { descendants, detach, type XmlElement } from '../planner/topology/xml/tree.js';
import { validateTopology } from '../planner/topology/xml/validate.js';
import { filesOfMachine } from '../runtime/detect/node-files.js';
import { askNvml } from '../runtime/detect/nvml.js';
import { value } from '../runtime/launch/environment.js';
import { fileNamed } from '../runtime/observe/append-file.js';

/** Facts of a rank's GPU, and what its program wants, by which all ranks decide alike. */
export interface GpuFacts {
  readonly uuid: string;
  /** In the form of /sys: `0000:1b:00.0`. */
  readonly busId: string;
  /** Compute capability × 10. */
  readonly sm: number;
  readonly isExclusive: boolean;
  /** TCCL_P2P_LEVEL: the farthest path on which the rank wants peers. */
  readonly p2pLevel: PathType | undefined;
}

/** Decisions about the GPUs of a host. */
export interface GpuPlan {
  /** By rank × rank: type of the path between two GPUs; missing where the topology is unknown. */
  readonly paths?: readonly (readonly string[])[];
  /** `over NVLink`, or the reason why the topology is unknown. */
  readonly how: string;
  /** Reason why data go through the host: GPUs that are too far apart. */
  readonly refusal?: string;
  /** NCCL's channels of NVLS. */
  readonly nvlsChannels: number;
}

/**
 * Plans the ways between the GPUs of a host's ranks as NCCL does: by the type of the path between two of them. Where the
 * topology is unknown, the driver's answers decide alone.
 */
export function planGpus(gpus: readonly GpuFacts[], machine = machineHere): GpuPlan {
  // NCCL takes the number of the GPU itself; here, kernels of all ranks have the same number of blocks.
  const nvlsChannels = Math.min(...gpus.map(({ sm }) => nvlsChannelsOf(sm, defaultParameters).within));
  const levels = gpus.flatMap(({ p2pLevel }) => p2pLevel ?? []);
  const wanted = levels.length === 0 ? undefined : (Math.min(...levels) as PathType);
  const busIds = gpus.map(({ busId }) => busId);
  try {
    const { types, level } =
      new Set(busIds).size > 1
        ? pathsBetween(machine(), busIds, wanted)
        : { types: busIds.map(() => busIds.map(() => PathType.LOC)), level: PathType.SYS };
    const paths = types.map((row) => row.map((type) => pathTypeNames[type]));
    const farthest = Math.max(...types.flat()) as PathType;
    const how = wordsOf(farthest);
    if (farthest <= level) return { paths, how, nvlsChannels };
    const from = types.findIndex((row) => row.includes(farthest));
    const to = types[from]?.indexOf(farthest) ?? 0;
    const whose = wanted === undefined ? 'as NCCL has it on this machine; TCCL_P2P_LEVEL=SYS allows it' : 'TCCL_P2P_LEVEL';
    const refusal =
      `the GPUs of ranks ${from} and ${to}, ${busIds[from]} and ${busIds[to]}, are as far apart as ${pathTypeNames[farthest]}, ` +
      `farther than ${pathTypeNames[level]} (${whose})`;
    return { paths, how, refusal, nvlsChannels };
  } catch (error) {
    const how = `over unknown paths (${describeError(error)})`;
    const isLimited = wanted !== undefined && wanted < PathType.SYS;
    const refusal = `TCCL_P2P_LEVEL=${pathTypeNames[wanted ?? 0]} is set, and the paths between GPUs are unknown: ${describeError(error)}`;
    return { how, nvlsChannels, ...(isLimited ? { refusal } : {}) };
  }
}

/**
 * Types of the paths between GPUs, and the farthest one for peers.
 *
 * @param machine which this changes
 * @throws InputError where it lacks one of the GPUs, or is no topology
 */
function pathsBetween(
  machine: XmlElement,
  busIds: readonly string[],
  p2pLevel: PathType | undefined,
): { readonly types: readonly (readonly PathType[])[]; readonly level: PathType } {
  const used = [...new Set(busIds)];
  const found = new Set<string>();
  for (const gpu of [...descendants(machine)].filter(({ name }) => name === 'gpu')) {
    const busId = gpu.parent?.attributes.get('busid')?.toLowerCase() ?? '';
    if (!used.includes(busId)) detach(gpu);
    else gpu.attributes.set('rank', String(used.indexOf(busId)));
    found.add(busId);
  }
  const missing = used.find((busId) => !found.has(busId));
  if (missing !== undefined) throw new InputError('CONTENT', `the topology of the machine has no GPU ${missing}`);
  const parameters = { ...defaultParameters, p2pLevel };
  const system = buildSystem(withoutEmptyBranches(machine), { parameters });
  const reach = new Reach(system, findPaths(system, parameters), parameters);
  const indexOf = (busId: string): number => system.gpus.findIndex(({ rank }) => rank === used.indexOf(busId));
  const indices = busIds.map(indexOf);
  return { types: indices.map((from) => indices.map((to) => reach.pathType(from, to))), level: reach.p2pLevel };
}

function wordsOf(type: PathType): string {
  if (type === PathType.LOC) return 'on one GPU';
  if (type <= PathType.NVB) return 'over NVLink';
  return type === PathType.C2C ? 'over C2C' : `over PCIe (${pathTypeNames[type]})`;
}

/** The topology in TCCL_TOPO_FILE, or of this machine by NVML and /sys. */
function machineHere(): XmlElement {
  const pattern = value(process.env, 'TCCL_TOPO_FILE');
  if (pattern !== undefined) {
    const file = fileNamed(pattern);
    const { root } = parseXml(readFileSync(file, 'utf8'), { fileName: file });
    validateTopology(root);
    return root;
  }
  const nvml = askNvml();
  // /sys does not show NVLinks.
  if (!('gpus' in nvml)) throw new InputError('CONTENT', nvml.reason);
  return detectMachine(filesOfMachine(), { gpus: nvml.gpus, network: 'socket', sockets: [] }).root;
}
