import { describeError } from '../errors.js';
import type { Line } from '../planner/explain/answer.js';
import { ASSUMED, CERTAIN_COMMAND } from '../planner/evidence/machine-of-tools.js';
import { explain } from '../planner/explain/explain.js';
import { nearestQuestions } from '../planner/explain/grammar/complete.js';
import { parseQuestions } from '../planner/explain/grammar/parse.js';
import { withNicNumbers } from '../planner/explain/nic-names.js';
import { referencesIn } from '../planner/explain/references.js';
import { situationOf, usesSearches } from '../planner/explain/situation.js';
import { prepareCluster, type PreparedHosts } from '../planner/plan/cluster.js';
import { capitalized, limitText } from '../planner/plan/overview/format.js';
import { checkPlan } from '../planner/plan/checks/check-plan.js';
import { type Overview, overviewOf } from '../planner/plan/overview/overview.js';
import { type Plan, planPrepared } from '../planner/plan/plan.js';
import { formatGBps } from '../planner/topology/format.js';
import { type NetNode, nodeName, type System } from '../planner/topology/system.js';
import { diagnose } from '../planner/topology/doctor/diagnose.js';
import { bySeverity, type Finding } from '../planner/topology/doctor/finding.js';
import { NodeType } from '../planner/topology/types.js';
import { descendants, type XmlElement } from '../planner/topology/xml/tree.js';
import { tune, type Tuning } from '../planner/tuning/tune.js';
import { rulesBetween } from '../planner/versions/describe.js';
import { coveredVersions } from '../planner/versions/version.js';
import { withControls } from './controls.js';
import type { Device, ShownAnswer, ShownPlan, VersionNews } from './messages.js';
import { firstCount, type Source, type SourceMachine } from './source.js';

/** Time for trying changes, ms. */
const HELP_MS = 4000;

/** A planned source. */
export interface Planned {
  readonly source: Source;
  readonly prepared: readonly PreparedHosts[];
  readonly plan: Plan;
  readonly tuning: Tuning;
  readonly overview: Overview;
  /** Devices that can be taken out. */
  readonly devices: readonly Device[];
}

/** Faults of the machines, as they are before devices are taken out, and of how they fit together; the worst first. */
export function faultsOf({ source, prepared, plan, tuning }: Planned): Finding[] {
  const { machines, parameters } = source;
  const together = checkPlan({ ...source, ...source.given, roots: rootsOf(source), prepared, plan, tuning });
  const alone = machines.flatMap(({ whole }) => diagnose(whole, { parameters }));
  return [...together, ...alone].sort(bySeverity);
}

function rootsOf({ machines }: Source): ReadonlyMap<System, XmlElement> {
  return new Map(machines.map(({ system, root }) => [system, root]));
}

/** Plans a cluster. */
export function planned(source: Source): Planned {
  const { cluster, parameters, title, environment, given } = source;
  const prepared = prepareCluster(cluster, parameters, given);
  const plan = planPrepared(prepared, parameters);
  const tuning = tune(plan, parameters);
  return {
    source,
    prepared,
    plan,
    tuning,
    // The forecasts of an overview are no part of any view.
    overview: overviewOf({ title, cluster, plan, prepared, parameters, environment, tuning, sizes: [] }),
    devices: [...new Map(source.machines.flatMap(devicesOf).map((each) => [`${each.subject} ${each.key}`, each])).values()],
  };
}

/** The parts of a plan that every view has beside it. */
export function shownPlan({ source, overview, devices }: Planned): ShownPlan {
  const notes = source.notes.map(withControls);
  return {
    title: source.title,
    figures: [
      [String(overview.nRanks), overview.nRanks === 1 ? 'rank' : 'ranks'],
      [String(overview.nNodes), overview.nNodes === 1 ? 'node' : 'nodes'],
      [String(overview.nChannels), 'channels'],
      [`${formatGBps(Math.min(...overview.hosts.map(({ ringGBps }) => ringGBps)))} GB/s`, 'rings of a host, together'],
      [overview.nccl, 'version of NCCL'],
    ],
    notes: notes.filter((note) => !note.startsWith(ASSUMED) && !note.includes(CERTAIN_COMMAND)),
    assumed: {
      facts: notes.flatMap((note) => (note.startsWith(ASSUMED) ? [capitalized(note.slice(ASSUMED.length))] : [])),
      command: CERTAIN_COMMAND,
    },
    limits: overview.hosts.map((host) => ({
      name: overview.hosts.length > 1 ? host.name : undefined,
      text: `${capitalized(limitText(host))}.`,
    })),
    devices,
    nEqual: firstCount(source),
    ownCount: source.ownCount,
    news: newsOf(overview.nccl),
  };
}

function newsOf(version: string): VersionNews | undefined {
  const since = coveredVersions[coveredVersions.indexOf(version) + 1];
  if (since === undefined) return undefined;
  const rules = rulesBetween(since, version);
  return { since, rules: rules.map(({ name, rule, after }) => [name, `${rule.about} Now: ${after.means}`]) };
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
      used.has(index)
        ? [{ subject: nodeName(gpu), name: `GPU ${gpu.dev}`, key: `gpu${gpu.dev}`, card: undefined, off: { gpu: gpu.dev } }]
        : [],
    ),
    ...system.nets.flatMap((net) => {
      const nic = names.get(net.dev);
      return nic === undefined
        ? []
        : [{ subject: nodeName(net), name: `NET ${net.dev} (${nic})`, key: nic, card: cardOf(system, net), off: { nic } }];
    }),
  ];
}

/** The card of a port, by their link. */
function cardOf({ nodes, links }: System, net: NetNode): string | undefined {
  for (let link = 0; link < links.to.length; link++) {
    const card = nodes[links.to[link] ?? -1];
    if (nodes[links.from[link] ?? -1] === net && card?.type === NodeType.NIC) return nodeName(card);
  }
  return undefined;
}

/** The answers to the questions of a text about a cluster, or the nearest questions if the text is not understood. */
export function answerTo(source: Source, text: string): ShownAnswer {
  const { cluster, parameters, simulated, environment, given } = source;
  try {
    const questions = parseQuestions(withNicNumbers(text, rootsOf(source).values()));
    if (questions.length === 0)
      return {
        title: plainLine('That is no question that can be answered.'),
        lines: [plainLine(`The nearest are: ${nearestQuestions(text).join('; ')}.`)],
      };
    const searches = questions.some(usesSearches) ? 'all' : 'none';
    const situation = situationOf(cluster, parameters, { searches, simulated, roots: rootsOf(source), environment, ...given });
    const end = performance.now() + HELP_MS;
    const answers = questions.map((question) => explain(situation, question, { keepGoing: () => performance.now() <= end }));
    return {
      title: titleLine(answers[0]?.title ?? ''),
      lines: answers.flatMap(({ title, lines }, index) => [...(index === 0 ? [] : [titleLine(title)]), ...lines]),
    };
  } catch (error) {
    return { title: plainLine('There is no answer.'), lines: [plainLine(withControls(describeError(error)))] };
  }
}

function titleLine(text: string): Line {
  return { text, references: referencesIn(text) };
}

function plainLine(text: string): Line {
  return { text, references: [] };
}
