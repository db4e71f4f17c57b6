import type { LogPlace } from '../lines/line.js';
import type { LoggedProcess, LogModel } from './model.js';
import type { LoggedRun } from './table.js';

/** Findings that show a failed job, regardless of the end of its log. */
const ends = new Set(['fault', 'failure', 'symptom', 'outcome']);

/** True if the log has no sign of a failure: no rule of one, no call that returned an error. */
export function isUntroubled({ hits, warnings, timeouts, deaths }: LogModel): boolean {
  return (
    !hits.some(({ rule }) => ends.has(rule.kind)) &&
    !warnings.some(({ source }) => source === 'returned') &&
    timeouts.length === 0 &&
    deaths.length === 0
  );
}

/** True if all that failed are exceptions and failures after which the streams of their programs go on. */
export function isCaught({ deaths, hits, catchable, timeouts, warnings }: LogModel): boolean {
  return (
    deaths.every(({ wentOn, rule }) => wentOn && (rule === undefined || rule.isCatchable === true)) &&
    timeouts.length === 0 &&
    hits.every(({ rule, count }) => {
      if (!ends.has(rule.kind)) return true;
      const lines = catchable.filter((line) => line.rule === rule);
      // Lines that are not of a program's stream, such as warnings of NCCL, are not among them.
      return rule.isCatchable === true && lines.length === count && lines.every(({ wentOn }) => wentOn);
    }) &&
    !warnings.some(({ source }) => source === 'returned')
  );
}

/** True if all ranks in the log completed init, and it has no sign of a failure. */
export function isInitialised(model: LogModel): boolean {
  if (hasEnded(model)) return true;
  const ranks = model.communicators.flatMap((communicator) => [...communicator.ranks.values()]);
  return (
    ranks.length > 0 &&
    ranks.every(({ completed }) => completed !== undefined) &&
    !model.hits.some(({ rule }) => ends.has(rule.kind)) &&
    model.deaths.length === 0
  );
}

const endings = new WeakMap<LogModel, boolean>();

/**
 * True if everything that was seen to begin was seen to end: each run of nccl-tests printed its summary, and each process with a
 * communicator destroyed it, belongs to such a run, or ended well for its launcher. False where nothing began, and where a
 * failure stands apart from all that: then another job failed, of whose beginning there is no line.
 */
export function hasEnded(model: LogModel): boolean {
  let ended = endings.get(model);
  if (ended === undefined)
    endings.set(
      model,
      (ended = isAllEnded(model) && failuresOf(model).every(isWithinJobs(model)) && crashesOf(model).every(isBeforeJobs(model))),
    );
  return ended;
}

/** Ends of ranks that a launcher reports: a job in which one crashed did not end well, whatever its table says. */
function crashesOf({ deaths }: LogModel): LogPlace[] {
  return deaths
    .filter(
      ({ how, helper, isLauncher }) => how.kind === 'signal' && helper === undefined && !isLauncher && !gentle.has(how.signal),
    )
    .map(({ place }) => place);
}

/** SIGHUP, SIGINT, SIGTERM, with which launchers and users end processes that may end well. */
const gentle: ReadonlySet<number> = new Set([1, 2, 15]);

/** True for a line after which the ranks of its file completed init, or a launcher or program reported success. */
function isBeforeJobs(model: LogModel): (place: LogPlace) => boolean {
  const outlived = isOutlived(model);
  const succeeded = isBeforeSuccess(model);
  return (place) => outlived(place) || succeeded(place);
}

/** True for a line of a run at whose end a launcher or program reported success: an earlier run in the file is another one. */
function isBeforeSuccess({ processes, successes }: LogModel): (place: LogPlace) => boolean {
  const runs = byFile(
    processes
      .filter(({ began }) => began !== undefined)
      .map(({ first, last }) => ({ file: first.file, from: first.line, to: first.file === last.file ? last.line : Infinity })),
  );
  const spans = byFile(
    successes.map(({ file, line }) => {
      const before = (runs.get(file) ?? []).filter(({ from }) => from < line);
      return { file, from: before.length < 2 ? 0 : (before.at(-1)?.from ?? 0), to: line };
    }),
  );
  return isIn(spans);
}

/**
 * True for a line that ranks of its run outlived: all ranks in its file completed init, and a process that had begun before the
 * line did so after it, or none had begun. A run that began later says nothing about the one before it.
 */
export function isOutlived(model: LogModel): (place: LogPlace) => boolean {
  const ready = readyLines(model);
  const inits = byFile(
    model.communicators.flatMap(({ ranks }) =>
      [...ranks.values()].flatMap(({ process: { first }, completed }) =>
        completed === undefined
          ? []
          : [{ file: completed.file, from: first.file === completed.file ? first.line : 0, to: completed.line }],
      ),
    ),
  );
  const isWithin = isIn(inits);
  return (place) => {
    const { file, line } = place;
    if (line >= (ready.get(file) ?? 0)) return false;
    return isWithin(place) || line < (inits.get(file)?.[0]?.from ?? 0);
  };
}

