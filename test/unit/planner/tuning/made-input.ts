import { CrossNic, GraphId, graphNames, Pattern } from '../../../../src/planner/graph/graph.js';
import type { GraphHeader } from '../../../../src/planner/graph/graph.js';
import type { AlignedGraphs } from '../../../../src/planner/graph/merge/align.js';
import { CpuArch, CpuVendor } from '../../../../src/planner/topology/system.js';
import { PathType } from '../../../../src/planner/topology/types.js';
import { defaultParameters } from '../../../../src/planner/parameters.js';
import type { TuningInput } from '../../../../src/planner/tuning/input.js';
import { symmetricSettings } from '../../../../src/planner/tuning/symmetric/input.js';

type Changes = Partial<Omit<TuningInput, 'graphs'>> & { graphs?: Partial<AlignedGraphs> };

/** Two hosts of four A100 with Intel CPUs, two channels of 20 GB/s everywhere, no NVSwitch; other figures as given. */
export function madeInput({ graphs, ...values }: Changes = {}): TuningInput {
  return {
    ncclVersion: '2.30.7',
    nRanks: 8,
    nNodes: 2,
    localRanks: 4,
    minLocalRanks: values.maxLocalRanks ?? 4,
    maxLocalRanks: 4,
    minCompCap: 80,
    maxCompCap: 80,
    cpuArch: CpuArch.X86,
    cpuVendor: CpuVendor.INTEL,
    minNetGBps: 20,
    maxTreePattern: Pattern.BALANCED_TREE,
    nvSwitch: false,
    nChannels: 4,
    callChannels: values.nChannels ?? 4,
    buffers: { ll: 512 * 1024, ll128: 4_915_200, simple: 4 * 1024 * 1024 },
    treeDepth: 5,
    nvls: null,
    collnet: null,
    symmetric: {
      windows: 'none',
      allDirectP2p: true,
      allDirectNvLink: true,
      domainRanks: values.localRanks ?? 4,
      hasNics: true,
      settings: symmetricSettings(defaultParameters),
    },
    ...values,
    graphs: {
      ...(Object.fromEntries(
        graphNames.map((name) => [name, header(name === 'ring' || name === 'tree' ? 2 : 0)]),
      ) as unknown as AlignedGraphs),
      ...graphs,
    },
  };
}

/** Eight H100 on one host with NVSwitches, and the heads that they have there. */
export function h100Input(nNodes: number, values: Changes = {}): TuningInput {
  const heads = header(8, { id: GraphId.NVLS, pattern: Pattern.NVLS, bwIntra: 48, bwInter: 48 });
  return madeInput({
    nRanks: 8 * nNodes,
    nNodes,
    localRanks: 8,
    maxLocalRanks: 8,
    minCompCap: 90,
    maxCompCap: 90,
    nvSwitch: true,
    nChannels: 16,
    nvls: { nChannels: 16, nHeads: 8, chunkBytes: 128 * 1024, treeMaxChunkBytes: 128 * 1024 },
    ...values,
    graphs: {
      ring: header(8, { bwIntra: 40, bwInter: 40 }),
      tree: header(8, { bwIntra: 40, bwInter: 40 }),
      nvls: heads,
      ...values.graphs,
    },
  });
}

export function header(nChannels: number, values: Partial<GraphHeader> = {}): GraphHeader {
  return {
    id: GraphId.RING,
    pattern: Pattern.RING,
    crossNic: CrossNic.NEVER,
    collNet: false,
    minChannels: 1,
    maxChannels: 64,
    nChannels,
    bwIntra: 20,
    bwInter: 20,
    latencyInter: 0,
    typeIntra: PathType.NVL,
    typeInter: PathType.PIX,
    sameChannels: true,
    nHops: 0,
    ...values,
  };
}
