import { counted } from '../../../counted.js';
import { CrossNic } from '../../graph/graph.js';
import type { PlannedConnection } from '../../graph/transports/connection.js';
import { treeLinks, ringNeighbours } from '../../graph/merge/links.js';
import type { Draft } from '../answer.js';
import { nodeViews, type Situation } from '../situation.js';
import { list } from '../format.js';

/** Hops between nodes of one channel that leave by one NIC and arrive by another. */
interface Hops {
  readonly graph: 'ring' | 'tree';
  readonly channel: number;
  readonly nHops: number;
  readonly crossed: readonly {
    readonly from: number;
    readonly to: number;
    readonly sendNic: number;
    readonly receiveNic: number;
  }[];
}

/**
 * Lists the channels that change rails between nodes. A rail connects the NICs of the same number on all hosts; the way from one
 * rail to another is longer, through spine switches.
 */
export function answerRails(situation: Situation): Draft {
  const { plan } = situation;
  if (plan.nodes.nNodes === 1)
    return {
      title: 'no rail is used',
      sentences: ['All ranks are on one node, and nothing goes over the network.'],
      evidence: { nNodes: 1, channels: [] },
    };
  const channels = Array.from({ length: plan.nChannels }, (_, channel) => channel);
  const hops = channels.flatMap((channel) => [ringHops(situation, channel), treeHops(situation, channel)]);
  const crossed = hops.filter(({ crossed: of }) => of.length > 0);
  return {
    title:
      crossed.length === 0 ? 'no rail is crossed' : `${counted(crossed.length, 'channel graph')} of ${hops.length} cross rails`,
    sentences: [
      ...(crossed.length === 0
        ? ['Every ring and tree arrives on the next node by a NIC of the same number as it left by.']
        : [...told('ring', hops), ...told('tree', hops)]),
      ...insides(situation),
      rules[nodeViews(situation)[0]?.kind.graphs.ring.crossNic ?? CrossNic.NEVER],
      'NICs are compared by their numbers: on hosts whose NICs are numbered differently the cabling decides.',
    ],
    evidence: {
      nNodes: plan.nodes.nNodes,
      crossNic: situation.parameters.crossNic,
      channels: hops.map(({ graph, channel, nHops, crossed: of }) => ({
        graph,
        channel,
        hops: nHops,
        crossed: of.map((hop) => ({ ...hop })),
      })),
    },
  };
}

function ringHops({ plan, transports }: Situation, channel: number): Hops {
  const { nRanks } = plan.nodes;
  const pairs = Array.from({ length: nRanks }, (_, rank) => [rank, ringNeighbours(plan, channel, rank).next] as const);
  return hopsOf('ring', channel, plan.nodes.rankToNode, pairs, (rank, peer) => [
    transports.ring(channel, rank).send,
    transports.ring(channel, peer).receive,
  ]);
}

function treeHops({ plan, transports }: Situation, channel: number): Hops {
  const { nRanks } = plan.nodes;
  const pairs = Array.from({ length: nRanks }, (_, rank) => [rank, treeLinks(plan, channel, rank).up] as const);
  return hopsOf('tree', channel, plan.nodes.rankToNode, pairs, (rank, peer) => [
    transports.between(rank, peer, 'tree', channel, 'send'),
    transports.between(peer, rank, 'tree', channel, 'receive'),
  ]);
}

function hopsOf(
  graph: Hops['graph'],
  channel: number,
  rankToNode: ArrayLike<number>,
  pairs: readonly (readonly [from: number, to: number])[],
  ends: (from: number, to: number) => readonly [send: PlannedConnection | undefined, receive: PlannedConnection | undefined],
): Hops {
  const between = pairs.filter(([from, to]) => to >= 0 && rankToNode[from] !== rankToNode[to]);
  const crossed = between.flatMap(([from, to]) => {
    const [send, receive] = ends(from, to);
    if (send?.via !== 'NET' || receive?.via !== 'NET' || send.dev === receive.dev) return [];
    return [{ from, to, sendNic: send.dev, receiveNic: receive.dev }];
  });
  return { graph, channel, nHops: between.length, crossed };
}

/** The NICs of the rings, from the search. */
const rules: Readonly<Record<CrossNic, string>> = {
  [CrossNic.NEVER]: 'The search kept every ring on one NIC (NCCL_CROSS_NIC=1 would allow two, 0 forbids them).',
  [CrossNic.ALLOWED]: 'The search was allowed to leave a node by another NIC than it came in by (NCCL_CROSS_NIC=1).',
  [CrossNic.PAIRED]:
    'Rings come in pairs that use two NICs the opposite way, so that each leaves by the rail that the next node takes in (NCCL_CROSS_NIC=2).',
};

/** Maximum number of channels that are listed one by one. */
const MOST_TOLD = 6;

function told(graph: Hops['graph'], all: readonly Hops[]): string[] {
  const hops = all.filter((each) => each.graph === graph);
  const crossed = hops.filter(({ crossed: of }) => of.length > 0);
  if (crossed.length === 0) return [`No ${graph} crosses rails.`];
  return [
    `${counted(crossed.length, graph)} of ${hops.length} cross: channel ${list(crossed.map(({ channel }) => String(channel)))}.`,
    ...crossed.slice(0, MOST_TOLD).flatMap(({ channel, nHops, crossed: of }) => {
      const [first] = of;
      return first === undefined
        ? []
        : [
            `Channel ${channel}: ${of.length} of ${nHops} hops between nodes, as from rank ${first.from} by NIC ${first.sendNic} to rank ${first.to} by NIC ${first.receiveNic}.`,
          ];
    }),
  ];
}

/** Rings that enter a node by one NIC and leave by another. */
function insides({ plan, transports }: Situation): string[] {
  let through = 0;
  for (let channel = 0; channel < plan.nChannels; channel++) {
    const nics = new Set<number>();
    const perNode = plan.nodes.rankBase[1] ?? plan.nodes.nRanks;
    for (let rank = 0; rank < perNode; rank++) {
      const { send, receive } = transports.ring(channel, rank);
      if (send?.via === 'NET') nics.add(send.dev);
      if (receive?.via === 'NET') nics.add(receive.dev);
    }
    if (nics.size > 1) through++;
  }
  return through === 0
    ? ['Each ring leaves a node by the NIC that it came in by.']
    : [`${counted(through, 'ring')} of ${plan.nChannels} come into the first node by one NIC and leave it by another.`];
}
