import type { ScheduledCollective } from '../../schedule/schedule.js';
import type { Choice } from '../../tuning/choose.js';
import type { Flip } from '../../tuning/flips.js';
import type { PredictedCollective, PredictedRow } from '../prediction.js';
import type { Forecast } from './forecast.js';
import { alike, formatBytes } from './format.js';

/** Calls of one size. */
export interface CallRow {
  readonly bytes: number;
  /** NCCL's choice and its belief; undefined where it has no candidate, and for messages between pairs. */
  readonly choice: Choice | undefined;
  /** Undefined where nothing was simulated. */
  readonly predicted: PredictedRow | undefined;
}

/** Times of one collective, or of several with the same times. */
export interface CallTable {
  readonly title: string;
  readonly kind: 'predicted' | 'believed' | 'pairs';
  readonly rows: readonly CallRow[];
  readonly flips: readonly Flip[];
}

/** NCCL's belief beside predictions: a table for each group of collectives with the same times, messages between pairs last. */
export function callTables(forecasts: readonly Forecast[], predictions: readonly PredictedCollective[]): CallTable[] {
  const rowsOf = (collective: ScheduledCollective) => predictions.find((each) => each.collective === collective)?.rows ?? [];
  const tables = alike(forecasts).flatMap(({ names, rows, flips }) =>
    alikePredicted(names, rowsOf).map((group): CallTable => {
      const predicted = rowsOf(group[0] ?? 'AllReduce');
      return {
        title: group.join(', '),
        kind: predicted.length === 0 ? 'believed' : 'predicted',
        rows: rows.map(({ bytes, choice }) => ({ bytes, choice, predicted: predicted.find((row) => row.bytes === bytes) })),
        flips,
      };
    }),
  );
  const pairs = predictions.flatMap(({ collective, rows }): CallTable[] => {
    if (rows.length === 0 || forecasts.some((each) => each.collective === collective)) return [];
    const cells = rows.map((row) => ({ bytes: row.bytes, choice: undefined, predicted: row }));
    return [{ title: collective, kind: 'pairs', rows: cells, flips: [] }];
  });
  return [...tables, ...pairs];
}

/** Relative difference of predictions that share a column; their errors are larger. */
const SAME = 0.01;

function alikePredicted<Name extends ScheduledCollective>(
  names: readonly Name[],
  rowsOf: (name: Name) => readonly PredictedRow[],
): Name[][] {
  const groups: Name[][] = [];
  for (const name of names) {
    const rows = rowsOf(name);
    const group = groups.find(([first]) => {
      const others = first === undefined ? [] : rowsOf(first);
      return (
        others.length === rows.length &&
        rows.every(({ timeUs }, index) => Math.abs(timeUs / (others[index]?.timeUs ?? 0) - 1) < SAME)
      );
    });
    if (group === undefined) groups.push([name]);
    else group.push(name);
  }
  return groups;
}

/** Interval of predictions, as factors of the predicted time. */
export interface PredictionInterval {
  readonly collectives: readonly ScheduledCollective[];
  /** The first size of each row's range. */
  readonly ranges: readonly { readonly fromBytes: number; readonly least: number; readonly most: number }[];
}

/** Intervals of the predicted rows, by collectives that share them. */
export function predictionIntervals(predictions: readonly PredictedCollective[]): PredictionInterval[] {
  const groups = new Map<string, { collectives: ScheduledCollective[]; ranges: PredictionInterval['ranges'] }>();
  for (const { collective, rows } of predictions) {
    if (rows.length === 0) continue;
    const all = rows.map(({ bytes, timeUs, leastUs, mostUs }) => ({
      fromBytes: bytes,
      least: factorOf(leastUs, timeUs),
      most: factorOf(mostUs, timeUs),
    }));
    const ranges = all.filter(({ least, most }, index) => {
      const before = all[index - 1];
      return before?.least !== least || before.most !== most;
    });
    const key = JSON.stringify(ranges);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, { collectives: [collective], ranges });
    else group.collectives.push(collective);
  }
  return [...groups.values()];
}

/** Rounded, so that bounds of equal factors are equal. */
function factorOf(boundUs: number, timeUs: number): number {
  return Math.round((1e6 * boundUs) / timeUs) / 1e6;
}

/** `AllReduce: 0.91 to 1.28, 0.93 to 1.16 from 1 MiB`. */
export function intervalText({ collectives, ranges }: PredictionInterval): string {
  const parts = ranges.map(
    ({ fromBytes, least, most }, index) =>
      `${least.toFixed(2)} to ${most.toFixed(2)}${index === 0 ? '' : ` from ${formatBytes(fromBytes)}`}`,
  );
  return `${collectives.join(', ')}: ${parts.join(', ')}`;
}
