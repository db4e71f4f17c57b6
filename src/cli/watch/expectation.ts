import { inFile, InvalidArgumentError } from '../../errors.js';
import type { WatchSample } from '../../planner/log/live/job-watch.js';
import { scheduledCollectives } from '../../planner/schedule/schedule.js';

/** Collectives whose blocks NCCL counts of one rank, and nccl-tests of all. */
const byBlock: ReadonlySet<string> = new Set(['AllGather', 'ReduceScatter']);

/**
 * The simulated time of calls on a cluster, for operations of as many ranks; undefined without `--cluster`. The planner is loaded
 * only with it.
 */
export async function expectationOf({
  cluster,
  nodes,
  inspector,
}: {
  readonly cluster?: string;
  readonly nodes?: string;
  readonly inspector?: string;
}): Promise<WatchSample['expected']> {
  if (cluster === undefined) return undefined;
  if (inspector === undefined)
    throw new InvalidArgumentError('ARGUMENT_TYPE', '--cluster needs --inspector: reports of RAS lack the sizes of operations');
  const { readCluster } = await import('../cluster-input.js');
  const { prepareCluster } = await import('../../planner/plan/cluster.js');
  const { simulatorOf } = await import('../../planner/plan/prediction.js');
  const {
    cluster: hosts,
    parameters,
    fileName,
    given,
    simulated,
  } = await readCluster([cluster], nodes === undefined ? {} : { nodes });
  const simulator = inFile(fileName, () => simulatorOf(prepareCluster(hosts, parameters, given), parameters));
  const known = new Map<string, number | undefined>();
  return (operation, bytes, nRanks) => {
    const collective = scheduledCollectives.find((name) => name === operation);
    if (collective === undefined || nRanks !== simulator.nRanks) return undefined;
    const key = `${operation} ${bytes}`;
    const size = byBlock.has(collective) ? bytes * nRanks : bytes;
    if (!known.has(key)) known.set(key, simulator.simulate(collective, size, { environment: simulated })?.timeUs);
    return known.get(key);
  };
}
