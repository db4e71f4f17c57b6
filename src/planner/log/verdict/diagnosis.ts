import { counted } from '../../../counted.js';
import { compareVersions } from '../../versions/version.js';
import { checkLog } from './check-log.js';
import type { LogFinding } from '../checks/finding.js';
import { isEven, stageHints } from '../checks/init.js';
import { type LogModel, Stage } from '../job/model.js';
import { hasEnded } from '../job/outcome.js';
import { firstSuspicion } from '../checks/suspicions.js';
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
  /** The one command whose output decides. */
  readonly command: string;
  /** Meaning of its output, or what to look at first on this machine. */
  readonly remedy: string;
}

/** @param more findings of other comparisons, such as with a plan */
export function diagnoseJob(model: LogModel, more: readonly LogFinding[] = []): Diagnosis {
  const findings = [...checkLog(model), ...more];
  const verdict = verdictOf(findings);
  const ordered = [...verdict.causes, ...verdict.consequences, ...verdict.remarks];
  if (verdict.causes.length > 0) return { outcome: 'fault', findings: ordered, verdict, open: undefined };
  if (hasEnded(model)) return { outcome: 'healthy', findings: ordered, verdict, open: undefined };
  return { outcome: 'undecided', findings: ordered, verdict, open: openQuestion(model, findings) };
}

/** A job again, with NCCL's own words in a file for each process. */
const LOGGED_RUN = 'NCCL_DEBUG=INFO NCCL_DEBUG_FILE=/tmp/nccl.%h.%p.log <command of the job>';
/** NCCL alone on all GPUs of a host. */
const ALL_REDUCE = 'NCCL_DEBUG=INFO all_reduce_perf -b 8 -e 1G -f 2 -g $(nvidia-smi -L | wc -l)';

/** The release with which `ncclras` came. */
const RAS_SINCE = '2.24';

/** True if all releases in the log have RAS, and it has one. */
function hasRas({ processes }: LogModel): boolean {
  const versions = processes.flatMap(({ version }) => version?.text.split('+', 1)[0] ?? []);
  return versions.length > 0 && versions.every((version) => compareVersions(version, RAS_SINCE) >= 0);
}

