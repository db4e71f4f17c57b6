import { refuseContradictions } from '../graph/merge/contradictions.js';
import { type Merged, mergeHosts } from '../graph/merge/merge.js';
import type { HostRun } from '../graph/merge/nodes.js';
import type { MergeListener } from '../graph/merge/trace.js';
import { defaultParameters, type Parameters } from '../parameters.js';
import { type Cluster, type PreparedHosts, type PrepareOptions, prepareCluster } from './cluster.js';

/**
 * NCCL's decisions for a cluster: all channels through all ranks. A plain value: the same cluster and parameters give
 * the same plan; `planToJson` and `planFromJson` turn it to JSON and back. What one rank finds in it, `planForRank` and
 * the functions of `graph/merge/links` tell.
 */
export interface Plan extends Merged {
  /** The hosts in the order of their ranks. */
  readonly hosts: readonly PlannedHosts[];
  readonly parameters: Parameters;
}

/** Hosts that follow each other and are alike. */
export interface PlannedHosts extends HostRun {
  readonly name: string;
}

/** Options of a plan. */
export interface PlanOptions extends PrepareOptions {
  /** Parameters that contradict each other are refused unless NCCL's way is wanted all the same. */
  readonly contradictions?: 'refuse' | 'follow';
  /** Called with each decision of the merge. */
  readonly onMerge?: MergeListener;
}

/**
 * Plans a cluster.
 *
 *     const { root } = parseXml(text);
 *     const made = plan({ hosts: [{ machine: root, count: 16 }] });
 *     ringFrom(made, 0, 0)         // all ranks in the order of the first ring
 *     planForRank(made, 5)         // neighbours of rank 5
 *
 * Work and memory grow with ranks × channels.
 *
 * @throws InputError for machines that NCCL would refuse or that do not fit together
 * @throws InvalidUsageError for parameters that contradict each other
 * @throws InvalidArgumentError for a wrong count of hosts, or none
 */
export function plan(cluster: Cluster, parameters: Parameters = defaultParameters, options: PlanOptions = {}): Plan {
  if (options.contradictions !== 'follow') refuseContradictions(parameters);
  return planPrepared(prepareCluster(cluster, parameters, options), parameters, options);
}

/** Plans hosts of which each is worked out on its own already. */
export function planPrepared(
  prepared: readonly PreparedHosts[],
  parameters: Parameters,
  { onMerge }: Pick<PlanOptions, 'onMerge'> = {},
): Plan {
  return {
    ...mergeHosts(prepared, parameters, onMerge),
    hosts: prepared.map(({ name, count, host }) => ({ name, count, host })),
    parameters,
  };
}
