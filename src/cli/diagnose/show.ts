import { inFile, InputError, TcclError } from '../../errors.js';
import { checkLog } from '../../planner/log/check-log.js';
import { type LogFinding, namedRanks } from '../../planner/log/finding.js';
import type { LogPlace } from '../../planner/log/line.js';
import { NcclLogReader } from '../../planner/log/read-log.js';
import { sortFindings, verdictOf } from '../../planner/log/verdict.js';
import { checkFlight } from '../../planner/log/diagnostics/check-flight.js';
import { classify, type DiagnosticKind } from '../../planner/log/diagnostics/classify.js';
import { type FlightRecording, isFlightRecording, readFlightRecording } from '../../planner/log/diagnostics/flight.js';
import { parseJson } from '../../planner/log/diagnostics/json.js';
import { plainValue, readPickle } from '../../planner/log/diagnostics/pickle.js';
import { checkRasJson, isRasJson, RasText } from '../../planner/log/diagnostics/ras.js';
import { checkTimelines, readInspector, readTrace, type TimedCall } from '../../planner/log/diagnostics/timeline.js';
import { checkNvlink, checkPorts, checkTopoMatrix, type ToolLine } from '../../planner/log/diagnostics/tools.js';
import { loggedTopology } from '../../planner/log/logged-topology.js';
import { diagnose } from '../../planner/topology/doctor/diagnose.js';
import { parseXml } from '../../planner/topology/xml/parse.js';
import type { XmlElement } from '../../planner/topology/xml/tree.js';
import { logToJson } from '../log/json.js';
import { printJob, printVerdict } from '../log/print.js';
import { readFile } from '../log/read.js';
import { colorsFor, print, printJson } from '../output.js';
import { filesOf, headOf, whole } from './files.js';

/** Files that are compared with each other: topologies with graphs, calls with their times. */
interface Shapes {
  readonly topologies: XmlElement[];
  readonly timed: TimedCall[];
  readonly traces: FlightRecording[];
  readonly graphs: { readonly root: XmlElement; readonly fileName: string; readonly place: LogPlace }[];
}

/** Kind of a file. */
interface Exhibit {
  readonly file: string;
  readonly kind: string;
}

/** `tccl diagnose`; returns the exit code. */
export async function showDiagnosis(paths: readonly string[], { json }: { readonly json?: boolean }): Promise<number> {
  const files = filesOf(paths);
  const reader = new NcclLogReader();
  const recordings: FlightRecording[] = [];
  const found: LogFinding[] = [];
  const exhibits: Exhibit[] = [];
  const shapes: Shapes = { topologies: [], graphs: [], timed: [], traces: [] };
  for (const [index, file] of files.entries()) {
    reader.openFile(file);
    exhibits.push({ file, kind: await readExhibit(file, { file: index, line: 1 }, reader, recordings, found, shapes) });
  }
  const model = reader.finish();
  const logged = model.machines.flatMap((machine) => loggedTopology(machine) ?? []);
  found.push(...graphFindings(shapes.graphs, [...shapes.topologies, ...logged]));
  if (exhibits.every(({ kind }) => kind.startsWith('not read')))
    throw new InputError(
      'CONTENT',
      `nothing can be read: ${exhibits
        .map(({ file, kind }) => `${file} ${kind}`)
        .slice(0, 3)
        .join('; ')}`,
    );
  const findings = sortFindings([
    ...checkLog(model),
    ...checkFlight([...recordings, ...joined(shapes.traces)]),
    ...checkTimelines(shapes.timed),
    ...found,
  ]);
  if (json === true) printJson({ exhibits, ...logToJson(model, findings, undefined) });
  else {
    const paint = colorsFor(process.stdout);
    printVerdict(model, verdictOf(findings), paint);
    if (model.lines.nccl > 0 || model.tables.length > 0) printJob(model, paint);
    print(...exhibitLines(exhibits, recordings));
  }
  return findings.some(({ severity }) => severity !== 'info') ? 1 : 0;
}

/** Reads a file by its kind, and returns the kind. */
async function readExhibit(
  file: string,
  place: LogPlace,
  reader: NcclLogReader,
  recordings: FlightRecording[],
  found: LogFinding[],
  shapes: Shapes,
): Promise<string> {
  try {
    const kind = classify(headOf(file));
    if (kind === 'log') {
      await readFile(file, reader, () => {
        /* no progress: many files */
      });
      return 'log';
    }
    if (kind === 'other') return 'not read: binary';
    return inFile(file, () => readWhole(kind, file, place, reader, recordings, found, shapes));
  } catch (error) {
    // A broken file must not hide the findings of others.
    if (error instanceof TcclError) return `not read: ${error.message}`;
    throw error;
  }
}

