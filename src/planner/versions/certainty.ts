import type { Rule, Step } from './rule.js';
import { ruleGroups, type RuleName, stepOf } from './rules.js';
import { comparedVersions } from './version.js';

/** Source of what is known of a behaviour: recorded answers of a release that has it, or NCCL's source alone. */
export type Certainty = 'compared' | 'read from source, not compared';

/** The certainty of one step of a rule: it is compared if it holds for a release of which there are recorded answers. */
export function certaintyOf(rule: Rule<unknown>, step: Step<unknown>): Certainty {
  const isCompared = rule.isRecorded !== false && comparedVersions.some((version) => stepOf(rule, version) === step);
  return isCompared ? 'compared' : 'read from source, not compared';
}

/**
 * The rules of a version that no recorded answer of a release confirms, in the order of decisions. Those about symmetric windows
 * are left out of plans without windows.
 */
export function uncomparedRules(version: string, withWindows = false): RuleName[] {
  const { 'Symmetric windows': ofWindows, ...others } = ruleGroups;
  const groups = withWindows ? { ...others, ofWindows } : others;
  return Object.values(groups).flatMap((rules) =>
    Object.entries(rules as Readonly<Record<string, Rule<unknown>>>)
      .filter(([, rule]) => certaintyOf(rule, stepOf(rule, version)) !== 'compared')
      .map(([name]) => name as RuleName),
  );
}
