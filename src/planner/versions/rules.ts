import { mergeRules } from './merge-rules.js';
import { OLDEST_VERSION, type Rule } from './rule.js';
import { searchRules } from './search-rules.js';
import { symmetricRules } from './symmetric-rules.js';
import { topologyRules } from './topology-rules.js';
import { tuningRules } from './tuning-rules.js';
import { compareVersions, defaultVersion } from './version.js';

/** The rules by subject, in the order of NCCL's decisions. */
export const ruleGroups = {
  'Topology and paths': topologyRules,
  'Channel search': searchRules,
  'Channels of all ranks': mergeRules,
  'Tuning model and choice': tuningRules,
  'Symmetric windows': symmetricRules,
} as const;

const table = { ...topologyRules, ...searchRules, ...mergeRules, ...tuningRules, ...symmetricRules };

/** The name of a rule. */
export type RuleName = keyof typeof table;

/** Values of all rules for one version: the code at a decision reads its field. */
export type Rules = { readonly [Name in RuleName]: (typeof table)[Name] extends Rule<infer Value> ? Value : never };

const known = new Map<string, Rules>();

/** The rules of a version; the same object each time. */
export function rulesOf({ ncclVersion }: { readonly ncclVersion: string }): Rules {
  let rules = known.get(ncclVersion);
  if (rules === undefined) {
    rules = Object.freeze(makeRules(ncclVersion));
    known.set(ncclVersion, rules);
  }
  return rules;
}

const partOfTheWayPattern = /^(.+) to (.+), first (\d+)$/;

function makeRules(ncclVersion: string): Rules {
  const [, from, to, count] = partOfTheWayPattern.exec(ncclVersion) ?? [];
  const versionOf = (position: number) =>
    from === undefined || to === undefined ? ncclVersion : position < Number(count) ? to : from;
  return Object.fromEntries(
    Object.entries(table).map(([name, rule], position) => [name, stepOf(rule, versionOf(position)).value]),
  ) as Rules;
}

/**
 * Identifies a version whose first rules, in the order of decisions, are those of another one, to find the rule behind a
 * difference.
 */
export function mixedVersion(from: string, to: string, count: number): string {
  return count === 0 ? from : `${from} to ${to}, first ${count}`;
}

/** Number of rules before one in the order of decisions. */
export function positionOf(name: RuleName): number {
  return Object.keys(table).indexOf(name);
}

/** Number of rules up to the end of a group. */
export function lastRuleOf(group: keyof typeof ruleGroups): number {
  const names = Object.keys(ruleGroups) as (keyof typeof ruleGroups)[];
  return names.slice(0, names.indexOf(group) + 1).reduce((count, name) => count + Object.keys(ruleGroups[name]).length, 0);
}

/** The rules of {@link defaultVersion}. */
export const defaultRules: Rules = rulesOf({ ncclVersion: defaultVersion });

/** The step of a rule that holds for a version. */
export function stepOf(rule: Rule<unknown>, version: string): Rule<unknown>['steps'][number] {
  const step = rule.steps.findLast(({ from }) => compareVersions(from, version) <= 0) ?? rule.steps[0];
  return step ?? { from: OLDEST_VERSION, value: undefined, means: '' };
}
