import { counted } from '../../counted.js';
import { alike, formatBytes, formatRate, formatTime, formatWay, limitText } from '../../planner/plan/overview/format.js';
import type { Forecast } from '../../planner/plan/overview/forecast.js';
import type { Overview } from '../../planner/plan/overview/overview.js';
import { fitText, type Mark, moved, type Picture, polyline, textMark } from '../draw/picture.js';
import { lineColour } from '../draw/palette.js';
import { svgFile } from '../draw/svg.js';
import { pushApart, type SizeAxis, sizeAxis, sizeTicks, valueAxis, valueLines } from './axis.js';
import { BAND_HEIGHT, bandMarks } from './bands.js';

/** The charts of a plan as a self-contained picture, for light and dark backgrounds. */
export function overviewSvg(overview: Overview, curves: readonly Forecast[]): string {
  return svgFile(overviewPicture(overview, curves));
}

/** The charts of a plan with its name and facts above them. */
export function overviewPicture(overview: Overview, curves: readonly Forecast[]): Picture {
  const { title, nRanks, nNodes, nChannels, hosts } = overview;
  const { marks, width, height } = charts(curves);
  const [host] = [...hosts].sort((a, b) => a.searchedGBps - b.searchedGBps);
  const limit = host === undefined ? '' : limitText(host);
  const facts = `${nRanks} ranks on ${counted(nNodes, 'node')}, ${nChannels} channels · ${limit}`;
  return {
    title: `${title}: bus bandwidth and choice of algorithm by size`,
    width,
    height: height + HEAD,
    marks: [
      textMark('title', 20, 30, fitText(title, width - 40, 17, true)),
      textMark('dim', 20, 50, fitText(facts, width - 40, 11), { tip: facts }),
      ...moved(marks, 0, HEAD),
    ],
  };
}

const HEAD = 64;
const PLOT_TOP = 28;
const PLOT_HEIGHT = 250;
const BAND_GAP = 8;

/** Width of the charts, and the places of the plot's sides. */
interface Layout {
  readonly width: number;
  readonly left: number;
  readonly right: number;
  /** Names of curves and bands: at the right of the plot, or in lines of their own. */
  readonly names: 'beside' | 'above';
}

const wide: Layout = { width: 960, left: 64, right: 770, names: 'beside' };
/** As wide as a phone. */
const narrow: Layout = { width: 344, left: 36, right: 334, names: 'above' };
/** Height of a name in a line of its own. */
const NAME_HEIGHT = 18;

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
export function charts(curves: readonly Forecast[]): Picture {
  return chartsIn(curves, wide);
}

/** The same charts for a phone, with names above what they name. */
export function narrowCharts(curves: readonly Forecast[]): Picture {
  return chartsIn(curves, narrow);
}

function chartsIn(curves: readonly Forecast[], layout: Layout): Picture {
  const groups = alike(curves);
  const sizes = groups[0]?.rows.map(({ bytes }) => bytes) ?? [];
  const { width, left, right, names } = layout;
  const axis = sizeAxis(sizes[0] ?? 1, sizes.at(-1) ?? 1, left, right);
  const nameHeight = names === 'beside' ? 0 : NAME_HEIGHT;
  const plotTop = PLOT_TOP + groups.length * nameHeight;
  const bandTop = plotTop + PLOT_HEIGHT + 58 + nameHeight;
  const bandY = (index: number) => bandTop + index * (BAND_HEIGHT + BAND_GAP + nameHeight);
  const nameOf = (title: string, y: number) =>
    names === 'beside'
      ? textMark('text', right + 10, y + 19, fitText(title, width - right - 14, 12), { tip: title })
      : textMark('text', left, y - 5, fitText(title, right - left, 12), { tip: title });
  return {
    title: 'Bus bandwidth and choice of algorithm by size',
    width,
    height: bandY(groups.length) - nameHeight + 30,
    marks: [
      ...bandwidthChart(groups, axis, layout, plotTop),
      textMark('head', left, bandTop - nameHeight - 12, 'What NCCL chooses'),
      ...groups.flatMap(({ title, rows, flips }, index) => [
        ...bandMarks(
          { title, first: rows[0]?.choice ?? null, flips, collectives: groups[index]?.names ?? [] },
          axis,
          bandY(index),
        ),
        nameOf(title, bandY(index)),
      ]),
      ...sizeTicks(axis, bandY(groups.length) - nameHeight - BAND_GAP, 6),
    ],
  };
}

type Curves = ReturnType<typeof alike>[number];

function bandwidthChart(groups: readonly Curves[], axis: SizeAxis, layout: Layout, top: number): Mark[] {
  const { left, right } = layout;
  const bottom = top + PLOT_HEIGHT;
  const most = Math.max(0.001, ...groups.flatMap(({ rows }) => rows.map(({ choice }) => choice?.busGBps ?? 0)));
  const values = valueAxis(most, top, bottom);
  return [
    textMark('head', left, PLOT_TOP - 12, 'Bus bandwidth, GB/s'),
    ...valueLines(values, left, right),
    ...sizeTicks(axis, bottom, 4),
    ...groups.map(({ rows }, index) =>
      polyline(
        'curve',
        rows.flatMap(({ bytes, choice }) => (choice === undefined ? [] : [[axis.x(bytes), values.y(choice.busGBps)] as const])),
        { stroke: lineColour(index) },
      ),
    ),
    ...groups.flatMap(({ rows, title }, index) =>
      rows.flatMap(({ bytes, choice }): Mark[] => {
        if (choice === undefined) return [];
        const place = { x: Number(axis.x(bytes).toFixed(1)), y: Number(values.y(choice.busGBps).toFixed(1)) };
        const tip = `${title}, ${formatBytes(bytes)}: ${formatWay(choice)}, ${formatTime(choice.timeUs)}, ${formatRate(choice.busGBps)} GB/s`;
        return [
          ...(rows.length > 2 ? [] : [{ kind: 'circle', look: 'dot', ...place, radius: 4, fill: lineColour(index) } as const]),
          { kind: 'circle', look: 'target', ...place, radius: 6, tip },
        ];
      }),
    ),
    ...(layout.names === 'beside' ? namesAtEnds(groups, layout, values.y, bottom) : namesAbove(groups, layout)),
  ];
}

function lastOf({ rows }: Curves): number {
  return rows.at(-1)?.choice?.busGBps ?? 0;
}

/** Names at the ends of their lines, moved apart where these end close together. */
function namesAtEnds(
  groups: readonly Curves[],
  { right, width }: Layout,
  yOf: (value: number) => number,
  bottom: number,
): Mark[] {
  const ends = groups.map((group, index) => ({ group, index, y: yOf(lastOf(group)) })).sort((a, b) => a.y - b.y);
  const labels = pushApart(
    ends.map((end) => end.y),
    32,
    bottom - 14,
  );
  const x = right + 10;
  return ends.flatMap(({ group, index }, place) => [
    textMark('label', x, (labels[place] ?? 0) + 4, fitText(group.title, width - right - 14, 12, true), {
      fill: lineColour(index),
    }),
    textMark('dim', x, (labels[place] ?? 0) + 18, `${formatRate(lastOf(group))} GB/s`),
  ]);
}

/** Names with the bandwidth of the largest size, a line each. */
function namesAbove(groups: readonly Curves[], { left, right }: Layout): Mark[] {
  return groups.map((group, index) =>
    textMark(
      'label',
      left,
      PLOT_TOP + index * NAME_HEIGHT + 4,
      fitText(`${formatRate(lastOf(group))}  ${group.title}`, right - left, 12, true),
      { fill: lineColour(index), tip: group.title },
    ),
  );
}
