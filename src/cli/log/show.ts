import { InvalidArgumentError } from '../../errors.js';
import { checkExpected } from '../../planner/expect/logged.js';
import { diagnoseJob } from '../../planner/log/verdict/diagnosis.js';
import type { LogModel } from '../../planner/log/job/model.js';
import { NcclLogReader } from '../../planner/log/job/read-log.js';
import { outcomeCodes } from '../exit-code.js';
import { print, printJson, printNotes, progressLine } from '../output.js';
import { comparePlanned, type ComparisonOptions } from './compare.js';
import { logToJson } from './json.js';
import { printLog, printRank } from './print.js';
import { type Exhibit, readExhibits, refuseUnread } from './read.js';

export interface LogOptions extends ComparisonOptions {
  readonly json?: boolean;
  readonly rank?: string;
}

/** `tccl log`; returns the exit code. */
export async function showLog(names: readonly string[], options: LogOptions): Promise<number> {
  const rank = rankAsked(options.rank);
  const model = await readLogs(names);
  refuseNoRank(model, rank);
  const { findings: differences, sentence } = await comparePlanned(model, options);
  const diagnosis = diagnoseJob(model, [...checkExpected(model), ...differences]);
  if (options.json === true) printJson(logToJson(model, diagnosis, rank));
  else if (rank !== undefined) printRank(model, rank);
  else {
    printLog(model, diagnosis);
    if (sentence !== undefined) print(sentence);
  }
  return outcomeCodes[diagnosis.outcome];
}

/** @throws InputError where no file can be read */
async function readLogs(names: readonly string[]): Promise<LogModel> {
  if (names.filter((name) => name === '-').length > 1)
    throw new InvalidArgumentError('FILE', 'the standard input (-) is given twice; it can be read once');
  const reader = new NcclLogReader();
  const progress = progressLine();
  const exhibits: Exhibit[] = [];
  try {
    for (const name of names) {
      const report = (file: string, bytes: number) => progress.update(`${file}: ${Math.round(bytes / 2 ** 20)} MiB read`);
      exhibits.push(...(await readExhibits(name, reader, report)));
    }
  } finally {
    progress.done();
  }
  refuseUnread(exhibits);
  printNotes(
    exhibits.flatMap(({ file, refused, note }) => {
      if (refused !== undefined) return [`${file} is not read: ${refused}`];
      return note === undefined ? [] : [`${file}: ${note}`];
    }),
  );
  return reader.finish();
}

function rankAsked(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const rank = Number(text);
  if (!/^\d{1,7}$/.test(text))
    throw new InvalidArgumentError('ARGUMENT_RANGE', `--rank '${text}' must be a whole number from 0 on`);
  return rank;
}

function refuseNoRank({ communicators }: LogModel, rank: number | undefined): void {
  if (rank === undefined || communicators.some(({ ranks }) => ranks.has(rank))) return;
  throw new InvalidArgumentError(
    'ARGUMENT_RANGE',
    `no line of a rank ${rank}; the log has ${communicators.map(({ ranks }) => ranks.size).reduce((a, b) => Math.max(a, b), 0)} ranks`,
  );
}
