import type { Parameters } from '../parameters.js';
import type { ScheduledCollective } from '../schedule/schedule.js';
import type { Environment } from '../simulate/environment.js';
import { descendants } from '../topology/xml/tree.js';
import { type Cluster, prepareCluster, type PrepareOptions } from './cluster.js';
import { applyOverrides } from './overrides.js';
import { planPrepared } from './plan.js';
import { predictCollectives, simulatorOf } from './prediction.js';

/** Version of the rows of {@link costTable}: a field that goes or changes its meaning raises it, a new one does not. */
export const COST_TABLE_VERSION = 1;

/** Predicted time of a call on a group of ranks. */
export interface CostRow {
  readonly collective: ScheduledCollective;
  /** Size as nccl-tests counts it. */
  readonly bytes: number;
  readonly ranks: number;
  /** Hosts that the ranks are on; NVLink domains count as one. */
  readonly hosts: number;
  readonly timeUs: number;
  /** Bounds between which eight of ten measurements lie. */
  readonly leastUs: number;
  readonly mostUs: number;
  /** Undefined for messages between pairs, which NCCL has one way for. */
  readonly algorithm: string | undefined;
  readonly protocol: string | undefined;
  /** True if calls like this one were measured; the bounds of others are wider. */
  readonly measured: boolean;
}

/**
 * Times of collectives by size and ranks, for compilers and schedulers. Of equal hosts the groups are the first 2, 4, … GPUs of
 * one and all of 1, 2, 4, … hosts; of others, all ranks.
 *
 *     costTable({ hosts: [{ machine: machine('dgx-h100'), count: 4 }] }, defaultParameters, [1 << 20])
 *     // rows of 2, 4, 8, 16 and 32 ranks
 *
 * @param sizes as nccl-tests counts them
 * @throws InputError, InvalidUsageError as `plan`
 */
export function costTable(
  cluster: Cluster,
  parameters: Parameters,
  sizes: readonly number[],
  { environment, ...options }: PrepareOptions & { readonly environment?: Environment } = {},
): CostRow[] {
  // A file of graphs fits all ranks only.
  const groups = options.graphFile === undefined ? groupsOf(cluster) : [cluster];
  return groups.flatMap((group) => {
    const prepared = prepareCluster(group, parameters, options);
    const made = planPrepared(prepared, parameters);
    const { nRanks: ranks, nNodes: hosts } = made.nodes;
    return predictCollectives(simulatorOf(prepared, parameters, made), sizes, environment).flatMap(({ collective, rows }) =>
      rows.map(({ bytes, choice, timeUs, leastUs, mostUs, unmeasured }) => {
        const { algorithm, protocol } = choice ?? {};
        return {
          collective,
          bytes,
          ranks,
          hosts,
          timeUs,
          leastUs,
          mostUs,
          algorithm,
          protocol,
          measured: unmeasured === undefined,
        };
      }),
    );
  });
}

/** The rows as CSV, with a line of their names; times in µs to a hundredth. */
export function costTableCsv(rows: readonly CostRow[]): string {
  const lines = rows.map(
    ({ collective, bytes, ranks, hosts, timeUs, leastUs, mostUs, algorithm = '', protocol = '', measured }) =>
      [
        collective,
        bytes,
        ranks,
        hosts,
        ...[timeUs, leastUs, mostUs].map((us) => us.toFixed(2)),
        algorithm,
        protocol,
        measured ? 'yes' : 'no',
      ].join(','),
  );
  return ['collective,bytes,ranks,hosts,timeUs,leastUs,mostUs,algorithm,protocol,measured', ...lines, ''].join('\n');
}

function groupsOf(cluster: Cluster): Cluster[] {
  const [only, ...others] = cluster.hosts;
  if (only === undefined || others.length > 0) return [cluster];
  const { machine, count } = only;
  // A graph, unlike its file, has no part.
  const nGpus = 'attributes' in machine ? [...descendants(machine)].filter(({ name }) => name === 'gpu').length : 0;
  return [
    ...powersUpTo(nGpus - 1)
      .slice(1)
      .map((gpus) => ({ ...only, machine: 'attributes' in machine ? applyOverrides(machine, { gpus }) : machine, count: 1 })),
    ...powersUpTo(count - 1).map((hosts) => ({ ...only, count: hosts })),
    only,
  ].map((hosts) => ({ hosts: [hosts] }));
}

/** 1, 2, 4, … up to a number. */
function powersUpTo(most: number): number[] {
  return most < 1 ? [] : Array.from({ length: Math.floor(Math.log2(most)) + 1 }, (_, power) => 2 ** power);
}
