import type { Point } from '../draw/picture.js';

/** Straight pieces that stand for a curve. */
const PIECES = 16;
const origin: Point = [0, 0];

/**
 * The place at a part of a path's length.
 *
 * @param d absolute commands M, L, Q and C, as the pictures of this room have
 * @param part from 0, the start, to 1
 */
export function placeAlong(d: string, part: number): Point {
  const points = flattened(d);
  const lengths = points.slice(1).map((point, index) => distance(points[index] ?? point, point));
  let left = lengths.reduce((sum, each) => sum + each, 0) * Math.min(1, Math.max(0, part));
  for (let index = 0; index < lengths.length; index++) {
    const [from, to] = [points[index] ?? origin, points[index + 1] ?? origin];
    const length = lengths[index] ?? 0;
    if (left <= length && length > 0) return between(from, to, left / length);
    left -= length;
  }
  return points.at(-1) ?? origin;
}

function flattened(d: string): Point[] {
  const points: Point[] = [];
  for (const [, command = '', text = ''] of d.matchAll(/([MLQC])([^MLQC]*)/g)) {
    const numbers = (text.match(/-?\d+(?:\.\d+)?/g) ?? []).map(Number);
    const given = Array.from({ length: numbers.length / 2 }, (_, index): Point => [
      numbers[2 * index] ?? 0,
      numbers[2 * index + 1] ?? 0,
    ]);
    const start = points.at(-1);
    if (start === undefined || command === 'M' || command === 'L') points.push(...given);
    else for (let piece = 1; piece <= PIECES; piece++) points.push(onCurve([start, ...given], piece / PIECES));
  }
  return points;
}

/** De Casteljau's construction. */
function onCurve(points: readonly Point[], part: number): Point {
  const [first, ...others] = points;
  if (first === undefined || others.length === 0) return first ?? origin;
  return onCurve(
    others.map((point, index) => between(points[index] ?? point, point, part)),
    part,
  );
}

function between([x1, y1]: Point, [x2, y2]: Point, part: number): Point {
  return [x1 + (x2 - x1) * part, y1 + (y2 - y1) * part];
}

function distance([x1, y1]: Point, [x2, y2]: Point): number {
  return Math.hypot(x2 - x1, y2 - y1);
}
