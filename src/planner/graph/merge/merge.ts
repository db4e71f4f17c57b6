import { InputError } from '../../../errors.js';
import type { Parameters } from '../../parameters.js';
import { rulesOf } from '../../versions/rules.js';
import { type Agreement, agree, refuseDifferentDevices } from './agreement.js';
import { type AlignedGraphs, alignGraphs } from './align.js';
import { countChannels } from './channel-count.js';
import { type Collnet, DIRECT_RANKS, joinCollnet, servesDirect } from './collnet.js';
import { type HostRun, kindOf, type NodeTable, numberNodes } from './nodes.js';
import { joinNvls, type Nvls } from './nvls.js';
import { type BufferBytes, bufferSizes, p2pGroupSize, type P2pSizes, p2pSizes, type P2pSplit, p2pSplit } from './p2p.js';
import type { P2pOrder } from './p2p-schedule.js';
import { crossingKinds, joinRings, type Rings } from './rings.js';
import type { MergeListener } from './trace.js';
import { joinTrees, type Trees } from './trees.js';

/** All channels through all ranks, and the values that all ranks of the communicator agree on. */
export interface Merged {
  readonly nodes: NodeTable;
  readonly agreement: Agreement;
  /** The graphs as all ranks agree on them. */
  readonly graphs: AlignedGraphs;
  /** Number of channels for collectives. */
  readonly nChannels: number;
  /** Those of rings and trees among them; fewer where NVLink SHARP has more, in versions that copy channels for it. */
  readonly collChannels: number;
  /** By channel: which of `rings` it is. */
  readonly ringOfChannel: Uint8Array;
  /** By channel: which of `trees` it is. */
  readonly treeOfChannel: Uint8Array;
  readonly rings: Rings;
  readonly trees: Trees;
  /** Undefined where the network does not reduce. */
  readonly collnet: Collnet | undefined;
  /** Undefined without NVLink SHARP. */
  readonly nvls: Nvls | undefined;
  readonly buffers: BufferBytes;
  /** Send and receive. */
  readonly p2p: P2pSizes & {
    readonly maxPeers: number;
    readonly scheduleGroupSize: number;
    readonly order: P2pOrder;
    readonly split: P2pSplit;
  };
}

/** Limits of a communicator that was split from another and shares its resources (`splitShare`). */
export type Parent = Pick<Merged, 'nChannels' | 'p2p' | 'nvls'>;

/**
 * Joins the graphs of all hosts to channels through all ranks, as NCCL does between its second all-gather and its connections.
 * Work and memory grow with ranks × channels; identical hosts are computed once.
 *
 * @param runs hosts in the order of their ranks; hosts that are alike should share one contribution
 * @param parent the communicator whose resources it shares, the topmost of several
 * @throws InputError where hosts do not fit together: no common channel, a ring that misses a rank, network devices that
 *   differ though the parameters forbid it
 */
export function mergeHosts(runs: readonly HostRun[], parameters: Parameters, listen?: MergeListener, parent?: Parent): Merged {
  const rules = rulesOf(parameters);
  const nodes = numberNodes(runs, listen);
  const own = kindOf(nodes, 0);
  refuseDifferentDevices(nodes, parameters);
  const agreement = agree(nodes, parameters, listen);
  const graphs = alignGraphs(nodes.kinds, own, rules, listen);
  refuseNoChannel(nodes, graphs);

  const collnet = usesCollnet(nodes, graphs, parameters, listen);
  const graphChannels = graphs.ring.nChannels;
  const nvls = joinNvls(nodes, graphs, { ...agreement, ownCompCap: own.byRank[0]?.compCap ?? 0 }, parameters, parent);
  const nvlsChannels = rules.channelsForNvls ? (nvls?.nChannels ?? 0) : 0;
  const { channels, collChannels } = countChannels({ ...agreement, graphs, collnet, nvlsChannels, parent }, parameters, listen);
  const ringOfChannel = Uint8Array.from(channels, (channel) => channel % graphChannels);
  const treeOfChannel = Uint8Array.from(channels);
  if (nvls === undefined && nodes.kinds.some((kind) => kind.nvls)) listen?.({ kind: 'no-nvls' });

  const buffers = bufferSizes(parameters, own.cpuArch);
  const maxPeers = rules.p2pMaxPeers ? p2pMaxPeers(agreement.nRanks, parameters) : agreement.nRanks;
  return {
    nodes,
    agreement,
    graphs,
    nChannels: channels.length,
    collChannels,
    ringOfChannel,
    treeOfChannel,
    rings: joinRings(nodes, graphChannels, 1 + Math.max(...ringOfChannel), crossingKinds(nodes, graphs, rules), listen),
    trees: joinTrees(nodes, graphChannels, 1 + Math.max(...treeOfChannel)),
    collnet: collnet
      ? joinCollnet(nodes, graphs, graphChannels, servesDirect(agreement.maxLocalRanks, rules), nvls?.heads)
      : undefined,
    nvls,
    buffers,
    p2p: {
      ...p2pSizes({ ...agreement, nodes, nChannels: channels.length, maxPeers, parent: parent?.p2p }, buffers, parameters),
      maxPeers,
      scheduleGroupSize: p2pGroupSize(nodes, agreement.maxLocalRanks, parameters),
      order: rules.p2pOrder,
      split: p2pSplit(parameters),
    },
  };
}

function refuseNoChannel(nodes: NodeTable, graphs: AlignedGraphs): void {
  if (graphs.ring.nChannels > 0) return;
  const node = nodes.kindOfNode.findIndex((kind) => {
    const own = nodes.kinds[kind]?.graphs;
    return own?.ring.nChannels === 0 || own?.tree.nChannels === 0;
  });
  const without = kindOf(nodes, node).graphs.ring.nChannels === 0 ? 'ring' : 'tree';
  const rank = nodes.rankToNode.indexOf(node);
  throw new InputError(
    'NO_CHANNEL',
    `node ${node} (from rank ${rank} on) has no channel in its ${without} graph, so there is none that all share: NCCL would fail to build rings; give that host a graph with at least one channel`,
    { ncclResult: 3, rank },
  );
}

/** True if the network reduces: it was requested, every node has channels for it, and there are enough nodes. */
function usesCollnet(nodes: NodeTable, graphs: AlignedGraphs, parameters: Parameters, listen?: MergeListener): boolean {
  if (parameters.collnetEnable !== 1) return false;
  const { nNodes } = nodes;
  const threshold = parameters.collnetNodeThreshold;
  const tooLarge = !rulesOf(parameters).collnetOnLargeNodes && nodes.kinds.some(({ ranks }) => ranks.length > DIRECT_RANKS);
  const because =
    graphs.collnetChain.nChannels === 0 ? 'no-channel' : nNodes < threshold ? 'few-nodes' : tooLarge ? 'large-node' : undefined;
  if (because !== undefined) listen?.({ kind: 'no-collnet', because, nNodes, threshold });
  return because === undefined;
}

function p2pMaxPeers(nRanks: number, { p2pMaxPeers: asked }: Parameters): number {
  return asked !== undefined && asked > 0 ? Math.min(asked, nRanks) : nRanks;
}
