import { counted } from '../../../counted.js';
import { formatRate } from '../../plan/overview/format.js';
import { scheduledBusFactor } from '../../plan/prediction.js';
import { rate } from '../format.js';
import { nodeViews, predicted, type Situation, titleOf } from '../situation.js';
import { nicsOf } from './bandwidth.js';

/** A size at which bandwidth decides. */
const LARGE_BYTES = 2 ** 34;

/** The factors of busbw for the number of ranks here. */
export function factorHere(situation: Situation): string {
  const { nRanks } = situation.plan.nodes;
  const factors = (['AllReduce', 'AllGather', 'AllToAll'] as const).map(
    (collective) => `${Number(scheduledBusFactor(collective, nRanks).toPrecision(4))} for ${collective}`,
  );
  return `On ${titleOf(situation)}, with ${counted(nRanks, 'rank')}, busbw is algbw times ${factors.join(', ')}.`;
}

/** Busbw of a large AllReduce here. */
export function largeHere(situation: Situation): string {
  const row = predicted(situation, 'AllReduce', LARGE_BYTES);
  return row === undefined
    ? 'Here nothing is exchanged.'
    : `Here, with ${counted(situation.plan.nodes.nRanks, 'rank')}, ${formatRate(row.busGBps)} GB/s of busbw are to be expected of a large AllReduce.`;
}

/** Busbw, algbw and links of a large AllReduce here. */
export function linksHere(situation: Situation): string[] {
  const row = predicted(situation, 'AllReduce', LARGE_BYTES);
  if (row?.choice === undefined) return [];
  const factor = scheduledBusFactor('AllReduce', situation.plan.nodes.nRanks);
  return [
    `Here a large AllReduce by ${row.choice.algorithm} reaches ${formatRate(row.busGBps)} GB/s of busbw, ${formatRate(row.busGBps / factor)} GB/s of algbw (factor ${Number(factor.toPrecision(4))}).`,
    ...hardwareHere(situation),
  ];
}

/** Links of the GPUs and NICs of each machine. */
export function hardwareHere(situation: Situation): string[] {
  return nodeViews(situation).flatMap((view) => {
    const nics = nicsOf(view);
    const gpus = view.local.system.gpus.length;
    return [
      ...(gpus > 1
        ? [`${view.name}: a GPU moves ${rate(view.local.totalGBps)} over its links to other GPUs, as NCCL counts.`]
        : []),
      ...(situation.plan.nodes.nNodes > 1
        ? [
            `${view.name}: its ${counted(nics.count, 'NIC')} ${nics.count === 1 ? 'carries' : 'carry'} ${rate(nics.gbps)} at line rate.`,
          ]
        : []),
    ];
  });
}
