import { predictedWay } from '../../planner/plan/overview/format.js';
import type { MeasuredJob, Replay } from '../../planner/replay/replay.js';

/** A replay as JSON. Times in µs on one clock, from the first event of the job on. */
export function replayJson(job: MeasuredJob, replay: Replay, nccl: string): object {
  const { title, measuredUs, replayedUs, ranks, calls } = replay;
  return {
    ...{ format: 'tccl replay', formatVersion: 1, title, nccl },
    traces: job.traces.map(({ rank, file, clock, calls: own }) => ({ rank, file, clock, calls: own.length })),
    ...{ nRanks: job.nRanks, measuredUs, replayedUs, ranks },
    calls: calls.map(({ measured, predicted, replayed }) => {
      const { call, times, transferUs, lastRank, waitUs } = measured;
      const { operation, groupName, members, size, collective, bytes, type } = call;
      return {
        ...{ operation, group: groupName, members, size, collective, bytes, type },
        measured: { transferUs, lastRank, waitUs, ranks: Object.fromEntries(times) },
        ...(predicted === undefined
          ? {}
          : {
              predicted: {
                timeUs: predicted.timeUs,
                leastUs: predicted.leastUs,
                mostUs: predicted.mostUs,
                way: predictedWay(predicted),
              },
            }),
        ...(replayed === undefined
          ? {}
          : { replayed: { beginUs: replayed.beginUs, endUs: replayed.endUs, starts: Object.fromEntries(replayed.starts) } }),
      };
    }),
    notes: [...job.notes, ...replay.notes],
  };
}
