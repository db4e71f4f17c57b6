import { describe, expect, it } from 'vitest';
import { certaintyOf, uncomparedRules } from '../../../../src/planner/versions/certainty.js';
import { allRules, rulesBetween } from '../../../../src/planner/versions/describe.js';
import { comparedVersions, coveredVersions, compareVersions } from '../../../../src/planner/versions/version.js';

describe('certainty of rules', () => {
  it('is full for versions with recorded answers', () => {
    expect(comparedVersions.map((version) => uncomparedRules(version))).toEqual(comparedVersions.map(() => []));
  });

  it('is that of the source for all that changed after the newest of them', () => {
    const [newest] = comparedVersions;
    for (const version of coveredVersions.filter((each) => compareVersions(each, newest) > 0)) {
      const changed = rulesBetween(newest, version).flatMap(({ name, group }) => (group === 'Symmetric windows' ? [] : [name]));
      expect(changed.length).toBeGreaterThan(0);
      expect(uncomparedRules(version)).toEqual(changed);
    }
  });

  it('is that of the source for symmetric windows, which only plans with them depend on', () => {
    const ofWindows = allRules.filter(({ group }) => group === 'Symmetric windows').map(({ name }) => name);
    expect(uncomparedRules('2.30.7', true)).toEqual(ofWindows);
    expect(uncomparedRules('2.30.7')).toEqual([]);
  });

  it('is that of the source for a behaviour between two compared versions', () => {
    const caps = allRules.find(({ name }) => name === 'ringLl128CapBlackwell')?.rule;
    expect(caps?.steps.map((step) => [step.from, certaintyOf(caps, step)])).toContainEqual([
      '2.29.2',
      'read from source, not compared',
    ]);
    expect(uncomparedRules('2.29.3')).toEqual(['ringLl128CapBlackwell']);
  });
});
