import { formatBytes, formatRate, formatTime, predictedWay } from '../../plan/overview/format.js';
import { scheduledBusFactor } from '../../plan/prediction.js';
import type { ScheduledCollective } from '../../schedule/schedule.js';
import type { Draft } from '../answer.js';
import { byWay } from '../format.js';
import { predicted, type Situation, titleOf } from '../situation.js';
import type { FigureOfCall, Measured } from '../grammar/question.js';
import { boundText } from './bandwidth.js';
import { answerJudge } from './judge.js';

/** Compares calls of one size: time, bandwidth, and what each sends over links and NICs; measured figures are judged each. */
export function answerCalls(
  situation: Situation,
  collectives: readonly ScheduledCollective[],
  bytes: number,
  figures: readonly FigureOfCall[],
  kind: Measured['kind'] = 'bandwidth',
): Draft {
  const { nRanks, nNodes } = situation.plan.nodes;
  const rows = collectives.flatMap((collective) => {
    const row = predicted(situation, collective, bytes);
    return row === undefined ? [] : [{ collective, row }];
  });
  const [first, second] = rows;
  if (first === undefined || second === undefined)
    return {
      title: 'there is nothing to compare',
      sentences: ['One rank exchanges nothing.'],
      evidence: { collectives: [...collectives], bytes, rows: [] },
    };
  const ratio = first.row.timeUs / second.row.timeUs;
  const factor = ratio > 1 ? ratio : 1 / ratio;
  const order =
    factor < 1.02 ? 'takes as long as' : `takes ${factor.toFixed(2)} times ${ratio > 1 ? 'as long as' : 'less time than'}`;
  const judged = figures.map(({ collective, value }) => answerJudge(situation, { kind, value }, collective, [bytes], () => true));
  return {
    title:
      judged.length > 0
        ? judged.map(({ title }) => title).join('; ')
        : `${first.collective} of ${formatBytes(bytes)} ${order} ${second.collective} on ${titleOf(situation)}`,
    sentences: [
      ...(judged.length > 0
        ? [`Expected: ${first.collective} of ${formatBytes(bytes)} ${order} ${second.collective} on ${titleOf(situation)}.`]
        : []),
      ...rows.map(
        ({ collective, row }) =>
          `${collective} of ${formatBytes(bytes)}: ${formatTime(row.timeUs)}${byWay(row)}, ${formatRate(row.busGBps)} GB/s of busbw, ${formatRate(row.busGBps / scheduledBusFactor(collective, nRanks))} GB/s of algbw.`,
      ),
      ...collectives.map((collective) => `${collective}: ${traffic[collective](nNodes > 1)}`),
      ...boundText(situation, { busGBps: Math.max(...rows.map(({ row }) => row.busGBps)) }),
    ],
    evidence: {
      bytes,
      rows: rows.map(({ collective, row }) => ({
        collective,
        timeUs: row.timeUs,
        busGBps: row.busGBps,
        way: predictedWay(row) ?? 'pairs',
      })),
    },
  };
}

/** Data that a call moves, for n ranks; between nodes if there are several. */
const traffic: Readonly<Record<ScheduledCollective, (isBetweenNodes: boolean) => string>> = {
  AllReduce: () =>
    'the data of each rank are added and the sum goes to all: 2 (n - 1) / n of the size crosses each link of a ring.',
  AllGather: () =>
    'each rank sends its part to all others, nothing is added: (n - 1) / n of the size crosses each link of a ring.',
  ReduceScatter: () =>
    'all data are added, and each rank gets a part: (n - 1) / n of the size crosses each link of a ring, and each hop adds, which takes more time of the thread blocks than a copy.',
  AllToAll: (isBetweenNodes) =>
    isBetweenNodes
      ? 'each rank sends another part to each rank. Nothing is combined within a node, so all data for other nodes go over the NICs of each GPU once: (N - 1) / N of the size on N nodes, where a ring shares its NICs between all GPUs of a node.'
      : 'each rank sends another part to each rank, by messages between pairs; nothing is combined.',
  SendRecv: (isBetweenNodes) =>
    `each rank sends its buffer to the next one${isBetweenNodes ? '; the pairs between nodes are bounded by one GPU’s NICs' : ''}.`,
  Broadcast: () => 'the buffer of one rank goes around all: the size crosses each link once.',
  Reduce: () => 'the buffers of all are added for one rank: the size crosses each link once.',
  Gather: () => 'one rank receives the buffers of all, over its own links alone.',
  Scatter: () => 'one rank sends a part to each, over its own links alone.',
};
