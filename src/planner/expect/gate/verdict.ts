import type { ExpectedRow, ExpectedTable } from '../expect.js';
import { formatBytes, formatRate } from '../../plan/overview/format.js';
import { sizeClassOf } from '../../simulate/measured-calls.js';
import type { Missing } from './missing.js';
import { testOf } from './thresholds.js';

/** A table of results beside the thresholds. */
export interface JudgedTable {
  readonly table: ExpectedTable;
  /** Rows whose thresholds measurements support. */
  readonly judged: readonly ExpectedRow[];
  readonly isSlow: boolean;
  /** The slow rows' largest, or the largest. */
  readonly shown: ExpectedRow | undefined;
}

/** Sizes at which bandwidth decides; at small ones the launch mode and the number of iterations do. */
const classes = ['middle', 'large'] as const;

/** A table is slow if most of its judged rows are below their thresholds: a single one may be an outlier. */
export function judge(table: ExpectedTable): JudgedTable {
  const judged = table.rows.filter(({ bytes, isMeasured }) => sizeClassOf(bytes) !== 'small' && isMeasured);
  const slow = classes.map((size) => {
    const rows = judged.filter(({ bytes }) => sizeClassOf(bytes) === size);
    const late = rows.filter(({ verdict }) => verdict === 'slow');
    return 2 * late.length > rows.length ? late : [];
  });
  const isSlow = slow.some((rows) => rows.length > 0);
  const rows = isSlow ? slow.flat() : judged.length > 0 ? judged : table.rows;
  return {
    table,
    judged,
    isSlow,
    shown: rows.reduce<ExpectedRow | undefined>((a, b) => (a !== undefined && a.bytes > b.bytes ? a : b), undefined),
  };
}

/** A slow table as a missing part. */
export function slowPart({ table, shown }: JudgedTable): Missing[] {
  if (shown === undefined) return [];
  const least = (shown.expectedGBps * shown.expectedUs) / shown.mostUs;
  return [
    {
      part: 'bandwidth',
      host: undefined,
      problem: `${testOf(table.collective)} reaches ${formatRate(shown.busGBps)} GB/s at ${formatBytes(shown.bytes)}, at least ${formatRate(least)} GB/s are required (${shown.place})`,
      check: 'tccl expect with the same arguments without --gate names what would explain it',
      place: undefined,
    },
  ];
}
