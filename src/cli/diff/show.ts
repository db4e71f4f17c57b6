import { isDeepStrictEqual } from 'node:util';
import { type RuleEffect, ruleEffects } from '../../planner/plan/diff/attribute.js';
import { comparePlans, type Comparison, type Difference, type Side } from '../../planner/plan/diff/compare.js';
import type { Cost } from '../../planner/plan/diff/cost.js';
import { costCells, describeEffect, predictedCells, rulesBehind } from '../../planner/plan/diff/effect-text.js';
import { type PredictedCall, type PredictedCost, predictedCosts } from '../../planner/plan/diff/predicted-cost.js';
import { usualSizes } from '../../planner/plan/overview/forecast.js';
import { formatBytes, formatTime } from '../../planner/plan/overview/format.js';
import { isQuickToPredict, pairCollectives, predictedCollectives } from '../../planner/plan/predicted-calls.js';
import type { ClusterOptions } from '../cluster-options.js';
import { colorsFor, print, printJson, printNotes, writeFile } from '../output.js';
import { type ReadSide, readSide } from './side.js';

export interface DiffOptions extends ClusterOptions {
  readonly nodesA?: string;
  readonly nodesB?: string;
  readonly ncclB?: string;
  readonly envA?: readonly string[];
  readonly envB?: readonly string[];
  readonly all?: boolean;
  readonly json?: boolean;
  readonly exitCode?: boolean;
  readonly predict?: boolean;
  readonly html?: string;
}

/** The findings of `tccl diff`. */
interface Shown {
  readonly differs: boolean;
  /** Rules behind the differences; undefined where the sides differ in more than the version of NCCL. */
  readonly effects: readonly RuleEffect[] | undefined;
}

/** Maximum number of rows of one kind; further ones are only counted, unless `--all` is given. */
const MOST_ROWS = 12;

/**
 * `tccl diff`.
 *
 * @param more further members of the JSON
 * @returns whether the plans differ, and why
 */
export async function showDiff(nameA: string, nameB: string, options: DiffOptions, more: object = {}): Promise<Shown> {
  const a = await readSide(nameA, optionsOf(options, options.nodesA, options.envA, options.nccl));
  const b = await readSide(nameB, optionsOf(options, options.nodesB, options.envB, options.ncclB ?? options.nccl));
  const comparison = comparePlans(a.side, b.side, usualSizes);
  const { predicted, leftOut: notSimulated } = simulatedCosts(a.side, b.side, options.predict);
  const differs = comparison.differences.length > 0 || comparison.costs.length > 0;
  const effects =
    (differs || predicted.length > 0) && nameA === nameB ? effectsBetween(a, b, predicted.filter(isOfPairs)) : undefined;
  const leftOut = [...comparison.leftOut, ...notSimulated];
  if (options.json === true)
    printJson({
      differs,
      ...withRules(comparison, effects),
      leftOut,
      predicted,
      ...(effects === undefined ? {} : { effects: effects.map(describeEffect) }),
      ...more,
    });
  else
    print(
      ...(differs
        ? comparisonLines(comparison, effects, options.all === true)
        : [predicted.length > 0 ? 'The plans are the same, but simulated calls take another time.' : 'The plans are the same.']),
      ...(differs || predicted.length > 0 ? ['', ...costTable(comparison.costs, predicted, effects, options)] : []),
      ...(effects === undefined ? [] : effectLines(effects)),
      ...(options.predict === true ? predictedLines(predicted) : []),
    );
  printNotes([...new Set([...leftOut, ...a.notes, ...b.notes])]);
  if (options.html !== undefined) {
    const { comparisonHtml } = await import('../../view/page/diff-page.js');
    writeFile(options.html, comparisonHtml(comparison, effects ?? [], predicted));
  }
  if (options.exitCode === true && differs) process.exitCode = 1;
  return { differs, effects };
}

