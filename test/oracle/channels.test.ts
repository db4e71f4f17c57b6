import { describe, expect, it } from 'vitest';
import { runOracleCase } from '../../src/planner/plan/oracle/run-oracle.js';
import { casesFolder, oracleCases } from './oracle-cases.js';

const sections = ['comm', 'channels', 'nvls', 'transports'];
const cases = oracleCases();

describe.skipIf(cases.length === 0)(`every cluster gets the channels and connections that NCCL makes, from its XML on (cases in ${casesFolder})`, () => {
  // Searches every machine, which takes minutes where much else runs.
  it(sections.join(', '), { timeout: 600_000 }, () => {
    const results = cases.map((input) => runOracleCase(input, sections));
    const failures = results.flatMap(({ name, outcomes }) => [...outcomes].flatMap(([section, outcome]) =>
      outcome.kind === 'failed' ? [`${name} ${section}: ${outcome.difference}`] : []));
    expect(failures).toEqual([]);
    const passed = results.filter(({ outcomes }) => outcomes.get('channels')?.kind === 'passed');
    expect(passed.length).toBeGreaterThan(0);
  });
});
