import { InvalidArgumentError } from '../../../errors.js';
import { counted } from '../../../counted.js';
import { type Parameters, parametersFromEnvironment } from '../../parameters.js';
import { type ChangeableCluster, changedCluster, topologyOf, withVariable } from '../../plan/changed-cluster.js';
import { MOST_HOSTS, unknownVariable } from '../../plan/cluster-text.js';
import {
  directNvlinks,
  doubleNics,
  halveNvlinks,
  keepNics,
  limitLanes,
  limitPcie,
  type MachineEdit,
  isNumbered,
  named,
  nvlinksDown,
  ofFirstNic,
  setNicSpeed,
  withoutNic,
  withoutGdr,
  withoutNvlinks,
} from '../../plan/machine-edits.js';
import { applyOverrides } from '../../plan/overrides.js';
import type { Environment } from '../../simulate/environment.js';
import { gpuOfDevice } from '../../evidence/models.js';
import { laneSpeed } from '../../plan/machine-edits.js';
import { linkSpeeds } from '../../topology/catalogue/build.js';
import { familyOf } from '../../topology/catalogue/gpus.js';
import { machine, machineOfGpus } from '../../topology/catalogue/machines.js';
import { asStarted, startedAgain } from '../../topology/combine/merge-nics.js';
import type { System } from '../../topology/system.js';
import type { XmlElement } from '../../topology/xml/tree.js';
import { list } from '../format.js';
import type { Counterfactual } from './counterfactual.js';

/** A cluster to be planned, with the assumptions of simulations. */
export interface ChangedSubject extends ChangeableCluster {
  readonly simulated: Environment;
  /** Remarks of one sentence: values that NCCL reads in an unexpected way. */
  readonly notes: readonly string[];
}

/**
 * The cluster with all of these changes; the original stays as it is.
 *
 * @throws InvalidArgumentError where a change is not possible, in one sentence with the reason
 */
export function changedSubject(
  subject: ChangeableCluster & { readonly simulated: Environment },
  changes: readonly Counterfactual[],
): ChangedSubject {
  return changes.reduce<ChangedSubject>((before, change) => apply(before, change), { ...subject, notes: [] });
}

/** True if the cluster is already as a change would make it. */
export function isAsItIs(subject: ChangeableCluster, change: Counterfactual): boolean {
  const { cluster, parameters, environment } = subject;
  if ('isOneNic' in change) return false;
  switch (change.kind) {
    case 'nodes':
      return [1, ...rootsOf(subject).map(traysOf)].some(
        (trays) => trays * cluster.hosts.reduce((sum, { count }) => sum + count, 0) === change.count,
      );
    case 'gpus':
      return rootsOf(subject).every((root) => named(root, 'gpu').length === change.count);
    case 'nics':
      return rootsOf(subject).every((root) => named(root, 'net').length === change.count);
    case 'nic-speed':
      return rootsOf(subject).every((root) =>
        named(root, 'net').every((net) => Number(net.attributes.get('speed')) === change.mbps),
      );
    case 'without':
      return rootsOf(subject).every((root) =>
        change.what === 'gdr'
          ? named(root, 'net').every((net) => net.attributes.get('gdr') === '0')
          : named(root, change.what === 'nvlink' ? 'nvlink' : 'net').length === 0,
      );
    case 'pcie':
      return rootsOf(subject).every((root) =>
        named(root, 'pci').every((pci) => !(laneSpeed(pci) > Number.parseFloat(linkSpeeds[change.generation]))),
      );
    case 'pcie-lanes':
      return rootsOf(subject).every((root) =>
        named(root, 'pci').every((pci) => !(Number(pci.attributes.get('link_width')) > change.lanes)),
      );
    case 'gpu-model':
      return rootsOf(subject).every((root) => modelsOf(root).every((id) => isOfModel(id, change.model)));
    case 'nvlinks':
      return rootsOf(subject).every((root) => named(root, 'gpu').every((gpu) => hasNvlinks(gpu, change.count)));
    case 'ranks':
      return hostsFor(subject, change.count) === undefined;
    case 'version':
      return parameters.ncclVersion === change.nccl;
    case 'variable':
      return (environment[change.name] ?? null) === change.value;
    case 'machine':
      return cluster.hosts.every(({ name }) => name === change.name);
    default:
      return false;
  }
}

