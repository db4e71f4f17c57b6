import type { GraphId } from '../graph/graph.js';
import type { NodeContribution } from '../graph/merge/contribution.js';
import { kindOf } from '../graph/merge/nodes.js';
import type { MergeEvent } from '../graph/merge/trace.js';
import { Transports } from '../graph/transports/transports.js';
import { InvalidArgumentError } from '../../errors.js';
import type { Parameters } from '../parameters.js';
import type { LocalSystem } from '../topology/local-systems.js';
import { defaultEnvironment, type Environment } from '../simulate/environment.js';
import { tune, type Tuning } from '../tuning/tune.js';
import type { ChangeableCluster } from '../plan/changed-cluster.js';
import { type Cluster, prepareCluster, type PreparedHosts } from '../plan/cluster.js';
import { type Plan, planPrepared } from '../plan/plan.js';
import { predictCall, type PredictedRow, simulatorOf } from '../plan/prediction.js';
import type { ScheduledCollective } from '../schedule/schedule.js';
import type { SimulateOptions, Simulator } from '../simulate/simulate.js';
import type { Answer } from './answer.js';
import { changedSubject } from './counterfactual/apply.js';
import type { Counterfactual } from './counterfactual/counterfactual.js';
import { type SearchRecord, SearchRecorder } from './search-record.js';

/** A planned cluster with all values that answers need: decisions, and records of their searches. It can be changed. */
export interface Situation extends ChangeableCluster {
  readonly prepared: readonly PreparedHosts[];
  readonly plan: Plan;
  readonly tuning: Tuning;
  /** Assumptions of simulations. */
  readonly simulated: Environment;
  readonly transports: Transports;
  readonly mergeEvents: readonly MergeEvent[];
  /** The machine that each kind of node sees. */
  readonly systems: ReadonlyMap<NodeContribution, LocalSystem>;
  /** Records of the searches of each kind of node. */
  readonly searches: ReadonlyMap<NodeContribution, readonly SearchRecord[]>;
}

/** Options of a situation. */
export interface SituationOptions extends Partial<Pick<ChangeableCluster, 'roots' | 'environment' | 'graphFile'>> {
  /** `none` records nothing of the searches, which is faster where they are long; see `usesSearches`. */
  readonly searches?: 'all' | 'none';
  readonly simulated?: Environment;
}

/** True if the answer to a question uses the records of searches. */
export function usesSearches({ asks }: Pick<Answer, 'asks'>): boolean {
  return asks === 'channels' || asks === 'rings' || asks === 'use' || asks === 'limits' || asks === 'judge' || asks === 'nodes';
}

/**
 * Plans a cluster and records each decision.
 *
 * @throws as `plan` and `tune` do
 */
export function situationOf(
  cluster: Cluster,
  parameters: Parameters,
  {
    searches: which = 'all',
    simulated = defaultEnvironment,
    roots = new Map(),
    environment = {},
    graphFile,
  }: SituationOptions = {},
): Situation {
  // By list of ranks, of which each node of each machine has its own.
  const recorders = new Map<readonly number[], SearchRecorder>();
  let latest: { readonly ranks: readonly number[]; readonly recorder: SearchRecorder } | undefined;
  const prepared = prepareCluster(cluster, parameters, {
    ...(graphFile === undefined ? {} : { graphFile }),
    ...(which === 'none'
      ? {}
      : {
          onSearch: (event, { ranks }) => {
            if (latest?.ranks !== ranks) {
              const recorder = recorders.get(ranks) ?? new SearchRecorder();
              recorders.set(ranks, recorder);
              latest = { ranks, recorder };
            }
            latest.recorder.listen(event);
          },
        }),
  });
  const mergeEvents: MergeEvent[] = [];
  const plan = planPrepared(prepared, parameters, { onMerge: (event) => mergeEvents.push(event) });

  const systems = new Map<NodeContribution, LocalSystem>();
  const searches = new Map<NodeContribution, readonly SearchRecord[]>();
  for (const { host, systems: locals } of prepared) {
    host.nodes.forEach((node, index) => {
      const local = locals[index];
      if (local === undefined || systems.has(node)) return;
      systems.set(node, local);
      searches.set(node, recorders.get(local.ranks)?.records ?? []);
    });
  }
  return {
    cluster,
    parameters,
    roots,
    environment,
    ...(graphFile === undefined ? {} : { graphFile }),
    prepared,
    plan,
    mergeEvents,
    systems,
    searches,
    tuning: tune(plan, parameters),
    simulated,
    transports: new Transports(plan, systems, parameters),
  };
}

/** `2 x dgx-h100`. */
export function titleOf({ cluster }: Pick<Situation, 'cluster'>): string {
  return cluster.hosts.map(({ name = 'a machine', count }) => (count === 1 ? name : `${count} x ${name}`)).join(' + ');
}

/** The situation with changes; the searches are recorded as in the given one. */
export function situationWith(
  situation: Situation,
  changes: readonly Counterfactual[],
  searches: 'all' | 'none' = 'none',
): Situation {
  const { cluster, parameters, roots, environment, graphFile, simulated } = changedSubject(situation, changes);
  return situationOf(cluster, parameters, {
    searches,
    simulated,
    roots,
    environment,
    ...(graphFile === undefined ? {} : { graphFile }),
  });
}

/** A simulator of the calls of a situation; kept, because several answers ask for the same calls. */
export function simulatorFor(situation: Situation): Simulator {
  const { prepared, parameters, plan, tuning } = situation;
  const known = simulators.get(plan) ?? simulatorOf(prepared, parameters, plan, tuning);
  simulators.set(plan, known);
  return known;
}

const simulators = new WeakMap<Plan, Simulator>();

/** The prediction of a call in a situation; none for one rank, and where NCCL has no candidate. */
export function predicted(
  situation: Situation,
  collective: ScheduledCollective,
  bytes: number,
  options: SimulateOptions = {},
): PredictedRow | undefined {
  return predictCall(simulatorFor(situation), collective, bytes, {
    environment: situation.simulated,
    onWindows: true,
    ...options,
  })[0];
}

/** A kind of node: its name, its machine, and its first node. */
export interface NodeView {
  readonly name: string;
  readonly node: number;
  readonly kind: NodeContribution;
  readonly local: LocalSystem;
  readonly searches: readonly SearchRecord[];
}

/** One view for each kind of node, in the order of their first nodes. */
export function nodeViews(situation: Situation): NodeView[] {
  return situation.plan.nodes.kinds.map((_, number) => viewOf(situation, situation.plan.nodes.kindOfNode.indexOf(number)));
}

export function viewOf({ plan, prepared, systems, searches }: Situation, node: number): NodeView {
  const kind = kindOf(plan.nodes, node);
  const local = systems.get(kind);
  if (local === undefined) throw new InvalidArgumentError('ARGUMENT_RANGE', `no machine is known for node ${node}`);
  const host = prepared.find((hosts) => hosts.host.nodes.includes(kind));
  const several = (host?.host.nodes.length ?? 1) > 1;
  const name = `${host?.name ?? `node ${node}`}${several ? ` (ranks ${kind.ranks.join(' ')})` : ''}`;
  return { name, node, kind, local, searches: searches.get(kind) ?? [] };
}

/** Record of the search of one graph of a node. */
export function searchOf({ searches }: NodeView, graph: GraphId): SearchRecord | undefined {
  return searches.find((record) => record.graph === graph);
}
