import { formatBytes, formatTime, formatWay } from '../overview/format.js';
import type { RuleEffect } from './attribute.js';
import type { Cost } from './cost.js';
import type { PredictedCost } from './predicted-cost.js';

/** Text of a rule's effect on a cluster. */
export interface EffectText {
  /** Names of the rules. */
  readonly title: string;
  readonly rules: readonly {
    readonly name: string;
    readonly about: string;
    readonly before: string;
    readonly after: string;
    readonly source: string;
    /** The variable that sets it. */
    readonly undo: string | undefined;
  }[];
  /** Decisions and calls that change, one sentence each. */
  readonly changes: readonly string[];
}

/** Number of decisions of a rule that are named; the others are counted. */
const MOST_DECISIONS = 4;

/** Text of a rule's effect on a cluster: values before and after, the variable that sets it, and the changes. */
export function describeEffect({ rules, differences, costs, predicted }: RuleEffect): EffectText {
  const named = differences.slice(0, MOST_DECISIONS);
  const more = differences.length - named.length;
  return {
    title: rules.map(({ name }) => name).join(' + '),
    rules: rules.map(({ name, rule, before, after, setBy }) => ({
      name,
      about: rule.about,
      before: before.means,
      after: after.means,
      source: rule.source,
      undo: setBy,
    })),
    changes: [
      ...named.map(({ what, a, b }) => `${what}: ${shortened(a)} -> ${shortened(b)}`),
      ...(more > 0 ? [`and ${more} more ${more === 1 ? 'decision' : 'decisions'}`] : []),
      ...callChanges(costs),
      ...predictedChanges(predicted),
    ],
  };
}

/** Rings of a node can be long. */
function shortened(text: string): string {
  return text.length <= 60 ? text : `${text.slice(0, 57)}...`;
}

function callChanges(costs: readonly Cost[]): string[] {
  return [...new Set(costs.map(({ collective }) => collective))].map((collective) => {
    const rows = costs.filter((cost) => cost.collective === collective);
    const ways = new Set(
      rows
        .map(({ a, b }) => [formatWay(a), formatWay(b)] as const)
        .flatMap(([a, b]) => (a === b ? [] : [`${b} instead of ${a}`])),
    );
    return [`${collective} of ${rangeOf(rows)}`, timesText(rows), ...ways].join(', ');
  });
}

function predictedChanges(predicted: readonly PredictedCost[]): string[] {
  return [...new Set(predicted.map(({ collective }) => collective))].map((collective) => {
    const rows = predicted.filter((cost) => cost.collective === collective);
    return `${collective} of ${rangeOf(rows)}, ${timesText(rows)} by the simulation`;
  });
}

function rangeOf(rows: readonly { readonly bytes: number }[]): string {
  const sizes = rows.map(({ bytes }) => bytes);
  const [least, most] = [Math.min(...sizes), Math.max(...sizes)];
  return least === most ? formatBytes(least) : `${formatBytes(least)} to ${formatBytes(most)}`;
}

function timesText(rows: readonly { readonly ratio: number | null }[]): string {
  const ratios = rows.flatMap(({ ratio }) => (ratio === null ? [] : [ratio]));
  if (ratios.length === 0) return 'not possible in one of the two';
  const [least, most] = [Math.min(...ratios).toFixed(2), Math.max(...ratios).toFixed(2)];
  return `${least === most ? least : `${least} to ${most}`} of the time`;
}

/** The cells of a row: collective, size, way and time in a, the same in b, ratio. */
export function costCells({ collective, bytes, a, b, ratio }: Cost): string[] {
  return [
    collective,
    formatBytes(bytes),
    formatWay(a),
    a === null ? '' : formatTime(a.timeUs),
    formatWay(b),
    b === null ? '' : formatTime(b.timeUs),
    ratio === null ? '-' : ratio.toFixed(2),
  ];
}

/** The same cells of a simulated call. */
export function predictedCells({ collective, bytes, a, b, ratio }: PredictedCost): string[] {
  const simulated = 'simulated';
  return [collective, formatBytes(bytes), simulated, formatTime(a.timeUs), simulated, formatTime(b.timeUs), ratio.toFixed(2)];
}

/** The rules behind a row of a comparison. */
export function rulesBehind(
  effects: readonly RuleEffect[],
  row: { readonly section: string; readonly what: string } | { readonly collective: string; readonly bytes: number },
): string[] {
  return effects
    .filter(({ differences, costs, predicted }) =>
      'section' in row
        ? differences.some(({ section, what }) => section === row.section && what === row.what)
        : [...costs, ...predicted].some(({ collective, bytes }) => collective === row.collective && bytes === row.bytes),
    )
    .flatMap(({ rules }) => rules.map(({ name }) => name));
}
