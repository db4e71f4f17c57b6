import { counted } from '../../counted.js';
import { checkLog } from './check-log.js';
import type { LogFinding } from './finding.js';
import { stageHints } from './checks/init.js';
import { type LogModel, Stage } from './model.js';
import { hasEnded } from './outcome.js';
import { firstSuspicion } from './suspicions.js';
import { type Verdict, verdictOf } from './verdict.js';

/**
 * `fault`: something is wrong, with cause and evidence; `healthy`: everything that began was seen to end, and nothing is wrong;
 * `undecided`: the files do not show which.
 */
export type Outcome = 'fault' | 'healthy' | 'undecided';

/** The answer of all files about a job. */
export interface Diagnosis {
  readonly outcome: Outcome;
  /** The likeliest cause first. */
  readonly findings: readonly LogFinding[];
  readonly verdict: Verdict;
  /** The open question of an undecided one. */
  readonly open: OpenQuestion | undefined;
}

export interface OpenQuestion {
  /** A sentence on the unknown. */
  readonly problem: string;
  readonly cause: string;
  /** The next command or file, and what to look at first on this machine. */
  readonly remedy: string;
}

/** @param more findings of other comparisons, such as with a plan */
export function diagnoseJob(model: LogModel, more: readonly LogFinding[] = []): Diagnosis {
  const findings = [...checkLog(model), ...more];
  const verdict = verdictOf(findings);
  const ordered = [...verdict.causes, ...verdict.consequences, ...verdict.remarks];
  if (verdict.causes.length > 0) return { outcome: 'fault', findings: ordered, verdict, open: undefined };
  if (hasEnded(model)) return { outcome: 'healthy', findings: ordered, verdict, open: undefined };
  return { outcome: 'undecided', findings: ordered, verdict, open: openQuestion(model) };
}

function openQuestion(model: LogModel): OpenQuestion {
  const { lines, communicators, runs, tools, ras, recordings, timed, topologies, tables } = model;
  const ranks = communicators.flatMap((communicator) => [...communicator.ranks.values()]);
  const unended = runs.filter(({ ended }) => ended === undefined);
  if (ranks.length > 0 && ranks.every(({ completed }) => completed !== undefined) && tables.length === 0)
    return {
      problem: `${counted(ranks.length, 'rank')} completed init, and no later line shows whether the job works, hangs or ended`,
      cause: 'NCCL writes nothing while collectives run, so a log does not show whether a job hangs or works',
      remedy: `if it hangs: \`py-spy dump\` of every rank, and \`nvidia-smi\` (100 % without progress: a GPU waits in a collective). ${firstSuspicion(model)}`,
    };
  if (unended.length > 0)
    return {
      problem: `${runs.length === 1 ? 'the test' : `${unended.length} of ${counted(runs.length, 'test')}`} of nccl-tests printed no summary: its table is not complete`,
      cause: 'it hung, was ended, still runs, or the file was cut',
      remedy: `give the whole output. If it hangs: ${firstSuspicion(model)}`,
    };
  if (ranks.length > 0) {
    const stage = ranks.reduce<Stage>((least, record) => (record.stage < least ? record.stage : least), Stage.DONE);
    return {
      problem: `of ${counted(ranks.length, 'rank')} the files do not show how init ended`,
      cause: `this is a part of a log; or init hangs: ${stageHints[stage]}`,
      remedy: 'give the whole output of all ranks, of a run with NCCL_DEBUG=INFO',
    };
  }
  if (ras.length > 0)
    return {
      problem: 'RAS shows no rank behind: all have launched the same operations; it does not show whether the last ones complete',
      cause: 'RAS counts launched operations, not completed ones',
      remedy:
        'run `ncclras` again after a minute and give both outputs: if no number grows, all ranks wait in one operation; PyTorch: flight recordings (TORCH_NCCL_DUMP_ON_TIMEOUT=1) show which',
    };
  if (recordings.length + timed.length > 0)
    return {
      problem: 'all calls in the recordings ended, and no rank is late',
      cause: 'the recordings end before a failure, or there was none',
      remedy: 'give the output of the job, too',
    };
  if (tools.length + topologies.length > 0)
    return {
      problem: `no fault in ${toolsText(model)}; these files do not show whether the job works`,
      cause: 'they show the machine, not the job',
      remedy: 'give the output of the job, of a run with NCCL_DEBUG=INFO',
    };
  if (lines.nccl > 0)
    return {
      problem: `${counted(lines.nccl, 'line')} of NCCL, and none about a communicator`,
      cause: 'this is a part of a log, or NCCL_DEBUG is not INFO',
      remedy: 'give the whole output, of a run with NCCL_DEBUG=INFO',
    };
  if (model.hits.some(({ rule }) => rule.code === 'nccl-loaded'))
    return {
      problem: 'a server loaded NCCL to make its communicators, and no later line shows that it got them',
      cause:
        'the log ends there, or the server hangs there: most often P2P between the GPUs does not work (ACS, an IOMMU, a VM), between hosts the interface or a firewall',
      remedy:
        'a run with NCCL_DEBUG=INFO; a run with NCCL_P2P_DISABLE=1 decides: if it works, P2P is broken: `nvidia-smi topo -p2p r`, `lspci -vvv` (ACSCtl)',
    };
  return {
    problem:
      lines.all === 0
        ? 'the files are empty'
        : `there is no line of NCCL among ${lines.all}, and none of PyTorch, a launcher or the kernel that reports a failure`,
    cause: 'the output went elsewhere, or NCCL_DEBUG is not set',
    remedy:
      'run the job with NCCL_DEBUG=INFO, and give all of its output (standard error, NCCL_DEBUG_FILE, logs of the launcher)',
  };
}

function toolsText({ tools, topologies }: LogModel): string {
  const names = [...new Set([...tools.map(({ tool }) => tool), ...(topologies.length > 0 ? ['topology files'] : [])])];
  return names.length === 1 ? `the output of ${names[0] ?? ''}` : names.join(', ');
}
