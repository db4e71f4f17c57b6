import { formatGBps } from '../../planner/topology/format.js';
import {
  type CallRow,
  type CallTable,
  callTables,
  intervalText,
  predictionIntervals,
} from '../../planner/plan/overview/calls.js';
import type { Forecast } from '../../planner/plan/overview/forecast.js';
import { capitalized, formatBytes, formatRate, formatTime, formatWay, limitText } from '../../planner/plan/overview/format.js';
import { linkKindNames } from '../../planner/plan/overview/fullest-link.js';
import type { GraphOverview, HostOverview, Overview, RingOverview } from '../../planner/plan/overview/overview.js';
import type { PredictedCollective } from '../../planner/plan/prediction.js';
import { unmeasuredText } from '../../planner/simulate/unmeasured.js';
import { charts, narrowCharts } from '../choice/charts.js';
import { windowsPicture } from '../choice/windows.js';
import { escape } from '../draw/markup.js';
import type { Picture } from '../draw/picture.js';
import { pictureStyle, svgElement } from '../draw/svg.js';
import { page, section, stackedTable } from './page.js';

/** A plan as one self-contained page, without scripts or external files; light and dark. */
export function overviewHtml(
  overview: Overview,
  curves: readonly Forecast[],
  pictures: readonly Picture[],
  predictions: readonly PredictedCollective[] = [],
): string {
  const tables = callTables(overview.forecasts, predictions);
  const [chart, narrow] = [charts(curves), narrowCharts(curves)];
  const { windows } = overview;
  const windowed = windows === undefined ? [] : [windowsPicture(windows), windowsPicture(windows, NARROW_WIDTH)];
  const isPredicted = tables.some(({ kind }) => kind !== 'believed');
  return page(`${overview.title} · tccl plan`, pictureStyle([chart, narrow, ...windowed, ...pictures]) + PLAN_STYLE, [
    header(overview, tables),
    section("Bandwidth that NCCL's model believes, and its choice by size", figure(chart, 'wide') + figure(narrow, 'narrow')),
    section(
      isPredicted ? 'Predicted, beside what NCCL believes' : 'What NCCL believes',
      `<div class="tables">${tables.map(callTable).join('')}</div>${meaning(predictions)}`,
    ),
    ...(windowed.length === 0
      ? []
      : [
          section(
            'On symmetric windows',
            windowed.map((picture, index) => figure(picture, index === 0 ? 'wide' : 'narrow')).join(''),
          ),
        ]),
    section('What limits it', overview.hosts.map((host) => limitCard(host, overview.hosts.length > 1)).join('')),
    section('Channels', graphTable(overview) + overview.hosts.map((host) => ringList(host, overview.hosts.length > 1)).join('')),
    section('In use', useList(overview)),
    ...(pictures.length === 0 ? [] : [section('Machines', pictures.map((picture) => figure(picture)).join(''))]),
    footer(overview, isPredicted),
  ]);
}

/** Width of a figure for narrow screens. */
const NARROW_WIDTH = 344;

/** On a narrow screen, the name of the algorithm stands above its numbers. */
const PLAN_STYLE = [
  '.narrow{display:none}.narrow svg.tccl{min-width:0}@media (max-width:800px){.wide{display:none}.narrow{display:block}}.calls .i{color:var(--dim)}.meaning{font-size:13.5px;margin-top:12px}',
  '@media (max-width:640px){main{padding:24px 12px 36px}.card{padding:14px 12px}.tables .card{flex:1 1 100%}',
  '.calls tr{display:grid;grid-template-columns:var(--narrow);border-bottom:1px solid var(--line)}.calls td,.calls th{border:0;padding:3px 0 3px 6px;font-size:11.5px}',
  '.calls .way{grid-column:1/-1;grid-row:1;text-align:left;padding:3px 0 0 2px}.calls thead .way{display:none}}',
].join('');

