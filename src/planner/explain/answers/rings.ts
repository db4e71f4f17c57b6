import { counted } from '../../../counted.js';
import { InvalidArgumentError } from '../../../errors.js';
import { CrossNic, GraphId, nodeId } from '../../graph/graph.js';
import { channelRanks } from '../../graph/graph-json.js';
import { describeMergeEvent } from '../../graph/merge/trace.js';
import { NodeType, PathType, pathTypeNames } from '../../topology/types.js';
import type { Draft } from '../answer.js';
import { type NodeView, nodeViews, searchOf, type Situation } from '../situation.js';
import { list, rate } from '../format.js';

/** Explains the order in which rings visit the GPUs. */
export function answerRings(situation: Situation, channel: number | undefined): Draft {
  const { plan, mergeEvents } = situation;
  const searched = plan.graphs.ring.nChannels;
  if (channel !== undefined && channel >= plan.nChannels) {
    throw new InvalidArgumentError('ARGUMENT_RANGE', `no ring ${channel}: there are channels 0 to ${plan.nChannels - 1}`);
  }
  const shown = (channel ?? 0) % searched;
  const views = nodeViews(situation);
  return {
    title: `the order of ring ${channel ?? 0}`,
    sentences: [
      ...views.flatMap((view) => ofNode(view, shown, views.length > 1)),
      ...(plan.nodes.nNodes > 1
        ? ['Nodes follow each other in the order of their lowest ranks: the last GPU of one sends to the first of the next.']
        : []),
      ...mergeEvents.filter((event) => event.kind === 'rails-swapped' || event.kind === 'split-host').map(describeMergeEvent),
      ...(plan.nChannels > searched ? [`Channels ${searched} to ${plan.nChannels - 1} repeat these rings.`] : []),
    ],
    evidence: {
      nodes: views.map(
        ({
          name,
          kind: {
            graphs: { ring },
          },
        }) => ({
          name,
          crossNic: ring.crossNic,
          sameChannels: ring.sameChannels,
          nHops: ring.nHops,
          rings: Array.from({ length: ring.nChannels }, (_, each) => ({
            ranks: [...channelRanks(ring, each)],
            inter: [...ring.inter.subarray(2 * each, 2 * each + 2)].map(String),
          })),
        }),
      ),
    },
  };
}

function ofNode(view: NodeView, channel: number, several: boolean): string[] {
  const {
    kind: {
      graphs: { ring },
    },
    local,
  } = view;
  const ranks = [...channelRanks(ring, channel)];
  const { system } = local;
  const netDev = (end: number) => system.nets.find((net) => nodeId(net) === ring.inter[2 * channel + end])?.dev;
  const way = [
    ...(local.inter ? [`NIC ${netDev(0) ?? '?'}`] : []),
    ranks.join(' '),
    ...(local.inter ? [`NIC ${netDev(1) ?? '?'}`] : []),
  ].join(' -> ');
  const record = searchOf(view, GraphId.RING);
  const sentences = [`Ring ${channel}${several ? ` in ${view.name}` : ''}: ${way}.`];
  if (record?.stopped === 'from-file') return [...sentences, 'The graph file says so.'];
  if (record?.simpleOrder === true)
    return [...sentences, 'It is the order of the GPUs by number, because no ring was found at any speed.'];
  if (local.inter)
    sentences.push(
      `It starts at the GPU next to the NIC that it comes in by; channel n comes in by the n-th NIC of the list, so that all are used.`,
    );
  sentences.push(
    system.nvSwitches.length > 0
      ? 'With an NVSwitch all GPUs are equally near, so only the neighbours by number are tried as the next: rings go up or down the numbers.'
      : `The next GPU is the best connected that is left: most bandwidth, then fewest hops, then the next number. ${hopsText(view, ranks)}`,
  );
  sentences.push(
    ring.sameChannels
      ? `All ${counted(ring.nChannels, 'channel')} take the same order: more channels fitted so.`
      : `Channels differ, since each has to leave links for the others (${rate(ring.bwIntra)} each).`,
  );
  if (ring.crossNic === CrossNic.PAIRED)
    sentences.push(
      'Channels come in pairs (NCCL_CROSS_NIC=2): the second goes the way of the first backwards, in by the NIC that the first leaves by.',
    );
  if (ring.crossNic === CrossNic.ALLOWED) sentences.push('NCCL_CROSS_NIC=1: a ring may leave by another NIC than it came in by.');
  if (ring.crossNic === CrossNic.NEVER && local.inter)
    sentences.push('Each ring leaves the host by the NIC (the rail) that it came in by.');
  return sentences;
}

/** Types of the paths between neighbours in a ring. */
function hopsText({ local: { system, paths, inter } }: NodeView, ranks: readonly number[]): string {
  if (ranks.length < 2) return '';
  const gpus = ranks.map((rank) => system.gpus.findIndex((gpu) => gpu.rank === rank));
  const counts = new Map<string, number>();
  gpus.forEach((gpu, position) => {
    const next = gpus[position + 1] ?? (inter ? undefined : gpus[0]);
    if (next === undefined) return;
    const type = pathTypeNames[paths.type[paths.between(NodeType.GPU, gpu, NodeType.GPU, next)] ?? PathType.DIS] ?? 'DIS';
    counts.set(type, (counts.get(type) ?? 0) + 1);
  });
  return `Here ${list([...counts].map(([type, number]) => `${counted(number, 'step is', 'steps are')} ${type}`))}.`;
}
