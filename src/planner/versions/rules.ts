import { mergeRules } from './merge-rules.js';
import { OLDEST_VERSION, type Rule } from './rule.js';
import { searchRules } from './search-rules.js';
import { topologyRules } from './topology-rules.js';
import { tuningRules } from './tuning-rules.js';
import { compareVersions, defaultVersion } from './version.js';

/** The rules by what they are about, in the order in which NCCL decides. */
export const ruleGroups = {
  'Topology and paths': topologyRules,
  'Channel search': searchRules,
  'Channels of all ranks': mergeRules,
  'Tuning model and choice': tuningRules,
} as const;

const table = { ...topologyRules, ...searchRules, ...mergeRules, ...tuningRules };

/** The name of a rule. */
export type RuleName = keyof typeof table;

/** Values of all rules for one version: the code at a decision reads its field. */
export type Rules = { readonly [Name in RuleName]: (typeof table)[Name] extends Rule<infer Value> ? Value : never };

const known = new Map<string, Rules>();

/** The rules of a version. The same object each time, so that it can be asked for anywhere. */
export function rulesOf({ ncclVersion }: { readonly ncclVersion: string }): Rules {
  let rules = known.get(ncclVersion);
  if (rules === undefined) {
    rules = Object.freeze(
      Object.fromEntries(Object.entries(table).map(([name, rule]) => [name, stepOf(rule, ncclVersion).value])),
    ) as Rules;
    known.set(ncclVersion, rules);
  }
  return rules;
}

/** The rules of {@link defaultVersion}. */
export const defaultRules: Rules = rulesOf({ ncclVersion: defaultVersion });

/** The step of a rule that holds for a version. */
export function stepOf(rule: Rule<unknown>, version: string): Rule<unknown>['steps'][number] {
  const step = rule.steps.findLast(({ from }) => compareVersions(from, version) <= 0) ?? rule.steps[0];
  return step ?? { from: OLDEST_VERSION, value: undefined, means: '' };
}
