import type { RankCall, RankTrace } from '../../../../src/planner/replay/trace.js';

/** A call of a group of all ranks of a trace. */
export function rankCall(given: Partial<RankCall> & Pick<RankCall, 'startUs' | 'durationUs'>): RankCall {
  return {
    group: 'world',
    groupName: 'world',
    members: undefined,
    size: 0,
    sequence: undefined,
    operation: 'allreduce',
    collective: 'AllReduce',
    bytes: 1 << 20,
    type: 'float32',
    stream: '7',
    ...given,
  };
}

/** Trace of a rank: calls as [start, end], and computing. */
export function rankTrace(
  rank: number,
  times: readonly (readonly [number, number])[],
  compute?: RankTrace['compute'],
  given: Partial<RankCall> = {},
): RankTrace {
  const calls = times.map(([start, end], place) =>
    rankCall({ startUs: start, durationUs: end - start, sequence: String(place), ...given }),
  );
  return { rank, file: `rank${rank}`, calls, compute, clock: 'gpu' };
}
