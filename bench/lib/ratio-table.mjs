/**
 * Tables of comparisons: tccl's blocking API beside the best of its peers, then what a suite adds.
 *
 * @module
 */
import { formatSize } from '../../dist/perf/sizes.js';
import { formatUs, table, verdict } from './table.mjs';

/** @typedef {import('./compare.mjs').Comparison} Comparison */
/** @typedef {import('./compare.mjs').Figure} Figure */

/**
 * Sections of a report, one for each name that the comparisons get, each with a table.
 *
 * @template {Comparison} Row
 * @param {readonly Row[]} rows @param {(row: Row) => string} nameOf @param {(rows: readonly Row[]) => string} tableOf
 */
export function ratioSections(rows, nameOf, tableOf) {
  /** @type {Map<string, Row[]>} */
  const groups = new Map();
  for (const row of rows) groups.set(nameOf(row), [...(groups.get(nameOf(row)) ?? []), row]);
  return [...groups].map(([name, group]) => `${name}: lowest median of the rounds in µs, and ratios\n\n${tableOf(group)}`);
}

/**
 * @template {Comparison} Row
 * @param {readonly Row[]} rows
 * @param {(row: Row) => number | undefined} targetOf limit for the blocking API over the best peer
 * @param {readonly { title: string, cell(row: Row): string }[]} columns after these
 */
export function ratioTable(rows, targetOf, columns) {
  return table(
    ['size', 'best peer', '', 'sync', 'sync / best, target', ...columns.map(({ title }) => title)],
    rows.map((row) => {
      const { best, bytes, ours } = row;
      return [
        formatSize(bytes),
        best === undefined ? '' : `${best.lib} ${best.cfg}`,
        figure(best),
        figure(ours['sync']),
        verdict(over(ours['sync'], best), targetOf(row)),
        ...columns.map(({ cell }) => cell(row)),
      ];
    }),
  );
}

/** Microseconds of a figure; after `~` if other processes ran. */
export function figure(/** @type {Figure | undefined} */ value) {
  return value === undefined ? '' : `${value.noisy ? '~' : ''}${formatUs(value.us)}`;
}

/** Ratio of two figures, if both were measured. @param {Figure | undefined} one @param {Figure | undefined} other */
export function over(one, other) {
  return one === undefined || other === undefined ? undefined : one.us / other.us;
}
