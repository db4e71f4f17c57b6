import type { Rule, Step } from './rule.js';
import { ruleGroups, type RuleName, stepOf } from './rules.js';
import { comparedVersions } from './version.js';

/** Source of what is known of a behaviour: recorded answers of a release that has it, or NCCL's source alone. */
export type Certainty = 'compared' | 'read from source, not compared';

/** The certainty of one step of a rule: it is compared if it holds for a release of which there are recorded answers. */
export function certaintyOf(rule: Rule<unknown>, step: Step<unknown>): Certainty {
  return comparedVersions.some((version) => stepOf(rule, version) === step) ? 'compared' : 'read from source, not compared';
}

/** The rules of a version that no recorded answer of a release confirms, in the order of decisions. */
export function uncomparedRules(version: string): RuleName[] {
  return Object.values(ruleGroups).flatMap((rules) =>
    Object.entries(rules as Readonly<Record<string, Rule<unknown>>>)
      .filter(([, rule]) => certaintyOf(rule, stepOf(rule, version)) !== 'compared')
      .map(([name]) => name as RuleName),
  );
}
