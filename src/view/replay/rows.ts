import { counted } from '../../counted.js';
import { formatBytes, formatTime, predictedWay } from '../../planner/plan/overview/format.js';
import type { ComparedRank, MeasuredJob, Replay } from '../../planner/replay/replay.js';
import { type CallKind, communicationOf, signedPercent } from './sums.js';

/** Texts of a replay, for the terminal and the page. */

type Labelled = readonly [label: string, text: string];

/** Rows that are shown of calls and of ranks; JSON has all. */
export const MOST_ROWS = 16;

/** Sums of a replay: the cluster, the step, the calls, and the waits where ranks do not come together. */
export function summaryOf(job: MeasuredJob, replay: Replay, version: string): readonly [Labelled, ...Labelled[]] {
  const groups = new Set(job.calls.map(({ call }) => call.group)).size;
  const { measuredUs, predictedUs, count } = communicationOf(replay);
  return [
    [
      replay.title,
      `NCCL ${version}; ${counted(job.nRanks, 'rank')}, ${counted(job.calls.length, 'call')} of ${counted(groups, 'communicator')}, traces of ${counted(job.traces.length, 'rank')}`,
    ],
    job.traces.every(({ clock }) => clock === 'order')
      ? ['step', `replayed ${formatTime(replay.replayedUs)}; the traces have no times`]
      : [
          'step',
          `measured ${formatTime(replay.measuredUs)}, replayed ${formatTime(replay.replayedUs)} (${signedPercent(replay.replayedUs, replay.measuredUs)})`,
        ],
    [
      'calls',
      count === 0
        ? 'none has both a measured and a predicted time'
        : `measured ${formatTime(measuredUs)} from the last rank's start on, predicted ${formatTime(predictedUs)} (${signedPercent(predictedUs, measuredUs)}), for ${count} of ${job.calls.length}`,
    ],
    ...waits(replay),
  ];
}

function waits({ ranks, calls }: Replay): Labelled[] {
  const [latest] = [...ranks].sort((a, b) => b.heldUpUs - a.heldUpUs);
  const waitUs = ranks.reduce((sum, rank) => sum + rank.waitUs, 0);
  if (latest === undefined || latest.heldUpUs === 0) return [];
  const last = calls.filter(({ measured }) => measured.lastRank === latest.rank).length;
  const joined = calls.filter(({ measured }) => measured.lastRank !== undefined).length;
  return [
    [
      'waits',
      `ranks wait ${formatTime(waitUs)} in calls, all together; ${formatTime(latest.heldUpUs)} of it for rank ${latest.rank}, which comes last to ${last} of ${counted(joined, 'call')}`,
    ],
  ];
}

export const callHeading = [
  'call',
  'group',
  'ranks',
  'size',
  'count',
  'measured',
  'predicted',
  'off',
  'interval',
  'replayed',
  'by',
];

/** A kind of calls; `isEach` for a single one, which names the rank that came last. */
export function callRow({ first, count, measuredUs, predictedUs, replayedUs }: CallKind, isEach: boolean): string[] {
  const { measured, predicted } = first;
  const { call, lastRank } = measured;
  const timed = (us: number | undefined) => (us === undefined ? '-' : formatTime(us));
  const late = isEach && lastRank !== undefined && measured.waitUs > 0 ? `, rank ${lastRank} last` : '';
  return [
    call.operation,
    call.groupName,
    String(call.size),
    call.bytes === 0 ? '-' : formatBytes(call.bytes),
    String(count),
    timed(measuredUs),
    timed(predictedUs),
    measuredUs === undefined || predictedUs === undefined ? '-' : signedPercent(predictedUs, measuredUs),
    predicted === undefined ? '-' : `${formatTime(predicted.leastUs)} to ${formatTime(predicted.mostUs)}`,
    timed(replayedUs),
    `${predicted === undefined ? 'measured' : (predictedWay(predicted) ?? 'messages between pairs')}${late}`,
  ];
}

export const rankHeading = ['rank', 'step', 'replayed step', 'transfers', 'waits', 'exposed', 'replayed exposed', 'holds up'];

/** The ranks; of many, those for which others wait most, most first. */
export function ranksThatHoldUp(ranks: readonly ComparedRank[]): readonly ComparedRank[] {
  return ranks.length > MOST_ROWS ? [...ranks].sort((a, b) => b.heldUpUs - a.heldUpUs).slice(0, MOST_ROWS) : ranks;
}

/** A rank's times. */
export function rankRow(rank: ComparedRank): string[] {
  const { measuredUs, replayedUs, transferUs, waitUs, exposedUs, replayedExposedUs, heldUpUs } = rank;
  return [
    String(rank.rank),
    ...[measuredUs, replayedUs, transferUs, waitUs, exposedUs, replayedExposedUs, heldUpUs].map(formatTime),
  ];
}
