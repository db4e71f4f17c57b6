import { inFile, InvalidArgumentError, InvalidUsageError } from '../../errors.js';
import { refuseContradictions } from '../../planner/graph/merge/contradictions.js';
import { prepareCluster } from '../../planner/plan/cluster.js';
import { formatBytes, formatTime, formatWay } from '../../planner/plan/overview/format.js';
import { usualSizes } from '../../planner/plan/overview/forecast.js';
import { servedByWindows } from '../../planner/plan/overview/windows.js';
import { planPrepared } from '../../planner/plan/plan.js';
import { simulatorOf } from '../../planner/plan/prediction.js';
import { checkTunerTable, outcomeOf } from '../../planner/plan/tuner/check-table.js';
import { isChanged, type MadeRow, makeTunerTable, type TunedSize } from '../../planner/plan/tuner/make-table.js';
import { readTunerTable, type PlacedRow, type TableFinding } from '../../planner/plan/tuner/read-table.js';
import { rowLine } from '../../planner/plan/tuner/row.js';
import type { Simulator } from '../../planner/simulate/simulate.js';
import { choose, chooseWay } from '../../planner/tuning/choose.js';
import type { Way } from '../../planner/tuning/flips.js';
import { type Collective, collectives } from '../../planner/tuning/names.js';
import { tune, type Tuning } from '../../planner/tuning/tune.js';
import { version } from '../../version.js';
import { type ClusterInput, readCluster } from '../cluster-input.js';
import type { ClusterOptions } from '../cluster-options.js';
import { type Colors, colorsFor, print, printData, printJson, printNotes, progressLine, writeFile } from '../output.js';
import { readOneFile } from '../topo/input.js';

export interface TunerOptions extends ClusterOptions {
  readonly check?: string;
  readonly gain?: string;
  readonly output?: string;
  readonly json?: boolean;
}

/** `tccl tuner`. @returns true without faults */
export async function showTuner(name: string, options: TunerOptions): Promise<boolean> {
  const percent = options.gain === undefined ? undefined : Number(options.gain);
  if (percent !== undefined && !(percent >= 0 && percent < 100))
    throw new InvalidArgumentError('ARGUMENT_RANGE', `--gain '${options.gain ?? ''}' must be a percentage from 0 to below 100`);
  if (options.check !== undefined && options.output !== undefined)
    throw new InvalidUsageError('UNSUPPORTED', '--check reads a table and --output writes one: give one of them');
  if (options.check === '-' && name === '-')
    throw new InvalidArgumentError('FILE', 'the standard input (-) is given twice; it can be read once');
  const table = options.check === undefined ? undefined : readOneFile(options.check, 'a table of a tuner plugin');
  const input = await readCluster([name], options);
  refuseContradictions(input.parameters);
  const { simulator, tuning } = inFile(input.fileName, () => prepare(input));
  if (tuning.input.nRanks === 1)
    throw new InvalidUsageError('UNSUPPORTED', `${input.title} is one rank, which exchanges nothing: there is nothing to tune`);
  const isFine =
    table === undefined ? make(input, simulator, tuning, percent, options) : check(table, input, simulator, tuning, options);
  const served = servedByWindows(tuning, usualSizes).map(
    ({ collective, least, most, isWhole }) =>
      `${collective} of ${isWhole ? '' : 'some sizes from '}${formatBytes(least)}${least === most ? '' : ` to ${formatBytes(most)}`}`,
  );
  printNotes([
    ...(served.length === 0
      ? []
      : [`On symmetric windows kernels that no table chooses do ${served.join(', ')} (tccl plan --windows shows them).`]),
    ...input.notes,
  ]);
  return isFine;
}

function prepare({ cluster, parameters, given }: ClusterInput): { readonly simulator: Simulator; readonly tuning: Tuning } {
  const prepared = prepareCluster(cluster, parameters, given);
  const plan = planPrepared(prepared, parameters);
  const tuning = tune(plan, parameters);
  return { simulator: simulatorOf(prepared, parameters, plan, tuning), tuning };
}

// A table that is written

