import type { RuleEffect } from '../../planner/plan/diff/attribute.js';
import type { Comparison } from '../../planner/plan/diff/compare.js';
import { costCells, describeEffect, type EffectText, predictedCells, rulesBehind } from '../../planner/plan/diff/effect-text.js';
import type { PredictedCost } from '../../planner/plan/diff/predicted-cost.js';
import { escape } from '../draw/markup.js';
import { page, section, stackedTable } from './page.js';

/** A comparison as one self-contained page: differences, their costs, and the rules behind them. */
export function comparisonHtml(
  comparison: Comparison,
  effects: readonly RuleEffect[],
  predicted: readonly PredictedCost[] = [],
): string {
  const [a, b] = comparison.titles;
  return page(`${a} and ${b} · tccl diff`, DIFF_STYLE, [
    `<header><h1>${escape(a === b ? a : `${a} and ${b}`)}</h1><p class="dim">${escape(settingsText(comparison))}</p></header>`,
    ...(effects.length === 0
      ? []
      : [section('Rules that decide otherwise', effects.map(describeEffect).map(effectCard).join(''))]),
    section('Calls', callTable(comparison, effects, predicted)),
    section('Decisions', decisionTable(comparison, effects)),
  ]);
}

/** Long values of a decision take several lines. */
const DIFF_STYLE = 'td.l{white-space:normal;overflow-wrap:break-word;vertical-align:top}';

/** The settings by which the two sides differ, where their machines do not. */
function settingsText({ titles: [a, b], differences }: Comparison): string {
  const set = (side: 'a' | 'b') => {
    const own = differences.filter(({ section: part, [side]: value }) => part === 'parameters' && value !== '-');
    return [...(a === b ? [] : [side === 'a' ? a : b]), ...own.map(({ what, [side]: value }) => `${what}=${value}`)].join(', ');
  };
  return `a: ${set('a') || 'as it is'} · b: ${set('b') || 'as it is'}`;
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

function callTable({ costs }: Comparison, effects: readonly RuleEffect[], predicted: readonly PredictedCost[]): string {
  if (costs.length === 0 && predicted.length === 0)
    return '<p>No call takes another time or another way at the sizes that were compared.</p>';
  const rows = [
    ...costs.map((cost) => ({ cost, cells: costCells(cost) })),
    ...predicted.map((cost) => ({ cost, cells: predictedCells(cost) })),
  ];
  return table(
    ['collective', 'size', 'a', 'time', 'b', 'time', 'b / a'],
    rows.map(({ cells }) => cells),
    effects.length === 0 ? undefined : rows.map(({ cost }) => rulesBehind(effects, cost).join(', ')),
  );
}

function decisionTable({ differences }: Comparison, effects: readonly RuleEffect[]): string {
  if (differences.length === 0) return '<p>All decisions are the same.</p>';
  return table(
    ['part', 'what', 'a', 'b'],
    differences.map((row) => [row.section, row.what, row.a, row.b]),
    effects.length === 0 ? undefined : differences.map((row) => rulesBehind(effects, row).join(', ')),
  );
}

/** @param rules of each row; undefined where no rule is known */
function table(head: readonly string[], rows: readonly (readonly string[])[], rules: readonly string[] | undefined): string {
  if (rules === undefined) return stackedTable(head, rows);
  return stackedTable(
    [...head, 'rules'],
    rows.map((row, index) => [...row, rules[index] ?? '']),
  );
}
