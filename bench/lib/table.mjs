/**
 * A table as Markdown that is readable as text too: the first column flush left, the others flush right.
 *
 * @param {readonly string[]} titles @param {readonly (readonly string[])[]} rows
 */
export function table(titles, rows) {
  const widths = titles.map((title, column) => Math.max(title.length, 3, ...rows.map((row) => (row[column] ?? '').length)));
  const line = (/** @type {readonly string[]} */ cells) =>
    `| ${widths.map((width, column) => (column === 0 ? (cells[column] ?? '').padEnd(width) : (cells[column] ?? '').padStart(width))).join(' | ')} |`;
  const rule = `|${widths.map((width, column) => (column === 0 ? `:${'-'.repeat(width + 1)}` : `${'-'.repeat(width + 1)}:`)).join('|')}|`;
  return [line(titles), rule, ...rows.map(line)].join('\n');
}

/** Microseconds with three digits or so. */
export function formatUs(/** @type {number} */ us) {
  return us < 10 ? us.toFixed(2) : us < 100 ? us.toFixed(1) : us.toFixed(0);
}

/** A value beside its limit: `0.41 ≤ 0.45 met`, `0.50 > 0.45 missed`; only the value where there is no limit. */
export function verdict(/** @type {number | undefined} */ value, /** @type {number | undefined} */ limit) {
  if (value === undefined) return '';
  if (limit === undefined) return value.toFixed(2);
  return value <= limit ? `${value.toFixed(2)} ≤ ${limit} met` : `${value.toFixed(2)} > ${limit} missed`;
}
