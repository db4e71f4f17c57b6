import type { NcclAlgorithm } from '../../tuning/names.js';
import type { Forecast } from './forecast.js';
import { escape } from '../../topology/view/markup.js';
import { at } from './markup.js';
import { alike, formatBytes, formatRate, formatTime, formatWay } from './format.js';

/**
 * Two charts over sizes with one axis: bus bandwidth of collectives, and NCCL's choices.
 *
 *     GB/s │          ╭────── AllReduce
 *          │      ╭───╯  ╭─── AllGather
 *          │ ─────╯──────╯
 *          ├──────┬───────┬────
 *     All… │ Tree │ NVLSTree        bands: colour is the algorithm, strength the protocol
 *          └ 1 KiB ─ 1 MiB ─ 1 GiB
 *
 * @param curves with sizes close enough for straight lines between them
 */
export function charts(curves: readonly Forecast[]): { readonly svg: string; readonly width: number; readonly height: number } {
  const groups = alike(curves);
  const sizes = groups[0]?.rows.map(({ bytes }) => bytes) ?? [];
  const scale = axisOf(sizes[0] ?? 1, sizes.at(-1) ?? 1);
  const bandTop = PLOT_TOP + PLOT_HEIGHT + 58;
  const height = bandTop + groups.length * (BAND_HEIGHT + BAND_GAP) + 30;
  return {
    width: CHART_WIDTH,
    height,
    svg: [
      ...bandwidthChart(groups, scale),
      `<text x="${LEFT}" y="${bandTop - 12}" class="tc-head">What NCCL chooses</text>`,
      ...groups.flatMap((group, index) => bands(group, scale, bandTop + index * (BAND_HEIGHT + BAND_GAP))),
      ...sizeTicks(scale, bandTop + groups.length * (BAND_HEIGHT + BAND_GAP) - BAND_GAP, 6),
    ].join('\n'),
  };
}

/** Colours of both themes, for elements of {@link charts}: lines by place, bands by algorithm. */
export const CHART_STYLE = [
  '.tc{--ink:#1c2128;--dim:#667085;--grid:#e4e7ec;--paper:#fff;--l0:#2f6fde;--l1:#d9622b;--l2:#2c8a57;--l3:#8f4bd1;--l4:#a67c00;',
  '--Tree:#59a96a;--Ring:#5b8def;--NVLS:#b07be0;--NVLSTree:#d86fb3;--CollNetDirect:#e0974a;--CollNetChain:#c9b037;--PAT:#3aa6a6;--none:#98a2b3}',
  '@media (prefers-color-scheme:dark){.tc{--ink:#e6e8eb;--dim:#98a2b3;--grid:#2d333b;--paper:#15181d;--l0:#6ea8fe;--l1:#ff9a62;--l2:#5fc48d;--l3:#c39bf2;--l4:#e0bd4a;',
  '--Tree:#3f8550;--Ring:#3f6cc4;--NVLS:#8457b5;--NVLSTree:#a94a88;--CollNetDirect:#a96a2a;--CollNetChain:#8f7c1f;--PAT:#287a7a;--none:#475467}}',
  '.tc text{font:12px ui-sans-serif,system-ui,"Segoe UI",Helvetica,Arial,sans-serif;fill:var(--ink)}',
  '.tc .tc-dim{fill:var(--dim)}.tc .tc-head{font-weight:600;font-size:13px}.tc .tc-title{font-weight:650;font-size:17px}',
  '.tc .tc-grid{stroke:var(--grid);stroke-width:1}.tc .tc-line{fill:none;stroke-width:2.25;stroke-linejoin:round}.tc .tc-paper{fill:var(--paper)}',
  '.tc .tc-band-text{font-size:11px}',
].join('');

const CHART_WIDTH = 960;
const LEFT = 64;
const RIGHT = 190;
const PLOT_TOP = 28;
const PLOT_HEIGHT = 250;
const BAND_HEIGHT = 30;
const BAND_GAP = 8;

interface Axis {
  readonly least: number;
  readonly most: number;
  readonly x: (bytes: number) => number;
}

/** Sizes on a logarithmic axis. One size alone stands in the middle of an octave. */
function axisOf(least: number, most: number): Axis {
  const [from, to] = least === most ? [least / Math.SQRT2, most * Math.SQRT2] : [least, most];
  const span = Math.log2(to / from);
  return { least: from, most: to, x: (bytes) => LEFT + ((CHART_WIDTH - LEFT - RIGHT) * Math.log2(bytes / from)) / span };
}

type Curves = ReturnType<typeof alike>[number];

