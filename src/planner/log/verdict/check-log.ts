import { counted } from '../../../counted.js';
import { checkTables } from '../checks/bandwidth.js';
import { checkCalls } from '../checks/calls.js';
import { checkChannels } from '../checks/channels.js';
import { checkDeaths, ruleOfFirstDeath } from '../checks/deaths.js';
import { checkEnvironment } from '../checks/environment.js';
import { checkFlight } from '../checks/flight.js';
import { checkInit, checkVersions, isEven } from '../checks/init.js';
import { checkNics } from '../checks/nics.js';
import { checkNicCounts } from '../checks/nic-counts.js';
import { besideVariables, checkJoined } from '../checks/joined.js';
import { checkLaunch } from '../checks/launch.js';
import { checkLines } from '../checks/lines.js';
import { checkMachines } from '../checks/machine.js';
import { checkPlugins } from '../checks/plugins.js';
import { checkSettings } from '../checks/settings.js';
import { checkSweeps } from '../checks/sweeps.js';
import { checkTimelines } from '../checks/timelines.js';
import { checkTopologies } from '../checks/topologies.js';
import { checkCopies } from '../checks/tools/copies.js';
import { checkGpus } from '../checks/tools/gpus.js';
import { checkHosts } from '../checks/tools/hosts.js';
import { checkNetworks } from '../checks/tools/networks.js';
import { checkPeers } from '../checks/tools/peers.js';
import { checkPci } from '../checks/tools/pci.js';
import { checkRdma } from '../checks/tools/rdma.js';
import { checkSpeeds } from '../checks/tools/speeds.js';
import { checkStacks } from '../checks/tools/stacks.js';
import { checkTransports } from '../checks/transports.js';
import { checkWarnings } from '../checks/warnings.js';
import { checkTimeouts, withCall } from '../checks/watchdog.js';
import { checkRas } from '../checks/ras.js';
import { checkReleases } from '../checks/releases.js';
import { checkRuns } from '../checks/runs.js';
import { aftermath } from '../rules/codes.js';
import type { LogFinding } from '../checks/finding.js';
import { masked } from '../lines/mask.js';
import type { LogModel } from '../job/model.js';
import { isUntroubled } from '../job/outcome.js';
import { sortFindings } from './verdict.js';

/** Findings about a log, the likeliest cause first; one finding for each code and kind of object. */
export function checkLog(model: LogModel): LogFinding[] {
  const byCommunicator = model.communicators.flatMap((communicator) => [
    ...checkInit(communicator, model),
    ...checkVersions(communicator),
    ...checkChannels(communicator, model),
    ...checkTransports(communicator),
    ...checkNics(communicator),
  ]);
  const firstCode = ruleOfFirstDeath(model);
  // The first death of a rank explains what the others saw, also where a rule knows its words.
  const lines = checkLines(model).map((each): LogFinding => {
    const finding = withCall(each, model);
    return finding.code === firstCode && finding.severity !== 'info'
      ? { ...finding, kind: 'fault', explains: [...(finding.explains ?? []), ...aftermath] }
      : finding;
  });
  const rdma = checkRdma(model);
  const findings: LogFinding[] = [
    ...lines,
    ...checkDeaths(model).filter(({ code }) => code !== firstCode),
    ...checkRuns(model),
    ...checkTimeouts(model),
    ...checkCalls(model),
    ...checkWarnings(model),
    ...checkSettings(model),
    ...checkPlugins(model),
    ...checkMachines(model),
    ...oneOfEach(byCommunicator),
    ...checkFlight(model.recordings),
    ...checkRas(model.ras),
    ...checkTimelines(model.timed),
    ...checkTopologies(model),
    ...checkGpus(model),
    ...checkPeers(model),
    ...checkCopies(model),
    ...checkPci(model),
    ...rdma,
    ...checkHosts(model),
    ...checkNetworks(model),
    ...checkSpeeds(model, rdma),
    ...checkStacks(model),
    ...checkTables(model),
    ...checkSweeps(model),
    ...checkEnvironment(model.processes),
    ...checkJoined(model),
    ...checkNicCounts(model),
    ...checkLaunch(model),
    ...checkReleases(model),
    ...checkLimits(model),
  ];
  return sortFindings(besideVariables(followed(findings, model), model)).map(withoutSecrets);
}

