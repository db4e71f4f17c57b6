import { counted } from '../../counted.js';
import { inFile, InputError, InvalidArgumentError } from '../../errors.js';
import { refuseContradictions } from '../../planner/graph/merge/contradictions.js';
import {
  environmentOf,
  errorOf,
  type ExpectedRow,
  type ExpectedTable,
  expectTable,
  comparedRows,
  isLate,
  isOfAnother,
  isTooFast,
  percent,
  ranked,
  type TriedHypothesis,
  tryHypothesis,
} from '../../planner/expect/expect.js';
import { hypothesesFor } from '../../planner/expect/hypotheses.js';
import type { Results } from '../../planner/expect/measured.js';
import { wouldTell } from '../../planner/expect/would-tell.js';
import { unmeasuredText } from '../../planner/simulate/unmeasured.js';
import { readResults } from '../../planner/expect/results.js';
import type { ChangeableCluster } from '../../planner/plan/changed-cluster.js';
import { prepareCluster } from '../../planner/plan/cluster.js';
import { formatBytes, formatRate, formatTime } from '../../planner/plan/overview/format.js';
import { simulatorOf } from '../../planner/plan/prediction.js';
import { gpuModels } from '../../planner/topology/catalogue/gpus.js';
import { type ClusterInput, readCluster, rootsOf } from '../cluster-input.js';
import { outcomeCodes } from '../exit-code.js';
import { type Colors, colorsFor, print, printJson, printNotes, progressLine } from '../output.js';
import { readOneFile } from '../topo/input.js';
import { clusterOptionsOf, type ExpectOptions } from './options.js';

/** Findings about the results, for text and JSON. */
interface Found {
  readonly input: ClusterInput;
  readonly tables: readonly ExpectedTable[];
  /** Rows that measure the launch by PyTorch; they are not compared. */
  readonly tooShort: number;
  readonly isSlow: boolean;
  /** True if the results are slower than expected, but by no more than the prediction may be wrong. */
  readonly isUndecided: boolean;
  /** True if the results are of another cluster. */
  readonly tooFast: boolean;
  /** Measurements that would decide; none but for undecided results. */
  readonly wouldTell: readonly string[];
  /** The best first. */
  readonly explanations: readonly TriedHypothesis[];
  readonly error: number;
  readonly nTried: number;
  readonly nLeft: number;
}

/** `tccl expect`. @returns the exit code: 1 for slow results, 3 where it cannot tell */
export async function showExpected(name: string, resultsName: string, options: ExpectOptions): Promise<number> {
  const limit = Number(options.seconds);
  if (!(limit > 0)) throw new InvalidArgumentError('ARGUMENT_RANGE', `--seconds '${options.seconds}' must be a number above 0`);
  if (name === '-' && resultsName === '-')
    throw new InvalidArgumentError('FILE', 'the standard input (-) is given twice; it can be read once');
  const file = readOneFile(resultsName, 'what nccl-tests printed, or the JSON that it wrote (-J)');
  const all = inFile(file.fileName, () => readResults(file.text, options.collective));
  const { clusterOptions, notes } = clusterOptionsOf(all, options);
  const input = await readCluster([name], clusterOptions);
  refuseContradictions(input.parameters);
  const { results, others } = ofCluster(all, input);
  for (const each of results) inFile(file.fileName, () => refuseOther(each, input));
  const found = inFile(input.fileName, () => compare(input, results, limit));
  if (options.json === true) printJson(jsonOf(found, results));
  else print(...lines(found, results));
  const { tooShort } = found;
  printNotes([
    ...notes,
    ...(others === 0
      ? []
      : [`${counted(others, 'table')} of other numbers of ranks ${others === 1 ? 'is' : 'are'} not compared`]),
    ...(tooShort === 0
      ? []
      : [
          `${counted(tooShort, 'row')} ${tooShort === 1 ? 'is' : 'are'} not compared: PyTorch's launch is a part of such short times`,
        ]),
    ...input.notes,
  ]);
  return outcomeCodes[found.isSlow ? 'fault' : found.isUndecided ? 'undecided' : 'healthy'];
}

