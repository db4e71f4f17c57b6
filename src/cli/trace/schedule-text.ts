import type { Move, Schedule } from '../../planner/schedule/schedule.js';

/** Lines that are made at a time: a schedule may be longer than memory. */
const LINES_AT_ONCE = 1000;

/** The moves of a schedule as a table, some lines at a time. Ranges of input and output are in bytes. */
export function* scheduleLines(schedule: Schedule, ranks?: ReadonlySet<number>): Generator<string[]> {
  const { connections, workers } = schedule;
  const cells = ['rank', 'channel', 'worker', 'move', 'receive from', 'input', 'send to', 'output', 'bytes'];
  const widths = [5, 7, 6, 6, 12, 24, 12, 24, 9];
  const line = (row: readonly (string | number)[]) =>
    row.map((cell, column) => String(cell).padStart(widths[column] ?? 0)).join('  ');
  let lines = [line(cells)];
  const numbers = new Map<number, number>();
  for (const { rank, channel, moves } of workers) {
    const worker = numbers.get(rank) ?? 0;
    numbers.set(rank, worker + 1);
    if (rank < 0 || ranks?.has(rank) === false) continue;
    let number = 0;
    for (const move of moves()) {
      lines.push(line([rank, channel, worker, number++, ...cellsOf(move, connections), move.bytes]));
      if (lines.length === LINES_AT_ONCE) {
        yield lines;
        lines = [];
      }
    }
  }
  yield lines;
}

function cellsOf({ receive, input, send, output, bytes }: Move, connections: Schedule['connections']): string[] {
  const range = (start: number) => (start < 0 ? '-' : `${start} to ${start + bytes}`);
  const ends = (numbers: readonly number[], end: 'from' | 'to') =>
    numbers.length === 0
      ? '-'
      : numbers
          .map((number) => connections[number]?.[end] ?? -1)
          .map((rank) => (rank < 0 ? 'network' : String(rank)))
          .join(' ');
  return [ends(receive, 'from'), range(input), ends(send, 'to'), range(output)];
}