function header({ title, nccl, nRanks, nNodes, nChannels, hosts, environment }: Overview, tables: readonly CallTable[]): string {
  const largest = tables.find(({ title: names }) => names.split(', ').includes('AllReduce'))?.rows.at(-1);
  const least = Math.min(...hosts.map(({ ringGBps }) => ringGBps));
  const figures: (readonly [string, string])[] = [
    [String(nRanks), nRanks === 1 ? 'rank' : 'ranks'],
    [String(nNodes), nNodes === 1 ? 'node' : 'nodes'],
    [String(nChannels), 'channels'],
    [`${formatGBps(least)} GB/s`, 'rings of a host, together'],
    ...headline(largest),
  ];
  const variables = Object.entries(environment)
    .map(([name, value]) => `<code>${escape(`${name}=${value}`)}</code>`)
    .join(' ');
  return [
    '<header>',
    `<h1>${escape(title)}</h1>`,
    `<p class="dim">NCCL ${escape(nccl)} · ${escape(hosts.map(({ count, name, summary }) => (hosts.length > 1 ? `${count} x ${name}: ${summary}` : summary)).join(' · '))}</p>`,
    variables === '' ? '' : `<p style="margin-top:8px">${variables}</p>`,
    `<div class="figures">${figures.map(([value, label]) => `<div class="figure"><b>${escape(value)}</b><span>${escape(label)}</span></div>`).join('')}</div>`,
    '</header>',
  ].join('');
}

/** The bandwidth of large calls: predicted where they were simulated. */
function headline(row: CallTable['rows'][number] | undefined): (readonly [string, string])[] {
  if (row?.predicted !== undefined)
    return [[`${formatRate(row.predicted.busGBps)} GB/s`, `AllReduce bus bandwidth at ${formatBytes(row.bytes)}, predicted`]];
  if (row?.choice !== undefined)
    return [[`${formatRate(row.choice.busGBps)} GB/s`, `AllReduce bus bandwidth at ${formatBytes(row.bytes)}, as NCCL believes`]];
  return [];
}

function figure(picture: Picture, screens = ''): string {
  return `<figure class="card scroll ${screens}">${svgElement(picture)}</figure>`;
}

function callTable({ title, kind, rows }: CallTable): string {
  const columns = columnsOf[kind];
  const head = columns.map(({ name, style = '' }) => `<th class="${style}">${name}</th>`).join('');
  const body = rows.map(
    (row) => `<tr>${columns.map(({ cell, style = '' }) => `<td class="${style}">${escape(cell(row))}</td>`).join('')}</tr>`,
  );
  const narrow = columns.flatMap(({ style, share }) => (style === WAY_STYLE ? [] : [`${share}fr`])).join(' ');
  return `<div class="card scroll"><h3>${escape(title)}</h3><table class="calls" style="--narrow:${narrow}"><thead><tr>${head}</tr></thead><tbody>${body.join('')}</tbody></table></div>`;
}

interface Column {
  readonly name: string;
  readonly style?: string;
  /** Share of the width on a narrow screen. */
  readonly share: number;
  readonly cell: (row: CallRow) => string;
}

const WAY_STYLE = 'l way';
const size: Column = { name: 'size', share: 7, cell: ({ bytes }) => formatBytes(bytes) };
const way: Column = { name: 'algorithm', style: WAY_STYLE, share: 0, cell: ({ choice }) => formatWay(choice) };
const believed: Column = {
  name: 'believed',
  share: 8,
  cell: ({ choice }) => (choice === undefined ? '' : formatTime(choice.timeUs)),
};
const predicted: readonly Column[] = [
  { name: 'predicted', share: 8, cell: ({ predicted: row }) => (row === undefined ? '' : formatTime(row.timeUs)) },
  {
    name: '10 % to 90 %',
    style: 'i',
    share: 16,
    cell: ({ predicted: row }) => (row === undefined ? '' : `${formatTime(row.leastUs)} to ${formatTime(row.mostUs)}`),
  },
  { name: 'busbw', share: 6, cell: ({ predicted: row }) => (row === undefined ? '' : formatRate(row.busGBps)) },
];

const columnsOf: Readonly<Record<CallTable['kind'], readonly Column[]>> = {
  predicted: [size, way, ...predicted, believed],
  believed: [
    size,
    way,
    believed,
    { name: 'algbw', share: 6, cell: ({ choice }) => (choice === undefined ? '' : formatRate(choice.algorithmGBps)) },
    { name: 'busbw', share: 6, cell: ({ choice }) => (choice === undefined ? '' : formatRate(choice.busGBps)) },
  ],
  pairs: [size, ...predicted],
};

