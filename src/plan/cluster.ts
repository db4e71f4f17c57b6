import { InvalidArgumentError, InputError } from '../errors.js';
import { contributionOf, type HostContribution } from '../graph/merge/contribution.js';
import type { HostRun } from '../graph/merge/nodes.js';
import { searchHost } from '../graph/search-host.js';
import type { SearchEvent } from '../graph/trace.js';
import type { Parameters } from '../parameters.js';
import { buildSystem } from '../topology/build/build-system.js';
import { type LocalSystem, localSystems } from '../topology/local-systems.js';
import type { System } from '../topology/system.js';
import type { XmlElement } from '../topology/xml/tree.js';

/** Machines in the order of their ranks. */
export interface Cluster {
  readonly hosts: readonly ClusterHosts[];
}

/** Hosts that follow each other and are alike. */
export interface ClusterHosts {
  /**
   * What each is like: its `<system>` or the graph made of it. Its ranks are 0, 1, … of that host alone. The same
   * object in several places is worked out once.
   */
  readonly machine: System | XmlElement;
  /** How many there are. */
  readonly count: number;
  /** What to call them in messages and plans. */
  readonly name?: string;
}

export interface PrepareOptions {
  /** The `<graphs>` of a file (`NCCL_GRAPH_FILE`), for all hosts. */
  readonly graphFile?: XmlElement;
  /** Hears of each decision of the search; `node` tells on which machine, and for which of its ranks. */
  readonly onSearch?: (event: SearchEvent, node: { readonly machine: string; readonly ranks: readonly number[] }) => void;
}

/** Hosts with all that is decided about each on its own. */
export interface PreparedHosts extends HostRun {
  readonly name: string;
  /** The machine as its ranks see it: one system a node. */
  readonly systems: readonly LocalSystem[];
}

/**
 * What every host knows before it hears of the others: its graph, paths, channels. Each machine is worked out once,
 * however many hosts are like it.
 *
 * @throws InputError for a machine that NCCL would refuse, or whose ranks are not 0, 1, …
 * @throws InvalidArgumentError for a count that is not a whole number above 0, or no host
 */
export function prepareCluster(cluster: Cluster, parameters: Parameters, options: PrepareOptions = {}): PreparedHosts[] {
  const systems = new Map<System | XmlElement, System>();
  const named = cluster.hosts.map((hosts, position) => ({ ...hosts, name: hosts.name ?? `machine ${position}` }));
  for (const { machine, count, name } of named) {
    if (!Number.isInteger(count) || count < 1) {
      throw new InvalidArgumentError('ARGUMENT_RANGE', `${name}: a count of ${count} hosts; it must be a whole number above 0`);
    }
    if (!systems.has(machine)) systems.set(machine, systemOf(machine, name, parameters));
  }
  const nRanks = named.reduce((sum, { machine, count }) => sum + count * (systems.get(machine)?.gpus.length ?? 0), 0);

  const prepared = new Map<System | XmlElement, Pick<PreparedHosts, 'host' | 'systems'>>();
  return named.map(({ machine, count, name }) => {
    let host = prepared.get(machine);
    const system = systems.get(machine);
    if (host === undefined && system !== undefined) prepared.set(machine, host = prepareHost(system, name, nRanks, parameters, options));
    if (host === undefined) throw new InvalidArgumentError('ARGUMENT_RANGE', `${name} is no machine`);
    return { name, count, ...host };
  });
}

function systemOf(machine: System | XmlElement, name: string, parameters: Parameters): System {
  const system = 'gpus' in machine ? machine : buildSystem(machine, { parameters });
  const ranks = system.gpus.map((gpu) => gpu.rank).sort((a, b) => a - b);
  if (ranks.some((rank, position) => rank !== position)) {
    throw new InputError('CONTENT',
      `${name}: its GPUs have ranks ${ranks.join(' ')}; within a host they must be 0 to ${ranks.length - 1}, each once: number them so in the XML`);
  }
  return system;
}

function prepareHost(
  system: System, name: string, nRanks: number, parameters: Parameters, { graphFile, onSearch }: PrepareOptions,
): Pick<PreparedHosts, 'host' | 'systems'> {
  const systems = localSystems(system, parameters, nRanks);
  const nodes = systems.map((local) => {
    const graphs = searchHost(local, parameters, {
      collnet: parameters.collnetEnable === 1,
      ...(graphFile === undefined ? {} : { graphFile }),
      ...(onSearch === undefined ? {} : { trace: (event) => onSearch(event, { machine: name, ranks: local.ranks }) }),
    });
    return contributionOf(local, graphs, parameters);
  });
  const host: HostContribution = { nRanks: system.gpus.length, nodes };
  return { host, systems };
}
