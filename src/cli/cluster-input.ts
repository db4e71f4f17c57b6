import { dirname, extname, isAbsolute, join } from 'node:path';
import { inFile, InvalidArgumentError, InvalidUsageError, TcclError } from '../errors.js';
import { type Parameters, parametersFromEnvironment } from '../planner/parameters.js';
import type { Cluster, PrepareOptions } from '../planner/plan/cluster.js';
import type { ClusterFile, ClusterFileMachine } from '../planner/plan/cluster-file.js';
import { MOST_HOSTS, splitCount, unknownVariable } from '../planner/plan/cluster-text.js';
import { defaultEnvironment, type Environment, launches, networks, wordOf } from '../planner/simulate/environment.js';
import { fabricFault } from '../planner/simulate/fabric.js';
import { applyOverrides } from '../planner/plan/overrides.js';
import { isXml } from '../planner/readers/classify.js';
import type { Hardware } from '../planner/topology/catalogue/hardware.js';
import { findMachine } from '../planner/topology/catalogue/machines.js';
import { networkOfCards } from '../planner/topology/catalogue/nics.js';
import { asStarted } from '../planner/topology/combine/merge-nics.js';
import { withoutEmptyBranches } from '../planner/topology/combine/prune.js';
import type { System } from '../planner/topology/system.js';
import { usesWindows, windowsOf } from '../planner/windows.js';
import { describeNote } from '../planner/topology/xml/notes.js';
import type { XmlElement } from '../planner/topology/xml/tree.js';
import { newGpuNotes, versionNotes, versionOf } from './version-options.js';
import type { ClusterOptions } from './cluster-options.js';
import {
  buildNoted,
  catalogueInput,
  completeTopology,
  hasEvidence,
  type NamedText,
  parseHosts,
  parseTopology,
  readOneFile,
  readText,
  type TopologyInput,
} from './topo/input.js';

/**
 * Reads CLUSTER for the commands of the planner: `plan`, `graph`, `explain`, `diff`, `log`.
 *
 *     tccl plan dgx-h100 --nodes 2            N of a machine of the catalogue, or of a topology file
 *     tccl plan a.xml b.xml:3                 several, each with its own count
 *     tccl plan cluster.yaml                  a cluster file (plan/cluster-file.ts)
 */

/** A cluster ready to be planned. */
export interface ClusterInput {
  /** `2 x dgx-h100`, or the name in the cluster file. */
  readonly title: string;
  readonly cluster: Cluster;
  /** The kinds of hosts in the order of their first hosts, with their topologies. */
  readonly machines: readonly ClusterMachine[];
  /** File of errors of planning: that of the only kind of host, undefined if there are several. */
  readonly fileName: string | undefined;
  readonly parameters: Parameters;
  /** All variables of NCCL that are set: by the environment of the command, by the cluster file, by `--env`. */
  readonly environment: Readonly<Record<string, string>>;
  /** The graph file that `NCCL_GRAPH_FILE` names, for planning. */
  readonly given: Pick<PrepareOptions, 'graphFile'>;
  /** Notes of one line: text that NCCL reads in an unexpected way, and additions. */
  readonly notes: readonly string[];
  /** Assumptions of simulations of its calls. */
  readonly simulated: Environment;
}

interface ClusterMachine {
  readonly title: string;
  /** File name for messages; undefined for a machine of the catalogue. */
  readonly fileName: string | undefined;
  readonly root: XmlElement;
  readonly system: System;
}

/** Hosts of the command line or a cluster file. */
interface NamedHosts {
  readonly input: TopologyInput;
  readonly count: number;
  readonly name: string | undefined;
  readonly hardware: Hardware | undefined;
  readonly overrides: ClusterFileMachine['overrides'];
  /** Place in a cluster file. */
  readonly inFile: <Result>(action: () => Result) => Result;
}

/**
 * @param names one or several names of CLUSTER
 * @throws InputError, InvalidArgumentError, InvalidUsageError or SystemError: one line with the place and the remedy
 */
