import { describeError } from '../errors.js';
import { graphNames } from '../planner/graph/graph.js';
import { type GraphReport, SearchReport } from '../planner/graph/search-report.js';
import { prepareCluster, type PreparedHosts } from '../planner/plan/cluster.js';
import { ruleEffects } from '../planner/plan/diff/attribute.js';
import { comparePlans } from '../planner/plan/diff/compare.js';
import { costCells, describeEffect } from '../planner/plan/diff/effect-text.js';
import { sideOf } from '../planner/plan/diff/side.js';
import { explain } from '../planner/explain/explain.js';
import { nearestQuestions } from '../planner/explain/grammar/complete.js';
import { parseQuestions } from '../planner/explain/grammar/parse.js';
import { situationOf, usesSearches } from '../planner/explain/situation.js';
import { curveSizes, forecast, usualSizes } from '../planner/plan/overview/forecast.js';
import { limitText } from '../planner/plan/overview/format.js';
import { loadOfLinks } from '../planner/plan/overview/fullest-link.js';
import { type HostOverview, type Overview, overviewOf } from '../planner/plan/overview/overview.js';
import { type Plan, planPrepared } from '../planner/plan/plan.js';
import { computePaths } from '../planner/topology/paths/compute-paths.js';
import { diagnose } from '../planner/topology/doctor/diagnose.js';
import { type GpuNode, nodeName, type System } from '../planner/topology/system.js';
import { descendants } from '../planner/topology/xml/tree.js';
import { formatGBps } from '../planner/topology/format.js';
import { tune, type Tuning } from '../planner/tuning/tune.js';
import { defaultVersion } from '../planner/versions/version.js';
import { charts } from '../view/choice/charts.js';
import { draw } from '../view/machine/boxes.js';
import { linkUses } from '../view/machine/loads.js';
import { matrixPicture } from '../view/machine/matrix.js';
import { machinePicture } from '../view/machine/picture.js';
import type { Picture } from '../view/draw/picture.js';
import { storyOf } from '../view/why/story.js';
import type { Device, ShownAnswer, ShownChanges, ShownFinding, ShownHost, ShownPlan } from './messages.js';
import { type NamedText, type Source, type SourceMachine, sourceOf } from './source.js';
import { MOST_NODES, type StudioState } from './state.js';

/** Time for trying changes, ms. */
const HELP_MS = 4000;
const MOST_ROWS = 200;
const LEAST_BYTES = 2 ** 10;
const MOST_BYTES = 2 ** 34;

/** A planned source. */
export interface Planned {
  readonly source: Source;
  readonly prepared: readonly PreparedHosts[];
  readonly plan: Plan;
  readonly tuning: Tuning;
  readonly overview: Overview;
  readonly reports: readonly { readonly machine: string; readonly graphs: readonly GraphReport[] }[];
}

/** Plans a cluster, and records its search. */
export function planned(source: Source): Planned {
  const { cluster, parameters, title, environment } = source;
  const reports = new Map<string, SearchReport>();
  const prepared = prepareCluster(cluster, parameters, {
    onSearch: (event, { machine, ranks }) => {
      const key = `${machine} ${ranks.join(' ')}`;
      const report = reports.get(key) ?? new SearchReport();
      reports.set(key, report);
      report.listen(event);
    },
  });
  const plan = planPrepared(prepared, parameters);
  const tuning = tune(plan, parameters);
  return {
    source,
    prepared,
    plan,
    tuning,
    overview: overviewOf({ title, cluster, plan, prepared, parameters, environment, tuning, sizes: usualSizes }),
    reports: [...reports].map(([machine, { graphs }]) => ({ machine, graphs })),
  };
}

