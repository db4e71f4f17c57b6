import { formatGBps } from '../../topology/view/format.js';
import { charts, CHART_STYLE } from './charts.js';
import type { PredictedCollective } from '../prediction.js';
import type { Forecast } from './forecast.js';
import { linkKindNames } from './fullest-link.js';
import { escape } from '../../topology/view/markup.js';
import type { HostOverview, Overview, RingOverview } from './overview.js';
import { page, section } from './page.js';
import { alike, formatBytes, formatRate, formatTime, formatWay, limitText } from './format.js';

/** A machine's drawing, by the name of its hosts. */
export interface MachinePicture {
  readonly name: string;
  readonly svg: string;
}

/** A plan as one self-contained page, without scripts or external files; light and dark. */
export function overviewHtml(
  overview: Overview,
  curves: readonly Forecast[],
  pictures: readonly MachinePicture[],
  predictions: readonly PredictedCollective[] = [],
): string {
  return page(`${overview.title} · tccl plan`, CHART_STYLE, [
    header(overview),
    section('Bandwidth and choice by size', chartFigure(curves)),
    section('Predictions', `<div class="tables">${alike(overview.forecasts).map(forecastTable).join('')}</div>`),
    ...(predictions.every(({ rows }) => rows.length === 0)
      ? []
      : [
          section(
            'Simulated, beside what NCCL believes',
            `<div class="tables">${predictions
              .filter(({ rows }) => rows.length > 0)
              .map(predictionTable)
              .join('')}</div>`,
          ),
        ]),
    section('What limits it', overview.hosts.map((host) => limitCard(host, overview.hosts.length > 1)).join('')),
    section('Channels', graphTable(overview) + overview.hosts.map((host) => ringList(host, overview.hosts.length > 1)).join('')),
    section('In use', useList(overview)),
    ...(pictures.length === 0 ? [] : [section('Machines', pictures.map(pictureFigure).join(''))]),
    FOOTER,
  ]);
}

function header({ title, nRanks, nNodes, nChannels, hosts, forecasts, environment }: Overview): string {
  const allReduce = forecasts.find(({ collective }) => collective === 'AllReduce')?.rows.at(-1);
  const least = Math.min(...hosts.map(({ ringGBps }) => ringGBps));
  const figures: (readonly [string, string])[] = [
    [String(nRanks), nRanks === 1 ? 'rank' : 'ranks'],
    [String(nNodes), nNodes === 1 ? 'node' : 'nodes'],
    [String(nChannels), 'channels'],
    [`${formatGBps(least)} GB/s`, 'rings of a host, together'],
    ...(allReduce?.choice === undefined
      ? []
      : [
          [`${formatRate(allReduce.choice.busGBps)} GB/s`, `AllReduce bus bandwidth at ${formatBytes(allReduce.bytes)}`] as const,
        ]),
  ];
  const variables = Object.entries(environment)
    .map(([name, value]) => `<code>${escape(`${name}=${value}`)}</code>`)
    .join(' ');
  return [
    '<header>',
    `<h1>${escape(title)}</h1>`,
    `<p class="dim">${escape(hosts.map(({ count, name, summary }) => (hosts.length > 1 ? `${count} x ${name}: ${summary}` : summary)).join(' · '))}</p>`,
    variables === '' ? '' : `<p style="margin-top:8px">${variables}</p>`,
    `<div class="figures">${figures.map(([value, label]) => `<div class="figure"><b>${escape(value)}</b><span>${escape(label)}</span></div>`).join('')}</div>`,
    '</header>',
  ].join('');
}

function chartFigure(curves: readonly Forecast[]): string {
  const { svg, width, height } = charts(curves);
  return `<figure class="card scroll"><svg viewBox="0 0 ${width} ${height}" role="img" class="tc" aria-label="Bus bandwidth and choice of algorithm by size">${svg}</svg></figure>`;
}

function forecastTable({ title, rows }: ReturnType<typeof alike>[number]): string {
  const body = rows.map(
    ({ bytes, choice }) =>
      `<tr><td>${formatBytes(bytes)}</td><td class="l">${escape(formatWay(choice))}</td>${
        choice === undefined
          ? '<td></td><td></td><td></td>'
          : [formatTime(choice.timeUs), formatRate(choice.algorithmGBps), formatRate(choice.busGBps)]
              .map((text) => `<td>${text}</td>`)
              .join('')
      }</tr>`,
  );
  return `<div class="card scroll"><h3>${escape(title)}</h3><table><thead><tr><th>size</th><th class="l">algorithm</th><th>time</th><th>algbw</th><th>busbw</th></tr></thead><tbody>${body.join('')}</tbody></table></div>`;
}

function predictionTable({ collective, rows }: PredictedCollective): string {
  const body = rows.map(({ bytes, choice, timeUs, leastUs, mostUs, busGBps }) => {
    const way = choice === undefined ? 'pairs' : formatWay(choice);
    const cells = [
      choice === undefined ? '' : formatTime(choice.timeUs),
      formatTime(timeUs),
      `${formatTime(leastUs)} to ${formatTime(mostUs)}`,
      formatRate(busGBps),
    ];
    return `<tr><td>${formatBytes(bytes)}</td><td class="l">${escape(way)}</td>${cells.map((text) => `<td>${text}</td>`).join('')}</tr>`;
  });
  return `<div class="card scroll"><h3>${escape(collective)}</h3><table><thead><tr><th>size</th><th class="l">algorithm</th><th>NCCL believes</th><th>predicted</th><th>10 % to 90 %</th><th>busbw</th></tr></thead><tbody>${body.join('')}</tbody></table></div>`;
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

function capitalized(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

function graphTable({ graphs, nNodes }: Overview): string {
  const rows = graphs.map(({ name, pattern, nChannels, bwIntra, bwInter, typeIntra, typeInter }) => {
    const between = nNodes > 1 ? `<td>${formatGBps(bwInter)} GB/s</td><td class="l">${typeInter}</td>` : '';
    return `<tr><td class="l">${name}</td><td class="l dim">${pattern}</td><td>${nChannels}</td><td>${formatGBps(bwIntra)} GB/s</td><td class="l">${typeIntra}</td>${between}</tr>`;
  });
  const between = nNodes > 1 ? '<th>to the NIC</th><th class="l">path</th>' : '';
  return `<div class="card scroll"><table><thead><tr><th class="l">graph</th><th class="l">pattern</th><th>channels</th><th>between GPUs, each</th><th class="l">path</th>${between}</tr></thead><tbody>${rows.join('')}</tbody></table></div>`;
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

function pictureFigure({ name, svg }: MachinePicture): string {
  return `<figure class="card scroll"><img class="pic" alt="${escape(name)}: CPUs, PCIe switches, GPUs, network cards" src="data:image/svg+xml,${encodeURIComponent(svg)}"></figure>`;
}

const FOOTER =
  '<footer>Made by <code>tccl plan</code>. Times and bandwidths are what NCCL 2.30.7 predicts with its own model and chooses by (float32, sum), ' +
  'not measurements; algbw is size by time, busbw what links carry as nccl-tests counts it, both in GB/s (10⁹ bytes a second).</footer>';
