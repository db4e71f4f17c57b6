import { counted } from '../../counted.js';
import { inFile } from '../../errors.js';
import { refuseContradictions } from '../../planner/graph/merge/contradictions.js';
import { formatTime } from '../../planner/plan/overview/format.js';
import type { ReplayCluster } from '../../planner/replay/costs.js';
import { measureJob, type MeasuredJob, type Replay, replayJob } from '../../planner/replay/replay.js';
import { coveredVersions } from '../../planner/versions/version.js';
import { type ClusterInput, readCluster, rootsOf } from '../cluster-input.js';
import type { ClusterOptions } from '../cluster-options.js';
import { colorsFor, print, printJson, printNotes, writeFile } from '../output.js';
import { screenWidth } from '../screen.js';
import { replayJson } from './json.js';
import { readTraces } from './read.js';
import { replayPerfetto } from './perfetto.js';
import { callLines, rankLines, type Supposed, supposedLines, waitLine } from './tables.js';
import { communicationOf, signedPercent } from './sums.js';

export interface ReplayOptions extends ClusterOptions {
  readonly calls?: boolean;
  readonly json?: boolean;
  readonly whatIf?: string;
  readonly whatIfNccl?: string;
  readonly whatIfEnv?: readonly string[];
  readonly perfetto?: string;
}

/** `tccl replay`. */
export async function showReplay(cluster: string, paths: readonly string[], options: ReplayOptions): Promise<void> {
  const { traces, notes } = await readTraces(paths);
  const job = measureJob(traces);
  const version = versionOf(job, options);
  const input = await readCluster([cluster], { ...options, ...version.option });
  const replay = inFile(input.fileName, () => replayJob(job, replayCluster(input)));
  const supposed = await suppose(job, cluster, input.parameters.ncclVersion, options);
  if (options.json === true) printJson(replayJson(job, replay, input.parameters.ncclVersion, supposed));
  else {
    print(...replayLines(job, replay, input.parameters.ncclVersion, options));
    if (supposed !== undefined) print('', ...supposedLines(replay, supposed, screenWidth()));
  }
  if (options.perfetto !== undefined) {
    writeFile(options.perfetto, replayPerfetto(job, supposed?.replay ?? replay));
    if (options.json !== true) print('', `${options.perfetto}: ${counted(job.calls.length, 'call')}; ui.perfetto.dev opens it`);
  }
  const own = [...input.notes, ...notes, ...version.notes, ...job.notes, ...replay.notes];
  printNotes([...own, ...(supposed?.notes ?? []).filter((note) => !own.includes(note)).map((note) => `what if: ${note}`)]);
}

/** The job under other conditions; undefined where no option asks for any. */
async function suppose(
  job: MeasuredJob,
  cluster: string,
  version: string,
  options: ReplayOptions,
): Promise<Supposed | undefined> {
  const { whatIf, whatIfNccl, whatIfEnv = [], env = [] } = options;
  if (whatIf === undefined && whatIfNccl === undefined && whatIfEnv.length === 0) return undefined;
  // --nodes is about the other cluster, and the version is decided.
  const dropped = ['torch', ...(whatIf === undefined ? [] : ['nodes'])];
  const ofBoth: ClusterOptions = Object.fromEntries(Object.entries(options).filter(([name]) => !dropped.includes(name)));
  const input = await readCluster([whatIf ?? cluster], { ...ofBoth, nccl: whatIfNccl ?? version, env: [...env, ...whatIfEnv] });
  const replay = inFile(input.fileName, () => replayJob(job, replayCluster(input)));
  const changes = [`NCCL ${input.parameters.ncclVersion}`, ...whatIfEnv];
  return { replay, title: [replay.title, ...changes].join(', '), notes: [...input.notes, ...replay.notes] };
}

/** @throws InvalidUsageError for variables that contradict each other */
export function replayCluster({ title, cluster, parameters, simulated, ...input }: ClusterInput): ReplayCluster {
  refuseContradictions(parameters);
  const roots = rootsOf(input);
  // Communicators of some GPUs of a host are planned from its file, not from its graph.
  const hosts = cluster.hosts.map((each) => ({ ...each, machine: roots.get(each.machine) ?? each.machine }));
  return { title, cluster: { hosts }, parameters, environment: simulated };
}

/** The version of NCCL of the traces, where no option names one and it is planned for. */
function versionOf(
  { traces }: MeasuredJob,
  { nccl, torch }: ReplayOptions,
): { option: ClusterOptions; notes: readonly string[] } {
  const traced = traces.find((trace) => trace.nccl !== undefined)?.nccl;
  if (traced === undefined || nccl !== undefined || torch !== undefined) return { option: {}, notes: [] };
  if (coveredVersions.includes(traced)) return { option: { nccl: traced }, notes: [] };
  return { option: {}, notes: [`the traces are of NCCL ${traced}, which tccl does not plan for`] };
}

function replayLines(job: MeasuredJob, replay: Replay, version: string, { calls: isEach = false }: ReplayOptions): string[] {
  const paint = colorsFor(process.stdout);
  const width = screenWidth();
  const groups = new Set(job.calls.map(({ call }) => call.group)).size;
  const { measuredUs, predictedUs, count } = communicationOf(replay);
  return [
    `${paint.bold(replay.title)}  NCCL ${version}; ${counted(job.nRanks, 'rank')}, ${counted(job.calls.length, 'call')} of ${counted(groups, 'communicator')}, traces of ${counted(job.traces.length, 'rank')}`,
    `step   measured ${formatTime(replay.measuredUs)}, replayed ${formatTime(replay.replayedUs)} (${signedPercent(replay.replayedUs, replay.measuredUs)})`,
    count === 0
      ? 'calls  none has both a measured and a predicted time'
      : `calls  measured ${formatTime(measuredUs)} from the last rank's start on, predicted ${formatTime(predictedUs)} (${signedPercent(predictedUs, measuredUs)}), for ${count} of ${job.calls.length}`,
    ...waitLine(replay),
    '',
    ...callLines(replay, isEach, width),
    '',
    ...rankLines(replay, width),
  ];
}