/** True for a GPU with that many NVLinks in all, or to each other GPU. */
function hasNvlinks(gpu: XmlElement, count: number): boolean {
  const counts = named(gpu, 'nvlink').map(({ attributes }) => Number(attributes.get('count')));
  return counts.reduce((sum, each) => sum + each, 0) === count || (counts.length > 0 && counts.every((each) => each === count));
}

/** Ids of the models of a machine's GPUs; none for cards that the catalogue lacks. */
function modelsOf(root: XmlElement): (string | undefined)[] {
  return named(root, 'gpu').map(({ parent }) => gpuOfDevice(Number(parent?.attributes.get('device')))?.id);
}

function isOfModel(id: string | undefined, model: string): boolean {
  return id !== undefined && (id === model || familyOf({ id }) === model);
}

/**
 * GPUs of each host, or hosts, that make a number of GPUs in all; undefined where the cluster or each host has that number.
 *
 * @throws InvalidArgumentError where neither does
 */
function hostsFor(subject: ChangeableCluster, count: number): { readonly gpus: number } | { readonly nodes: number } | undefined {
  const { hosts } = subject.cluster;
  const [gpus = 0, ...others] = rootsOf(subject).map((root) => named(root, 'gpu').length);
  const nHosts = hosts.reduce((sum, host) => sum + host.count, 0);
  if (gpus === count || gpus * nHosts === count || others.length > 0 || gpus === 0) return undefined;
  if (count < gpus && nHosts === 1) return { gpus: count };
  if (count > gpus && count % gpus === 0) return { nodes: count / gpus };
  throw new InvalidArgumentError(
    'ARGUMENT_RANGE',
    `the question is about ${counted(count, 'GPU')}, and ${nHosts === 1 ? `the host has ${gpus}` : `each of ${nHosts} hosts has ${gpus}`}: say how many of each host, as 2 GPUs per node, or give another machine or --nodes`,
  );
}

