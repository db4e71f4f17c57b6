import { graphNames } from '../../src/planner/graph/graph.js';
import { graphToJson } from '../../src/planner/graph/graph-json.js';
import { graphsToXml } from '../../src/planner/graph/graph-xml.js';
import { writeXml } from '../../src/planner/topology/xml/write.js';
import { type Difference, firstDifference } from './difference.js';
import type { OracleCase } from './oracle-case.js';
import { compareNodeTypes } from './topology-sections.js';

/** The graphs of each kind of host as the search leaves them, and the file that NCCL dumped of those of rank 0. */
export function graphsDifference(oracleCase: OracleCase): Difference | undefined {
  const difference = compareNodeTypes(oracleCase, (local) => {
    const graphs = oracleCase.graphsOf(local);
    return {
      graphs: Object.fromEntries(
        graphNames.map((name) => {
          const graph = graphs[name];
          return [name, graph === undefined ? null : graphToJson(graph, local)];
        }),
      ),
    };
  });
  const dump = oracleCase.files.get('graph-dump.xml');
  const local = oracleCase.hosts[0]?.systems[0];
  if (difference !== undefined || dump === undefined || local === undefined) return difference;
  const written = writeXml(graphsToXml(oracleCase.graphsOf(local), local));
  return firstDifference(dump.trimEnd().split('\n'), written.trimEnd().split('\n'), 'graph-dump.xml');
}