function readWhole(
  kind: DiagnosticKind,
  file: string,
  place: LogPlace,
  reader: NcclLogReader,
  recordings: FlightRecording[],
  found: LogFinding[],
  shapes: Shapes,
): string {
  const bytes = whole(file);
  if (kind === 'pickle') return readValue(plainValue(readPickle(bytes)), file, place, recordings, found);
  const text = new TextDecoder().decode(bytes);
  if (kind === 'json') return readValue(parseJson(text), file, place, recordings, found);
  if (kind === 'inspector' || kind === 'trace') {
    const { timed, recordings: told } = (kind === 'trace' ? readTrace : readInspector)(text, place.file);
    for (const call of timed) shapes.timed.push(call);
    shapes.traces.push(...told);
    return kind;
  }
  if (kind === 'topology') return readTopology(text, { file, place }, found, shapes);
  const lines = text
    .split(/\r?\n/)
    .map((line, index): ToolLine => ({ text: line, place: { file: place.file, line: index + 1 } }));
  // A file may contain the outputs of several tools, and lines of the job.
  const ras = new RasText();
  for (const line of lines) {
    ras.read(line.text, line.place);
    reader.readLine(line.text);
  }
  found.push(...ras.finish(), ...checkTopoMatrix(lines), ...checkNvlink(lines), ...checkPorts(lines));
  return kind;
}

function readValue(value: unknown, file: string, place: LogPlace, recordings: FlightRecording[], found: LogFinding[]): string {
  if (isFlightRecording(value)) {
    const recording = readFlightRecording(value, file, place);
    recordings.push(recording);
    return 'flight recording';
  }
  if (isRasJson(value)) {
    found.push(...checkRasJson(value, place));
    return 'ras';
  }
  if (isTestResults(value)) return 'not read: results of nccl-tests; tccl expect CLUSTER FILE compares them with a prediction';
  return 'not read: no recording that tccl knows';
}

/** JSON of nccl-tests (-J). */
function isTestResults(value: unknown): boolean {
  return typeof value === 'object' && value !== null && 'results' in value && Array.isArray(value.results);
}

/** The doctor's findings in the form of findings of logs. */
function readTopology(
  text: string,
  { file, place }: { readonly file: string; readonly place: LogPlace },
  found: LogFinding[],
  shapes: Shapes,
): string {
  const { root, notes } = parseXml(text);
  if (root.name !== 'system') {
    shapes.graphs.push({ root, fileName: file, place });
    return 'graph file';
  }
  shapes.topologies.push(root);
  for (const {
    code,
    severity,
    problem,
    consequence,
    remedy,
    places: [first],
  } of diagnose(root, { notes })) {
    found.push({
      code: `topology-${code}`,
      severity,
      kind: severity === 'error' ? 'failure' : severity === 'warning' ? 'risk' : 'note',
      problem,
      cause: consequence,
      remedy,
      places: [{ file: place.file, line: first?.line ?? 1 }],
    });
  }
  return 'topology';
}

/** One recording a rank: a trace of several hosts, or of several communicators, has parts in several files. */
function joined(recordings: readonly FlightRecording[]): FlightRecording[] {
  const byRank = new Map<number, FlightRecording>();
  for (const recording of recordings) {
    const known = byRank.get(recording.rank);
    byRank.set(recording.rank, known === undefined ? recording : { ...known, calls: [...known.calls, ...recording.calls] });
  }
  return [...byRank.values()];
}

/** Graph files that name GPUs which none of the machines has: those of topology files, and those that logs print. */
function graphFindings(graphs: Shapes['graphs'], machines: readonly XmlElement[]): LogFinding[] {
  return graphs.flatMap(({ root: graph, fileName, place }) => {
    const each = machines.map((root) =>
      diagnose(root, { graph: { root: graph, fileName } }).filter(({ code }) => code.startsWith('graph-')),
    );
    if (each.some((findings) => findings.length === 0)) return [];
    return (each[0] ?? []).map(({ code, severity, problem, consequence, remedy }) => ({
      code: `topology-${code}`,
      severity,
      kind: 'risk' as const,
      problem: `${fileName}: ${problem}`,
      cause: consequence,
      remedy,
      places: [place],
    }));
  });
}

/** `8 flight recordings (ranks 0-7), 2 logs, 1 ports`, and each file that was not read. */
function exhibitLines(exhibits: readonly Exhibit[], recordings: readonly FlightRecording[]): string[] {
  const counts = new Map<string, number>();
  for (const { kind } of exhibits) if (!kind.startsWith('not read')) counts.set(kind, (counts.get(kind) ?? 0) + 1);
  const read = [...counts]
    .map(
      ([kind, count]) =>
        `${count} × ${kind}${kind === 'flight recording' ? ` (${namedRanks(recordings.map(({ rank }) => rank))})` : ''}`,
    )
    .join(', ');
  return [
    `Read: ${read}`,
    ...exhibits
      .filter(({ kind }) => kind.startsWith('not read'))
      .slice(0, 10)
      .map(({ file, kind }) => `${file} ${kind}`),
  ];
}