function apply(subject: ChangedSubject, change: Counterfactual): ChangedSubject {
  const { cluster, parameters, environment, simulated, notes } = subject;
  const edited = (edit: MachineEdit, isOneHost = false): ChangedSubject => {
    const changed = changedCluster(subject, { apply: edit, isOneHost });
    return { ...subject, cluster: changed.cluster, roots: new Map() };
  };
  const ofNics = (edit: MachineEdit, { isOneNic }: { readonly isOneNic?: true }): ChangedSubject =>
    isOneNic === true ? edited(ofFirstNic(edit), true) : edited(edit);
  switch (change.kind) {
    case 'variable': {
      const problem = unknownVariable(change.name);
      if (problem !== undefined) throw new InvalidArgumentError('UNKNOWN_NAME', problem);
      const then = withVariable(environment, change);
      const read = parametersFromEnvironment(then, parameters);
      const own = read.notes.filter(({ variable }) => variable === change.name).map(({ message }) => message);
      const started = startedWith(subject, read.parameters);
      return { ...subject, cluster: started, parameters: read.parameters, environment: then, notes: [...notes, ...own] };
    }
    case 'version': {
      const then = versionOf(environment, change.nccl);
      return { ...subject, cluster: startedWith(subject, then), parameters: then };
    }
    case 'nics-down': {
      const fewest = Math.min(...rootsOf(subject).map((root) => named(root, 'net').length));
      if (fewest <= change.count)
        throw new InvalidArgumentError(
          'ARGUMENT_RANGE',
          fewest === 0
            ? 'the machine has no NIC that could be down'
            : `${counted(change.count, 'NIC')} of ${fewest} down leaves none`,
        );
      return edited((root) => {
        keepNics(named(root, 'net').length - change.count)(root);
      }, true);
    }
    case 'nic-down': {
      const there = rootsOf(subject).map((root) => named(root, 'net').map(({ attributes }) => Number(attributes.get('dev'))));
      const [numbers = []] = there.filter((each) => !each.includes(change.nic));
      if (numbers.length > 0)
        throw new InvalidArgumentError(
          'ARGUMENT_RANGE',
          `no NIC ${change.nic}: there are ${list(numbers.sort((a, b) => a - b).map(String))}`,
        );
      return edited(withoutNic(change.nic), true);
    }
    case 'nics': {
      const fewest = Math.min(...rootsOf(subject).map((root) => named(root, 'net').length));
      if (fewest < change.count && 2 * fewest !== change.count)
        throw new InvalidArgumentError(
          'ARGUMENT_RANGE',
          `the question states ${counted(change.count, 'NIC')} of each host, and the machine has ${fewest}: give the machine that is meant`,
        );
      return edited(fewest < change.count ? doubleNics : keepNics(change.count));
    }
    case 'nics-doubled':
      return edited(doubleNics);
    case 'nic-speed':
      return ofNics(setNicSpeed(change.mbps), change);
    case 'without':
      return edited(change.what === 'nvlink' ? withoutNvlinks : change.what === 'gdr' ? withoutGdr : keepNics(0));
    case 'nvlinks-halved':
      return edited(halveNvlinks);
    case 'nvlinks-down': {
      const isThere = rootsOf(subject).every((root) =>
        named(root, 'gpu').some((gpu) => isNumbered(gpu, change.gpu) && named(gpu, 'nvlink').length > 0),
      );
      if (!isThere) throw new InvalidArgumentError('ARGUMENT_RANGE', `there is no GPU ${change.gpu} with NVLinks`);
      return edited(nvlinksDown(change.gpu, change.count), true);
    }
    case 'nvlinks':
      return edited(directNvlinks(change.count));
    case 'pcie':
      return ofNics(limitPcie(change.generation), change);
    case 'pcie-lanes':
      return ofNics(limitLanes(change.lanes), change);
    case 'sockets':
      return { ...edited(withoutGdr), simulated: { ...simulated, network: 'sockets' } };
    case 'oversubscription':
      return { ...subject, simulated: { ...simulated, oversubscription: change.ratio } };
    case 'graph-launch':
      return { ...subject, simulated: { ...simulated, launch: 'graph' } };
    case 'gpus':
      return withGpus(subject, () => change.count);
    case 'gpu-list':
      return withGpus(subject, () => change.gpus);
    case 'gpus-out':
      return withGpus(subject, (root) => {
        const all = named(root, 'gpu').map(({ attributes }) => Number(attributes.get('dev')));
        const absent = change.gpus.find((gpu) => !all.includes(gpu));
        if (absent !== undefined)
          throw new InvalidArgumentError('ARGUMENT_RANGE', `there is no GPU ${absent} that could be missing`);
        return all.filter((gpu) => !change.gpus.includes(gpu));
      });
    case 'nodes': {
      // `two nodes` of a rack are two of its hosts.
      const trays = Math.max(1, ...rootsOf(subject).map(traysOf));
      if (trays > 1 && change.count < trays)
        return withGpus(
          { ...subject, ...withHosts(subject, 1) },
          (root) => (change.count * named(root, 'gpu').length) / traysOf(root),
        );
      return withHosts(subject, change.count % trays === 0 ? change.count / trays : change.count);
    }
    case 'ranks': {
      const wanted = hostsFor(subject, change.count);
      if (wanted === undefined) return subject;
      return 'gpus' in wanted ? apply(subject, { kind: 'gpus', count: wanted.gpus }) : withHosts(subject, wanted.nodes);
    }
    case 'gpu-model': {
      const [root] = rootsOf(subject);
      const found = machineOfGpus(change.model, change.count ?? (root === undefined ? 8 : named(root, 'gpu').length));
      if (found === undefined)
        throw new InvalidArgumentError(
          'UNKNOWN_NAME',
          `the question is about ${change.model}, of which the catalogue has no machine: give the machine (nvidia-smi topo -m, or tccl topo detect -o machine.xml there)`,
        );
      return apply(subject, { kind: 'machine', name: found });
    }
    case 'machine': {
      const root = asStarted(machine(change.name), parameters);
      return {
        ...subject,
        cluster: { hosts: cluster.hosts.map(({ count }) => ({ machine: root, count, name: change.name })) },
        roots: new Map(),
      };
    }
  }
}

/** The cluster after a start of its machines with other parameters: NCCL may join other ports of their cards. */
function startedWith({ cluster, roots }: ChangedSubject, parameters: Parameters): ChangedSubject['cluster'] {
  // Hosts of one machine keep that in common: it is planned once.
  const again = new Map<System | XmlElement, System | XmlElement>();
  for (const { machine: each } of cluster.hosts) {
    const root = topologyOf(roots, each);
    const then = root === undefined ? undefined : startedAgain(root, parameters);
    if (then !== undefined && then !== root) again.set(each, then);
  }
  return { hosts: cluster.hosts.map((host) => ({ ...host, machine: again.get(host.machine) ?? host.machine })) };
}

