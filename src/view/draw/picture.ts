import type { ColourName, Look } from './palette.js';

/**
 * A picture as a list of marks, in the order in which they are drawn. Every view makes one; SVG, the canvas and the page of the
 * studio draw it. It is a plain value: it can be compared, sent to another thread, and kept as a test's expectation.
 *
 *     (0, 0) ──► x           marks:  rect gpu  40,20 110×38   «GPU 3»    subject gpu/3
 *       │                            path nvlink  M95 58V90              subject link/0:…
 *       ▼ y                          text head  46,34  GPU 3
 */
export interface Picture {
  /** Accessible name. */
  readonly title: string;
  readonly width: number;
  readonly height: number;
  readonly marks: readonly Mark[];
}

/** One drawn element. Coordinates in pixels of the picture. */
export type Mark = RectMark | CircleMark | PathMark | TextMark;

/** Properties of every mark. */
export interface MarkStyle {
  /** Kind of the mark, from which its colours, widths and font follow. */
  readonly look: Look;
  /** Colours instead of those of the look. */
  readonly fill?: ColourName;
  readonly stroke?: ColourName;
  /** Width of the stroke instead of that of the look. */
  readonly strokeWidth?: number;
  /** The part of the plan that the mark stands for; marks of one subject are selected together. */
  readonly subject?: string;
  /** Text for a pointer that rests on it, and for screen readers. */
  readonly tip?: string;
}

/** A box. */
export interface RectMark extends MarkStyle {
  readonly kind: 'rect';
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
  /** Radius of its corners. */
  readonly radius?: number;
}

/** A dot. */
export interface CircleMark extends MarkStyle {
  readonly kind: 'circle';
  readonly x: number;
  readonly y: number;
  readonly radius: number;
}

/** Lines and curves. */
export interface PathMark extends MarkStyle {
  readonly kind: 'path';
  /** Commands of SVG's path syntax. */
  readonly d: string;
}

/** One line of text; `y` is its baseline. */
export interface TextMark extends MarkStyle {
  readonly kind: 'text';
  readonly x: number;
  readonly y: number;
  readonly text: string;
  readonly anchor?: 'middle' | 'end';
}

/** Coordinates with at most one digit after the point. */
export function at(value: number): number {
  return Math.round(value * 10) / 10;
}

/** A text mark. */
export function textMark(look: Look, x: number, y: number, text: string, more: Partial<TextMark> = {}): TextMark {
  return { kind: 'text', look, x: at(x), y: at(y), text, ...more };
}

/** A straight line. */
export function lineMark(look: Look, [x1, y1]: Point, [x2, y2]: Point, more: Partial<PathMark> = {}): PathMark {
  return polyline(
    look,
    [
      [x1, y1],
      [x2, y2],
    ],
    more,
  );
}

/** Straight lines through points. */
export function polyline(look: Look, points: readonly Point[], more: Partial<PathMark> = {}): PathMark {
  return { kind: 'path', look, d: `M${points.map(([x, y]) => `${at(x)} ${at(y)}`).join('L')}`, ...more };
}

/** A place: x, then y. */
export type Point = readonly [x: number, y: number];

/** The marks of a picture moved by `dx` and `dy`, for a picture that contains it. */
export function moved(marks: readonly Mark[], dx: number, dy: number): Mark[] {
  return marks.map((mark) =>
    mark.kind === 'path' ? { ...mark, d: movedPath(mark.d, dx, dy) } : { ...mark, x: at(mark.x + dx), y: at(mark.y + dy) },
  );
}

/** Only absolute commands whose numbers are pairs of coordinates: M, L, C, Q. */
function movedPath(d: string, dx: number, dy: number): string {
  let isX = false;
  return d.replace(/-?\d+(?:\.\d+)?/g, (number) => {
    isX = !isX;
    return String(at(Number(number) + (isX ? dx : dy)));
  });
}

/** Approximate width of a line of text in a proportional font. */
export function textWidth(text: string, size: number, isBold = false): number {
  let ems = 0;
  for (const character of text) ems += widthOf(character);
  return Math.ceil(ems * size * (isBold ? 1.07 : 1));
}

function widthOf(character: string): number {
  if (/[ilj.,:;'|!()[\]/ ]/.test(character)) return 0.32;
  if (/[mwMW@%]/.test(character)) return 0.9;
  if (/[A-Z]/.test(character)) return 0.68;
  return character > '\u2e80' ? 1 : 0.58;
}

/** Pictures that are less wide are for a phone. */
export const COMPACT_WIDTH = 500;

/** Lines of a text that is folded at its commas and dots to a width. */
export function foldText(text: string, width: number, size: number): string[] {
  const lines: string[] = [];
  for (const part of text.split(/(?<=,|·) /)) {
    const line = lines.at(-1);
    if (line !== undefined && textWidth(`${line} ${part}`, size) <= width) lines[lines.length - 1] = `${line} ${part}`;
    else lines.push(part);
  }
  return lines;
}

/** A text shortened to a width, with an ellipsis. */
export function fitText(text: string, width: number, size: number, isBold = false): string {
  if (textWidth(text, size, isBold) <= width) return text;
  let end = text.length;
  while (end > 0 && textWidth(`${text.slice(0, end)}…`, size, isBold) > width) end--;
  return end === 0 ? '' : `${text.slice(0, end).trimEnd()}…`;
}