function withoutSecrets(finding: LogFinding): LogFinding {
  const { problem, cause, remedy, quote, context } = finding;
  return {
    ...finding,
    problem: masked(problem),
    cause: masked(cause),
    remedy: masked(remedy),
    ...(quote !== undefined && { quote: masked(quote) }),
    ...(context !== undefined && { context: context.map(masked) }),
  };
}

/**
 * A log that ends in the middle of a line, or with all ranks at the same point of init, may go on: unfinished init is a remark
 * there, unless something else went wrong.
 */
function followed(findings: readonly LogFinding[], model: LogModel): readonly LogFinding[] {
  const { communicators, unfinishedLine } = model;
  const isInit = ({ code }: LogFinding) => code === 'init-unfinished';
  if (findings.some((each) => each.severity !== 'info' && !isInit(each))) return findings;
  const open = communicators.flatMap(({ ranks }) => [...ranks.values()].filter(({ completed }) => completed === undefined));
  const isCut = unfinishedLine !== undefined && open.every(({ last }) => last.file === unfinishedLine.file);
  if (!isCut && !(communicators.every(isEven) && isUntroubled(model))) return findings;
  return findings.map((each) => (isInit(each) ? { ...each, severity: 'info', kind: 'note' } : each));
}

/** Merges findings of one defect: a job with a hundred communicators or hosts has it in each. */
function oneOfEach(findings: readonly LogFinding[]): LogFinding[] {
  const byCode = new Map<string, LogFinding[]>();
  for (const finding of findings) {
    const key = `${finding.code} ${finding.severity}`;
    byCode.set(key, [...(byCode.get(key) ?? []), finding]);
  }
  return [...byCode.values()].flatMap(([first, ...others]) => {
    if (first === undefined || others.length === 0) return first ?? [];
    return [
      {
        ...first,
        problem: `${first.problem}; and ${counted(others.length, 'more communicator or host', 'more communicators or hosts')} like this`,
        places: [first, ...others].flatMap(({ places }) => places.slice(0, 2)).slice(0, 8),
      },
    ];
  });
}

function checkLimits({ left, cutLines, unfinishedLine }: LogModel): LogFinding[] {
  const findings: LogFinding[] = [];
  if (unfinishedLine !== undefined) {
    findings.push({
      code: 'log-unfinished',
      severity: 'info',
      problem: 'the log ends in the middle of a line: its end may be missing',
      cause: 'it was copied while it was written, or the disk is full',
      remedy: 'give the whole log',
      places: [unfinishedLine],
    });
  }
  if (left.communicators > 0 || left.details > 0 || left.processes > 0) {
    findings.push({
      code: 'log-too-large',
      severity: 'info',
      problem: `more than is kept: lines of ${left.communicators} further communicators' ranks, ${left.details} details and ${left.processes} lines of further processes were not looked at`,
      cause: 'communicators are made again and again, or the job is very large',
      remedy: 'give the log of fewer ranks, or the beginning of the job',
      places: [],
    });
  }
  const lines = [...cutLines.values()];
  const count = lines.reduce((sum, each) => sum + each.count, 0);
  if (count > 0) {
    findings.push({
      code: 'log-cut',
      severity: 'info',
      problem: `${counted(count, 'line of NCCL is', 'lines of NCCL are')} not whole`,
      cause: 'ranks wrote to one file at the same time, or a collector cut long lines',
      remedy: 'give every rank a file of its own: NCCL_DEBUG_FILE=nccl.%h.%p.log',
      places: lines.slice(0, 4).map(({ first }) => first),
    });
  }
  return findings;
}