/** A sweep over numbers of ranks holds tables of other clusters, too: without these, and their number. */
function ofCluster(all: readonly Results[], input: ClusterInput): { results: readonly Results[]; others: number } {
  const planned = ranksOf(input);
  const results = all.filter(({ nRanks }) => nRanks === undefined || nRanks === planned);
  return results.length === 0 ? { results: all, others: 0 } : { results, others: all.length - results.length };
}

function ranksOf({ cluster, machines }: ClusterInput): number {
  const sizes = new Map(machines.map(({ system }) => [system as object, system.gpus.length]));
  return cluster.hosts.reduce((sum, { machine, count }) => sum + count * (sizes.get(machine) ?? 0), 0);
}

/** @throws InputError where the results are of another machine than the cluster */
function refuseOther({ nRanks, hosts, run, rows }: Results, input: ClusterInput): void {
  const { title, cluster, machines } = input;
  const where = rows[0] === undefined ? '' : ` (${rows[0].place})`;
  const nHosts = cluster.hosts.reduce((sum, { count }) => sum + count, 0);
  const planned = ranksOf(input);
  const measured = [
    ...(nRanks === undefined ? [] : [counted(nRanks, 'rank')]),
    ...(hosts.length === 0 ? [] : [counted(hosts.length, 'host')]),
  ].join(' on ');
  if ((nRanks !== undefined && nRanks !== planned) || (hosts.length > 0 && hosts.length < 64 && hosts.length !== nHosts))
    throw new InputError(
      'CONTENT',
      `the results${where} are of ${measured}; ${title} has ${counted(planned, 'rank')} on ${counted(nHosts, 'host')}: give the cluster that was measured (--nodes, or a cluster file with overrides: { gpus: … })`,
    );
  const generations = new Set(machines.flatMap(({ system }) => system.gpus.map(({ sm }) => sm)));
  for (const gpu of run.gpus) {
    const model = gpuModelNamed(gpu);
    if (model !== undefined && !generations.has(model.sm))
      throw new InputError(
        'CONTENT',
        `the results${where} are of ${gpu} (sm ${model.sm}); the GPUs of ${title} are sm ${[...generations].join(', ')}`,
      );
  }
}

/** The model of a driver's name of a GPU: `NVIDIA H100 80GB HBM3`. */
function gpuModelNamed(name: string) {
  const words = new Set(name.toLowerCase().split(/[^a-z0-9]+/));
  return gpuModels.find(({ id, aliases }) => [id.replace(/-.*$/, ''), ...aliases].some((each) => words.has(each)));
}

function compare(input: ClusterInput, results: readonly Results[], seconds: number): Found {
  const { cluster, parameters, environment, given, machines, simulated } = input;
  const prepared = prepareCluster(cluster, parameters, given);
  const simulator = simulatorOf(prepared, parameters);
  const long = results.map(({ rows, shortestUs = 0, ...rest }) => ({
    ...rest,
    rows: rows.filter(({ timeUs }) => timeUs >= shortestUs),
  }));
  const tooShort = rowsOf(results) - rowsOf(long);
  const tables = long.map((each) => expectTable(each, simulator, environmentOf(each, simulated)));
  const isSlow = tables.some((table) => table.isSlow);
  const isUndecided = !isSlow && tables.some((table) => table.isUndecided);
  const error = errorOf(tables);
  const found = { input, tables, tooShort, isSlow, isUndecided, tooFast: false, wouldTell: [], explanations: [], error };
  if (!isSlow && !isUndecided) return { ...found, tooFast: tables.some(isOfAnother), nTried: 0, nLeft: 0 };
  const roots = rootsOf({ machines });
  const changeable: ChangeableCluster = { cluster, roots, parameters, environment, ...given };
  const nHosts = cluster.hosts.reduce((sum, { count }) => sum + count, 0);
  const hypotheses = hypothesesFor([...roots.values()], nHosts);
  const line = progressLine();
  const end = performance.now() + 1000 * seconds;
  const tried: TriedHypothesis[] = [];
  try {
    for (const [index, hypothesis] of hypotheses.entries()) {
      if (performance.now() > end) break;
      line.update(`${index + 1}/${hypotheses.length} trying explanations …`);
      tried.push(tryHypothesis(changeable, tables, hypothesis));
    }
  } finally {
    line.done();
  }
  return {
    ...found,
    wouldTell: isUndecided ? wouldTell(nHosts, tables[0]?.environment.network ?? 'verbs') : [],
    explanations: ranked(tried, error),
    nTried: tried.length,
    nLeft: hypotheses.length - tried.length,
  };
}

