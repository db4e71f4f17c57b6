import { counted } from '../../counted.js';
import {
  type CallRow,
  type CallTable,
  callTables,
  intervalText,
  predictionIntervals,
} from '../../planner/plan/overview/calls.js';
import type { Forecast } from '../../planner/plan/overview/forecast.js';
import { type GraphOverview, type HostOverview, type Overview, type RingOverview } from '../../planner/plan/overview/overview.js';
import { alike, formatBytes, formatRate, formatTime, formatWay, limitText } from '../../planner/plan/overview/format.js';
import type { WindowRow } from '../../planner/plan/overview/windows.js';
import type { PredictedCollective } from '../../planner/plan/prediction.js';
import { unmeasuredText } from '../../planner/simulate/unmeasured.js';
import type { Finding } from '../../planner/topology/doctor/finding.js';
import { formatGBps } from '../../planner/topology/format.js';
import { describeNoSymmetric, windowsText } from '../../planner/tuning/symmetric/reasons.js';
import type { Colors } from '../output.js';

interface TextOptions {
  readonly paint: Colors;
  /** Columns of the terminal. */
  readonly width: number;
}

/** A plan on one screen: facts as `label text`, then the tables of sizes and collectives. */
export function overviewLines(
  overview: Overview,
  predictions: readonly PredictedCollective[],
  findings: readonly Finding[],
  options: TextOptions,
): string[] {
  const { paint } = options;
  const { nRanks, nNodes, hosts, nChannels, graphs, environment } = overview;
  const several = hosts.length > 1;
  const facts: (readonly [label: string, text: string])[] = [];
  for (const host of hosts) {
    facts.push([several ? `${host.count} x ${host.name}` : host.count === 1 ? 'machine' : 'each', host.summary]);
    if (host.nodes.length > 1)
      facts.push([
        '',
        `counts as ${host.nodes.length} nodes: ranks ${host.nodes.map((ranks) => ranks.join(' ')).join(' | ')} reach each other over the network`,
      ]);
    const isLeast = several && hosts.every(({ searchedGBps }) => searchedGBps >= host.searchedGBps);
    facts.push(['limit', `${limitText(host)}${isLeast ? ': the least, so all keep to it' : ''}`]);
  }
  const variables = Object.entries(environment)
    .map(([name, value]) => `${name}=${value}`)
    .join(' ');
  if (variables !== '') facts.push(['set', variables]);
  facts.push(['channels', channelText(overview)]);
  facts.push(...graphs.map((graph) => [graph.name, graphText(graph, overview)] as const));
  for (const host of hosts) facts.push([several ? `ring, ${host.name}` : 'ring 0', ringsText(host)]);
  facts.push(
    ...overview.uses.map(
      ({ name, used, text }) =>
        [name, `${used === 'yes' ? paint.green(used) : used === 'no' ? paint.dim(used) : paint.yellow(used)}: ${text}`] as const,
    ),
  );

  for (const { severity, code, problem, consequence, remedy } of findings)
    if (severity !== 'info') facts.push([severity, `${paint.yellow(code)}: ${problem}; ${consequence}; do: ${remedy}`]);

  const labelWidth = Math.max(...facts.map(([label]) => label.length)) + 2;
  const nodes = `${counted(nRanks, 'rank')} on ${counted(nNodes, 'node')}, ${nChannels} channels`;
  return [
    `${paint.bold(overview.title)}  NCCL ${overview.nccl}${certaintyText(overview)}, ${nodes}`,
    ...facts.map(([label, text]) => `${paint.dim(label.padEnd(labelWidth))}${text}`),
    '',
    ...tableLines(callTables(overview.forecasts, predictions), options),
    '',
    ...flipLines(overview.forecasts, paint),
    ...windowLines(overview, paint),
    ...meaningLines(predictions, paint),
  ];
}

function certaintyText({ uncomparedRules: { length } }: Overview): string {
  return length === 0 ? '' : ` (${counted(length, 'rule')} read from source, not compared)`;
}

function channelText({ nChannels, graphs }: Overview): string {
  const found = graphs.find(({ name }) => name === 'ring')?.nChannels ?? 0;
  if (found === 0 || found === nChannels) return String(nChannels);
  return nChannels > found
    ? `${nChannels}, from ${found} that the search found`
    : `${nChannels} of ${found} that the search found`;
}

function graphText(
  { pattern, nChannels, bwIntra, bwInter, typeIntra, typeInter, name, isLastResort }: GraphOverview,
  { nNodes, treeDepth }: Overview,
): string {
  if (isLastResort)
    return `none found: one channel through the GPUs in the order of their numbers, which NCCL counts as ${formatGBps(bwIntra)} GB/s`;
  const within = `${formatGBps(bwIntra)} GB/s between GPUs (${typeIntra})`;
  const between = nNodes > 1 ? `, ${formatGBps(bwInter)} to the NIC (${typeInter})` : '';
  const depth = name === 'tree' && treeDepth > 0 ? `; depth ${treeDepth}` : '';
  return `${nChannels} x ${within}${between}; ${pattern}${depth}`;
}

