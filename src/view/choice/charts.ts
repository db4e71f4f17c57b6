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
const CHART_WIDTH = 960;
const LEFT = 64;
const RIGHT = 190;
const PLOT_TOP = 28;
const PLOT_HEIGHT = 250;
const BAND_GAP = 8;

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
  const groups = alike(curves);
  const sizes = groups[0]?.rows.map(({ bytes }) => bytes) ?? [];
  const axis = sizeAxis(sizes[0] ?? 1, sizes.at(-1) ?? 1, LEFT, CHART_WIDTH - RIGHT);
  const bandTop = PLOT_TOP + PLOT_HEIGHT + 58;
  const bandY = (index: number) => bandTop + index * (BAND_HEIGHT + BAND_GAP);
  return {
    title: 'Bus bandwidth and choice of algorithm by size',
    width: CHART_WIDTH,
    height: bandTop + groups.length * (BAND_HEIGHT + BAND_GAP) + 30,
    marks: [
      ...bandwidthChart(groups, axis),
      textMark('head', LEFT, bandTop - 12, 'What NCCL chooses'),
      ...groups.flatMap(({ title, rows, flips }, index) => [
        ...bandMarks(
          { title, first: rows[0]?.choice ?? null, flips, collectives: groups[index]?.names ?? [] },
          axis,
          bandY(index),
        ),
        textMark('text', CHART_WIDTH - RIGHT + 10, bandY(index) + 19, fitText(title, RIGHT - 14, 12), { tip: title }),
      ]),
      ...sizeTicks(axis, bandY(groups.length) - BAND_GAP, 6),
    ],
  };
}

type Curves = ReturnType<typeof alike>[number];

function bandwidthChart(groups: readonly Curves[], axis: SizeAxis): Mark[] {
  const bottom = PLOT_TOP + PLOT_HEIGHT;
  const most = Math.max(0.001, ...groups.flatMap(({ rows }) => rows.map(({ choice }) => choice?.busGBps ?? 0)));
  const values = valueAxis(most, PLOT_TOP, bottom);
  const lastOf = ({ rows }: Curves) => rows.at(-1)?.choice?.busGBps ?? 0;
  // Names are at the ends of their lines, moved apart where these end close together.
  const ends = groups.map((group, index) => ({ group, index, y: values.y(lastOf(group)) })).sort((a, b) => a.y - b.y);
  const labels = pushApart(
    ends.map((end) => end.y),
    32,
    bottom - 14,
  );
  const x = CHART_WIDTH - RIGHT + 10;
  return [
    textMark('head', LEFT, PLOT_TOP - 12, 'Bus bandwidth, GB/s'),
    ...valueLines(values, LEFT, CHART_WIDTH - RIGHT),
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
    ...ends.flatMap(({ group, index }, place) => [
      textMark('label', x, (labels[place] ?? 0) + 4, fitText(group.title, RIGHT - 14, 12, true), { fill: lineColour(index) }),
      textMark('dim', x, (labels[place] ?? 0) + 18, `${formatRate(lastOf(group))} GB/s`),
    ]),
  ];
}