function meaning(predictions: readonly PredictedCollective[]): string {
  const intervals = predictionIntervals(predictions);
  if (intervals.length === 0) return '';
  const unmeasured = unmeasuredText(predictions.flatMap(({ rows }) => rows.flatMap((row) => row.unmeasured ?? [])));
  return `<p class="dim meaning">8 of 10 measurements took this part of the predicted time. ${escape([...intervals.map(intervalText), ...(unmeasured === undefined ? [] : [unmeasured])].join('; '))}.</p>`;
}

function limitCard(host: HostOverview, several: boolean): string {
  const bars = host.loads.map(
    ({ kind, count, usedGBps, gbps }) =>
      `<div class="load"><span>${count} ${escape(linkKindNames[kind])}</span><span class="bar"><i style="width:${Math.min(100, (100 * usedGBps) / gbps).toFixed(1)}%"></i></span><span class="r">${formatGBps(
        usedGBps,
      )} of ${formatGBps(gbps)} GB/s</span></div>`,
  );
  return `<div class="card">${several ? `<h3>${escape(host.name)}</h3>` : ''}<p style="margin-bottom:10px">${escape(capitalized(limitText(host)))}.</p>${bars.join('')}</div>`;
}

type GraphColumn = readonly [name: string, style: string, cell: (graph: GraphOverview) => string];

function graphTable({ graphs, nNodes }: Overview): string {
  const columns: GraphColumn[] = [
    ['graph', 'l', ({ name }) => name],
    ['pattern', 'l dim', ({ pattern, isLastResort }) => (isLastResort ? 'none found: the order of the numbers' : pattern)],
    ['channels', '', ({ nChannels }) => String(nChannels)],
    ['between GPUs, each', '', ({ bwIntra }) => `${formatGBps(bwIntra)} GB/s`],
    ['path', 'l', ({ typeIntra }) => typeIntra],
  ];
  if (nNodes > 1)
    columns.push(
      ['to the NIC', '', ({ bwInter }) => `${formatGBps(bwInter)} GB/s`],
      ['path to the NIC', 'l', ({ typeInter }) => typeInter],
    );
  return stackedTable(
    columns.map(([name]) => name),
    graphs.map((graph) => columns.map(([, , cell]) => cell(graph))),
    columns.map(([, style]) => style),
  );
}

/** Maximum number of routes that are listed. */
const MOST_RINGS = 8;

function ringList({ name, rings, nRanks }: HostOverview, several: boolean): string {
  if (nRanks === 1 && rings.every(({ entry }) => entry === undefined)) return '';
  const more = rings.length > MOST_RINGS ? `<p class="dim">and ${rings.length - MOST_RINGS} more</p>` : '';
  return `<div class="card"><h3>Rings within a host${several ? `: ${escape(name)}` : ''}</h3>${rings.slice(0, MOST_RINGS).map(ringRow).join('')}${more}</div>`;
}

function ringRow({ channels, entry, exit, ranks }: RingOverview): string {
  const chip = (text: string, kind: string) => `<span class="chip ${kind}">${escape(text)}</span>`;
  const chips = [
    ...(entry === undefined ? [] : [chip(entry, 'net')]),
    ...ranks.map((rank) => chip(String(rank), 'gpu')),
    ...(exit === undefined ? [] : [chip(exit, 'net')]),
  ];
  return `<div class="ring"><span class="ch">channel ${channels.join(' ')}</span>${chips.join('')}</div>`;
}

function useList({ uses }: Overview): string {
  const rows = uses.map(
    ({ name, used, text }) => `<b>${name}</b><span class="badge ${used}">${used}</span><p>${escape(text)}</p>`,
  );
  return `<div class="card uses">${rows.join('')}</div>`;
}

function footer({ nccl }: Overview, isPredicted: boolean): string {
  const belief = `what NCCL ${escape(nccl)} computes with its own model and chooses by (float32, sum)`;
  return `<footer>Made by <code>tccl plan</code>. ${isPredicted ? `Predicted times come from a simulation of the calls; believed ones are ${belief}` : `Times and bandwidths are ${belief}`}, not measurements; algbw is size by time, busbw what links carry as nccl-tests counts it, both in GB/s (10⁹ bytes a second).</footer>`;
}
