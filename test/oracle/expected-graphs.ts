import { type ChannelGraph, type CrossNic, type GraphId, type HostGraphs, type Pattern } from '../../src/planner/graph/graph.js';
import type { GraphJson } from '../../src/planner/graph/graph-json.js';
import { contributionOf } from '../../src/planner/graph/merge/contribution.js';
import { type Merged, mergeHosts } from '../../src/planner/graph/merge/merge.js';
import type { OracleCase } from '../../testing/oracle/oracle-case.js';
import { type PathType, pathTypeNames } from '../../src/planner/topology/types.js';

/** One graph as `expected.json` holds it. */
type ExpectedGraph = Omit<GraphJson, 'inter'>;

type ExpectedGraphs = Readonly<Record<keyof HostGraphs, ExpectedGraph | null>>;

/** The merge of what NCCL's own search found, so that only the merge is tested. */
export function mergeExpected(oracleCase: OracleCase): Merged {
  const nodeTypes = oracleCase.expected['nodeTypes'] as { xml: string; localRanks: number[]; graphs: ExpectedGraphs }[];
  const hosts = new Map(
    oracleCase.hosts.map(({ xml, systems }) => {
      const nodes = systems.map((local) => {
        const nodeType = nodeTypes.find((type) => type.xml === xml && type.localRanks.join() === local.ranks.join());
        if (nodeType === undefined) throw new Error(`${xml}: NCCL sees no node of ranks ${local.ranks.join(' ')}`);
        return contributionOf(local, expectedGraphs(nodeType.graphs), oracleCase.parameters);
      });
      return [xml, { nRanks: nodes.reduce((sum, { ranks }) => sum + ranks.length, 0), nodes }];
    }),
  );
  return mergeHosts(
    oracleCase.file.nodes.flatMap(({ xml, count }) => {
      const host = hosts.get(xml);
      return host === undefined ? [] : [{ host, count }];
    }),
    oracleCase.parameters,
  );
}

/** NETs are left out. */
function expectedGraphs(graphs: ExpectedGraphs): HostGraphs {
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
