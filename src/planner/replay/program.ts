import type { JobCall } from './job-call.js';
import type { Interval, RankCall, RankTrace } from './trace.js';

/** A rank's part in the replay: what it does after how much work of its own. */
export interface RankProgram {
  readonly rank: number;
  /** On the common clock of the measured job, µs. */
  readonly startUs: number;
  readonly endUs: number;
  /** In the order of their work. */
  readonly actions: readonly Action[];
  /** Work until the end, µs. */
  readonly workUs: number;
  /** Measured time in which a call ran and nothing was computed, µs. */
  readonly exposedUs: number;
}

/**
 * `issue`: the rank calls. `wait`: the rank does nothing until the call has ended.
 *
 * Work is time that does not depend on a call: computing, and gaps that nothing fills.
 */
export type Action =
  | {
      readonly kind: 'issue';
      readonly call: JobCall;
      readonly atUs: number;
      readonly stream: string;
      /** Time after the end of the stream's last call, µs. */
      readonly lagUs: number;
    }
  | { readonly kind: 'wait'; readonly call: JobCall; readonly atUs: number };

/** A call as one rank saw it. */
export interface TimedPart {
  readonly call: JobCall;
  readonly stream: string;
  readonly time: Interval;
}

/** Shorter gaps between kernels are those of launches: a call that ends in one is not waited for. */
const LEAST_WAIT_US = 5;

/**
 * The program of one rank by its trace. Time that ends with the end of a call, while nothing is computed, is a wait for this
 * call; all other time is work, which a replay keeps.
 *
 *     computing   ████████████                 ██████
 *     call            ├───────────────────────┤
 *     work        ─────────── 12 ─►│ wait      ├─► 18
 *
 * @param compute undefined where the trace lacks it: then ranks wait for every call
 */
export function programOf(rank: number, parts: readonly TimedPart[], compute: readonly Interval[] | undefined): RankProgram {
  const calls = [...parts].sort((a, b) => a.time[0] - b.time[0]);
  const startUs = Math.min(calls[0]?.time[0] ?? Infinity, compute?.[0]?.[0] ?? Infinity);
  const endUs = calls.reduce((last, { time }) => Math.max(last, time[1]), compute?.at(-1)?.[1] ?? -Infinity);
  if (!(endUs >= startUs)) return { rank, startUs: 0, endUs: 0, actions: [], workUs: 0, exposedUs: 0 };

  const edges = edgesOf(calls, compute ?? []);
  const streams = new Map<string, { readonly endUs: number; readonly issuedAt: number }>();
  const actions: Action[] = [];
  let [nowUs, workUs, exposedUs] = [startUs, 0, 0];
  let running = 0;
  let isComputing = false;
  let idleSinceUs = startUs;
  for (const edge of edges) {
    const passed = edge.atUs - nowUs;
    if (passed > 0) {
      const isExposed = running > 0 && !isComputing;
      if (isExposed) exposedUs += passed;
      const isWait = isExposed && edge.kind === 'end' && (compute === undefined || edge.atUs - idleSinceUs >= LEAST_WAIT_US);
      if (!isWait) workUs += passed;
      nowUs = edge.atUs;
    }
    switch (edge.kind) {
      case 'start': {
        const { call, stream, time } = edge.part;
        const last = streams.get(stream);
        const lagUs = last === undefined ? 0 : Math.max(0, time[0] - last.endUs);
        // A call that begins when the one before it on its stream ends was made earlier, at a time that the trace lacks.
        const isQueued = last !== undefined && compute !== undefined && lagUs < LEAST_WAIT_US;
        const atUs = isQueued ? last.issuedAt : workUs;
        actions.push({ kind: 'issue', call, atUs, stream, lagUs: isQueued ? lagUs : 0 });
        streams.set(stream, { endUs: time[1], issuedAt: atUs });
        running++;
        break;
      }
      case 'end':
        running--;
        if (!isComputing && (compute === undefined || edge.atUs - idleSinceUs >= LEAST_WAIT_US))
          actions.push({ kind: 'wait', call: edge.part.call, atUs: workUs });
        break;
      case 'compute':
        isComputing = edge.isOn;
        if (!isComputing) idleSinceUs = edge.atUs;
        break;
    }
  }
  // Calls that were made earlier than they began come before the waits at that time.
  const order = actions
    .map((action, place) => ({ action, place }))
    .sort((a, b) => a.action.atUs - b.action.atUs || a.place - b.place);
  return { rank, startUs, endUs, actions: order.map(({ action }) => action), workUs, exposedUs };
}

/**
 * The program of a recording that has its steps.
 *
 * @param startUs when the rank begins, on the common clock
 */
export function programOfOrder(
  rank: number,
  { steps, workUs, endUs }: NonNullable<RankTrace['order']>,
  startUs: number,
  callOf: (call: RankCall) => JobCall | undefined,
): RankProgram {
  const actions = steps.flatMap(({ kind, call: part, atUs }): Action[] => {
    const call = callOf(part);
    if (call === undefined) return [];
    return [kind === 'wait' ? { kind, call, atUs } : { kind, call, atUs, stream: part.stream, lagUs: 0 }];
  });
  return { rank, startUs, endUs: startUs + endUs, actions, workUs, exposedUs: endUs - workUs };
}

type Edge =
  | { readonly kind: 'start' | 'end'; readonly atUs: number; readonly part: TimedPart }
  | { readonly kind: 'compute'; readonly atUs: number; readonly isOn: boolean };

/** Order at the same time: ends, starts, ends of calls without a duration, which follow their own starts, and computing. */
function orderOf(edge: Edge): number {
  if (edge.kind === 'compute') return 3;
  if (edge.kind === 'start') return 1;
  const [start, end] = edge.part.time;
  return end > start ? 0 : 2;
}

function edgesOf(calls: readonly TimedPart[], compute: readonly Interval[]): Edge[] {
  return [
    ...calls.flatMap((part): Edge[] => [
      { kind: 'start', atUs: part.time[0], part },
      { kind: 'end', atUs: part.time[1], part },
    ]),
    ...compute.flatMap(([start, end]): Edge[] => [
      { kind: 'compute', atUs: start, isOn: true },
      { kind: 'compute', atUs: end, isOn: false },
    ]),
  ].sort((a, b) => a.atUs - b.atUs || orderOf(a) - orderOf(b));
}