/** Hosts of a machine; of one in an NVLink domain with others there are several. */
function traysOf(root: XmlElement): number {
  return new Set(named(root, 'cpu').map(({ attributes }) => attributes.get('host_hash'))).size;
}

function withHosts(subject: ChangedSubject, count: number): ChangedSubject {
  const [only, ...others] = subject.cluster.hosts;
  if (only === undefined || others.length > 0)
    throw new InvalidArgumentError(
      'ARGUMENT_RANGE',
      `${counted(count, 'node')} of which machine? The cluster has several kinds of hosts`,
    );
  if (count > MOST_HOSTS) throw new InvalidArgumentError('ARGUMENT_RANGE', `at most ${MOST_HOSTS} nodes are planned`);
  return { ...subject, cluster: { hosts: [{ ...only, count }] } };
}

function withGpus(subject: ChangedSubject, wanted: (root: XmlElement) => number | readonly number[]): ChangedSubject {
  const changed = changedCluster(subject, {});
  const hosts = changed.cluster.hosts.map((host) =>
    'gpus' in host.machine ? host : { ...host, machine: applyOverrides(host.machine, { gpus: wanted(host.machine) }) },
  );
  return { ...subject, cluster: { hosts }, roots: new Map() };
}

function versionOf(environment: Readonly<Record<string, string>>, nccl: string): Parameters {
  return parametersFromEnvironment(environment, nccl).parameters;
}

/** The topologies of the kinds of hosts, as far as they are known. */
export function rootsOf({ cluster, roots }: ChangeableCluster): XmlElement[] {
  return [...new Set(cluster.hosts.flatMap(({ machine: each }) => topologyOf(roots, each) ?? []))];
}

/** The change in words, as it follows `with`. */
export function describeCounterfactual(change: Counterfactual): string {
  switch (change.kind) {
    case 'variable':
      return change.value === null ? `${change.name} not set` : `${change.name}=${change.value}`;
    case 'nics-down':
      return `${change.count === 1 ? 'one NIC' : `${change.count} NICs`} of one host down`;
    case 'nic-down':
      return `NIC ${change.nic} of one host down`;
    case 'nics':
      return `${counted(change.count, 'NIC')} of each host`;
    case 'nics-doubled':
      return 'twice as many NICs';
    case 'nic-speed':
      return change.isOneNic === true
        ? `one NIC of one host at ${change.mbps / 1000} Gb/s`
        : `NICs of ${change.mbps / 1000} Gb/s`;
    case 'without':
      return { nvlink: 'no NVLink', gdr: 'no GPU Direct RDMA', nics: 'no NIC' }[change.what];
    case 'nvlinks-halved':
      return 'half of the NVLinks';
    case 'nvlinks-down':
      return `${change.count === 1 ? 'one NVLink' : `${change.count} NVLinks`} of GPU ${change.gpu} of one host down`;
    case 'nvlinks':
      return `${change.count} NVLinks between each two GPUs`;
    case 'sockets':
      return "sockets of the kernel in place of the NICs' own plugin";
    case 'pcie':
      return `${change.isOneNic === true ? 'one NIC of one host at ' : ''}PCIe Gen${change.generation}`;
    case 'pcie-lanes':
      return change.isOneNic === true
        ? `one NIC of one host with ${change.lanes} PCIe lanes`
        : `PCIe links of ${change.lanes} lanes`;
    case 'nodes':
      return counted(change.count, 'node');
    case 'gpus':
      return `${counted(change.count, 'GPU')} of each host`;
    case 'gpu-list':
      return `GPUs ${change.gpus.join(', ')} of each host`;
    case 'gpus-out':
      return `each host's ${change.gpus.length === 1 ? 'GPU' : 'GPUs'} ${change.gpus.join(', ')} missing`;
    case 'ranks':
      return `${counted(change.count, 'GPU')} in all`;
    case 'gpu-model': {
      const name = change.model
        .replaceAll('-', ' ')
        .toUpperCase()
        .replace('PCIE', 'PCIe')
        .replace('RTX', 'RTX ')
        .replace('  ', ' ');
      return `${change.count === undefined ? '' : `${change.count} x `}${name}`;
    }
    case 'version':
      return `NCCL ${change.nccl}`;
    case 'oversubscription':
      return `a fabric oversubscribed ${change.ratio}:1`;
    case 'machine':
      return change.name;
    case 'graph-launch':
      return 'launches from a CUDA graph';
  }
}
