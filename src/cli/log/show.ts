import { InputError, InvalidArgumentError } from '../../errors.js';
import { checkLog } from '../../planner/log/check-log.js';
import type { LogFinding } from '../../planner/log/finding.js';
import type { LogModel } from '../../planner/log/model.js';
import { sortFindings } from '../../planner/log/verdict.js';
import { print, printJson } from '../output.js';
import { comparePlanned, type ComparisonOptions } from './compare.js';
import { logToJson } from './json.js';
import { printLog, printRank } from './print.js';
import { readLogs } from './read.js';

export interface LogOptions extends ComparisonOptions {
  readonly json?: boolean;
  readonly rank?: string;
}

/** `tccl log`; returns the exit code. */
export async function showLog(names: readonly string[], options: LogOptions): Promise<number> {
  const rank = rankAsked(options.rank);
  const model = await readLogs(names);
  refuseNoLog(model);
  refuseNoRank(model, rank);
  const { findings: differences, sentence } = await comparePlanned(model, options);
  const findings: LogFinding[] = sortFindings([...checkLog(model), ...differences]);
  if (options.json === true) printJson(logToJson(model, findings, rank));
  else if (rank !== undefined) printRank(model, rank);
  else {
    printLog(model, findings);
    if (sentence !== undefined) print(sentence);
  }
  return findings.some(({ severity }) => severity !== 'info') ? 1 : 0;
}

function rankAsked(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const rank = Number(text);
  if (!/^\d{1,7}$/.test(text))
    throw new InvalidArgumentError('ARGUMENT_RANGE', `--rank '${text}' must be a whole number from 0 on`);
  return rank;
}

function refuseNoLog({ files, lines, tables, hits }: LogModel): void {
  if (lines.nccl > 0 || tables.length > 0 || hits.length > 0) return;
  throw new InputError(
    'CONTENT',
    lines.all === 0
      ? 'is empty; run the job with NCCL_DEBUG=INFO'
      : `there is no line of NCCL among ${lines.all}, and none of PyTorch, a launcher or the kernel that reports an error; run the job with NCCL_DEBUG=INFO, and give the file that its output goes to (NCCL_DEBUG_FILE)`,
    { file: files.join(', ') },
  );
}

function refuseNoRank({ communicators }: LogModel, rank: number | undefined): void {
  if (rank === undefined || communicators.some(({ ranks }) => ranks.has(rank))) return;
  throw new InvalidArgumentError(
    'ARGUMENT_RANGE',
    `no line of a rank ${rank}; the log has ${communicators.map(({ ranks }) => ranks.size).reduce((a, b) => Math.max(a, b), 0)} ranks`,
  );
}
