import { formatBytes, formatTime, predictedWay } from '../../planner/plan/overview/format.js';
import type { ChosenWay } from '../../planner/plan/diff/cost.js';
import type { PredictedRow } from '../../planner/plan/prediction.js';
import { at, lineMark, type Mark, type Picture, polyline, textMark } from '../draw/picture.js';
import { bordersOf, CHART_WIDTH, type SizeAxis, sizeAxis, sizeTicks } from './axis.js';

/** Times of one collective: believed by NCCL, predicted by the simulation, and measured. */
export interface CallTimes {
  readonly title: string;
  /** NCCL's own model, by which it chooses; empty for messages between pairs. */
  readonly believed: readonly { readonly bytes: number; readonly choice: ChosenWay }[];
  readonly predicted: readonly PredictedRow[];
  readonly measured: readonly { readonly bytes: number; readonly timeUs: number; readonly label: string }[];
}

const LEFT = 76;
const TOP = 52;
const HEIGHT = 300;
/** Height of the legend above the plot, in a narrow place. */
const NARROW_LEGEND = 126;

/**
 * Times by size, both logarithmic: the belief as a thin line, the prediction as a thick one in the area of its interval,
 * measurements as dots.
 *
 *     10 ms │              ░▒▓●  predicted, with 8 of 10 measurements in its area
 *           │         ░▒▓▒░ ╱
 *     10 us │ ●──●──●─────╱      believed
 *           └ 1 KiB ─ 1 MiB ─ 1 GiB
 */
export function predictionPicture({ title, believed, predicted, measured }: CallTimes, width: number = CHART_WIDTH): Picture {
  const { isNarrow, right } = bordersOf(width);
  const top = TOP + (isNarrow ? NARROW_LEGEND : 0);
  const sizes = [...believed, ...predicted, ...measured].map(({ bytes }) => bytes);
  const times = [
    ...believed.map(({ choice }) => choice.timeUs),
    ...predicted.flatMap(({ leastUs, mostUs }) => [leastUs, mostUs]),
    ...measured.map(({ timeUs }) => timeUs),
  ].filter((time) => time > 0);
  const bottom = top + HEIGHT;
  const frame = { title: `${title}: time by size`, width, height: bottom + 36 };
  const head = [textMark('head', LEFT, TOP - 28, `${title}: time by size`)];
  if (sizes.length === 0 || times.length === 0)
    return {
      ...frame,
      marks: [...head, textMark('dim', LEFT, TOP, 'There is nothing to choose from, and nothing is simulated.')],
    };
  const axis = sizeAxis(Math.min(...sizes), Math.max(...sizes), LEFT, right);
  const values = logAxis(Math.min(...times), Math.max(...times), top, bottom);
  return {
    ...frame,
    marks: [
      ...head,
      ...values.powers.flatMap((value) => [
        lineMark('grid', [LEFT, values.y(value)], [right, values.y(value)]),
        textMark('dim', LEFT - 8, values.y(value) + 4, formatTime(value).replace(/\.0+(?= )/, ''), { anchor: 'end' }),
      ]),
      ...sizeTicks(axis, bottom, 4),
      ...intervalArea(predicted, axis, values),
      ...curve(
        believed.map(({ bytes, choice }) => [bytes, choice.timeUs]),
        axis,
        values,
        'belief',
      ),
      ...curve(
        predicted.map(({ bytes, timeUs }) => [bytes, timeUs]),
        axis,
        values,
        'curve',
      ),
      ...predicted.map(({ bytes, timeUs, leastUs, mostUs, choice, ...row }): Mark => ({
        ...dot('dot', axis.x(bytes), values.y(timeUs), 3),
        tip: `${formatBytes(bytes)}${predictedName({ choice, ...row })}: predicted ${formatTime(timeUs)}, 8 of 10 measurements between ${formatTime(leastUs)} and ${formatTime(mostUs)}${choice === undefined ? '' : `; NCCL believes ${formatTime(choice.timeUs)}`}`,
      })),
      ...measured.map(({ bytes, timeUs, label }): Mark => ({
        ...dot('measured', axis.x(bytes), values.y(timeUs), 4),
        tip: `${label}, ${formatBytes(bytes)}: measured ${formatTime(timeUs)}${comparison(predicted, bytes, timeUs)}`,
      })),
      ...legend(isNarrow ? LEFT : right + 14, [believed.length > 0, predicted.length > 0, measured.length > 0]),
    ],
  };
}

function predictedName(row: Parameters<typeof predictedWay>[0]): string {
  const way = predictedWay(row);
  return way === undefined ? '' : `, ${way}`;
}

/** Place of a measurement in the interval of the nearest predicted size. */
function comparison(predicted: readonly PredictedRow[], bytes: number, timeUs: number): string {
  const row = predicted.find((each) => each.bytes === bytes);
  if (row === undefined) return '';
  const place = timeUs < row.leastUs ? 'faster than' : timeUs > row.mostUs ? 'slower than' : 'within';
  return `, ${place} the interval of the prediction, ${(timeUs / row.timeUs).toFixed(2)} of it`;
}

interface LogAxis {
  readonly powers: readonly number[];
  readonly y: (value: number) => number;
}

/** A logarithmic axis over whole powers of ten. */
function logAxis(least: number, most: number, top: number, bottom: number): LogAxis {
  const from = Math.floor(Math.log10(least) + 1e-9);
  const to = Math.max(from + 1, Math.ceil(Math.log10(most) - 1e-9));
  return {
    powers: Array.from({ length: to - from + 1 }, (_, index) => 10 ** (from + index)),
    y: (value) => bottom - ((bottom - top) * (Math.log10(value) - from)) / (to - from),
  };
}

function curve(
  points: readonly (readonly [bytes: number, timeUs: number])[],
  axis: SizeAxis,
  values: LogAxis,
  look: 'belief' | 'curve',
): Mark[] {
  if (points.length < 2) return [];
  return [
    polyline(
      look,
      points.map(([bytes, timeUs]) => [axis.x(bytes), values.y(timeUs)]),
    ),
  ];
}

function intervalArea(rows: readonly PredictedRow[], axis: SizeAxis, values: LogAxis): Mark[] {
  if (rows.length < 2) return [];
  const above = rows.map(({ bytes, mostUs }) => [axis.x(bytes), values.y(mostUs)] as const);
  const below = rows.map(({ bytes, leastUs }) => [axis.x(bytes), values.y(leastUs)] as const);
  return [polyline('interval', [...above, ...below.reverse()], { fill: 'line0' })];
}

function dot(look: 'dot' | 'measured', x: number, y: number, radius: number) {
  return { kind: 'circle', look, x: at(x), y: at(y), radius } as const;
}

function legend(x: number, [believed, predicted, measured]: readonly [boolean, boolean, boolean]): Mark[] {
  const entries: (readonly [Mark, string, string])[] = [];
  const y = () => TOP + 12 + 42 * entries.length;
  if (predicted) entries.push([lineMark('curve', [x, y()], [x + 26, y()]), 'predicted', 'area: 8 of 10 fall in it']);
  if (believed) entries.push([lineMark('belief', [x, y()], [x + 26, y()]), 'believed', 'NCCL chooses by it']);
  if (measured) entries.push([dot('measured', x + 13, y(), 4), 'measured', 'nccl-tests, opened files']);
  return entries.flatMap(([mark, name, meaning], index) => [
    mark,
    textMark('label', x + 34, TOP + 16 + 42 * index, name),
    textMark('dim', x + 34, TOP + 31 + 42 * index, meaning),
  ]);
}
