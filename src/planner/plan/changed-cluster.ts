import { type Parameters, parametersFromEnvironment } from '../parameters.js';
import { startedAgain } from '../topology/combine/merge-nics.js';
import type { System } from '../topology/system.js';
import { cloneElement, type XmlElement } from '../topology/xml/tree.js';
import type { Cluster, ClusterHosts, PrepareOptions } from './cluster.js';

/** A cluster that can be changed: with the topologies of its machines, and the variables that are set. */
export interface ChangeableCluster {
  readonly cluster: Cluster;
  /** The topology of each machine that the cluster holds as a finished graph. */
  readonly roots: ReadonlyMap<System | XmlElement, XmlElement>;
  readonly parameters: Parameters;
  /** All variables of NCCL that are set. */
  readonly environment: Readonly<Record<string, string>>;
  readonly graphFile?: PrepareOptions['graphFile'];
}

/** The change. */
export interface ClusterChange {
  /** A variable to set, or with null to unset. */
  readonly variable?: { readonly name: string; readonly value: string | null };
  /** Changes a machine, which is a copy. */
  readonly apply?: (machine: XmlElement) => void;
  /** True if only the first host is changed. */
  readonly isOneHost?: boolean;
}

/** The topology of a machine of a cluster, if it is known. */
export function topologyOf(roots: ChangeableCluster['roots'], machine: System | XmlElement): XmlElement | undefined {
  return roots.get(machine) ?? ('gpus' in machine ? undefined : machine);
}

/** The cluster and its parameters with a change; the original stays as it is. */
export function changedCluster(
  { cluster, roots, parameters, environment }: ChangeableCluster,
  { variable, apply, isOneHost = false }: ClusterChange,
): { readonly cluster: Cluster; readonly parameters: Parameters } {
  const copies = new Map<System | XmlElement, System | XmlElement>();
  const then =
    variable === undefined ? parameters : parametersFromEnvironment(withVariable(environment, variable), parameters).parameters;
  const copyOf = (original: System | XmlElement): System | XmlElement => {
    let machine = copies.get(original);
    if (machine === undefined) {
      const root = topologyOf(roots, original);
      const copy = root === undefined ? undefined : cloneElement(startedAgain(root, then));
      if (copy !== undefined) apply?.(copy);
      copies.set(original, (machine = copy ?? original));
    }
    return machine;
  };
  const hosts = cluster.hosts.flatMap((host, index): ClusterHosts[] => {
    if (isOneHost && index > 0) return [host];
    const machine = copyOf(host.machine);
    return isOneHost && host.count > 1
      ? [
          { ...host, machine, count: 1 },
          { ...host, count: host.count - 1 },
        ]
      : [{ ...host, machine }];
  });
  return { cluster: { hosts }, parameters: then };
}

/** The environment with one variable set otherwise. */
export function withVariable(
  environment: Readonly<Record<string, string>>,
  { name, value }: NonNullable<ClusterChange['variable']>,
): Record<string, string> {
  const others = Object.entries(environment).filter(([each]) => each !== name);
  return Object.fromEntries(value === null ? others : [...others, [name, value]]);
}
