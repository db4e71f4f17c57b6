import { defaultEnvironment, type Environment } from '../../simulate/environment.js';
import { choose } from '../../tuning/choose.js';
import { tune, type Tuning } from '../../tuning/tune.js';
import { TcclError } from '../../../errors.js';
import { type ChangeableCluster, changedCluster, type ClusterChange, topologyOf } from '../changed-cluster.js';
import { type Cluster, prepareCluster, type PreparedHosts } from '../cluster.js';
import { planPrepared, type Plan } from '../plan.js';
import { isQuickToPredict } from '../predicted-calls.js';
import { predictCall, simulatorOf } from '../prediction.js';

/** A cluster with its plan. */
export interface PlannedCluster extends ChangeableCluster {
  readonly prepared: readonly PreparedHosts[];
  readonly plan: Plan;
  readonly tuning: Tuning;
  readonly simulated?: Environment;
}

/** The call by which losses are measured, at a size where bandwidth decides. */
export const MEASURED_CALL = 'AllReduce of 1 GiB';
const BYTES = 2 ** 30;

/** Bus bandwidths of {@link MEASURED_CALL} in a plan, and in plans of the cluster with a change. */
export class Losses {
  readonly #subject: PlannedCluster;
  #is: number | undefined;

  constructor(subject: PlannedCluster) {
    this.#subject = subject;
  }

  /** GB/s of the plan. */
  get is(): number {
    return (this.#is ??= busGBps(this.#subject));
  }

  /** GB/s with a change; undefined where NCCL would refuse it. */
  with(change: ClusterChange): number | undefined {
    return this.of(changedCluster(this.#subject, change));
  }

  /** GB/s of another cluster; undefined where NCCL would refuse it. */
  of({ cluster, parameters }: Pick<ChangeableCluster, 'cluster' | 'parameters'>): number | undefined {
    try {
      const { graphFile, simulated = defaultEnvironment } = this.#subject;
      const prepared = prepareCluster(cluster, parameters, graphFile === undefined ? {} : { graphFile });
      const plan = planPrepared(prepared, parameters);
      const tuning = tune(plan, parameters);
      return busGBps({ prepared, plan, tuning, parameters, simulated });
    } catch (error) {
      if (!(error instanceof TcclError)) throw error;
      return undefined;
    }
  }
}

/** By the simulation where that is quick, else by NCCL's own model. */
function busGBps({
  prepared,
  plan,
  tuning,
  parameters,
  simulated = defaultEnvironment,
}: Pick<PlannedCluster, 'prepared' | 'plan' | 'tuning' | 'parameters' | 'simulated'>): number {
  if (!isQuickToPredict(plan.nodes.nRanks, 6)) return choose(tuning, 'AllReduce', BYTES)?.busGBps ?? 0;
  const simulator = simulatorOf(prepared, parameters, plan, tuning);
  return predictCall(simulator, 'AllReduce', BYTES, { environment: simulated })[0]?.busGBps ?? 0;
}

/** The topologies of the machines of a cluster, one for each kind. */
export function topologiesOf({ cluster, roots }: { readonly cluster: Cluster; readonly roots: ChangeableCluster['roots'] }) {
  return new Map(
    cluster.hosts.flatMap(({ machine, name }) => {
      const root = topologyOf(roots, machine);
      return root === undefined ? [] : [[root, name ?? 'a machine'] as const];
    }),
  );
}
