import { diagnose } from '../../topology/doctor/diagnose.js';
import type { LogFinding } from './finding.js';
import { loggedTopology } from '../machine/logged-topology.js';
import type { LogModel } from '../job/model.js';
import type { GivenXml } from '../job/whole-files.js';

/** The doctor's findings about topology files, and graph files that fit none of the machines. */
export function checkTopologies({ topologies, graphs, machines }: LogModel): LogFinding[] {
  const roots = [...topologies.map(({ root }) => root), ...machines.flatMap((machine) => loggedTopology(machine) ?? [])];
  return [...topologies.flatMap(doctored), ...graphs.flatMap((graph) => misfits(graph, roots))];
}

function doctored({ root, notes, place }: GivenXml): LogFinding[] {
  return diagnose(root, { notes }).map(({ code, severity, problem, consequence, remedy, places: [first] }) => ({
    code: `topology-${code}`,
    severity,
    kind: severity === 'error' ? 'failure' : severity === 'warning' ? 'risk' : 'note',
    problem,
    cause: consequence,
    remedy,
    places: [{ file: place.file, line: first?.line ?? 1 }],
  }));
}

/** Graph files that name GPUs which none of the machines has: those of topology files, and those that logs print. */
function misfits({ root: graph, file, place }: GivenXml, roots: readonly GivenXml['root'][]): LogFinding[] {
  const each = roots.map((root) =>
    diagnose(root, { graph: { root: graph, fileName: file } }).filter(({ code }) => code.startsWith('graph-')),
  );
  if (each.some((findings) => findings.length === 0)) return [];
  return (each[0] ?? []).map(({ code, severity, problem, consequence, remedy }) => ({
    code: `topology-${code}`,
    severity,
    kind: 'risk',
    problem: `${file}: ${problem}`,
    cause: consequence,
    remedy,
    places: [place],
  }));
}
