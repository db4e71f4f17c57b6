import { checkExpected } from '../../planner/expect/logged.js';
import { diagnoseJob } from '../../planner/log/verdict/diagnosis.js';
import { namedRanks } from '../../planner/log/checks/finding.js';
import type { LogModel } from '../../planner/log/job/model.js';
import { NcclLogReader } from '../../planner/log/job/read-log.js';
import { outcomeCodes } from '../exit-code.js';
import { logToJson } from '../log/json.js';
import { printJob, printVerdict } from '../log/print.js';
import { type Exhibit, isProse, readExhibits, refuseUnread } from '../log/read.js';
import { colorsFor, print, printJson, progressLine } from '../output.js';
import { filesOf } from './files.js';

/** `tccl diagnose`; returns the exit code. */
export async function showDiagnosis(paths: readonly string[], { json }: { readonly json?: boolean }): Promise<number> {
  const reader = new NcclLogReader();
  const exhibits: Exhibit[] = [];
  const files = filesOf(paths);
  const skipsProse = files.some(({ path }) => !isProse(path));
  const progress = progressLine();
  try {
    for (const [index, { path, refused }] of files.entries()) {
      if (refused !== undefined) {
        exhibits.push({ file: path, kind: 'unreadable', refused });
        continue;
      }
      progress.update(`${index + 1}/${files.length} ${path}`);
      const report = (name: string, bytes: number) => progress.update(`${name}: ${Math.round(bytes / 2 ** 20)} MiB read`);
      exhibits.push(...(await readExhibits(path, reader, report, skipsProse)));
    }
  } finally {
    progress.done();
  }
  refuseUnread(exhibits);
  const model = reader.finish();
  const diagnosis = diagnoseJob(model, checkExpected(model));
  if (json === true) printJson({ exhibits, ...logToJson(model, diagnosis, undefined) });
  else {
    const paint = colorsFor(process.stdout);
    printVerdict(model, diagnosis, paint);
    if (model.lines.nccl > 0 || model.tables.length > 0) printJob(model, paint);
    print(...exhibitLines(exhibits, model));
  }
  return outcomeCodes[diagnosis.outcome];
}

const SHOWN_REFUSALS = 10;

/** `8 × flight recording (ranks 0-7), 2 × text`, and each file that was not read, or not whole. */
export function exhibitLines(exhibits: readonly Exhibit[], { recordings, tools }: LogModel): string[] {
  const counts = new Map<string, number>();
  for (const { kind, refused } of exhibits) if (refused === undefined) counts.set(kind, (counts.get(kind) ?? 0) + 1);
  const outputs = [...new Set(tools.map(({ tool }) => tool))].join(', ');
  const ranks = recordings.flatMap(({ rank }) => (rank < 0 ? [] : [rank]));
  const ofRanks = ranks.length === 0 ? '' : ` (${namedRanks(ranks)})`;
  const read = [...counts]
    .map(
      ([kind, count]) =>
        `${count} × ${kind}${kind === 'flight recording' ? ofRanks : kind === 'text' && outputs !== '' ? ` (${outputs})` : ''}`,
    )
    .join(', ');
  const refused = exhibits.filter((exhibit) => exhibit.refused !== undefined);
  return [
    `Read: ${read}`,
    ...exhibits.flatMap(({ file, note }) => (note === undefined ? [] : [`Not whole: ${file}: ${note}`])).slice(0, SHOWN_REFUSALS),
    ...refused.slice(0, SHOWN_REFUSALS).map(({ file, refused: reason }) => `Not read: ${file}: ${reason ?? ''}`),
    ...(refused.length > SHOWN_REFUSALS ? [`and ${refused.length - SHOWN_REFUSALS} more`] : []),
  ];
}
