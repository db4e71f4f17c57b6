import { formatBytes, formatRate, formatTime, formatWay, predictedWay } from '../../plan/overview/format.js';
import type { PredictedRow } from '../../plan/prediction.js';
import type { ScheduledCollective } from '../../schedule/schedule.js';
import { timeShares } from '../../simulate/shares.js';
import { collectives } from '../../tuning/names.js';
import { chooseWithWindows } from '../../tuning/symmetric/symmetric.js';
import type { Draft } from '../answer.js';
import { predicted, simulatorFor, type Situation } from '../situation.js';

/** Explains the time of a call: NCCL's belief, and the simulation. */
export function answerTime(situation: Situation, collective: ScheduledCollective, bytes: number): Draft {
  const { simulated: environment } = situation;
  const simulator = simulatorFor(situation);
  const row = predicted(situation, collective, bytes);
  const call = `${collective} of ${formatBytes(bytes)}`;
  if (row === undefined)
    return {
      title: `${call} takes no time that is simulated`,
      sentences: ['There is one rank alone, or nothing that NCCL could choose from.'],
      evidence: { collective, bytes, predictedUs: null },
    };
  const { choice, kernel, timeUs, leastUs, mostUs, busGBps } = row;
  const shares = timeShares(simulator, collective, bytes, { environment, onWindows: true });
  return {
    title: `${call} takes ${formatTime(timeUs)} by the simulation`,
    sentences: [
      `${predictedText(row)}: ${formatRate(busGBps)} GB/s of bus bandwidth.`,
      kernel !== undefined
        ? `On symmetric windows NCCL takes ${kernel}${believedText(situation, collective, bytes)}.`
        : choice === undefined
          ? 'NCCL sends messages between pairs of ranks, and has no model of the time that they take.'
          : `NCCL takes ${formatWay(choice)} on ${choice.nChannels} channels, and believes ${formatTime(choice.timeUs)}.`,
      `The time goes to: ${shares.map(({ what, part }) => `${what} ${(100 * part).toFixed(0)} %`).join(', ')}.`,
    ],
    evidence: {
      collective,
      bytes,
      predictedUs: timeUs,
      leastUs,
      mostUs,
      busGBps,
      believedUs: choice?.timeUs ?? null,
      shares: shares.map(({ what, part }) => ({ what, part })),
      way: predictedWay(row) ?? 'pairs',
    },
  };
}

function believedText({ tuning }: Situation, name: ScheduledCollective, bytes: number): string {
  const collective = collectives.find((each) => each === name);
  const way = collective && chooseWithWindows(tuning, collective, bytes);
  return way === undefined || way.kind === 'general' ? '' : `, whose model expects ${formatTime(way.timeUs)}`;
}

/** `175 us, in eight of ten cases 159 us to 209 us`. */
export function predictedText({ timeUs, leastUs, mostUs, kernel }: PredictedRow): string {
  if (kernel !== undefined) return `${formatTime(timeUs)}, of which only few measurements are published`;
  return `${formatTime(timeUs)}, in eight of ten cases ${formatTime(leastUs)} to ${formatTime(mostUs)}`;
}