/** Lines that tell of a failed job, also where they do not say why. */
function failuresOf({ hits, timeouts, deaths }: LogModel): LogPlace[] {
  const told = hits.filter(({ rule }) => rule.isSilent !== true && (rule.kind === 'symptom' || rule.kind === 'outcome'));
  return [
    ...told.flatMap(({ matches, lastLines }) => [
      ...matches.map(({ place }) => place),
      ...[...lastLines].map(([file, line]) => ({ file, line })),
    ]),
    ...[...timeouts, ...deaths].map(({ place }) => place),
  ];
}

/** True for a line between the first and the last one of a run, process or launcher, or before ranks completed init. */
function isWithinJobs(model: LogModel): (place: LogPlace) => boolean {
  const spans: (Span & { readonly file: number })[] = [];
  const add = (file: number, from: number, to: number) => spans.push({ file, from, to });
  for (const { started, ended, last } of model.runs) add(started.file, started.line, (ended ?? last).line);
  for (const { began, first, last } of model.processes) {
    if (began === undefined) continue;
    add(first.file, first.line, first.file === last.file ? last.line : Infinity);
    if (first.file !== last.file) add(last.file, 0, last.line);
  }
  const isWithin = isIn(byFile(spans));
  const isBefore = isBeforeJobs(model);
  return (place) => isWithin(place) || isBefore(place);
}

/** Lines of a file. */
interface Span {
  readonly from: number;
  to: number;
}

/** Spans by file, in their order. */
function byFile(spans: readonly (Span & { readonly file: number })[]): ReadonlyMap<number, readonly Span[]> {
  const files = new Map<number, Span[]>();
  for (const { file, from, to } of spans) {
    const known = files.get(file);
    if (known === undefined) files.set(file, [{ from, to }]);
    else known.push({ from, to });
  }
  return new Map([...files].map(([file, each]) => [file, joined(each)]));
}

function isIn(spans: ReadonlyMap<number, readonly Span[]>): (place: LogPlace) => boolean {
  return ({ file, line }) => (spans.get(file) ?? []).some(({ from, to }) => from <= line && line <= to);
}

/** Spans that overlap as one: a file may have those of thousands of processes. */
function joined(spans: readonly Span[]): Span[] {
  const result: Span[] = [];
  for (const { from, to } of [...spans].sort((a, b) => a.from - b.from)) {
    const last = result.at(-1);
    if (last !== undefined && from <= last.to) last.to = Math.max(last.to, to);
    else result.push({ from, to });
  }
  return result;
}

function isAllEnded(model: LogModel): boolean {
  const { runs, processes } = model;
  const succeeded = isBeforeSuccess(model);
  const begun = processes.filter(({ began }) => began !== undefined);
  if (runs.length + begun.length === 0) return false;
  return (
    runs.every(({ ended, failed }) => ended !== undefined && failed === undefined) &&
    begun.every(
      (process) =>
        process.ended !== undefined ||
        lostItsEnd(process, model) ||
        runs.some((run) => isOf(process, run)) ||
        runOf(process, runs)?.ended !== undefined ||
        succeeded(process.last),
    )
  );
}

/** True if lines of its host are cut, and another rank of a communicator of it was seen to end. */
function lostItsEnd(process: LoggedProcess, { communicators, cutLines }: LogModel): boolean {
  if (!cutLines.has(process.host) && !cutLines.has('')) return false;
  return communicators.some(({ ranks }) => {
    const records = [...ranks.values()];
    return records.some((record) => record.process === process) && records.some((record) => record.process.ended !== undefined);
  });
}

/** True if the head of the run lists the process; nccl-tests cuts the host's name at its first dot. */
function isOf({ host, pid }: LoggedProcess, { processes }: LoggedRun): boolean {
  return processes.has(`${host} ${pid}`) || processes.has(`${host.split('.', 1)[0] ?? ''} ${pid}`);
}

/** The first run of the process's file that ends after its first line. */
function runOf({ first }: LoggedProcess, runs: readonly LoggedRun[]): LoggedRun | undefined {
  return runs.find(({ last }) => last.file === first.file && last.line > first.line);
}

/** True if every communicator is known to be on one host. */
export function isOnOneHost({ communicators }: LogModel): boolean {
  return (
    communicators.length > 0 &&
    communicators.every(({ nNodes, nRanks, nRanksKnown, ranks }) => {
      if (nNodes !== undefined) return nNodes === 1;
      return nRanksKnown && ranks.size === nRanks && new Set([...ranks.values()].map(({ process }) => process.host)).size === 1;
    })
  );
}

/**
 * By file, the last line in which a rank completed init, where all ranks with lines in the file did: what stands before it did
 * not stop init.
 */
function readyLines({ communicators }: LogModel): ReadonlyMap<number, number> {
  const ready = new Map<number, number>();
  const open = new Set<number>();
  for (const { ranks } of communicators)
    for (const { completed, last } of ranks.values()) {
      if (completed === undefined) open.add(last.file);
      else ready.set(completed.file, Math.max(completed.line, ready.get(completed.file) ?? 0));
    }
  for (const file of open) ready.delete(file);
  return ready;
}