function make(
  { title, parameters }: ClusterInput,
  simulator: Simulator,
  tuning: Tuning,
  percent: number | undefined,
  { output, json }: TunerOptions,
): boolean {
  const line = progressLine();
  const rows = makeTunerTable(simulator, tuning, {
    ...(percent === undefined ? {} : { gain: percent / 100 }),
    onProgress: (collective, bytes) => line.update(`predicting ${collective} of ${formatBytes(bytes)} …`),
  });
  line.done();
  const { nNodes, nRanks } = tuning.input;
  if (json === true) {
    printJson({
      format: 'tccl tuner table',
      formatVersion: 1,
      nccl: parameters.ncclVersion,
      nNodes,
      nRanks,
      rows: rows.map(rowJson),
    });
    if (output === undefined) return true;
  }
  const text = `${[
    `# For the example tuner plugin of NCCL ${parameters.ncclVersion}, by tccl ${version}`,
    ...commentLines(
      `# ${title}: communicators of ${nNodes} nodes and ${nRanks} ranks; a call that no row takes runs on one channel`,
    ),
    '# channels 0: as many as NCCL takes itself; times are predicted',
    '# colltype,minbytes,maxbytes,algorithm,protocol,channels,nNodes,nRanks',
    ...rows.flatMap((row) => [...row.tried.filter(isChanged).map((each) => `# ${gainText(each)}`), rowLine(row)]),
  ].join('\n')}\n`;
  if (output === undefined) {
    printData(text);
    return true;
  }
  writeFile(output, text);
  if (json !== true) {
    const colors = colorsFor(process.stdout);
    print(...gainLines(rows, colors), '', `The table is in ${output}. Run the job with`);
    print(`  NCCL_TUNER_PLUGIN=example NCCL_TUNER_CONFIG_FILE=${output}`);
    print(`It is for communicators of ${nNodes} nodes and ${nRanks} ranks; calls of others run on ONE channel with this plugin.`);
  }
  return true;
}

/** A comment that the plugin's reader does not break. */
function commentLines(text: string): string[] {
  return [
    text
      .replaceAll(/[\r\n]/g, ' ')
      .replaceAll(',', ' ')
      .slice(0, 240),
  ];
}

function gainText({ bytes, way, timeUs, own, ownUs }: TunedSize): string {
  return `${formatBytes(bytes)}: ${formatWay(way)} ${formatTime(timeUs)}; NCCL takes ${formatWay(own)} ${formatTime(ownUs)} (${percentOf(1 - timeUs / ownUs)} less)`;
}

function percentOf(part: number): string {
  return `${Math.round(100 * part)} %`;
}

function gainLines(rows: readonly MadeRow[], { bold, dim }: Colors): string[] {
  const changed = rows.flatMap((row) => row.tried.filter(isChanged).map((each) => ({ row, each })));
  const nTried = rows.reduce((sum, { tried }) => sum + tried.length, 0);
  if (changed.length === 0)
    return [`No way is certainly faster than NCCL's own choice at any of ${nTried} sizes: there is no need for the table.`];
  return [
    bold(`${changed.length} of ${nTried} sizes are predicted to be faster otherwise than NCCL would do them:`),
    ...changed.map(({ row, each }) => `  ${row.collective.padEnd(14)}${gainText(each)}`),
    dim('Measure before you rely on it: nccl-tests with and without the plugin (tccl expect reads its results).'),
  ];
}

function rowJson({ tried, maxBytes, ...row }: MadeRow) {
  return { ...row, maxBytes: Number.isFinite(maxBytes) ? maxBytes : null, tried };
}

// A table that is checked

/** One size of a collective with a table and without. */
interface ComparedSize {
  readonly collective: Collective;
  readonly bytes: number;
  readonly row: PlacedRow | undefined;
  readonly way: Way;
  readonly nChannels: number;
  readonly timeUs: number;
  readonly own: Way;
  readonly ownUs: number;
}

const comparedSizes = [1, 16, 256, 4096, 65536, 1048576].map((kib) => kib * 1024);
/** Relative loss from which a prediction is reported. */
const WORSE = 0.1;

