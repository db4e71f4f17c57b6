import { counted } from '../../../counted.js';
import { formatBytes, formatRate, formatTime, formatWay } from '../../plan/overview/format.js';
import { ringUse } from '../../plan/overview/ring-use.js';
import { type PredictedRow, scheduledBusFactor } from '../../plan/prediction.js';
import type { ScheduledCollective } from '../../schedule/schedule.js';
import { type Choice, choiceOf } from '../../tuning/choose.js';
import { collectives, type Collective } from '../../tuning/names.js';
import { predict } from '../../tuning/predict.js';
import type { Tuning } from '../../tuning/tune.js';
import type { Draft } from '../answer.js';
import { rate } from '../format.js';
import type { PartialWay } from '../grammar/question.js';
import { type NodeView, nodeViews, predicted, type Situation, titleOf } from '../situation.js';
import { matches } from './choice.js';
import { carriedGBps } from '../../topology/system.js';

/** Sizes of an answer about bandwidth that names none. */
const usualSizes: readonly number[] = [2 ** 20, 2 ** 25, 2 ** 30, 2 ** 34];
/** The calls of an answer that names none. */
const usualCollectives: readonly ScheduledCollective[] = ['AllReduce', 'AllGather', 'ReduceScatter', 'AllToAll', 'SendRecv'];

/** Gives the bandwidth to expect of calls, with its interval, and what bounds it. */
export function answerBandwidth(
  situation: Situation,
  asked: ScheduledCollective | undefined,
  sizes: readonly number[],
  way: PartialWay | undefined,
): Draft {
  const { plan } = situation;
  const names = asked === undefined && way === undefined ? usualCollectives : [asked ?? 'AllReduce'];
  const collective = names[0] ?? 'AllReduce';
  const rows = (sizes.length === 0 ? usualSizes : sizes).flatMap((bytes) => {
    const row = expectedRow(situation, collective, bytes, way);
    return row === undefined ? [] : [row];
  });
  const best = rows.reduce<PredictedRow | undefined>(
    (most, row) => (most === undefined || row.busGBps > most.busGBps ? row : most),
    undefined,
  );
  if (best === undefined)
    return {
      title: `${collective}${way === undefined ? '' : ` with ${wayText(way)}`} has no bandwidth here`,
      sentences: [
        plan.nodes.nRanks === 1
          ? 'There is one rank, which exchanges nothing.'
          : 'NCCL has nothing to choose from for this call.',
      ],
      evidence: { collective, rows: [] },
    };
  const others = names.slice(1).flatMap((name) => {
    const row = expectedRow(situation, name, best.bytes, undefined);
    return row === undefined ? [] : [{ name, row }];
  });
  const factor = scheduledBusFactor(collective, plan.nodes.nRanks);
  const by = way === undefined ? '' : ` with ${wayText(way)}`;
  return {
    title:
      sizes.length === 1
        ? `${collective} of ${formatBytes(best.bytes)}${by}: ${rate(best.busGBps)} of bus bandwidth on ${titleOf(situation)}`
        : `${collective}${by} reaches ${rate(best.busGBps)} of bus bandwidth on ${titleOf(situation)}`,
    sentences: [
      ...rows.map((row) => rowText(collective, row, factor)),
      ...others.map(({ name, row }) => rowText(name, row, scheduledBusFactor(name, plan.nodes.nRanks))),
      ...boundText(situation, best),
    ],
    evidence: {
      collective,
      nRanks: plan.nodes.nRanks,
      busFactor: factor,
      rows: rows.map((row) => evidenceOf(row, factor)),
      others: others.map(({ name, row }) => ({
        collective: name,
        ...evidenceOf(row, scheduledBusFactor(name, plan.nodes.nRanks)),
      })),
    },
  };
}