function ringsText({ rings, nRanks }: Pick<HostOverview, 'rings' | 'nRanks'>): string {
  const [first] = rings;
  if (first === undefined || (nRanks === 1 && first.entry === undefined)) return 'one rank alone';
  const others = rings.length - 1;
  return `${ringText(first)}${others === 0 ? '' : `; ${counted(others, 'other way')} on other channels`}`;
}

/** Maximum number of ranks of a rack that are listed. */
const MOST_SHOWN = 16;

function ringText({ entry, exit, ranks }: RingOverview): string {
  const shown = ranks.length > MOST_SHOWN ? [...ranks.slice(0, MOST_SHOWN - 2), '…', ranks.at(-1)] : ranks;
  return [entry, shown.join(' '), exit].filter((part) => part !== undefined).join(' > ');
}

/** A block of columns for each collective, shared by those with the same numbers; as many in a row as the width allows. */
function tableLines(tables: readonly CallTable[], { paint, width }: TextOptions): string[] {
  const sizes = tables[0]?.rows.map(({ bytes }) => formatBytes(bytes)) ?? [];
  const sizeWidth = Math.max('size'.length, ...sizes.map(({ length }) => length));
  const blocks = tables.map((table) => blockOf(table, paint));
  const lines: string[] = [];
  for (let next = 0; next < blocks.length;) {
    let used = sizeWidth;
    const row: Block[] = [];
    for (
      let block = blocks[next];
      block !== undefined && (row.length === 0 || used + 3 + block.width <= width);
      block = blocks[++next]
    ) {
      row.push(block);
      used += 3 + block.width;
    }
    if (lines.length > 0) lines.push('');
    const heads = row.map(({ title, width: blockWidth }) => paint.bold(title.padEnd(blockWidth))).join('   ');
    lines.push(`${' '.repeat(sizeWidth)}   ${heads}`.trimEnd());
    lines.push(`${paint.dim('size'.padStart(sizeWidth))}   ${row.map(({ head }) => paint.dim(head)).join('   ')}`);
    sizes.forEach((size, index) =>
      lines.push(`${size.padStart(sizeWidth)}   ${row.map(({ rows }) => rows[index] ?? '').join('   ')}`.trimEnd()),
    );
  }
  return lines;
}

interface Block {
  readonly title: string;
  readonly head: string;
  readonly rows: readonly string[];
  readonly width: number;
}

/** Columns of a table by its kind. */
const columnsOf: Readonly<Record<CallTable['kind'], readonly (readonly [head: string, cell: (row: CallRow) => string])[]>> = {
  predicted: [
    ['algorithm', ({ choice }) => formatWay(choice)],
    ['predicted', ({ predicted }) => (predicted === undefined ? '' : formatTime(predicted.timeUs))],
    ['busbw', ({ predicted }) => (predicted === undefined ? '' : formatRate(predicted.busGBps))],
    ['believed', ({ choice }) => (choice === undefined ? '' : formatTime(choice.timeUs))],
  ],
  believed: [
    ['algorithm', ({ choice }) => formatWay(choice)],
    ['believed', ({ choice }) => (choice === undefined ? '' : formatTime(choice.timeUs))],
    ['algbw', ({ choice }) => (choice === undefined ? '' : formatRate(choice.algorithmGBps))],
    ['busbw', ({ choice }) => (choice === undefined ? '' : formatRate(choice.busGBps))],
  ],
  pairs: [
    ['predicted', ({ predicted }) => (predicted === undefined ? '' : formatTime(predicted.timeUs))],
    ['busbw', ({ predicted }) => (predicted === undefined ? '' : formatRate(predicted.busGBps))],
  ],
};

function blockOf({ title, kind, rows }: CallTable, paint: TextOptions['paint']): Block {
  const columns = columnsOf[kind];
  const cells = rows.map((row) => columns.map(([, cell]) => cell(row)));
  const widths = columns.map(([head], column) => Math.max(head.length, ...cells.map((row) => row[column]?.length ?? 0)));
  const isName = (column: number) => columns[column]?.[0] === 'algorithm';
  const line = (row: readonly string[]) =>
    row.map((cell, column) => (isName(column) ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0)));
  const width = Math.max(title.length, widths.reduce((sum, each) => sum + each, 0) + 2 * (columns.length - 1));
  return {
    title,
    width,
    head: line(columns.map(([head]) => head))
      .join('  ')
      .padEnd(width),
    rows: cells.map((row) => {
      const padded = line(row);
      const after = ' '.repeat(Math.max(0, width - padded.join('  ').length));
      return `${padded.map((cell, column) => (isName(column) ? paint.cyan(cell) : cell)).join('  ')}${after}`;
    }),
  };
}

