import { InputError, InvalidArgumentError } from '../../errors.js';
import { checkLog } from '../../planner/log/check-log.js';
import { type LogFinding, sortFindings } from '../../planner/log/finding.js';
import type { LogModel } from '../../planner/log/model.js';
import { comparePlanned, type ComparisonOptions } from './compare.js';
import { logToJson } from './json.js';
import { placeText, printLog, printRank } from './print.js';
import { readLogs } from './read.js';

export interface LogOptions extends ComparisonOptions {
  readonly json?: boolean;
  readonly rank?: string;
}

/** `tccl log`; gives back the exit code. */
export async function showLog(names: readonly string[], options: LogOptions): Promise<number> {
  const rank = rankAsked(options.rank);
  const model = await readLogs(names);
  refuseNoLog(model);
  refuseNoRank(model, rank);
  const { findings: differences, sentence } = await comparePlanned(model, options);
  const findings: LogFinding[] = sortFindings([...checkLog(model), ...differences]);
  if (options.json === true) console.log(JSON.stringify(logToJson(model, findings, rank)));
  else if (rank !== undefined) printRank(model, rank);
  else {
    printLog(model, findings);
    if (sentence !== undefined) console.log(sentence);
  }
  refuseHalf(model);
  return findings.some(({ severity }) => severity === 'error') ? 1 : 0;
}

function rankAsked(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const rank = Number(text);
  if (!/^\d{1,7}$/.test(text)) throw new InvalidArgumentError('ARGUMENT_RANGE', `--rank '${text}' must be a whole number from 0 on`);
  return rank;
}

function refuseNoLog({ files, lines, communicators, tables, warnings }: LogModel): void {
  const file = files.join(', ');
  if (lines.nccl === 0 && tables.length === 0) {
    throw new InputError('CONTENT', lines.all === 0 ? 'is empty; run the job with NCCL_DEBUG=INFO'
      : `there is no line of NCCL among ${lines.all}; run the job with NCCL_DEBUG=INFO, and give the file that its output goes to (NCCL_DEBUG_FILE)`, { file });
  }
  if (communicators.length === 0 && tables.length === 0 && warnings.length === 0) {
    throw new InputError('CONTENT', `${lines.nccl} lines of NCCL, but none of the set-up of a communicator; give the log from its beginning, of a job with NCCL_DEBUG=INFO and INIT among NCCL_DEBUG_SUBSYS`, { file, line: 1 });
  }
}

function refuseNoRank({ communicators }: LogModel, rank: number | undefined): void {
  if (rank === undefined || communicators.some(({ ranks }) => ranks.has(rank))) return;
  throw new InvalidArgumentError('ARGUMENT_RANGE', `no line of a rank ${rank}; the log has ${communicators.map(({ ranks }) => ranks.size).reduce((a, b) => Math.max(a, b), 0)} ranks`);
}

/** A log that ends within a line, before init did, is half a log: what was found in it is printed, but not the last word. */
function refuseHalf(model: LogModel): void {
  const { unfinishedLine, communicators } = model;
  if (unfinishedLine === undefined) return;
  if (!communicators.some(({ ranks }) => [...ranks.values()].some(({ completed }) => completed === undefined))) return;
  const [file, line] = placeText(model, unfinishedLine).split(/:(?=\d+$)/);
  throw new InputError('CONTENT', 'the log ends in the middle of a line, before init was finished: it is half a log; give the whole', { file: file ?? '', line: Number(line) });
}