/** Calls with another simulated time: messages between pairs, for which NCCL has no model, and all others if asked for. */
function simulatedCosts(
  a: Side,
  b: Side,
  predict: boolean | undefined,
): { readonly predicted: readonly PredictedCost[]; readonly leftOut: readonly string[] } {
  const nRanks = Math.max(a.plan.nodes.nRanks, b.plan.nodes.nRanks);
  if (predict !== true && !isQuickToPredict(nRanks, usualSizes.length))
    return {
      predicted: [],
      leftOut: [`All-to-all and send/recv of ${nRanks} ranks are not compared: --predict does it, which takes a while.`],
    };
  const predicted = predictedCosts(a, b, usualSizes, predict === true ? predictedCollectives : pairCollectives);
  return { predicted: predicted ?? [], leftOut: [] };
}

function isOfPairs({ collective }: PredictedCall): boolean {
  return (pairCollectives as readonly string[]).includes(collective);
}

/** The rules behind the differences of two plans that differ in the version of NCCL alone. */
function effectsBetween({ made: a }: ReadSide, { made: b }: ReadSide, calls: readonly PredictedCall[]): RuleEffect[] | undefined {
  if (a === undefined || b === undefined) return undefined;
  const [from, to] = [a.parameters.ncclVersion, b.parameters.ncclVersion];
  if (from === to || !isDeepStrictEqual({ ...a.parameters, ncclVersion: to }, b.parameters)) return undefined;
  return ruleEffects({ cluster: a.cluster, parameters: a.parameters, options: a.options, from, to, sizes: usualSizes, calls });
}

function withRules({ differences, costs, ...rest }: Comparison, effects: readonly RuleEffect[] | undefined): object {
  if (effects === undefined) return { differences, costs, ...rest };
  return {
    ...rest,
    differences: differences.map((row) => ({ ...row, rules: rulesBehind(effects, row) })),
    costs: costs.map((row) => ({ ...row, rules: rulesBehind(effects, row) })),
  };
}

/** The effect of each rule, and the variable that sets it. */
function effectLines(effects: readonly RuleEffect[]): string[] {
  const paint = colorsFor(process.stdout);
  return effects
    .map(describeEffect)
    .flatMap(({ rules, changes }) => [
      '',
      ...rules.flatMap(({ name, about, before, after, undo }) => [
        `${paint.bold(name)}  ${about}`,
        `  before  ${before}`,
        `  after   ${after}`,
        ...(undo === undefined ? [] : [`  set by  ${undo}`]),
      ]),
      ...changes.map((change) => paint.dim(`  ${change}`)),
    ]);
}

function optionsOf(
  { nodes, hardware, env, collnet, torch, windows }: DiffOptions,
  ownNodes: string | undefined,
  ownEnv: readonly string[] | undefined,
  nccl: string | undefined,
): ClusterOptions {
  const allNodes = ownNodes ?? nodes;
  const allEnv = env === undefined && ownEnv === undefined ? undefined : [...(env ?? []), ...(ownEnv ?? [])];
  return {
    ...(allNodes === undefined ? {} : { nodes: allNodes }),
    ...(hardware === undefined ? {} : { hardware }),
    ...(nccl === undefined ? {} : { nccl }),
    ...(torch === undefined || nccl !== undefined ? {} : { torch }),
    ...(allEnv === undefined ? {} : { env: allEnv }),
    ...(collnet === undefined ? {} : { collnet }),
    ...(windows === undefined ? {} : { windows }),
  };
}