/** The views of a plan. */
export function shownPlan(
  made: Planned,
  state: StudioState,
  file: NamedText | undefined,
  against: NamedText | undefined,
): ShownPlan {
  const { source, overview, reports } = made;
  const subjectOf = source.machines.map(({ system }) => subjects(system));
  const drawnName = (name: string) => subjectOf.reduce((drawn, of) => of(drawn), name);
  return {
    title: source.title,
    figures: [
      [String(overview.nRanks), overview.nRanks === 1 ? 'rank' : 'ranks'],
      [String(overview.nNodes), overview.nNodes === 1 ? 'node' : 'nodes'],
      [String(overview.nChannels), 'channels'],
      [`${formatGBps(Math.min(...overview.hosts.map(({ ringGBps }) => ringGBps)))} GB/s`, 'rings of a host, together'],
      [overview.nccl, 'version of NCCL'],
    ],
    notes: source.notes,
    limits: overview.hosts.map((host) => `${overview.hosts.length > 1 ? `${host.name}: ` : ''}${limitText(host)}.`),
    uses: overview.uses,
    hosts: overview.hosts.flatMap((host, index) => shownHost(made, host, index, state.channel) ?? []),
    choice: chartOf(made),
    changes: changesOf(made, state, file, against),
    reports: reports.flatMap(({ machine, graphs }) =>
      graphs.map(({ id, sentences, places }) => ({
        title: `${reports.length > 1 ? `${machine}: ` : ''}search of the ${graphNames[id]} graph`,
        host: Math.max(
          0,
          overview.hosts.findIndex(({ name }) => machine.startsWith(`${name} `)),
        ),
        steps: storyOf({ sentences, places: places.map((names) => names.map(drawnName)) }),
      })),
    ),
    findings: source.machines.flatMap(({ whole }) =>
      diagnose(whole, { parameters: source.parameters }).map(
        ({ severity, problem, consequence, remedy, places }): ShownFinding => ({
          severity,
          problem,
          why: consequence,
          remedy,
          lines: places.slice(0, 4).map(({ element, line }) => (line > 0 ? `line ${line}: ${element}` : element)),
        }),
      ),
    ),
  };
}

function shownHost(made: Planned, host: HostOverview, index: number, channel: number | undefined): ShownHost | undefined {
  const { source, prepared, plan } = made;
  const kinds = [...new Set(prepared.map((hosts) => hosts.host))];
  const hosts = prepared.find((each) => each.host === kinds[index]);
  const machine = hosts && source.machines[prepared.indexOf(hosts)];
  if (hosts === undefined || machine === undefined) return undefined;
  const loads = new Map(
    hosts.systems.flatMap((local, node) => {
      const ring = hosts.host.nodes[node]?.graphs.ring;
      if (ring === undefined) return [];
      const used = [...new Set(plan.ringOfChannel)].filter((each) => channel === undefined || each === channel);
      const speed = plan.graphs.ring;
      return [...linkUses(local, loadOfLinks(local, ring, used, speed))].filter(([, use]) => node === 0 || use.usedGBps > 0);
    }),
  );
  const subjectOf = subjects(machine.system);
  const paths = computePaths(machine.system, source.parameters);
  const drawing = draw(host.name, machine.system, paths, machine.root);
  const ranks = new Map(machine.system.gpus.map((gpu) => [gpu.rank, subjectOf(nodeName(gpu))]));
  const nets = new Map(machine.system.nets.map((net) => [`NET ${net.dev}`, nodeName(net)]));
  return {
    name: host.name,
    machine: machinePicture(drawing, { loads }),
    matrix: matrixPicture(drawing, subjectOf),
    rings: host.rings.map((ring) => ({
      ...ring,
      subjects: ring.ranks.map((rank) => ranks.get(rank) ?? ''),
      ends: [ring.entry, ring.exit].map((label) => (label === undefined ? undefined : nets.get(label))),
    })),
    devices: devicesOf(machine),
  };
}

/** Subject of a node by its name: a GPU is drawn as its hardware. */
function subjects(system: System): (id: string) => string {
  const hardwareOf = (gpu: GpuNode) => system.hardware[gpu.parent];
  const drawn = new Map(
    system.gpus.map((gpu) => {
      const hardware = hardwareOf(gpu);
      return [nodeName(gpu), hardware === undefined ? nodeName(gpu) : nodeName(hardware)];
    }),
  );
  return (id) => drawn.get(id) ?? id;
}

function devicesOf({ root, system }: SourceMachine): Device[] {
  const names = new Map(
    [...descendants(root)]
      .filter(({ name }) => name === 'net')
      .map(({ attributes }) => [Number(attributes.get('dev')), attributes.get('name')] as const),
  );
  const used = new Set(system.gpus.map(({ parent }) => parent));
  return [
    ...system.hardware.flatMap((gpu, index) =>
      used.has(index) ? [{ subject: nodeName(gpu), name: `GPU ${gpu.dev}`, off: { gpu: gpu.dev } }] : [],
    ),
    ...system.nets.flatMap((net) => {
      const nic = names.get(net.dev);
      return nic === undefined ? [] : [{ subject: nodeName(net), name: `NET ${net.dev} (${nic})`, off: { nic } }];
    }),
  ];
}

