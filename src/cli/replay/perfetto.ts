import type { ComparedCall, MeasuredJob, Replay } from '../../planner/replay/replay.js';
import { eventsText, exact, named } from '../trace/perfetto.js';

/** First number of tracks: one may not have the number of its process. */
const FIRST_TRACK = 2_000_000;

/** A slice of a track, µs; those within others are drawn below them. */
interface Slice {
  readonly name: string;
  readonly startUs: number;
  readonly endUs: number;
  readonly args: object;
  readonly waitEndUs: number;
}

/**
 * Measured and replayed calls as events of Chrome's trace format: a process a rank, with a track for computing and one for each
 * stream, measured and replayed. A call begins with the wait for its last rank.
 */
export function replayPerfetto({ programs, compute, traces }: MeasuredJob, { calls }: Replay): string {
  const events: object[] = [];
  const digits = String(Math.max(...programs.map(({ rank }) => rank))).length;
  for (const { rank } of [...programs].sort((a, b) => a.rank - b.rank)) {
    const pid = rank + 1;
    events.push({ name: 'process_name', ph: 'M', pid, args: { name: `rank ${String(rank).padStart(digits, '0')}` } });
    const tracks = new Map<string, Slice[]>([
      [
        'computing',
        (compute.get(rank) ?? []).map(([startUs, endUs]) => ({
          name: 'computing',
          startUs,
          endUs,
          args: {},
          waitEndUs: startUs,
        })),
      ],
    ]);
    const trace = traces.find((each) => each.rank === rank);
    const streamOf = new Map(trace?.calls.map((call) => [call, call.stream]));
    for (const call of calls) {
      const part = call.measured.call.parts.get(rank);
      const stream = part === undefined ? undefined : streamOf.get(part);
      if (stream === undefined) continue;
      for (const [kind, slice] of slicesOf(call, rank)) {
        const track = `${kind}, stream ${stream}`;
        const known = tracks.get(track);
        if (known === undefined) tracks.set(track, [slice]);
        else known.push(slice);
      }
    }
    [...tracks]
      .filter(([, slices]) => slices.length > 0)
      .forEach(([name, slices], place) => {
        const tid = FIRST_TRACK + pid * 100 + place;
        events.push(named(pid, tid, name), ...sliceEvents(slices, pid, tid));
      });
  }
  return eventsText(events);
}

function slicesOf({ measured, predicted, replayed }: ComparedCall, rank: number): [kind: string, slice: Slice][] {
  const { call, times, transferUs, lastRank } = measured;
  const args = {
    group: call.groupName,
    bytes: call.bytes,
    ranks: call.size,
    transferUs,
    predictedUs: predicted?.timeUs,
    lastRank,
  };
  const own = times.get(rank);
  const startUs = replayed?.starts.get(rank);
  const name = call.operation;
  return [
    ...(own === undefined
      ? []
      : [['measured', { name, startUs: own[0], endUs: own[1], args, waitEndUs: own[1] - (transferUs ?? 0) }] as [string, Slice]]),
    ...(replayed === undefined || startUs === undefined
      ? []
      : [['replayed', { name, startUs, endUs: replayed.endUs, args, waitEndUs: replayed.beginUs }] as [string, Slice]]),
  ];
}

/** Slices one after the other: clocks that were corrected may let two of them overlap a little. */
function sliceEvents(slices: readonly Slice[], pid: number, tid: number): object[] {
  let free = -Infinity;
  return [...slices]
    .sort((a, b) => a.startUs - b.startUs)
    .flatMap(({ name, startUs, endUs, args, waitEndUs }) => {
      const ts = Math.max(exact(startUs), free);
      const end = Math.max(ts, exact(endUs));
      const waited = Math.min(end, exact(waitEndUs));
      free = end;
      return [
        { name, ph: 'X', ts, dur: end - ts, pid, tid, args },
        ...(waited > ts ? [{ name: 'waits for the last rank', ph: 'X', ts, dur: waited - ts, pid, tid }] : []),
      ];
    });
}
