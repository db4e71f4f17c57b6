import { graphNames } from '../../planner/graph/graph.js';
import { SearchReport } from '../../planner/graph/search-report.js';
import { prepareCluster } from '../../planner/plan/cluster.js';
import { diagnose } from '../../planner/topology/doctor/diagnose.js';
import { storyOf } from '../../view/why/story.js';
import type { ShownFinding, ShownReport, ShownWhy } from '../messages.js';
import type { Planned } from '../planned.js';
import type { Source } from '../source.js';
import { machinePictures, subjects } from './machine.js';

/** The search step by step, and findings of the doctor. */
export function shownWhy(made: Planned, width: number | undefined): ShownWhy {
  return { view: 'why', machines: machinePictures(made, width), reports: reportsOf(made), findings: doctorFindings(made.source) };
}

/** The doctor's findings about the machines, as they are before devices are taken out. */
export function doctorFindings({ machines, parameters }: Source): ShownFinding[] {
  return machines.flatMap(({ whole }) =>
    diagnose(whole, { parameters }).map(({ severity, problem, consequence, remedy, places }) => ({
      severity,
      problem,
      why: consequence,
      remedy,
      lines: places.slice(0, 4).map(({ element, line }) => (line > 0 ? `line ${line}: ${element}` : element)),
    })),
  );
}

/** Searches again, because to listen to a search takes more time than the search: the plan does without. */
function reportsOf({ source, overview }: Planned): ShownReport[] {
  const reports = new Map<string, SearchReport>();
  prepareCluster(source.cluster, source.parameters, {
    ...source.given,
    onSearch: (event, { machine, ranks }) => {
      const key = `${machine} ${ranks.join(' ')}`;
      const report = reports.get(key) ?? new SearchReport();
      reports.set(key, report);
      report.listen(event);
    },
  });
  const subjectOf = source.machines.map(({ system }) => subjects(system));
  const drawnName = (name: string) => subjectOf.reduce((drawn, of) => of(drawn), name);
  return [...reports].flatMap(([machine, { graphs }]) =>
    graphs.map(({ id, sentences, places }) => ({
      title: `${reports.size > 1 ? `${machine}: ` : ''}search of the ${graphNames[id]} graph`,
      host: Math.max(
        0,
        overview.hosts.findIndex(({ name }) => machine.startsWith(`${name} `)),
      ),
      steps: storyOf({ sentences, places: places.map((names) => names.map(drawnName)) }),
    })),
  );
}
