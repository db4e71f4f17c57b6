import { formatBytes, formatRate, formatTime, formatWay } from '../../planner/plan/overview/format.js';
import type { PredictedCollective, PredictedRow } from '../../planner/plan/prediction.js';
import type { colorsFor } from '../output.js';

/** NCCL's belief beside the simulation, a table for each collective. */
export function predictionLines(predictions: readonly PredictedCollective[], paint: ReturnType<typeof colorsFor>): string[] {
  return predictions
    .filter(({ rows }) => rows.length > 0)
    .flatMap(({ collective, rows }) => {
      const heads = ['size', 'algorithm', 'NCCL believes', 'predicted', '10 % to 90 %', 'busbw'];
      const cells = rows.map(cellsOf);
      const widths = heads.map((head, column) => Math.max(head.length, ...cells.map((row) => row[column]?.length ?? 0)));
      const line = (row: readonly string[]) =>
        row
          .map((cell, column) => (column === 1 ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0)))
          .join('  ');
      return ['', paint.bold(collective), paint.dim(line(heads)), ...cells.map(line)];
    });
}

function cellsOf({ bytes, choice, timeUs, leastUs, mostUs, busGBps }: PredictedRow): string[] {
  return [
    formatBytes(bytes),
    choice === undefined ? 'pairs' : formatWay(choice),
    choice === undefined ? '' : formatTime(choice.timeUs),
    formatTime(timeUs),
    `${formatTime(leastUs)} to ${formatTime(mostUs)}`,
    formatRate(busGBps),
  ];
}
