import { describe, expect, it } from 'vitest';
import { runOracleCase } from '../../src/planner/plan/oracle/run-oracle.js';
import { casesFolder, oracleCases } from './oracle-cases.js';

const cases = oracleCases();

describe.skipIf(cases.length === 0)(`the graphs of every machine are those that NCCL finds (cases in ${casesFolder})`, () => {
  it('graphs', () => {
    const results = cases.map((input) => ({ name: input.name, outcome: runOracleCase(input, ['graphs']).outcomes.get('graphs') }));
    expect(results.flatMap(({ name, outcome }) => (outcome?.kind === 'failed' ? [`${name}: ${outcome.difference}`] : []))).toEqual([]);
    expect(results.filter(({ outcome }) => outcome?.kind === 'passed').length).toBeGreaterThan(0);
  });
});
