import { counted } from '../../counted.js';
import { inFile } from '../../errors.js';
import { refuseContradictions } from '../../planner/graph/merge/contradictions.js';
import type { ReplayCluster } from '../../planner/replay/costs.js';
import { measureJob, type MeasuredJob, type Replay, replayJob, tracedVersion } from '../../planner/replay/replay.js';
import { summaryOf } from '../../view/replay/rows.js';
import { type ClusterInput, readCluster, rootsOf } from '../cluster-input.js';
import type { ClusterOptions } from '../cluster-options.js';
import { colorsFor, print, printJson, printNotes, writeFile } from '../output.js';
import { screenWidth } from '../screen.js';
import { replayJson } from './json.js';
import { readTraces } from './read.js';
import { replayPerfetto } from './perfetto.js';
import { callLines, rankLines, type Supposed, supposedLines } from './tables.js';

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

/** The version of NCCL of the traces, where no option names one. */
function versionOf(
  job: MeasuredJob,
  { nccl, torch }: ReplayOptions,
): { readonly option: ClusterOptions; readonly notes: readonly string[] } {
  if (nccl !== undefined || torch !== undefined) return { option: {}, notes: [] };
  const { version, notes } = tracedVersion(job);
  return { option: version === undefined ? {} : { nccl: version }, notes };
}

function replayLines(job: MeasuredJob, replay: Replay, version: string, { calls: isEach = false }: ReplayOptions): string[] {
  const paint = colorsFor(process.stdout);
  const width = screenWidth();
  const [[title, what], ...rest] = summaryOf(job, replay, version);
  return [
    `${paint.bold(title)}  ${what}`,
    ...rest.map(([label, text]) => `${label.padEnd(7)}${text}`),
    '',
    ...callLines(replay, isEach, width),
    '',
    ...rankLines(replay, width),
  ];
}
