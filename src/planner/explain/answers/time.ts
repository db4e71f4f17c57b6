import { formatBytes, formatRate, formatTime, formatWay } from '../../plan/overview/format.js';
import type { PredictedRow } from '../../plan/prediction.js';
import type { ScheduledCollective } from '../../schedule/schedule.js';
import { timeShares } from '../../simulate/shares.js';
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
  const { choice, timeUs, leastUs, mostUs, busGBps } = row;
  const shares = timeShares(simulator, collective, bytes, { environment });
  return {
    title: `${call} takes ${formatTime(timeUs)} by the simulation`,
    sentences: [
      `${predictedText(row)}: ${formatRate(busGBps)} GB/s of bus bandwidth.`,
      choice === undefined
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
      way: choice === undefined ? 'pairs' : formatWay(choice),
    },
  };
}

/** `175 us, in eight of ten cases 159 us to 209 us`. */
export function predictedText({ timeUs, leastUs, mostUs }: PredictedRow): string {
  return `${formatTime(timeUs)}, in eight of ten cases ${formatTime(leastUs)} to ${formatTime(mostUs)}`;
}