/** The prediction for a call, by NCCL's choice or by the best candidate of a way. */
export function expectedRow(
  situation: Situation,
  collective: ScheduledCollective,
  bytes: number,
  way: PartialWay | undefined,
): PredictedRow | undefined {
  if (way === undefined || !isModelled(collective)) return predicted(situation, collective, bytes);
  const choice = bestOf(situation.tuning, collective, bytes, way);
  return choice && predicted(situation, collective, bytes, { choice });
}

function bestOf(tuning: Tuning, collective: Collective, bytes: number, way: PartialWay): Choice | undefined {
  const candidates = predict(tuning, collective, bytes).flatMap(({ algorithm, protocol, timeUs }) =>
    timeUs !== null && matches({ algorithm, protocol }, way) ? [{ algorithm, protocol, timeUs }] : [],
  );
  const [best] = candidates.sort((a, b) => a.timeUs - b.timeUs);
  return best && choiceOf(tuning, collective, bytes, best);
}

/** True for calls that NCCL has a model of. */
export function isModelled(collective: ScheduledCollective): collective is Collective {
  return (collectives as readonly string[]).includes(collective);
}

function wayText({ algorithm, protocol }: PartialWay): string {
  return [algorithm, protocol].filter((part) => part !== undefined).join(' ');
}

function rowText(collective: ScheduledCollective, row: PredictedRow, factor: number): string {
  const { bytes, choice, timeUs, leastUs, mostUs, busGBps } = row;
  const by = choice === undefined ? '' : ` by ${formatWay(choice)}`;
  const least = (busGBps * timeUs) / mostUs;
  const most = (busGBps * timeUs) / leastUs;
  return `${collective} of ${formatBytes(bytes)}: busbw ${formatRate(busGBps)} GB/s, in eight of ten cases ${formatRate(least)} to ${formatRate(most)}; algbw ${formatRate(busGBps / factor)} GB/s; ${formatTime(timeUs)}${by}.`;
}

function evidenceOf({ bytes, choice, timeUs, leastUs, mostUs, busGBps }: PredictedRow, factor: number) {
  return {
    bytes,
    busGBps,
    algGBps: busGBps / factor,
    timeUs,
    leastUs,
    mostUs,
    way: choice === undefined ? 'pairs' : formatWay(choice),
  };
}

/** The bound of the bandwidth: NICs between nodes, links of GPUs within one. */
export function boundText(situation: Situation, { busGBps }: Pick<PredictedRow, 'busGBps'>): string[] {
  const { plan } = situation;
  const views = nodeViews(situation);
  if (plan.nodes.nNodes === 1) {
    return views.flatMap(({ local }) => {
      if (local.system.gpus.length < 2) return [];
      const links = local.system.gpus.length > 1 ? rate(local.totalGBps) : '';
      const more =
        busGBps > 1.02 * local.totalGBps
          ? ', and NVLink SHARP passes it, because the NVSwitch adds and copies: less data cross the links than bus bandwidth counts'
          : '';
      return [`NCCL counts ${links} for the NVLinks or PCIe links of a GPU${more}.`];
    });
  }
  return views.flatMap((view) => {
    const prefix = views.length > 1 ? `${view.name}: ` : '';
    const nics = nicsOf(view);
    const { ringGBps } = ringUse(plan, view.kind, view.local);
    const above = busGBps > 1.02 * nics.gbps ? ' Bus bandwidth passes that here; ask why it is higher than the network.' : '';
    return [
      `${prefix}At line rate the ${counted(nics.count, 'NIC')} of a node ${nics.count === 1 ? 'carries' : 'carry'} ${rate(nics.gbps)}${nics.count === 1 ? '' : ' together'}; rings take ${rate(ringGBps)} of that.${above}`,
    ];
  });
}

/** Number and bandwidth of the network devices of a node. */
export function nicsOf({ local }: Pick<NodeView, 'local'>): { readonly count: number; readonly gbps: number } {
  const { nets } = local.system;
  return { count: nets.length, gbps: Number(carriedGBps(nets).toFixed(3)) };
}
