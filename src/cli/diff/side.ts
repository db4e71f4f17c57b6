import { inFile, InvalidUsageError } from '../../errors.js';
import type { Parameters } from '../../planner/parameters.js';
import { type Cluster, prepareCluster, type PrepareOptions } from '../../planner/plan/cluster.js';
import type { Side } from '../../planner/plan/diff/compare.js';
import { sideOf } from '../../planner/plan/diff/side.js';
import { planPrepared } from '../../planner/plan/plan.js';
import { planFromJson } from '../../planner/plan/plan-json.js';
import { refuseContradictions } from '../../planner/graph/merge/contradictions.js';
import { defaultVersion } from '../../planner/versions/version.js';
import type { XmlElement } from '../../planner/topology/xml/tree.js';
import { readCluster } from '../cluster-input.js';
import type { ClusterOptions } from '../cluster-options.js';
import { readText } from '../topo/input.js';

/** A plan to compare, with notes about it. */
export interface ReadSide {
  readonly side: Side;
  readonly notes: readonly string[];
  /** The machines that the plan was made from, as XML; undefined for a plan from JSON. */
  readonly made?: { readonly cluster: Cluster; readonly parameters: Parameters; readonly options: PrepareOptions };
}

/** @throws as `readCluster` and planning do, each error naming the file */
export async function readSide(name: string, options: ClusterOptions): Promise<ReadSide> {
  const kept = keptPlan(name);
  if (kept !== undefined) {
    const given = (['nodes', 'hardware', 'env', 'nccl', 'torch', 'collnet', 'windows'] as const).find(
      (option) => options[option] !== undefined,
    );
    if (given !== undefined)
      throw new InvalidUsageError(
        'UNSUPPORTED',
        `${name} is a plan that is made already: --${given} cannot change it; write --${given}-a or --${given}-b for the other one`,
      );
    return { side: { title: name, plan: inFile(name, () => planFromJson(kept)), systems: undefined }, notes: [] };
  }
  const { title, cluster, machines, fileName, parameters, given, notes, simulated } = await readCluster([name], options);
  refuseContradictions(parameters);
  return inFile(fileName, () => {
    // Copies from before any version has read them.
    const rootOf = new Map<Cluster['hosts'][number]['machine'], XmlElement>(machines.map(({ system, root }) => [system, root]));
    const unbuilt = { hosts: cluster.hosts.map((hosts) => ({ ...hosts, machine: rootOf.get(hosts.machine) ?? hosts.machine })) };
    const prepared = prepareCluster(cluster, parameters, given);
    const named =
      parameters.ncclVersion === defaultVersion && options.nccl === undefined
        ? title
        : `${title}, NCCL ${parameters.ncclVersion}`;
    return {
      side: { ...sideOf(named, prepared, planPrepared(prepared, parameters)), simulated },
      notes,
      made: { cluster: unbuilt, parameters, options: given },
    };
  });
}

/** The JSON of a plan, by itself or as `plan` of what a command printed; undefined where the name is no such file. */
function keptPlan(name: string): unknown {
  const text = name === '-' ? undefined : readText(name)?.text;
  if (text === undefined || !text.trimStart().startsWith('{') || !text.includes('"tccl plan"')) return undefined;
  try {
    const value = JSON.parse(text) as { readonly format?: unknown; readonly plan?: unknown };
    return value.format === undefined && typeof value.plan === 'object' ? value.plan : value;
  } catch {
    // Not JSON: reading it as a cluster reports the place of the fault.
    return undefined;
  }
}