function bandwidthChart(groups: readonly Curves[], axis: Axis): string[] {
  const most = Math.max(0.001, ...groups.flatMap(({ rows }) => rows.map(({ choice }) => choice?.busGBps ?? 0)));
  const step = niceStep(most / 4);
  const top = step * Math.ceil(most / step);
  const y = (gbps: number) => PLOT_TOP + PLOT_HEIGHT * (1 - gbps / top);
  const lines = Array.from({ length: Math.round(top / step) + 1 }, (_, index) => index * step);
  // Names are at the ends of their lines, moved apart where these end close together.
  const ends = groups
    .map((group, index) => ({ group, index, y: y(group.rows.at(-1)?.choice?.busGBps ?? 0) }))
    .sort((a, b) => a.y - b.y);
  const labels = pushApart(
    ends.map((end) => end.y),
    32,
    PLOT_TOP + PLOT_HEIGHT - 14,
  );
  return [
    `<text x="${LEFT}" y="${PLOT_TOP - 12}" class="tc-head">Bus bandwidth, GB/s</text>`,
    ...lines.flatMap((gbps) => [
      `<line x1="${LEFT}" y1="${at(y(gbps))}" x2="${CHART_WIDTH - RIGHT}" y2="${at(y(gbps))}" class="tc-grid"/>`,
      `<text x="${LEFT - 8}" y="${at(y(gbps) + 4)}" text-anchor="end" class="tc-dim">${Number(gbps.toPrecision(6))}</text>`,
    ]),
    ...sizeTicks(axis, PLOT_TOP + PLOT_HEIGHT, 4),
    ...groups.map(({ rows }, index) => {
      const points = rows.flatMap(({ bytes, choice }) =>
        choice === undefined ? [] : [`${at(axis.x(bytes))},${at(y(choice.busGBps))}`],
      );
      return `<polyline points="${points.join(' ')}" class="tc-line" style="stroke:var(--l${index % 5})"/>`;
    }),
    ...groups.flatMap(({ rows, title }, index) =>
      rows.flatMap(({ bytes, choice }) =>
        choice === undefined
          ? []
          : [
              `<circle cx="${at(axis.x(bytes))}" cy="${at(y(choice.busGBps))}" r="6" fill="transparent"><title>${escape(
                `${title}, ${formatBytes(bytes)}: ${formatWay(choice)}, ${formatTime(choice.timeUs)}, ${formatRate(choice.busGBps)} GB/s`,
              )}</title></circle>`,
              ...(rows.length <= 2
                ? [
                    `<circle cx="${at(axis.x(bytes))}" cy="${at(y(choice.busGBps))}" r="4" style="fill:var(--l${index % 5})" pointer-events="none"/>`,
                  ]
                : []),
            ],
      ),
    ),
    ...ends.flatMap(({ group, index }, place) => [
      `<text x="${CHART_WIDTH - RIGHT + 10}" y="${at((labels[place] ?? 0) + 4)}" style="fill:var(--l${index % 5});font-weight:600">${escape(shortTitle(group.title))}</text>`,
      `<text x="${CHART_WIDTH - RIGHT + 10}" y="${at((labels[place] ?? 0) + 18)}" class="tc-dim">${formatRate(group.rows.at(-1)?.choice?.busGBps ?? 0)} GB/s</text>`,
    ]),
  ];
}

/** Moves ascending places down until each is `distance` below the one before, then up again from the lowest allowed. */
function pushApart(places: readonly number[], distance: number, lowest: number): number[] {
  const moved: number[] = [];
  for (const place of places) moved.push(Math.max(place, (moved.at(-1) ?? -Infinity) + distance));
  for (let index = moved.length - 1, limit = lowest; index >= 0; index--, limit -= distance)
    moved[index] = Math.min(moved[index] ?? 0, limit);
  return moved;
}

/** One row: a band for each range of sizes with one choice. */
function bands({ title, rows, flips }: Curves, axis: Axis, y: number): string[] {
  const first = rows[0]?.choice;
  const starts = [{ bytes: axis.least, way: first ?? null }, ...flips.map(({ bytes, to }) => ({ bytes, way: to }))];
  return [
    ...starts.flatMap(({ bytes, way }, index) => {
      const end = starts[index + 1]?.bytes ?? axis.most;
      const [from, to] = [axis.x(bytes), axis.x(end)];
      const width = Math.max(1, to - from - 1);
      const label = formatWay(way);
      const fits = [label, way?.algorithm ?? '', ''].find((text) => text.length * 6.4 + 10 <= width) ?? '';
      const range = `${formatBytes(Math.round(bytes))} to ${formatBytes(Math.round(end))}`;
      return [
        `<rect x="${at(from)}" y="${y}" width="${at(width)}" height="${BAND_HEIGHT}" rx="3" style="fill:var(--${colourOf(way?.algorithm)})" opacity="${
          strength[way?.protocol ?? 'Simple']
        }"><title>${escape(`${title}: ${label}, ${range}`)}</title></rect>`,
        ...(fits === ''
          ? []
          : [`<text x="${at(from + 7)}" y="${y + 19}" class="tc-band-text" pointer-events="none">${escape(fits)}</text>`]),
      ];
    }),
    `<text x="${CHART_WIDTH - RIGHT + 10}" y="${y + 19}">${escape(shortTitle(title))}</text>`,
  ];
}

function colourOf(algorithm: NcclAlgorithm | undefined): string {
  return algorithm ?? 'none';
}

const strength = { LL: 0.4, LL128: 0.68, Simple: 1 } as const;

/** Width of the text beside a chart. */
function shortTitle(title: string): string {
  return title.length <= 26 ? title : `${title.slice(0, 25)}…`;
}

/** Ticks at sizes 2^10 apart, or closer where the axis is short. */
function sizeTicks(axis: Axis, y: number, length: number): string[] {
  const octaves = Math.log2(axis.most / axis.least);
  const every = octaves > 18 ? 5 : octaves > 7 ? 2 : 1;
  const ticks: string[] = [];
  for (let exponent = Math.ceil(Math.log2(axis.least) - 1e-9); exponent <= Math.log2(axis.most) + 1e-9; exponent++) {
    if (exponent % every !== 0 && octaves > 1) continue;
    const x = at(axis.x(2 ** exponent));
    ticks.push(
      `<line x1="${x}" y1="${y}" x2="${x}" y2="${y + length}" class="tc-grid"/>`,
      `<text x="${x}" y="${y + length + 14}" text-anchor="middle" class="tc-dim">${formatBytes(2 ** exponent)}</text>`,
    );
  }
  return ticks;
}

/** 1, 2 or 5 times a power of ten, at least `value`. */
function niceStep(value: number): number {
  const power = 10 ** Math.floor(Math.log10(value));
  return power * ([1, 2, 5].find((factor) => factor * power >= value) ?? 10);
}
