import { describe, expect, it } from 'vitest';
import { describeDifference } from '../../src/planner/plan/oracle/difference.js';
import { alignedGraphsDifference, channelsDifference, commDifference, nvlsDifference } from '../../src/planner/plan/oracle/merge-sections.js';
import { OracleCase } from '../../src/planner/plan/oracle/oracle-case.js';
import { mergeExpected } from './expected-graphs.js';
import { casesFolder, oracleCases } from './oracle-cases.js';

const cases = oracleCases().map((input) => new OracleCase(input)).filter(({ expectedError }) => expectedError === undefined);

describe.skipIf(cases.length === 0)(`NCCL's graphs merge to NCCL's channels (cases in ${casesFolder})`, () => {
  it.each([
    ['aligned graphs', alignedGraphsDifference],
    ['communicator', commDifference],
    ['channels', channelsDifference],
    ['NVLink SHARP', nvlsDifference],
  ])('%s', (_, differenceOf) => {
    const failures = cases.flatMap((oracleCase) => {
      const difference = differenceOf(oracleCase.expected, mergeExpected(oracleCase));
      return difference === undefined ? [] : [`${oracleCase.name}: ${describeDifference(difference)}`];
    });
    expect(failures).toEqual([]);
  });
});
