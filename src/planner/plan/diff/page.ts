import { escape } from '../../topology/view/markup.js';
import { page, section } from '../overview/page.js';
import type { RuleEffect } from './attribute.js';
import type { Comparison } from './compare.js';
import { costCells, describeEffect, type EffectText, rulesBehind } from './effect-text.js';

/** A comparison as one self-contained page: differences, their costs, and the rules behind them. */
export function comparisonHtml(comparison: Comparison, effects: readonly RuleEffect[]): string {
  const [a, b] = comparison.titles;
  return page(`${a} and ${b} · tccl diff`, '', [
    `<header><h1>${escape(a)}</h1><p class="dim">compared with ${escape(b)}</p></header>`,
    ...(effects.length === 0
      ? []
      : [section('Rules that decide otherwise', effects.map(describeEffect).map(effectCard).join(''))]),
    section('Calls', callTable(comparison, effects)),
    section('Decisions', decisionTable(comparison, effects)),
  ]);
}

function effectCard({ rules, changes }: EffectText): string {
  const told = rules.map(
    ({ name, about, before, after, source, undo }) =>
      `<h3>${escape(name)}</h3><p>${escape(about)}</p>` +
      `<p><b>before</b> ${escape(before)}</p><p><b>after</b> ${escape(after)}</p>` +
      (undo === undefined ? '' : `<p><b>set by</b> <code>${escape(undo)}</code></p>`) +
      `<p class="dim">${escape(source)}</p>`,
  );
  return `<div class="card">${told.join('')}<ul>${changes.map((change) => `<li>${escape(change)}</li>`).join('')}</ul></div>`;
}

function callTable({ costs }: Comparison, effects: readonly RuleEffect[]): string {
  if (costs.length === 0) return '<p>No call takes another time or another way at the sizes that were compared.</p>';
  const rows = costs.map((cost) => [...costCells(cost), rulesBehind(effects, cost).join(', ')]);
  return table(['collective', 'size', 'a', 'time', 'b', 'time', 'b / a', 'rules'], rows);
}

function decisionTable({ differences }: Comparison, effects: readonly RuleEffect[]): string {
  if (differences.length === 0) return '<p>All decisions are the same.</p>';
  const rows = differences.map((row) => [row.section, row.what, row.a, row.b, rulesBehind(effects, row).join(', ')]);
  return table(['part', 'what', 'a', 'b', 'rules'], rows);
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const cells = (tag: 'th' | 'td', row: readonly string[]) =>
    row.map((cell) => `<${tag} class="l">${escape(cell)}</${tag}>`).join('');
  const body = rows.map((row) => `<tr>${cells('td', row)}</tr>`).join('');
  return `<div class="card scroll"><table><tr>${cells('th', head)}</tr>${body}</table></div>`;
}