/** `AllReduce  Tree LL below 73.5 KiB, Tree LL128 below 4.2 MiB, then NVLSTree Simple`. */
function flipLines(forecasts: readonly Forecast[], paint: TextOptions['paint']): string[] {
  const groups = alike(forecasts).filter(({ flips }) => flips.length > 0);
  const titleWidth = Math.max(...groups.map(({ title }) => title.length)) + 2;
  return groups.map(({ title, flips }) => {
    const parts = flips.map(({ bytes, from }) => `${formatWay(from)} below ${formatBytes(bytes)}`);
    return `${paint.dim(title.padEnd(titleWidth))}${parts.join(', ')}, then ${formatWay(flips.at(-1)?.to)}`;
  });
}

/** Calls on symmetric windows: the kernel of each, and the reason where a general one of the table above does it. */
function windowLines({ windows }: Overview, paint: TextOptions['paint']): string[] {
  if (windows === undefined) return [];
  const { collectives } = windows;
  const isPredicted = collectives.some(({ rows: ways }) => ways.some(({ predicted }) => predicted !== undefined));
  const heads = isPredicted ? ['CTAs', 'predicted', 'busbw', 'believed'] : ['CTAs', 'believed', 'busbw'];
  const rows = [
    ['size', ...collectives.flatMap(({ collective }) => [collective, ...heads])],
    ...(collectives[0]?.rows ?? []).map(({ bytes }, index) => [
      formatBytes(bytes),
      ...collectives.flatMap(({ rows: ways }) => wayCells(ways[index], isPredicted)),
    ]),
  ];
  const widths = rows[0]?.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0))) ?? [];
  const isName = (column: number) => column % (heads.length + 1) === 1;
  const line = (row: readonly string[]) =>
    row
      .map((cell, column) => (isName(column) ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0)))
      .join('  ')
      .trimEnd();
  const reasons = new Set(
    collectives.flatMap(({ collective, rows: ways }) =>
      ways.flatMap(({ way }) => (way.kind === 'general' ? [`${collective}: ${describeNoSymmetric(way.because)}`] : [])),
    ),
  );
  return [
    '',
    `${paint.bold('on symmetric windows')} for ${windowsText(windows.windows)}, float32 and sum; NCCL's decisions are read from source, not compared with recorded answers`,
    ...rows.map((row, index) => (index === 0 ? paint.dim(line(row)) : line(row))),
    ...[...reasons].map((reason) => paint.dim(reason)),
  ];
}

/** The kernel without the name of its collective, its CTAs, and times: predicted with their bus bandwidth, and believed. */
function wayCells(row: WindowRow | undefined, isPredicted: boolean): string[] {
  if (row === undefined) return isPredicted ? ['', '', '', '', ''] : ['', '', '', ''];
  const { way, predicted } = row;
  const believed = way.kind === 'general' ? way.choice : way;
  const believedCells = believed === undefined ? ['', ''] : [formatTime(believed.timeUs), formatRate(believed.busGBps)];
  const predictedCells = predicted === undefined ? ['', ''] : [formatTime(predicted.timeUs), formatRate(predicted.busGBps)];
  return [
    ...(way.kind === 'general'
      ? [formatWay(way.choice), '']
      : way.kind === 'symmetric'
        ? [way.kernel.slice(way.kernel.indexOf('_') + 1), String(way.ctas)]
        : ['copy engines', '0']),
    ...(isPredicted ? [...predictedCells, believedCells[0] ?? ''] : believedCells),
  ];
}

/** Meaning of the columns of times, and the distance of measurements from predictions. */
function meaningLines(predictions: readonly PredictedCollective[], paint: TextOptions['paint']): string[] {
  const intervals = predictionIntervals(predictions);
  const unmeasured = unmeasuredText(predictions.flatMap(({ rows }) => rows.flatMap((row) => row.unmeasured ?? [])));
  const believed = ['believed', "NCCL's own model, which it chooses by; not a measurement"] as const;
  const lines: (readonly [string, string])[] = [
    ...(intervals.length === 0 ? [] : [['predicted', 'by a simulation; 8 of 10 measurements took this part of it:'] as const]),
    ...intervals.map((interval) => ['', intervalText(interval)] as const),
    ...(unmeasured === undefined ? [] : [['', unmeasured] as const]),
    believed,
  ];
  const width = Math.max(...lines.map(([label]) => label.length)) + 2;
  return ['', ...lines.map(([label, text]) => `${paint.dim(label.padEnd(width))}${text}`)];
}
