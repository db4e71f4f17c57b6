import { predictedWay } from '../plan/overview/format.js';
import type { PredictedRow } from '../plan/prediction.js';
import { formatGBps } from '../topology/format.js';

/** Text of numbers and lists in answers; sizes and times are in overview/format. */

/** `370.8 GB/s`. */
export function rate(gbps: number): string {
  return `${formatGBps(gbps)} GB/s`;
}

/** ` by Ring Simple`; nothing for messages between pairs of ranks. */
export function byWay(row: PredictedRow): string {
  const way = predictedWay(row);
  return way === undefined ? '' : ` by ${way}`;
}

/** `a`, `a and b`, `a, b and c`. */
export function list(words: readonly string[]): string {
  return words.length < 2 ? words.join('') : `${words.slice(0, -1).join(', ')} and ${words.at(-1) ?? ''}`;
}

/** `15 % more`, `2.3 times as much`. */
export function more(value: number, than: number): string {
  const ratio = value / than;
  return ratio >= 2 ? `${Number(ratio.toPrecision(3))} times as much` : `${Number(((ratio - 1) * 100).toPrecision(3))} % more`;
}
