import { CrossNic, type GraphHeader, GraphId, type GraphName, graphNames, type HostGraphs, Pattern } from '../graph.js';
import type { PathType } from '../../topology/types.js';
import type { Rules } from '../../versions/rules.js';
import type { NodeContribution } from './contribution.js';
import type { MergeListener } from './trace.js';

/** The graphs as all ranks agree on them; a graph that was not searched has no channels. */
export type AlignedGraphs = Readonly<Record<GraphName, GraphHeader>>;

/**
 * Aligns the graphs of all nodes to the worst of each figure, so that all ranks choose the same algorithm for the same call.
 * `pattern`, `minChannels`, `maxChannels`, `latencyInter` and `nHops` stay each rank's own in NCCL; here they are those of rank
 * 0.
 */
export function alignGraphs(
  kinds: readonly NodeContribution[],
  ownKind: NodeContribution,
  rules: Rules,
  listen?: MergeListener,
): AlignedGraphs {
  const aligned = Object.fromEntries(
    graphNames.map((name) => {
      const headers = kinds.map((kind) => headerOf(kind.graphs, name, rules));
      const own = headerOf(ownKind.graphs, name, rules);
      const agreed = headers.reduce(worst, own);
      const header = rules.crossNicOfAll ? agreed : { ...agreed, crossNic: own.crossNic };
      if (listen !== undefined && headers.some((each) => isBetter(each, header))) {
        listen({ kind: 'aligned', graph: name, header, byKind: headers });
      }
      return [name, header];
    }),
  ) as Record<GraphName, GraphHeader>;

  const channels = Math.min(aligned.ring.nChannels, aligned.tree.nChannels);
  return { ...aligned, ring: { ...aligned.ring, nChannels: channels }, tree: { ...aligned.tree, nChannels: channels } };
}

function headerOf(graphs: HostGraphs, name: GraphName, rules: Rules): GraphHeader {
  const asChain = name === 'collnetDirect' && !rules.collnetHeadsSearched;
  const graph = graphs[name] ?? unsearched(asChain ? 'collnetChain' : name, graphs.ring.nChannels, rules);
  return {
    id: graph.id,
    pattern: graph.pattern,
    crossNic: graph.crossNic,
    collNet: graph.collNet,
    minChannels: graph.minChannels,
    maxChannels: graph.maxChannels,
    nChannels: graph.nChannels,
    bwIntra: graph.bwIntra,
    bwInter: graph.bwInter,
    latencyInter: graph.latencyInter,
    typeIntra: graph.typeIntra,
    typeInter: graph.typeInter,
    sameChannels: graph.sameChannels,
    nHops: graph.nHops,
  };
}

/** The graph that NCCL would have requested, with no channels found. */
function unsearched(name: GraphName, ringChannels: number, { mostChannels }: Rules): GraphHeader {
  const isChain = name === 'collnetChain';
  const { id, pattern } = requests[name];
  return {
    id,
    pattern,
    crossNic: CrossNic.NEVER,
    collNet: isChain || name === 'collnetDirect',
    minChannels: isChain ? ringChannels : 1,
    maxChannels: isChain ? ringChannels : mostChannels,
    nChannels: 0,
    bwIntra: 0,
    bwInter: 0,
    latencyInter: 0,
    typeIntra: 0,
    typeInter: 0,
    sameChannels: false,
    nHops: 0,
  };
}

const requests: Readonly<Record<GraphName, Pick<GraphHeader, 'id' | 'pattern'>>> = {
  ring: { id: GraphId.RING, pattern: Pattern.RING },
  tree: { id: GraphId.TREE, pattern: Pattern.BALANCED_TREE },
  collnetChain: { id: GraphId.COLLNET_CHAIN, pattern: Pattern.TREE },
  collnetDirect: { id: GraphId.COLLNET_DIRECT, pattern: Pattern.COLLNET_DIRECT },
  nvls: { id: GraphId.NVLS, pattern: Pattern.NVLS },
};

/** The first graph with the figures of the second where they are worse. Cross-NIC counts as worse: it must be allowed for. */
function worst(a: GraphHeader, b: GraphHeader): GraphHeader {
  return {
    ...a,
    nChannels: Math.min(a.nChannels, b.nChannels),
    sameChannels: a.sameChannels && b.sameChannels,
    bwIntra: Math.min(a.bwIntra, b.bwIntra),
    bwInter: Math.min(a.bwInter, b.bwInter),
    typeIntra: Math.max(a.typeIntra, b.typeIntra) as PathType,
    typeInter: Math.max(a.typeInter, b.typeInter) as PathType,
    crossNic: Math.max(a.crossNic, b.crossNic) as CrossNic,
  };
}

function isBetter(own: GraphHeader, aligned: GraphHeader): boolean {
  return (
    own.nChannels > aligned.nChannels ||
    own.bwIntra > aligned.bwIntra ||
    own.bwInter > aligned.bwInter ||
    own.typeIntra < aligned.typeIntra ||
    own.typeInter < aligned.typeInter
  );
}
