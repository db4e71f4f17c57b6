import { counted } from '../counted.js';
import { inFile, InputError, TcclError } from '../errors.js';
import { type Diagnosis, diagnoseJob } from '../planner/log/verdict/diagnosis.js';
import type { LogFinding } from '../planner/log/checks/finding.js';
import type { LogModel } from '../planner/log/job/model.js';
import { NcclLogReader } from '../planner/log/job/read-log.js';
import { classify, encodingOf } from '../planner/readers/classify.js';
import { measuredPairs } from '../view/pairs/pairs.js';
import { pairsPicture } from '../view/pairs/picture.js';
import { bytesOf, HEAD_BYTES, headOf, joined, tooLarge, WHOLE_LIMIT } from './files.js';
import type { OpenFile, ShownFinding, ShownLog, ShownReplay } from './messages.js';

/** Characters that are kept of a line: NCCL's own are shorter. */
const LINE_LIMIT = 65_536;
/** Bytes of a text in which a topology is looked for. */
const TEXT_LIMIT = 32 * 2 ** 20;
/** Bytes between two reports of progress. */
const PROGRESS_STEP = 4 * 2 ** 20;
const MOST_PLACES = 5;
const MOST_COMMUNICATORS = 4;
const MOST_MAPS = 6;
/** Causes at most that are named beside the verdict. */
const MOST_CAUSES = 8;

/**
 * Reads all files of a job, as `tccl diagnose` does; a file that cannot be read does not hide the findings of others.
 *
 * @param isPart true if other files say something, too
 */
export async function readJob(
  files: readonly OpenFile[],
  report: (text: string) => void,
  isPart = files.length > 1,
): Promise<LogModel> {
  const reader = new NcclLogReader();
  for (const { name, blob } of files) {
    reader.openFile(name);
    try {
      await readOne(name, blob, reader, report);
    } catch (error) {
      if (!(error instanceof TcclError) || !isPart) throw error;
    }
  }
  return reader.finish();
}

/** The beginning of a file as text, unpacked: as much as a topology can have. */
export async function textOf({ name, blob }: OpenFile): Promise<string> {
  const pieces: Uint8Array[] = [];
  let length = 0;
  for await (const piece of await bytesOf(blob)) {
    pieces.push(piece);
    length += piece.length;
    if (length > TEXT_LIMIT) break;
  }
  const bytes = joined(pieces);
  if (classify(bytes.subarray(0, HEAD_BYTES)) === 'binary') throw notText(name);
  return new TextDecoder(encodingOf(bytes)).decode(bytes);
}

/** A file line by line, so that a long one is never whole in memory; recordings and dumps as a whole. */
async function readOne(name: string, blob: Blob, reader: NcclLogReader, report: (text: string) => void): Promise<void> {
  const head = await headOf(blob);
  const encoding = encodingOf(head);
  const kind = encoding === 'utf8' ? classify(head) : 'text';
  if (kind === 'binary') throw notText(name);
  const whole: Uint8Array[] = [];
  const decoder = new TextDecoder(encoding);
  let length = 0;
  let reported = 0;
  let rest = '';
  for await (const piece of await bytesOf(blob)) {
    length += piece.length;
    if (length - reported > PROGRESS_STEP) {
      reported = length;
      report(`${name}: ${Math.round(length / 2 ** 20)} MiB read`);
    }
    if (kind !== 'text') {
      if (length > WHOLE_LIMIT) throw tooLarge(name);
      whole.push(piece);
      continue;
    }
    const lines = (rest + decoder.decode(piece, { stream: true })).split('\n');
    rest = (lines.pop() ?? '').slice(0, LINE_LIMIT);
    for (const line of lines) reader.readLine(cleaned(line));
  }
  if (kind !== 'text') inFile(name, () => reader.readWhole(kind, joined(whole)));
  else if (rest !== '') reader.readUnfinishedLine(cleaned(rest));
}

function notText(name: string): InputError {
  return new InputError(
    'CONTENT',
    'is no text (a binary file): a topology (XML), a cluster file (YAML), a log of NCCL or another file about a job is expected',
    { file: name },
  );
}

/** Without its carriage return, and without the zeros of a log that was emptied while it was written. */
function cleaned(line: string): string {
  return line.slice(0, LINE_LIMIT).replace(/^\0+|\r$/g, '');
}

/** A job that was read, with its diagnosis. */
export interface ReadJob {
  readonly model: LogModel;
  readonly diagnosis: Diagnosis;
  readonly log: ShownLog;
}

