import { describe, expect, it } from 'vitest';
import { contributionOf } from '../../src/graph/merge/contribution.js';
import { type Merged, mergeHosts } from '../../src/graph/merge/merge.js';
import { describeDifference } from '../../src/plan/oracle/difference.js';
import { alignedGraphsDifference, channelsDifference, commDifference, nvlsDifference } from '../../src/plan/oracle/merge-sections.js';
import { OracleCase } from '../../src/plan/oracle/oracle-case.js';
import { expectedGraphs } from './expected-graphs.js';
import { casesFolder, oracleCases } from './oracle-cases.js';

const cases = oracleCases().map((input) => new OracleCase(input)).filter(({ expectedError }) => expectedError === undefined);

/** The merge of what NCCL's own search found, so that only the merge is tested. */
function mergeExpected(oracleCase: OracleCase): Merged {
  const nodeTypes = oracleCase.expected['nodeTypes'] as { xml: string; localRanks: number[]; graphs: Parameters<typeof expectedGraphs>[0] }[];
  const hosts = new Map(oracleCase.hosts.map(({ xml, systems }) => {
    const nodes = systems.map((local) => {
      const nodeType = nodeTypes.find((type) => type.xml === xml && type.localRanks.join() === local.ranks.join());
      if (nodeType === undefined) throw new Error(`${xml}: NCCL sees no node of ranks ${local.ranks.join(' ')}`);
      return contributionOf(local, expectedGraphs(nodeType.graphs), oracleCase.parameters);
    });
    return [xml, { nRanks: nodes.reduce((sum, { ranks }) => sum + ranks.length, 0), nodes }];
  }));
  return mergeHosts(oracleCase.file.nodes.flatMap(({ xml, count }) => {
    const host = hosts.get(xml);
    return host === undefined ? [] : [{ host, count }];
  }), oracleCase.parameters);
}

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