const rowsOf = (results: readonly Results[]) => results.reduce((sum, { rows }) => sum + rows.length, 0);

const launchWords = { queued: 'one process', single: 'one process, each on an empty stream', graph: 'a CUDA graph' } as const;

function lines(found: Found, results: readonly Results[]): string[] {
  const { input, tables } = found;
  const paint = colorsFor(process.stdout);
  const launch = tables[0]?.environment.launch ?? 'queued';
  const unmeasured = unmeasuredText(tables.flatMap((table) => table.unmeasured));
  return [
    `${paint.bold(input.title)}  NCCL ${input.parameters.ncclVersion}, calls of ${launchWords[launch]}`,
    ...tables.flatMap((table) => ['', ...tableLines(table, paint)]),
    ...(unmeasured === undefined ? [] : [paint.dim(unmeasured)]),
    '',
    ...verdictLines(found, results, paint),
  ];
}

function tableLines({ collective, rows }: ExpectedTable, paint: Colors): string[] {
  const heads = ['size', 'measured', 'expected', '10 % to 90 %', 'busbw', 'expected', ''];
  const cells = rows.map((row) => [
    formatBytes(row.bytes),
    formatTime(row.timeUs),
    formatTime(row.expectedUs),
    `${formatTime(row.leastUs)} to ${formatTime(row.mostUs)}`,
    formatRate(row.busGBps),
    formatRate(row.expectedGBps),
    verdictText(row),
  ]);
  const widths = heads.map((head, column) => Math.max(head.length, ...cells.map((row) => row[column]?.length ?? 0)));
  const line = (row: readonly string[], last: string) =>
    `${row
      .slice(0, -1)
      .map((cell, column) => cell.padStart(widths[column] ?? 0))
      .join('  ')}  ${last}`.trimEnd();
  return [
    paint.bold(collective),
    paint.dim(line(heads, '')),
    ...cells.map((row, index) => {
      const text = row.at(-1) ?? '';
      const verdict = rows[index]?.verdict;
      return line(row, verdict === 'slow' ? paint.red(text) : verdict === 'undecided' ? paint.yellow(text) : text);
    }),
  ];
}

function verdictText({ verdict, timeUs, expectedUs }: ExpectedRow): string {
  if (verdict === 'expected') return 'as expected';
  const word = { slow: 'slow', undecided: 'unsure', fast: 'faster' }[verdict];
  return `${word}: ${(timeUs / expectedUs).toFixed(2)} x the time`;
}

/** Number of explanations that are shown. */
const MOST_SHOWN = 5;

function verdictLines(found: Found, results: readonly Results[], paint: Colors): string[] {
  const { tables, isSlow, isUndecided } = found;
  const rows = tables.flatMap((table) => table.rows);
  const late = rows.filter(isLate);
  if (found.tooFast) {
    return [
      `${paint.yellow('Too fast')}: ${ratiosText(rows.filter(isTooFast), rows.length)}`,
      'The run had more than this cluster, or not these variables: compare its NICs, GPUs and environment with the cluster’s.',
    ];
  }
  if (isSlow) return [`${paint.red('Slow')}: ${ratiosText(late, rows.length)}`, '', ...explanationLines(found, results, paint)];
  if (isUndecided)
    return [
      `${paint.yellow('Cannot tell')}: ${ratiosText(late, rows.length)}`,
      tables.some(({ unmeasured }) => unmeasured.length > 0)
        ? 'A healthy cluster may take as long, where predictions rest on no measurement.'
        : 'Of ten healthy clusters one takes as long.',
      '',
      paint.bold('What would tell:'),
      ...found.wouldTell.map((each) => `  - ${each}`),
      '',
      ...explanationLines(found, results, paint),
    ];
  return [
    `${paint.green('As expected')}: ${rows.length - late.length} of ${counted(rows.length, 'row')}${late.length === 0 ? '' : `; slower at ${tables.flatMap(lateSizes).join(', ')}: measure again`}.`,
  ];
}