/** Differences from the same cluster without version, variables and removed devices; undefined where nothing is set. */
function changesOf(
  made: Planned,
  state: StudioState,
  file: NamedText | undefined,
  against: NamedText | undefined,
): ShownChanges | undefined {
  const { nccl, env, gpusOff, nicsOff } = state;
  const set = [
    ...(nccl === undefined || nccl === defaultVersion ? [] : [`NCCL ${nccl}`]),
    ...Object.entries(env).map(([name, value]) => `${name}=${value}`),
    ...gpusOff.map((dev) => `without GPU ${dev}`),
    ...nicsOff.map((name) => `without ${name}`),
  ];
  if (set.length === 0 && state.against === '') return undefined;
  const unset = { ...state, nccl: undefined, env: {}, gpusOff: [], nicsOff: [] };
  const other = state.against === '' ? undefined : otherState(unset, state.against, against);
  const plainSource = other === undefined ? sourceOf(unset, file) : sourceOf(other, against);
  if (plainSource === undefined) return undefined;
  const plain = planned(plainSource);
  const from = other === undefined ? 'as it is' : plainSource.title;
  const to = [...(other === undefined ? [] : [made.source.title]), ...set].join(', ');
  const { differences, costs } = comparePlans(
    sideOf(from, plain.prepared, plain.plan),
    sideOf(to, made.prepared, made.plan),
    usualSizes,
  );
  const onlyVersion = nccl !== undefined && set.length === 1 && other === undefined && differences.length + costs.length > 0;
  const effects = onlyVersion
    ? ruleEffects({
        cluster: plain.source.cluster,
        parameters: plain.source.parameters,
        from: defaultVersion,
        to: nccl,
        sizes: usualSizes,
      })
    : [];
  return {
    from: `${from} (NCCL ${defaultVersion})`,
    to,
    rules: effects.map(describeEffect).flatMap(({ rules, changes }) => {
      const lines = rules.map(({ about, before, after, source }) => `${about} Before: ${before}. After: ${after}. (${source})`);
      return [{ name: rules.map(({ name }) => name).join(' + '), lines: [...lines, ...changes] }];
    }),
    calls: costs.slice(0, MOST_ROWS).map(costCells),
    pictures:
      other === undefined
        ? []
        : [
            [picturesOf(plain), picturesOf(made)],
            [chartOf(plain), chartOf(made)],
          ],
    decisions: differences.slice(0, MOST_ROWS).map(({ section, what, a, b }) => [section, what, a, b]),
  };
}

/** The state of the machine that is compared with. */
function otherState(plain: StudioState, against: string, file: NamedText | undefined): StudioState {
  const [, name = against, count] = /^(.*?)(?::(\d+))?$/.exec(against.trim()) ?? [];
  const nodes = count === undefined ? plain.nodes : Math.min(MOST_NODES, Math.max(1, Number(count)));
  return {
    ...plain,
    nodes,
    channel: undefined,
    ...(file === undefined ? { machine: name, file: undefined } : { file: file.name }),
  };
}

/** The first kind of hosts with the load of all rings. */
function picturesOf(made: Planned): Picture {
  const [host] = made.overview.hosts;
  const shown = host && shownHost(made, host, 0, undefined);
  return shown?.machine ?? { title: made.source.title, width: 1, height: 1, marks: [] };
}

function chartOf({ tuning }: Planned): Picture {
  return charts(forecast(tuning, curveSizes(LEAST_BYTES, MOST_BYTES)));
}

/** The answers to the questions of a text about a cluster, or the nearest questions if the text is not understood. */
export function answerTo({ cluster, parameters, simulated, machines, environment }: Source, text: string): ShownAnswer {
  const questions = parseQuestions(text);
  if (questions.length === 0)
    return {
      title: 'That is no question that can be answered.',
      sentences: [`The nearest are: ${nearestQuestions(text).join('; ')}.`],
    };
  try {
    const roots = new Map(machines.map(({ system, root }) => [system, root]));
    const searches = questions.some(usesSearches) ? 'all' : 'none';
    const situation = situationOf(cluster, parameters, { searches, simulated, roots, environment });
    const end = performance.now() + HELP_MS;
    const answers = questions.map((question) => explain(situation, question, { keepGoing: () => performance.now() <= end }));
    const [first, ...others] = answers.map(({ title, lines }) => [title, ...lines.map((line) => line.text)]);
    const [title = '', ...sentences] = first ?? [];
    return { title, sentences: [...sentences, ...others.flat()] };
  } catch (error) {
    return { title: 'There is no answer.', sentences: [describeError(error)] };
  }
}
