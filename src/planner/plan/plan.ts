import { refuseContradictions } from '../graph/merge/contradictions.js';
import { type Merged, mergeHosts, type Parent } from '../graph/merge/merge.js';
import type { HostRun } from '../graph/merge/nodes.js';
import type { MergeListener } from '../graph/merge/trace.js';
import { defaultParameters, type Parameters } from '../parameters.js';
import { type Cluster, type PreparedHosts, type PrepareOptions, prepareCluster } from './cluster.js';

/**
 * NCCL's decisions for a cluster: all channels through all ranks. A plain value, the same for the same cluster and parameters;
 * `planToJson` and `planFromJson` convert it, `planForRank` gives one rank's part.
 */
export interface Plan extends Merged {
  /** The hosts in the order of their ranks. */
  readonly hosts: readonly PlannedHosts[];
  readonly parameters: Parameters;
}

/** Consecutive hosts that are equal. */
export interface PlannedHosts extends HostRun {
  readonly name: string;
}

/** Options of a plan. */
export interface PlanOptions extends PrepareOptions {
  /** `follow` accepts parameters that contradict each other, as NCCL does; by default they are refused. */
  readonly contradictions?: 'refuse' | 'follow';
  /** Called with each decision of the merge. */
  readonly onMerge?: MergeListener;
  /**
   * The plan of the communicator that this one is split from and whose resources it shares (`splitShare` or `shrinkShare`): it
   * has no more channels. Of several, the topmost.
   */
  readonly parent?: Parent;
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

/** Plans hosts that {@link prepareCluster} has planned one by one. */
export function planPrepared(
  prepared: readonly PreparedHosts[],
  parameters: Parameters,
  { onMerge, parent }: Pick<PlanOptions, 'onMerge' | 'parent'> = {},
): Plan {
  return {
    ...mergeHosts(prepared, parameters, onMerge, parent),
    hosts: prepared.map(({ name, count, host }) => ({ name, count, host })),
    parameters,
  };
}
