import { graphNames } from '../../planner/graph/graph.js';
import { SearchReport } from '../../planner/graph/search-report.js';
import { prepareCluster } from '../../planner/plan/cluster.js';
import { storyOf } from '../../view/why/story.js';
import type { ShownFinding, ShownReport, ShownWhy } from '../messages.js';
import { faultsOf, type Planned } from '../planned.js';
import { machinePictures, subjects } from './machine.js';

/** The search step by step, and findings of the doctor. */
export function shownWhy(made: Planned, width: number | undefined): ShownWhy {
  return { view: 'why', machines: machinePictures(made, width), reports: reportsOf(made), findings: shownFaults(made) };
}

/** The doctor's findings; a plan whose view is made again has them already. */
export function shownFaults(made: Planned): readonly ShownFinding[] {
  let findings = shownBefore.get(made);
  if (findings === undefined) {
    findings = faultsOf(made).map(({ severity, problem, consequence, remedy, places }) => ({
      severity,
      problem,
      why: consequence,
      remedy,
      lines: places.slice(0, 4).map(({ element, line }) => (line > 0 ? `line ${line}: ${element}` : element)),
    }));
    shownBefore.set(made, findings);
  }
  return findings;
}

const shownBefore = new WeakMap<Planned, readonly ShownFinding[]>();

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
      title: `${reports.size > 1 ? `${machine}: s` : 'S'}earch of the ${graphNames[id]} graph`,
      host: Math.max(
        0,
        overview.hosts.findIndex(({ name }) => machine.startsWith(`${name} `)),
      ),
      steps: storyOf({ sentences, places: places.map((names) => names.map(drawnName)) }),
    })),
  );
}
