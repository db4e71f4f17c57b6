import { describeError, TcclError } from '../errors.js';
import { classify } from '../planner/readers/classify.js';
import { TraceReader } from '../planner/replay/read-traces.js';
import { measureJob, type MeasuredJob, replayJob, tracedVersion } from '../planner/replay/replay.js';
import { callHeading, callRow, MOST_ROWS, rankHeading, rankRow, ranksThatHoldUp, summaryOf } from '../view/replay/rows.js';
import { callKinds } from '../view/replay/sums.js';
import { withControls } from './controls.js';
import { headOf, wholeOf } from './files.js';
import type { OpenFile, ShownReplay } from './messages.js';
import type { Source } from './source.js';

/** Traces among the opened files, as one job. */
export interface Traced {
  readonly job: MeasuredJob;
  /** Names of the files that are traces of a profiler: nothing else reads them. */
  readonly profiles: ReadonlySet<string>;
}

/** The job of the traces among the files; undefined where none has a call with a time. */
export async function tracedJob(files: readonly OpenFile[], report: (text: string) => void): Promise<Traced | undefined> {
  const reader = new TraceReader();
  for (const { name, blob } of files) {
    try {
      const kind = classify(await headOf(blob));
      if (kind !== 'json' && kind !== 'pickle' && kind !== 'inspector') continue;
      report(`${name}: looking for calls with times`);
      reader.read(await wholeOf(name, blob), name, kind);
    } catch (error) {
      // It is no trace, or one without times; a file that cannot be read at all is refused where the others are read.
      if (!(error instanceof TcclError)) continue;
    }
  }
  const traces = reader.finish();
  if (traces.every(({ calls }) => calls.length === 0)) return undefined;
  const profiles = traces.filter(({ clock }) => clock === 'gpu').map(({ file }) => file);
  return { job: measureJob(traces), profiles: new Set(profiles) };
}

/**
 * The job on a cluster, as `tccl replay` has it.
 *
 * @param nccl the version that is asked for; undefined for that of the traces
 * @param sourceFor the cluster with a version
 */
export function replayed(
  { job }: Traced,
  nccl: string | undefined,
  sourceFor: (nccl: string | undefined) => Source | undefined,
): ShownReplay | undefined {
  const traced = nccl === undefined ? tracedVersion(job) : { version: nccl, notes: [] };
  try {
    const source = sourceFor(traced.version);
    if (source === undefined) return undefined;
    const { title, cluster, machines, parameters, simulated } = source;
    // Communicators of some GPUs of a host are planned from its file, not from its graph.
    const hosts = cluster.hosts.map((host, kind) => ({ ...host, machine: machines[kind]?.root ?? host.machine }));
    const replay = replayJob(job, { title, cluster: { hosts }, parameters, environment: simulated });
    const kinds = callKinds(replay, false);
    return {
      summary: summaryOf(job, replay, parameters.ncclVersion),
      calls: { head: callHeading, rows: kinds.slice(0, MOST_ROWS).map((kind) => callRow(kind, false)) },
      ranks: { head: rankHeading, rows: ranksThatHoldUp(replay.ranks).map(rankRow) },
      notes: [
        ...traced.notes,
        ...job.notes,
        ...replay.notes,
        ...(Math.max(kinds.length, replay.ranks.length) > MOST_ROWS
          ? [`tccl replay --json has all ${kinds.length} kinds of calls and ${replay.ranks.length} ranks`]
          : []),
      ].map(withControls),
    };
  } catch (error) {
    if (!(error instanceof TcclError)) throw error;
    return { summary: [['replay', withControls(describeError(error))]], calls: undefined, ranks: undefined, notes: [] };
  }
}
