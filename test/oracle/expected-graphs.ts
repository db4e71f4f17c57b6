import { type ChannelGraph, type CrossNic, type GraphId, type HostGraphs, type Pattern } from '../../src/graph/graph.js';
import { type PathType, pathTypeNames } from '../../src/topology/types.js';

/** One graph as `expected.json` holds it. */
interface ExpectedGraph {
  readonly id: number; readonly pattern: number; readonly crossNic: number; readonly collNet: number;
  readonly minChannels: number; readonly maxChannels: number; readonly nChannels: number;
  readonly bwIntra: number; readonly bwInter: number; readonly latencyInter: number;
  readonly typeIntra: string; readonly typeInter: string; readonly sameChannels: number; readonly nHops: number;
  readonly intra: readonly (readonly number[])[];
}

/** The graphs that NCCL's search found, for tests of what comes after it; NETs are left out. */
export function expectedGraphs(graphs: Readonly<Record<keyof HostGraphs, ExpectedGraph | null>>): HostGraphs {
  const { ring, tree } = graphs;
  if (ring === null || tree === null) throw new Error('no ring or tree graph');
  const optional = (graph: ExpectedGraph | null) => (graph === null ? undefined : toGraph(graph));
  return {
    ring: toGraph(ring),
    tree: toGraph(tree),
    collnetChain: optional(graphs.collnetChain),
    collnetDirect: optional(graphs.collnetDirect),
    nvls: optional(graphs.nvls),
  };
}

function toGraph({ intra, typeIntra, typeInter, sameChannels, collNet, ...numbers }: ExpectedGraph): ChannelGraph {
  const pathType = (name: string) => (pathTypeNames as readonly string[]).indexOf(name) as PathType;
  return {
    ...numbers,
    id: numbers.id as GraphId,
    pattern: numbers.pattern as Pattern,
    crossNic: numbers.crossNic as CrossNic,
    collNet: collNet !== 0,
    typeIntra: pathType(typeIntra),
    typeInter: pathType(typeInter),
    sameChannels: sameChannels !== 0,
    bwIntra: Math.fround(numbers.bwIntra),
    bwInter: Math.fround(numbers.bwInter),
    gpuCount: intra[0]?.length ?? 0,
    intra: Int32Array.from(intra.flat()),
    inter: new BigInt64Array(2 * numbers.nChannels),
  };
}