function explanationLines(
  { tables, isUndecided, explanations, error, nTried, nLeft }: Found,
  results: readonly Results[],
  paint: Colors,
): string[] {
  const compared = tables.flatMap((table) => comparedRows(table)).filter(isLate).length;
  const said = results[0]?.variables ?? {};
  const listed = explanations.slice(0, MOST_SHOWN);
  const heading = isUndecided ? 'If it is a fault, these would explain it' : 'What would explain it';
  return [
    listed.length === 0
      ? `None of ${counted(nTried, 'explanation')} that ${nTried === 1 ? 'was' : 'were'} simulated brings the times near (error ${percent(error)}).`
      : paint.bold(`${heading}, best first (now the times are off by ${percent(error)}):`),
    ...listed.flatMap(({ hypothesis, error: then, explained }, index) => [
      `  ${index + 1}. ${hypothesis.what}`,
      `     off by ${percent(then)}; ${explained} of ${compared} slow rows would be as expected`,
      `     check: ${hypothesis.check}`,
    ]),
    ...(Object.keys(said).length === 0
      ? []
      : [
          `The run had ${Object.entries(said)
            .map(([key, value]) => `${key}=${value}`)
            .join(' ')}.`,
        ]),
    ...(nLeft === 0 ? [] : [`${counted(nLeft, 'explanation')} not tried, for lack of time (--seconds).`]),
  ];
}

/** Sizes of the slow and undecided rows, those in succession as `256 KiB to 4 MiB`. */
function lateSizes({ rows }: ExpectedTable): string[] {
  const ranges: { first: number; last: number }[] = [];
  rows.forEach((row, index) => {
    const range = ranges.at(-1);
    if (!isLate(row)) return;
    if (range?.last === index - 1) range.last = index;
    else ranges.push({ first: index, last: index });
  });
  const size = (index: number) => formatBytes(rows[index]?.bytes ?? 0);
  return ranges.map(({ first, last }) => (first === last ? size(first) : `${size(first)} to ${size(last)}`));
}

/** Number of the rows that deviate, and by what. */
function ratiosText(some: readonly ExpectedRow[], nRows: number): string {
  const ratios = some.map(({ timeUs, expectedUs }) => timeUs / expectedUs);
  return `${some.length} of ${counted(nRows, 'row')}, ${Math.min(...ratios).toFixed(2)} to ${Math.max(...ratios).toFixed(2)} times as long as expected.`;
}

function jsonOf(
  { input, tables, isSlow, isUndecided, tooFast, wouldTell: telling, explanations, error, nTried, nLeft }: Found,
  results: readonly Results[],
) {
  return {
    format: 'tccl expect',
    formatVersion: 1,
    title: input.title,
    nccl: input.parameters.ncclVersion,
    variables: results[0]?.variables ?? {},
    slow: isSlow,
    undecided: isUndecided,
    tooFast,
    wouldTell: telling,
    tables: tables.map(({ collective, environment, rows, unmeasured, isSlow: slow, isUndecided: undecided }) => ({
      collective,
      ...(unmeasured.length === 0 ? {} : { unmeasured }),
      launch: environment.launch,
      slow,
      undecided,
      rows,
    })),
    error,
    tried: nTried,
    notTried: nLeft,
    explanations: explanations.map(({ hypothesis: { code, what, check, variable }, error: then, explained, timesUs }) => ({
      code,
      what,
      check,
      variable: variable ?? null,
      error: then,
      explainedRows: explained,
      rows: timesUs.map((times, index) => {
        const table = tables[index];
        return table === undefined ? [] : comparedRows(table).map(({ bytes }, row) => ({ bytes, timeUs: times[row] ?? null }));
      }),
    })),
  };
}