function openQuestion(model: LogModel, findings: readonly LogFinding[]): OpenQuestion {
  const { lines, communicators, runs, tools, ras, recordings, timed, topologies, tables } = model;
  const ranks = communicators.flatMap((communicator) => [...communicator.ranks.values()]);
  const waiting = recordings.length === 1 ? findings.find(({ code }) => code === 'rank-absent') : undefined;
  if (waiting !== undefined)
    return {
      problem: waiting.problem,
      cause: waiting.cause,
      command: 'tccl diagnose <folder with the recordings of all ranks>',
      remedy: waiting.remedy,
    };
  const unended = runs.filter(({ ended }) => ended === undefined);
  if (ranks.length > 0 && ranks.every(({ completed }) => completed !== undefined) && tables.length === 0)
    return {
      problem: `${counted(ranks.length, 'rank')} completed init, and no later line shows whether the job works, hangs or ended`,
      cause: 'NCCL writes nothing while collectives run, so a log does not show whether a job hangs or works',
      command: hasRas(model)
        ? 'ncclras -v; sleep 60; ncclras -v'
        : 'for p in $(pgrep -f <program>); do py-spy dump --pid $p; done',
      remedy: `it hangs if ${hasRas(model) ? 'counts do not grow' : 'stacks stay in a collective: run it twice on each host'}. ${firstSuspicion(model)}`,
    };
  if (unended.length > 0)
    return {
      problem: `${runs.length === 1 ? 'the test' : `${unended.length} of ${counted(runs.length, 'test')}`} of nccl-tests printed no summary: its table is not complete`,
      cause: 'it hung, was ended, still runs, or the file was cut',
      command: 'NCCL_DEBUG=INFO timeout 600 <command of the test>; echo "exit code $?"',
      remedy: `give the whole output: 124 at its end means that it hung. ${firstSuspicion(model)}`,
    };
  if (ranks.length > 0) {
    const stage = ranks.reduce<Stage>((least, record) => (record.stage < least ? record.stage : least), Stage.DONE);
    if (model.unfinishedLine !== undefined)
      return {
        problem: `the log is cut: it ends in the middle of a line, and init finished on ${ranks.filter(({ completed }) => completed !== undefined).length} of ${counted(ranks.length, 'rank')} until there`,
        cause: `the rest may follow; or init hangs: ${stageHints[stage]}`,
        command: LOGGED_RUN,
        remedy: 'give the whole log, or the files of all ranks',
      };
    if (communicators.every(isEven) && ranks.every(({ completed }) => completed === undefined))
      return {
        problem: `the log ends in init, with ${counted(ranks.length, 'rank')} at the same point, and nothing reports a failure`,
        cause: `init hangs there, goes on, or the log was copied while it went on: ${stageHints[stage]}`,
        command: 'for p in $(pgrep -f <program>); do py-spy dump --native --pid $p; done',
        remedy: `run it twice, a minute apart: it hangs if the stacks stay in init. ${stage >= Stage.CHANNELS ? firstSuspicion(model) : 'Then `NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=ALL` shows the step'}`,
      };
    return {
      problem: `of ${counted(ranks.length, 'rank')} the files do not show how init ended`,
      cause: `this is a part of a log; or init hangs: ${stageHints[stage]}`,
      command: LOGGED_RUN,
      remedy: 'give the files of all ranks: the rank whose lines end first is the one that is late or gone',
    };
  }
  const troubles = [...new Set(ras.flatMap((report) => report.troubles))];
  if (troubles.length > 0)
    return {
      problem: `RAS reports ${troubles.join(' and ')}, and its lines about that are not known`,
      cause: 'the report is cut, was asked for without -v, or is of another release of NCCL',
      command: 'ncclras -v',
      remedy: 'give its whole output: the sections Errors and Warnings name ranks and processes',
    };
  if (ras.length > 0)
    return {
      problem: 'RAS shows no rank behind: all have launched the same operations; it does not show whether the last ones complete',
      cause: 'RAS counts launched operations, not completed ones',
      command: 'ncclras -v; sleep 60; ncclras -v',
      remedy:
        'give both outputs: if no number grows, all ranks wait in one operation; flight recordings of PyTorch (TORCH_NCCL_DUMP_ON_TIMEOUT=1) show which',
    };
  if (recordings.length + timed.length > 0)
    return {
      problem: 'all calls in the recordings ended, and no rank is late',
      cause: 'the recordings end before a failure, or there was none',
      command: LOGGED_RUN,
      remedy: 'give its files beside the recordings',
    };
  if (tools.length + topologies.length > 0)
    return {
      problem: `no fault in ${toolsText(model)}; these files do not show whether the job works`,
      cause: 'they show the machine, not the job',
      command: ALL_REDUCE,
      remedy:
        'its table shows whether NCCL works here, and how fast; for one job, give the output of that job with NCCL_DEBUG=INFO',
    };
  const unreachable = model.hits.find(({ rule }) => rule.code === 'ras-unreachable')?.rule;
  if (unreachable !== undefined && lines.nccl === 0)
    return {
      problem: `${unreachable.problem}, so its report is missing`,
      cause: unreachable.cause,
      command: 'ncclras -v -h <host of a rank>',
      remedy: 'run it in the container of a rank; without RAS, `py-spy dump` of every rank shows where they stand',
    };
  if (lines.nccl > 0)
    return {
      problem: `${counted(lines.nccl, 'line')} of NCCL, and none about a communicator`,
      cause: 'this is a part of a log, or NCCL_DEBUG is not INFO',
      command: LOGGED_RUN,
      remedy: 'give all of its files',
    };
  if (model.hits.some(({ rule }) => rule.code === 'nccl-loaded'))
    return {
      problem: 'a server loaded NCCL to make its communicators, and no later line shows that it got them',
      cause:
        'the log ends there, or the server hangs there: most often P2P between the GPUs does not work (ACS, an IOMMU, a VM), between hosts the interface or a firewall',
      command: 'NCCL_DEBUG=INFO NCCL_P2P_DISABLE=1 <command of the server>',
      remedy: 'if it works so, P2P is broken: `nvidia-smi topo -p2p r`, `lspci -vvv` (ACSCtl)',
    };
  return {
    problem:
      lines.all === 0
        ? 'the files are empty'
        : `there is no line of NCCL among ${lines.all}, and none of PyTorch, a launcher or the kernel that reports a failure`,
    cause: 'the output went elsewhere, or NCCL_DEBUG is not set',
    command: LOGGED_RUN,
    remedy: 'give all of its output: these files, standard error, and logs of the launcher',
  };
}

function toolsText({ tools, topologies }: LogModel): string {
  const names = [...new Set([...tools.map(({ tool }) => tool), ...(topologies.length > 0 ? ['topology files'] : [])])];
  return names.length === 1 ? `the output of ${names[0] ?? ''}` : names.join(', ');
}