function check(
  { text, fileName }: { readonly text: string; readonly fileName: string },
  { title }: ClusterInput,
  simulator: Simulator,
  tuning: Tuning,
  { json }: TunerOptions,
): boolean {
  const { rows, findings: ofText } = readTunerTable(text);
  const compared = collectives.flatMap((collective) => compare(collective, rows, simulator, tuning));
  const findings = [...ofText, ...checkTunerTable(rows, tuning), ...slowerFindings(compared)].sort(
    (a, b) => (a.line ?? Infinity) - (b.line ?? Infinity),
  );
  const isFine = findings.every(({ severity }) => severity === 'info');
  if (json === true) {
    printJson({
      format: 'tccl tuner check',
      formatVersion: 1,
      rows: rows.length,
      findings,
      sizes: compared.map(({ row, ...each }) => ({ ...each, line: row?.line ?? null })),
    });
    return isFine;
  }
  const colors = colorsFor(process.stdout);
  const shade = { error: colors.red, warning: colors.yellow, info: colors.dim };
  for (const { line, severity, message } of findings)
    print(`${fileName}${line === undefined ? '' : `:${line}`}: ${shade[severity](severity)}: ${message}`);
  if (findings.length > 0) print('');
  print(colors.bold(`${title} with this table`), ...comparedLines(compared, colors));
  if (isFine) print('', `${rows.length} rows, and nothing is wrong with them.`);
  return isFine;
}

function compare(collective: Collective, rows: readonly PlacedRow[], simulator: Simulator, tuning: Tuning): ComparedSize[] {
  return comparedSizes.flatMap((bytes): ComparedSize[] => {
    const own = choose(tuning, collective, bytes);
    const { row, way } = outcomeOf(rows, tuning, collective, bytes);
    const choice = way && chooseWay(tuning, collective, bytes, way);
    if (own === undefined || choice === undefined) return [];
    const plain = simulator.simulate(collective, bytes, { choice: own });
    const tuned = simulator.simulate(collective, bytes, { choice });
    if (plain === undefined || tuned === undefined) return [];
    return [
      {
        collective,
        bytes,
        row,
        way: { algorithm: choice.algorithm, protocol: choice.protocol },
        nChannels: tuned.nChannels,
        timeUs: tuned.timeUs,
        own: { algorithm: own.algorithm, protocol: own.protocol },
        ownUs: plain.timeUs,
      },
    ];
  });
}

/** Rows that make calls slower, each once, at its worst size. Calls without a row have findings of their own. */
function slowerFindings(compared: readonly ComparedSize[]): TableFinding[] {
  const worst = new Map<number, ComparedSize>();
  for (const each of compared) {
    const line = each.row?.line;
    if (line === undefined || each.timeUs <= each.ownUs * (1 + WORSE)) continue;
    const before = worst.get(line);
    if (before === undefined || each.timeUs / each.ownUs > before.timeUs / before.ownUs) worst.set(line, each);
  }
  return [...worst].map(([line, { bytes, timeUs, own, ownUs }]) => ({
    line,
    severity: 'warning' as const,
    message: `predicted to be slower: ${formatBytes(bytes)} in ${formatTime(timeUs)}; NCCL itself takes ${formatWay(own)}, ${formatTime(ownUs)}`,
  }));
}

function comparedLines(compared: readonly ComparedSize[], { dim, green, red }: Colors): string[] {
  return compared.map(({ collective, bytes, row, way, nChannels, timeUs, own, ownUs }) => {
    const change = timeUs / ownUs - 1;
    const gain =
      Math.abs(change) < 0.005
        ? dim('as without')
        : change < 0
          ? green(`${percentOf(-change)} less`)
          : red(`${percentOf(change)} more`);
    const by = row === undefined ? 'no row' : `line ${row.line}`;
    return `  ${collective.padEnd(14)}${formatBytes(bytes).padStart(8)}  ${by.padEnd(9)}${formatWay(way).padEnd(20)}${String(nChannels).padStart(3)} ch ${formatTime(timeUs).padStart(9)}   NCCL ${formatWay(own).padEnd(20)}${formatTime(ownUs).padStart(9)}  ${gain}`;
  });
}