export async function readCluster(names: readonly string[], options: ClusterOptions = {}): Promise<ClusterInput> {
  const texts = names.map((name) => ({ name, text: readText(name) }));
  const [first] = texts;
  const file = texts.find(({ text }) => text !== undefined && isClusterFile(text))?.text;
  if (file !== undefined && texts.length > 1) {
    throw new InvalidUsageError(
      'UNSUPPORTED',
      `${file.fileName} is a cluster file: give it alone, and list other machines in it`,
    );
  }
  if (first === undefined) throw new InvalidUsageError('UNSUPPORTED', 'no cluster is given, as in: tccl plan dgx-h100 --nodes 2');
  // Loaded only where they are needed: a machine of the catalogue does not need the YAML library.
  const { hardware } = options;
  const described = hardware === undefined ? undefined : (await import('./topo/load.js')).readHardware(hardware);
  if (file === undefined)
    return assembleCluster(
      texts.flatMap(({ name, text }) => namedHosts(name, text, options, described, texts.length)),
      {},
      options,
    );
  for (const option of ['nodes', 'hardware'] as const) {
    if (options[option] !== undefined)
      throw new InvalidUsageError('UNSUPPORTED', `--${option} does not go with a cluster file: write it in ${file.fileName}`);
  }
  const { parseClusterFile } = await import('../planner/plan/cluster-file.js');
  const { name, machines, environment, fabric, network, windows } = inFile(file.fileName, () => parseClusterFile(file.text));
  const { readHardware } = await import('./topo/load.js');
  const hosts = machines.map((machine) => hostsOfFile(machine, file.fileName, readHardware));
  const ofFile = { ...(windows === undefined ? {} : { windows }), ...(network === undefined ? {} : { network }) };
  // An option wins over the field of the file.
  const input = assembleCluster(hosts, environment, { ...ofFile, ...options }, dirname(file.fileName));
  return {
    ...input,
    ...(name === undefined ? {} : { title: name }),
    ...(fabric === undefined ? {} : { simulated: inFile(file.fileName, () => onFabric(input, fabric)) }),
  };
}

/** @throws InputError where the fabric contradicts itself or the hosts */
function onFabric(
  { cluster, machines, simulated }: ClusterInput,
  { fabric, wrong }: NonNullable<ClusterFile['fabric']>,
): Environment {
  const hosts = cluster.hosts.map(({ machine, count, name = 'a machine' }) => ({
    name,
    count,
    nNics: machines.find(({ system }) => system === machine)?.system.nets.length ?? 0,
  }));
  const fault = fabricFault(fabric, hosts);
  if (fault !== undefined) throw wrong(fault);
  return { ...simulated, fabric };
}

/**
 * Decides by the ending, otherwise by the first characters: text that is neither XML, a log nor a tool's output about a machine
 * is a cluster file.
 */
