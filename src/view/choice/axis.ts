import { formatBytes } from '../../planner/plan/overview/format.js';
import { lineMark, type Mark, textMark } from '../draw/picture.js';

/** Width of charts where there is room. */
export const CHART_WIDTH = 960;
/** Widths below it have no room for names beside a chart. */
export const NARROW = 700;

/** Borders of a chart's plot. */
export function bordersOf(width: number): { readonly isNarrow: boolean; readonly left: number; readonly right: number } {
  const isNarrow = width < NARROW;
  return { isNarrow, left: isNarrow ? 52 : 64, right: width - (isNarrow ? 16 : 190) };
}

/** Sizes on a logarithmic axis. */
export interface SizeAxis {
  readonly least: number;
  readonly most: number;
  readonly x: (bytes: number) => number;
  /** The size at a place. */
  readonly bytesAt: (x: number) => number;
}

/** The axis between two places. One size alone is in the middle of an octave. */
export function sizeAxis(least: number, most: number, left: number, right: number): SizeAxis {
  const [from, to] = least === most ? [least / Math.SQRT2, most * Math.SQRT2] : [least, most];
  const span = Math.log2(to / from);
  return {
    least: from,
    most: to,
    x: (bytes) => left + ((right - left) * Math.log2(bytes / from)) / span,
    bytesAt: (x) => from * 2 ** ((span * (x - left)) / (right - left)),
  };
}

/** Ticks at sizes 2^10 apart, or closer where the axis is short. */
export function sizeTicks(axis: SizeAxis, y: number, length: number): Mark[] {
  const octaves = Math.log2(axis.most / axis.least);
  const every = octaves > 18 ? 5 : octaves > 7 ? 2 : 1;
  const ticks: Mark[] = [];
  for (let exponent = Math.ceil(Math.log2(axis.least) - 1e-9); exponent <= Math.log2(axis.most) + 1e-9; exponent++) {
    if (exponent % every !== 0 && octaves > 1) continue;
    const x = axis.x(2 ** exponent);
    ticks.push(
      lineMark('grid', [x, y], [x, y + length]),
      textMark('dim', x, y + length + 14, formatBytes(2 ** exponent), { anchor: 'middle' }),
    );
  }
  return ticks;
}

/** Values from 0 on, with lines at round ones. */
export interface ValueAxis {
  readonly top: number;
  readonly steps: readonly number[];
  readonly y: (value: number) => number;
}

/** An axis that contains `most`. */
export function valueAxis(most: number, top: number, bottom: number): ValueAxis {
  const step = niceStep(Math.max(most, 0.001) / 4);
  const end = step * Math.ceil(Math.max(most, 0.001) / step - 1e-9);
  return {
    top: end,
    steps: Array.from({ length: Math.round(end / step) + 1 }, (_, index) => index * step),
    y: (value) => bottom - ((bottom - top) * value) / end,
  };
}

/** Lines across a chart with their values at the left. */
export function valueLines(axis: ValueAxis, left: number, right: number): Mark[] {
  return axis.steps.flatMap((value) => [
    lineMark('grid', [left, axis.y(value)], [right, axis.y(value)]),
    textMark('dim', left - 8, axis.y(value) + 4, String(Number(value.toPrecision(6))), { anchor: 'end' }),
  ]);
}

/** 1, 2 or 5 times a power of ten, at least `value`. */
function niceStep(value: number): number {
  const power = 10 ** Math.floor(Math.log10(value));
  return power * ([1, 2, 5].find((factor) => factor * power >= value * (1 - 1e-9)) ?? 10);
}

/** Moves ascending places down until each is `distance` below the one before, then up again from the lowest allowed. */
export function pushApart(places: readonly number[], distance: number, lowest: number): number[] {
  const result: number[] = [];
  for (const place of places) result.push(Math.max(place, (result.at(-1) ?? -Infinity) + distance));
  for (let index = result.length - 1, limit = lowest; index >= 0; index--, limit -= distance)
    result[index] = Math.min(result[index] ?? 0, limit);
  return result;
}
