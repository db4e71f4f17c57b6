import { describe, expect, it } from 'vitest';
import { runOracleCase } from '../../src/planner/plan/oracle/run-oracle.js';
import { casesFolder, oracleCases } from './oracle-cases.js';

const cases = oracleCases();

describe.skipIf(cases.length === 0)(`the topology of every machine is what NCCL makes of it (cases in ${casesFolder})`, () => {
  it.each(['nodeTypes', 'system', 'paths'])('%s', (section) => {
    const results = cases.map((input) => runOracleCase(input, [section]));
    const failures = results.flatMap(({ name, outcomes }) => {
      const outcome = outcomes.get(section);
      return outcome?.kind === 'failed' ? [`${name}: ${outcome.difference}`] : [];
    });
    expect(failures).toEqual([]);
    const passed = results.filter(({ outcomes }) => outcomes.get(section)?.kind === 'passed');
    expect(passed.length).toBeGreaterThan(0);
  });
});