function comparisonLines(
  { titles, differences }: Comparison,
  effects: readonly RuleEffect[] | undefined,
  all: boolean,
): string[] {
  const paint = colorsFor(process.stdout);
  const lines = [`${paint.bold('a')} ${titles[0]}`, `${paint.bold('b')} ${titles[1]}`];
  for (const [section, rows] of grouped(differences)) {
    lines.push('', paint.bold(section));
    const shown = all ? rows : rows.slice(0, MOST_ROWS);
    const width = Math.max(...shown.map(({ what }) => what.length));
    for (const { what, a, b, ...row } of shown) {
      const wide = a.length + b.length > 90;
      const rules = rulesBehind(effects ?? [], { what, section: row.section }).join(', ');
      const because = rules === '' ? '' : paint.dim(`  (${rules})`);
      lines.push(
        ...(wide ? [`  ${what}${because}`, `    a ${a}`, `    b ${b}`] : [`  ${what.padEnd(width)}  ${a} -> ${b}${because}`]),
      );
    }
    if (shown.length < rows.length) lines.push(paint.dim(`  and ${rows.length - shown.length} more (--all)`));
  }
  return lines;
}

/** Simulated times of both sides, with the interval that measurements lie in. */
function predictedLines(costs: readonly PredictedCost[]): string[] {
  const paint = colorsFor(process.stdout);
  if (costs.length === 0) return ['', 'By the simulation no call takes another time.'];
  const timeOf = ({ timeUs, leastUs, mostUs }: PredictedCost['a']) => [
    formatTime(timeUs),
    `(${formatTime(leastUs)} to ${formatTime(mostUs)})`,
  ];
  const rows = [
    ['predicted', 'size', 'a', '10 % to 90 %', 'b', '10 % to 90 %', 'b / a'],
    ...costs.map(({ collective, bytes, a, b, ratio }) => [
      collective,
      formatBytes(bytes),
      ...timeOf(a),
      ...timeOf(b),
      ratio.toFixed(2),
    ]),
  ];
  const widths = rows[0]?.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0))) ?? [];
  const line = (row: readonly string[]) =>
    row.map((cell, column) => (column === 0 ? cell.padEnd(widths[0] ?? 0) : cell.padStart(widths[column] ?? 0))).join('  ');
  return ['', ...rows.map((row, index) => (index === 0 ? paint.bold(line(row)) : line(row)))];
}

function grouped(differences: readonly Difference[]): Map<string, Difference[]> {
  const groups = new Map<string, Difference[]>();
  for (const each of differences) groups.set(each.section, [...(groups.get(each.section) ?? []), each]);
  return groups;
}

/** Times by size: AllReduce in full, the others shortened, since they are mostly similar; messages between pairs last. */
function costTable(
  costs: readonly Cost[],
  predicted: readonly PredictedCost[],
  effects: readonly RuleEffect[] | undefined,
  { all = false, predict = false }: DiffOptions,
): string[] {
  const paint = colorsFor(process.stdout);
  // With --predict they are in the table of predictions.
  const pairs = predict ? [] : predicted.filter(isOfPairs);
  if (costs.length === 0 && pairs.length === 0)
    return ['No call takes another time or another way at the sizes that were compared; all-to-all and send/recv by simulation.'];
  const shown = all
    ? costs
    : costs
        .filter(({ collective }, index) => costs.findIndex((other) => other.collective === collective) + MOST_ROWS > index)
        .slice(0, 3 * MOST_ROWS);
  const rulesOf = (row: Parameters<typeof rulesBehind>[1]) =>
    effects === undefined ? [] : [rulesBehind(effects, row).join(', ')];
  const rows = [
    ['collective', 'size', 'a', '', 'b', '', 'b / a', ...(effects === undefined ? [] : ['rules'])],
    ...shown.map((cost) => [...costCells(cost), ...rulesOf(cost)]),
    ...pairs.map((cost) => [...predictedCells(cost), ...rulesOf(cost)]),
  ];
  const widths = rows[0]?.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0))) ?? [];
  const lines = rows.map((row, index) => {
    const line = row
      .map((cell, column) =>
        [1, 3, 5, 6].includes(column) ? cell.padStart(widths[column] ?? 0) : cell.padEnd(widths[column] ?? 0),
      )
      .join('  ')
      .trimEnd();
    return index === 0 ? paint.bold(line) : line;
  });
  return shown.length < costs.length ? [...lines, paint.dim(`and ${costs.length - shown.length} more (--all)`)] : lines;
}