/** The diagnosis of a job; undefined for files that say nothing about one, such as a cluster file. */
export function diagnosed(model: LogModel): ReadJob | undefined {
  const { lines, tables, hits, recordings, ras, tools, timed, watched } = model;
  const parts = [
    lines.nccl,
    tables.length,
    hits.length,
    recordings.length,
    ras.length,
    tools.length,
    timed.length,
    watched.length,
  ];
  if (parts.every((count) => count === 0)) return undefined;
  const diagnosis = diagnoseJob(model);
  return { model, diagnosis, log: shownLog(model, diagnosis) };
}

function shownLog(model: LogModel, { outcome, findings, verdict, open }: Diagnosis): ShownLog {
  const { lines, tables, recordings, tools, communicators, files, watched } = model;
  // The state of a watched job that moves is more than a report that shows no fault.
  const moving = verdict.causes.length === 0 && watched.length > 0 ? watched : [];
  const isHealthy = moving.length > 0 && moving.every(({ status: { state } }) => state === 'healthy');
  const [first, ...others] =
    moving.length > 0
      ? moving.map(({ status: { why } }, index) => [moving.length > 1 ? `job ${index + 1}` : '', why] as const)
      : likelyCauses(verdict.causes, files);
  return {
    outcome: isHealthy ? 'healthy' : outcome,
    where: first?.[0] ?? '',
    also: others,
    verdict: first?.[1] ?? open?.problem ?? 'nothing wrong found',
    open: open === undefined || moving.length > 0 ? [] : [open.cause, open.command, open.remedy],
    findings: findings.map((finding) => shownFinding(finding, files)),
    ranks: [],
    replay: undefined,
    pairs: measuredPairs(model).slice(0, MOST_MAPS).map(pairsPicture),
    facts: [
      ...(lines.all === 0 ? [] : [`${counted(lines.all, 'line')}, ${lines.nccl} of NCCL`]),
      ...watched.map(({ status: { state, ranks, version, stillMs } }, index) =>
        [
          `job ${index + 1}: ${state}`,
          ...(ranks === undefined ? [] : [counted(ranks, 'rank')]),
          ...(version === undefined ? [] : [`NCCL ${version}`]),
          `last launch seen ${Math.round(stillMs / 1000)} s before the last report`,
        ].join(', '),
      ),
      ...communicators
        .filter(({ isSplit }) => !isSplit)
        .slice(0, MOST_COMMUNICATORS)
        .map(
          ({ nRanks, nNodes, ranks }) =>
            `a communicator of ${counted(nRanks, 'rank')}${nNodes === undefined ? '' : ` on ${counted(nNodes, 'node')}`}, ${ranks.size} of them with lines`,
        ),
      ...tablesText(tables),
      ...(recordings.length === 0 ? [] : [counted(recordings.length, 'flight recording')]),
      ...new Set(tools.map(({ tool }) => `output of ${tool}`)),
    ],
  };
}

/** A log view for traces alone, which say nothing of a fault. */
export const replayOnly: ShownLog = {
  ...{ outcome: 'replayed', where: '', also: [], verdict: '', open: [], findings: [], ranks: [], pairs: [], facts: [] },
  replay: undefined,
};

/** Such a view: its verdict is that of the step, or the reason why there is none. */
export function withReplay(replay: ShownReplay): ShownLog {
  const [first, step] = replay.summary;
  if (step === undefined) return { ...replayOnly, outcome: 'undecided', verdict: first?.[1] ?? '', replay };
  return { ...replayOnly, verdict: step.join(' '), replay };
}

/** Likely causes with the file of each where there are several: files, and parts of one, can be those of several jobs. */
function likelyCauses(causes: readonly LogFinding[], files: readonly string[]): ShownLog['also'] {
  return causes.slice(0, MOST_CAUSES).map(({ problem, places: [place] }) => {
    const file = place === undefined || files.length < 2 ? undefined : files[place.file];
    return [file ?? '', problem] as const;
  });
}

function tablesText(tables: LogModel['tables']): string[] {
  if (tables.length === 0) return [];
  const rows = tables.reduce((sum, table) => sum + table.rows.length, 0);
  return [`${counted(tables.length, 'table')} of nccl-tests with ${counted(rows, 'row')}`];
}

function shownFinding({ severity, problem, cause, remedy, places, quote }: LogFinding, files: readonly string[]): ShownFinding {
  const named = places.slice(0, MOST_PLACES).map(({ file, line }) => `${files[file] ?? ''}:${line}`);
  return {
    severity,
    problem,
    why: cause,
    remedy,
    lines: [...(named.length === 0 ? [] : [named.join(', ')]), ...(quote === undefined ? [] : [quote])],
  };
}
