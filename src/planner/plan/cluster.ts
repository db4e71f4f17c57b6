import { detailsOf, inFile, InputError, InvalidArgumentError } from '../../errors.js';
import { refuseUnworkable } from '../graph/merge/contradictions.js';
import { contributionOf, type HostContribution, type NodeContribution } from '../graph/merge/contribution.js';
import type { HostRun } from '../graph/merge/nodes.js';
import { searchHostOnce } from '../graph/searched-hosts.js';
import type { SearchEvent } from '../graph/trace.js';
import type { Parameters } from '../parameters.js';
import { assemble } from '../topology/assemble.js';
import { buildSystem } from '../topology/build/build-system.js';
import { withoutEmptyBranches } from '../topology/combine/prune.js';
import { fingerprint } from '../topology/fingerprint.js';
import { type LocalSystem, localSystems } from '../topology/local-systems.js';
import type { System } from '../topology/system.js';
import { NodeType } from '../topology/types.js';
import type { XmlElement } from '../topology/xml/tree.js';

/** Machines in the order of their ranks. */
export interface Cluster {
  readonly hosts: readonly ClusterHosts[];
}

/** Consecutive hosts that are equal. */
export interface ClusterHosts {
  /**
   * The machine: its `<system>` or the graph made of it. Its ranks only give the order of its GPUs, so 8 to 15 are equivalent to
   * 0 to 7. Equal machines are computed once.
   */
  readonly machine: System | XmlElement;
  /** Number of such hosts. */
  readonly count: number;
  /** Their name in messages and plans. */
  readonly name?: string;
}

/** Options of the search of hosts. */
export interface PrepareOptions {
  /** The `<graphs>` of a file (`NCCL_GRAPH_FILE`), for all hosts; the name is for messages. */
  readonly graphFile?: { readonly root: XmlElement; readonly fileName?: string };
  /** Called with each decision of the search; `node` names the machine and the ranks. */
  readonly onSearch?: (event: SearchEvent, node: { readonly machine: string; readonly ranks: readonly number[] }) => void;
  /** True if `onSearch` gets each path that is taken and given back. Default: false. */
  readonly wantsPaths?: boolean;
}

/** Hosts with the decisions about each of them alone. */
export interface PreparedHosts extends HostRun {
  readonly name: string;
  /** The machine as its ranks see it: one system for each node. */
  readonly systems: readonly LocalSystem[];
}

/** The machine of each kind of node. */
export function machinesOf(prepared: readonly PreparedHosts[]): ReadonlyMap<NodeContribution, LocalSystem> {
  return new Map(
    prepared.flatMap(({ host, systems }) =>
      host.nodes.flatMap((node, index) => {
        const system = systems[index];
        return system === undefined ? [] : [[node, system] as const];
      }),
    ),
  );
}

/**
 * Plans every host by itself: its graph, paths and channels. Equal machines are computed once, even if each was read from a file
 * of its own.
 *
 * @throws InputError for a machine that NCCL would refuse, or in which two GPUs have the same rank
 * @throws InvalidArgumentError for a count that is not a whole number above 0, or no host
 * @throws InvalidUsageError for parameters with which no call of NCCL ends
 */
export function prepareCluster(cluster: Cluster, parameters: Parameters, options: PrepareOptions = {}): PreparedHosts[] {
  refuseUnworkable(parameters);
  const systems = new Map<System | XmlElement, System>();
  // One of several equal machines represents all.
  const models = new Map<string, System>();
  const named = cluster.hosts.map((hosts, position) => ({ ...hosts, name: hosts.name ?? `machine ${position}` }));
  for (const { machine, count, name } of named) {
    if (!Number.isInteger(count) || count < 1) {
      throw new InvalidArgumentError('ARGUMENT_RANGE', `${name}: a count of ${count} hosts; it must be a whole number above 0`);
    }
    if (systems.has(machine)) continue;
    const system = systemOf(machine, name, parameters);
    const key = fingerprint(system);
    const model = models.get(key) ?? system;
    models.set(key, model);
    systems.set(machine, model);
  }
  const nRanks = named.reduce((sum, { machine, count }) => sum + count * (systems.get(machine)?.gpus.length ?? 0), 0);

  const prepared = new Map<System, Pick<PreparedHosts, 'host' | 'systems'>>();
  return named.map(({ machine, count, name }) => {
    const system = systems.get(machine);
    if (system === undefined) throw new InvalidArgumentError('ARGUMENT_RANGE', `${name} is no machine`);
    const known =
      prepared.get(system) ??
      naming(models.size > 1 ? name : undefined, () => prepareHost(system, name, nRanks, parameters, options));
    prepared.set(system, known);
    return { name, count, ...known };
  });
}

/** Does `action`; adds the name of the machine to its errors, whose rank numbers are the machine's own. */
function naming<Result>(name: string | undefined, action: () => Result): Result {
  try {
    return action();
  } catch (error) {
    if (!(error instanceof InputError) || name === undefined) throw error;
    throw new InputError(error.code, `${name}: ${error.message}`, detailsOf(error));
  }
}

function systemOf(machine: System | XmlElement, name: string, parameters: Parameters): System {
  const system = 'gpus' in machine ? machine : buildSystem(withoutEmptyBranches(machine), { parameters });
  const ranks = system.gpus.map((gpu) => gpu.rank).sort((a, b) => a - b);
  const twice = ranks.find((rank, position) => rank === ranks[position - 1]);
  if (twice !== undefined)
    throw new InputError('CONTENT', `${name}: two of its GPUs have rank ${twice}; give each its own in the XML`);
  if (ranks.every((rank, position) => rank === position)) return system;
  const nodes = system.nodes.map((node) => (node.type === NodeType.GPU ? { ...node, rank: ranks.indexOf(node.rank) } : node));
  return assemble(nodes, system.links, system.hostHashes, system.systemId);
}

/**
 * Plans one host of a communicator of `nRanks` ranks by itself.
 *
 * @throws InputError for a machine that NCCL would refuse
 */
export function prepareHost(
  system: System,
  name: string,
  nRanks: number,
  parameters: Parameters,
  { graphFile, onSearch, wantsPaths = false }: PrepareOptions = {},
): Pick<PreparedHosts, 'host' | 'systems'> {
  const systems = localSystems(system, parameters, nRanks);
  const nodes = systems.map((local) => {
    const listen = (event: SearchEvent): void => onSearch?.(event, { machine: name, ranks: local.ranks });
    const graphs = inFile(graphFile?.fileName, () =>
      searchHostOnce(local, parameters, {
        collnet: parameters.collnetEnable === 1,
        ...(graphFile === undefined ? {} : { graphFile: graphFile.root }),
        ...(onSearch === undefined ? {} : { trace: Object.assign(listen, { wantsPaths }) }),
      }),
    );
    return contributionOf(local, graphs, parameters);
  });
  const host: HostContribution = { nRanks: system.gpus.length, nodes };
  return { host, systems };
}
