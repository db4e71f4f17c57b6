import { describe, expect, it } from 'vitest';
import { describeDifference } from '../../src/planner/plan/oracle/difference.js';
import { OracleCase } from '../../src/planner/plan/oracle/oracle-case.js';
import { choiceDifference, tuningDifference } from '../../src/planner/plan/oracle/tuning-sections.js';
import { tune } from '../../src/planner/tuning/tune.js';
import { mergeExpected } from './expected-graphs.js';
import { casesFolder, oracleCases } from './oracle-cases.js';

const cases = oracleCases().map((input) => new OracleCase(input));
const fine = cases.filter(({ expectedError }) => expectedError === undefined);
const refused = cases.filter(({ expectedError }) => expectedError?.call.startsWith('ncclTopoTuneModel'));

describe.skipIf(cases.length === 0)(`NCCL's graphs give NCCL's tuning model and choices (cases in ${casesFolder})`, () => {
  it.each([['model', tuningDifference], ['choice', choiceDifference]])('%s', (_, differenceOf) => {
    const failures = fine.flatMap((oracleCase) => {
      const difference = differenceOf(oracleCase.expected, tune(mergeExpected(oracleCase), oracleCase.parameters));
      return difference === undefined ? [] : [`${oracleCase.name}: ${describeDifference(difference)}`];
    });
    expect(failures).toEqual([]);
    expect(fine.length).toBeGreaterThan(0);
  });

  it.skipIf(refused.length === 0)('lists of algorithms that NCCL refuses are refused', () => {
    for (const oracleCase of refused) expect(() => oracleCase.tuning).toThrow(/NCCL_ALGO|NCCL_PROTO/);
  });
});
