import { predictedWay } from '../../planner/plan/overview/format.js';
import type { ComparedCall, MeasuredJob, Replay } from '../../planner/replay/replay.js';
import type { Supposed } from './tables.js';

/** A replay as JSON. Times in µs on one clock, from the first event of the job on. */
export function replayJson(job: MeasuredJob, replay: Replay, nccl: string, supposed: Supposed | undefined): object {
  const { title, measuredUs, replayedUs, ranks, calls } = replay;
  return {
    ...{ format: 'tccl replay', formatVersion: 1, title, nccl },
    traces: job.traces.map(({ rank, file, clock, calls: own }) => ({ rank, file, clock, calls: own.length })),
    ...{ nRanks: job.nRanks, measuredUs, replayedUs, ranks },
    calls: calls.map((compared) => {
      const { call, times, transferUs, lastRank, waitUs } = compared.measured;
      const { operation, groupName, members, size, collective, bytes, type } = call;
      return {
        ...{ operation, group: groupName, members, size, collective, bytes, type },
        measured: { transferUs, lastRank, waitUs, ranks: Object.fromEntries(times) },
        ...timesOf(compared),
      };
    }),
    notes: [...job.notes, ...replay.notes],
    ...(supposed === undefined ? {} : { whatIf: whatIfJson(supposed) }),
  };
}

/** The calls in the order of those of the replay. */
function whatIfJson({ title, replay: { replayedUs, ranks, calls }, notes }: Supposed): object {
  return {
    ...{ title, replayedUs, notes, calls: calls.map(timesOf) },
    ranks: ranks.map(({ rank, replayedUs: ownUs, replayedExposedUs }) => ({ rank, replayedUs: ownUs, replayedExposedUs })),
  };
}

function timesOf({ predicted, replayed }: ComparedCall): object {
  return {
    ...(predicted === undefined
      ? {}
      : {
          predicted: {
            ...{ timeUs: predicted.timeUs, leastUs: predicted.leastUs, mostUs: predicted.mostUs },
            way: predictedWay(predicted),
          },
        }),
    ...(replayed === undefined
      ? {}
      : { replayed: { beginUs: replayed.beginUs, endUs: replayed.endUs, starts: Object.fromEntries(replayed.starts) } }),
  };
}
