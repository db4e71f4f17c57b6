import { beforeAll, describe, expect, it } from 'vitest';
import { describeDifference, type Difference } from '../../testing/oracle/difference.js';
import {
  alignedGraphsDifference,
  channelsDifference,
  commDifference,
  nvlsDifference,
} from '../../testing/oracle/merge-sections.js';
import { OracleCase } from '../../testing/oracle/oracle-case.js';
import { type CaseResult, compareCase, sectionNames } from '../../testing/oracle/run-oracle.js';
import { choiceDifference, tuningDifference } from '../../testing/oracle/tuning-sections.js';
import { tune } from '../../src/planner/tuning/tune.js';
import { mergeExpected } from './expected-graphs.js';
import { oracleCases, oracleFolders } from './oracle-cases.js';

/**
 * Sections that are compared after NCCL's own graphs, so that an error of the search cannot hide one of the merge or the tuning.
 */
const fromGraphs = ['aligned graphs', 'communicator', 'channels', 'NVLink SHARP', 'tuning model', 'choice'] as const;

/** Result of a case: all sections from its XML on, and from NCCL's graphs on where NCCL did not fail. */
interface Compared extends CaseResult {
  readonly fromGraphs: ReadonlyMap<string, Difference | undefined>;
  /** True if the tuning model, which NCCL refuses to make, is refused. */
  readonly refusesTuning: boolean | undefined;
}

function compare(oracleCase: OracleCase): Compared {
  const { expected, expectedError, parameters } = oracleCase;
  const result = compareCase(oracleCase, sectionNames);
  const refusesTuning =
    expectedError?.call.startsWith('ncclTopoTuneModel') === true ? refuses(() => oracleCase.tuning) : undefined;
  if (expectedError !== undefined) return { ...result, fromGraphs: new Map(), refusesTuning };
  const merged = mergeExpected(oracleCase);
  const tuning = tune(merged, parameters);
  const differences = [
    alignedGraphsDifference(expected, merged),
    commDifference(expected, merged),
    channelsDifference(expected, merged),
    nvlsDifference(expected, merged),
    tuningDifference(expected, tuning),
    choiceDifference(expected, tuning),
  ];
  return { ...result, fromGraphs: new Map(fromGraphs.map((name, index) => [name, differences[index]])), refusesTuning };
}

function refuses(make: () => unknown): boolean {
  try {
    make();
    return false;
  } catch (error) {
    return /NCCL_ALGO|NCCL_PROTO/.test(String(error));
  }
}

describe(`the planner decides as recorded of NCCL (cases in ${oracleFolders.join(', ')})`, () => {
  let compared: readonly Compared[] = [];
  // Each case is read, and planned, once for all that is compared.
  beforeAll(() => {
    compared = oracleCases().map((input) => compare(new OracleCase(input)));
  }, 600_000);

  it.each(sectionNames)('%s, from the XML', (section) => {
    const failures = compared.flatMap(({ name, outcomes }) => {
      const outcome = outcomes.get(section);
      return outcome?.kind === 'failed' ? [`${name}: ${outcome.difference}`] : [];
    });
    expect(failures).toEqual([]);
    expect(compared.some(({ outcomes }) => outcomes.get(section)?.kind === 'passed')).toBe(true);
  });

  it.each(fromGraphs)("%s, from NCCL's graphs", (part) => {
    const failures = compared.flatMap((one) => {
      const difference = one.fromGraphs.get(part);
      return difference === undefined ? [] : [`${one.name}: ${describeDifference(difference)}`];
    });
    expect(failures).toEqual([]);
    expect(compared.some((one) => one.fromGraphs.has(part))).toBe(true);
  });

  it('lists of algorithms that NCCL refuses are refused', () => {
    const refused = compared.filter(({ refusesTuning }) => refusesTuning !== undefined);
    expect(refused.filter(({ refusesTuning }) => refusesTuning === false).map(({ name }) => name)).toEqual([]);
    expect(refused.length).toBeGreaterThan(0);
  });
});
