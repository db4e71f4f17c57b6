import { graphToJson } from '../../graph/graph-json.js';
import type { Difference } from './difference.js';
import type { OracleCase } from './oracle-case.js';
import { compareNodeTypes } from './topology-sections.js';

/** The graphs of each kind of host as the search leaves them. */
export function graphsDifference(oracleCase: OracleCase): Difference | undefined {
  return compareNodeTypes(oracleCase, (local) => ({
    graphs: Object.fromEntries(Object.entries(oracleCase.graphsOf(local))
      .map(([name, graph]) => [name, graph === undefined ? null : graphToJson(graph, local)])),
  }));
}
