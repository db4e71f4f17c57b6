import { counted } from '../../counted.js';
import { checkTables } from './checks/bandwidth.js';
import { checkChannels } from './checks/channels.js';
import { checkEnvironment } from './checks/environment.js';
import { checkInit, checkVersions } from './checks/init.js';
import { checkNics } from './checks/nics.js';
import { checkTransports } from './checks/transports.js';
import { checkWarnings } from './checks/warnings.js';
import { type LogFinding, sortFindings } from './finding.js';
import type { LogModel } from './model.js';

/** Findings of one kind about several communicators that are kept apart; more are the same again. */
const alikeLimit = 3;

/** What is wrong with what a log tells, the worst first. */
export function checkLog(model: LogModel): LogFinding[] {
  const byCommunicator = model.communicators.flatMap((communicator) => [
    ...checkInit(communicator, model),
    ...checkVersions(communicator),
    ...checkChannels(communicator, model),
    ...checkTransports(communicator),
    ...checkNics(communicator),
  ]);
  return sortFindings([
    ...checkWarnings(model.warnings),
    ...fewOfEach(byCommunicator),
    ...checkTables(model),
    ...checkEnvironment(model.processes),
    ...checkLimits(model),
  ]);
}

/** A job with a hundred communicators has the same trouble in each. */
function fewOfEach(findings: readonly LogFinding[]): LogFinding[] {
  const byCode = new Map<string, LogFinding[]>();
  for (const finding of findings) {
    const key = `${finding.code} ${finding.severity}`;
    byCode.set(key, [...byCode.get(key) ?? [], finding]);
  }
  return [...byCode.values()].flatMap((alike) => alike.slice(0, alikeLimit).map((finding, position) =>
    (position === alikeLimit - 1 && alike.length > alikeLimit
      ? { ...finding, problem: `${finding.problem}; and ${alike.length - alikeLimit} more communicators or hosts like this` } : finding)));
}

function checkLimits({ left, cutLines }: LogModel): LogFinding[] {
  const findings: LogFinding[] = [];
  if (left.communicators > 0 || left.details > 0 || left.processes > 0) {
    findings.push({
      code: 'log-too-large', severity: 'info',
      problem: `more than is kept: lines of ${left.communicators} further communicators' ranks, ${left.details} details and ${left.processes} lines of further processes were not looked at`,
      cause: 'communicators are made again and again, or the job is very large', remedy: 'give the log of fewer ranks, or the beginning of the job', places: [],
    });
  }
  const lines = [...cutLines.values()];
  const count = lines.reduce((sum, each) => sum + each.count, 0);
  if (count > 0) {
    findings.push({
      code: 'log-cut', severity: 'info', problem: `${counted(count, 'line of NCCL is', 'lines of NCCL are')} not whole`,
      cause: 'ranks wrote to one file at once, or a collector cut long lines', remedy: 'give every rank a file of its own: NCCL_DEBUG_FILE=nccl.%h.%p.log', places: lines.slice(0, 4).map(({ first }) => first),
    });
  }
  return findings;
}