export function isClusterFile(named: NamedText): boolean {
  const { text, fileName } = named;
  const ending = extname(fileName).toLowerCase();
  // Labels of nodes come in these forms, too.
  if (['.yaml', '.yml', '.json'].includes(ending)) return !/\bnvidia\.com\/gpu|"?kind"?: "?Node\b|kubernetes\.io\//.test(text);
  if (ending === '.xml' || text.trim() === '' || isXml(text) || text.includes('=== System')) return false;
  return /^\s*(?:["']?machines["']?\s*:|\{\s*"machines")/m.test(text) || !hasEvidence(named);
}

function namedHosts(
  argument: string,
  text: NamedText | undefined,
  options: ClusterOptions,
  hardware: Hardware | undefined,
  nArguments: number,
): NamedHosts[] {
  const { name, count } = text === undefined ? splitCount(argument) : { name: argument, count: undefined };
  if (options.nodes !== undefined && (count !== undefined || nArguments > 1)) {
    throw new InvalidUsageError(
      'UNSUPPORTED',
      `--nodes goes with one machine; write how many there are of each, as ${name}:${options.nodes}`,
    );
  }
  const named = text ?? readText(name);
  const nodes = count ?? (options.nodes === undefined ? undefined : nodeCount(options.nodes));
  const parsed = named === undefined ? [{ input: catalogueInput(name), count: 1 }] : parseHosts(named);
  if (nodes !== undefined && parsed.length > 1)
    throw new InvalidUsageError(
      'UNSUPPORTED',
      `${named?.fileName ?? name} has ${parsed.length} kinds of hosts: ${count === undefined ? '--nodes' : 'a count'} goes with one`,
    );
  return parsed.map((each) => ({
    input: each.input,
    count: nodes ?? each.count,
    name: undefined,
    hardware,
    overrides: {},
    inFile: (action) => action(),
  }));
}

function hostsOfFile(machine: ClusterFileMachine, fileName: string, readHardware: (text: string) => Hardware): NamedHosts {
  const folder = fileName === 'standard input' ? '.' : dirname(fileName);
  const beside = (path: string) => (isAbsolute(path) ? path : join(folder, path));
  const inCluster = <Result>(action: () => Result): Result =>
    inFile(fileName, () => {
      try {
        return action();
      } catch (error) {
        // Errors inside a topology name that file; errors of the entry name the cluster file.
        if (!(error instanceof TcclError) || error.file !== undefined) throw error;
        throw machine.wrong(error.message);
      }
    });
  const { hardware } = machine;
  const text = machine.machine === '-' ? undefined : readText(beside(machine.machine));
  return {
    input: inCluster(() => (text === undefined ? catalogueInput(machine.machine) : parseTopology(text))),
    count: machine.count,
    name: machine.name,
    hardware:
      hardware === undefined
        ? undefined
        : inCluster(() => readHardware(hardware.startsWith('@') ? `@${beside(hardware.slice(1))}` : hardware)),
    overrides: machine.overrides,
    inFile: inCluster,
  };
}

/** @param folder of files that the environment names */
function assembleCluster(
  hosts: readonly NamedHosts[],
  fileEnvironment: Readonly<Record<string, string>>,
  options: ClusterOptions,
  folder = '.',
): ClusterInput {
  const ofShell = Object.entries(process.env).filter(([name, value]) => name.startsWith('NCCL_') && value !== undefined);
  const environment: Record<string, string> = {
    ...(Object.fromEntries(ofShell) as Record<string, string>),
    ...fileEnvironment,
    ...(options.collnet === true ? { NCCL_COLLNET_ENABLE: '1' } : {}),
    ...readAssignments(options.env ?? []),
  };
  const version = versionOf(options);
  const windows = options.windows === undefined ? 'none' : windowsOf(options.windows);
  const { parameters, notes: environmentNotes } = parametersFromEnvironment(environment, { ncclVersion: version, windows });
  const graphFile = readGraphFile(environment['NCCL_GRAPH_FILE'], 'NCCL_GRAPH_FILE' in fileEnvironment ? folder : '.');

  const notes = environmentNotes.map(({ message }) => message);
  notes.push(...versionNotes(version, usesWindows(parameters)));
  // A machine in several places is completed once.
  const built = new Map<string, ClusterMachine>();
  const clusterHosts = hosts.map(({ input, count, name, hardware, overrides: own, inFile: inCluster }) => {
    // What the cluster file says of a host's NICs counts more than the option for all.
    const overrides = options.collnet === true ? { sharp: true, ...own } : own;
    const key = JSON.stringify([input.fileName, input.title, hardware, overrides]);
    let machine = built.get(key);
    if (machine === undefined) {
      const complete = completeTopology(input, hardware);
      const given = inCluster(() => applyOverrides(complete.root, overrides));
      const root = input.fileName === undefined ? asStarted(given, parameters) : given;
      const { system, notes: systemNotes } = buildNoted(withoutEmptyBranches(root), input.fileName, parameters);
      notes.push(...complete.notes, ...systemNotes, ...newGpuNotes(input.title, system.gpus, parameters));
      built.set(key, (machine = { title: input.title, fileName: input.fileName, root, system }));
    }
    return { machine: machine.system, count, name: name ?? machine.title };
  });
  notes.push(...(graphFile?.notes ?? []));
  const machines = [...built.values()];
  return {
    title: clusterHosts.map(({ name, count }) => (count === 1 ? name : `${count} x ${name}`)).join(' + '),
    cluster: { hosts: clusterHosts },
    machines,
    fileName: machines.length === 1 ? machines[0]?.fileName : undefined,
    parameters,
    environment,
    given: graphFile === undefined ? {} : { graphFile: graphFile.file },
    notes,
    simulated: conditionsOf(hosts, options),
  };
}

/** Conditions of simulations: the options, and the network of the provider whose machines the hosts are, or of their cards. */
function conditionsOf(hosts: readonly NamedHosts[], { launch, network }: ClusterOptions): Environment {
  const known = hosts.flatMap(({ input }) => findMachine(input.title)?.origin?.network ?? networkOfCards(input.root) ?? [])[0];
  return {
    ...defaultEnvironment,
    ...(launch === undefined ? {} : { launch: wordOf(launch, launches, 'launch mode') }),
    network: network === undefined ? (known ?? 'verbs') : wordOf(network, networks, 'network'),
  };
}

/** `NAME=VALUE` each. */
function readAssignments(assignments: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    assignments.map((assignment) => {
      const [, name, value] = /^\s*([^=\s]+)\s*=([\s\S]*)$/.exec(assignment) ?? [];
      if (name === undefined || value === undefined) {
        throw new InvalidArgumentError(
          'ARGUMENT_RANGE',
          `--env '${assignment}' sets nothing: write NAME=VALUE, as NCCL_CROSS_NIC=0`,
        );
      }
      const problem = unknownVariable(name);
      if (problem !== undefined) throw new InvalidArgumentError('UNKNOWN_NAME', `--env ${name}: ${problem}`);
      return [name, value] as const;
    }),
  );
}

/** The number that `--nodes` gives. */
export function nodeCount(text: string): number {
  const count = Number(text);
  if (/^\d+$/.test(text) && count >= 1 && count <= MOST_HOSTS) return count;
  throw new InvalidArgumentError('ARGUMENT_RANGE', `--nodes '${text}' must be a whole number from 1 to ${MOST_HOSTS}`);
}

function readGraphFile(name: string | undefined, folder: string) {
  if (name === undefined || name === '') return undefined;
  const fileName = isAbsolute(name) ? name : join(folder, name);
  const text = readOneFile(fileName, 'in NCCL_GRAPH_FILE what NCCL_GRAPH_DUMP_FILE wrote');
  const { root, notes } = parseTopology(text);
  return { file: { root, fileName }, notes: notes.map((note) => describeNote(note, fileName)) };
}

/** The topology of each machine of a cluster, by its graph. */
export function rootsOf({ machines }: Pick<ClusterInput, 'machines'>): ReadonlyMap<System | XmlElement, XmlElement> {
  return new Map(machines.map(({ system, root }) => [system, root]));
}
