import { inFile, InputError, InvalidArgumentError, TcclError } from '../errors.js';
import { evidenceIn, type HostFacts } from '../planner/evidence/facts.js';
import { machineOf } from '../planner/evidence/machine-of-tools.js';
import { topologyInLog } from '../planner/log/machine/topology-in-log.js';
import { type Parameters, parametersFromEnvironment } from '../planner/parameters.js';
import { refuseContradictions } from '../planner/graph/merge/contradictions.js';
import type { Cluster } from '../planner/plan/cluster.js';
import { parseClusterFile } from '../planner/plan/cluster-file.js';
import { unknownVariable } from '../planner/plan/cluster-text.js';
import { withDeviceEdits } from '../planner/plan/device-edits.js';
import { applyOverrides, type Overrides } from '../planner/plan/overrides.js';
import { defaultEnvironment, type Environment } from '../planner/simulate/environment.js';
import { buildSystem } from '../planner/topology/build/build-system.js';
import { completeSkeleton, isSkeleton } from '../planner/topology/catalogue/complete.js';
import { parseHardware } from '../planner/topology/catalogue/hardware.js';
import { findMachine, PCIE_BOX_FORM, suggestMachine } from '../planner/topology/catalogue/machines.js';
import { withoutEmptyBranches } from '../planner/topology/combine/prune.js';
import type { System } from '../planner/topology/system.js';
import { describeNote, type XmlNote } from '../planner/topology/xml/notes.js';
import { parseXml } from '../planner/topology/xml/parse.js';
import { descendants, type XmlElement } from '../planner/topology/xml/tree.js';
import { validateTopology } from '../planner/topology/xml/validate.js';
import { defaultVersion, ncclVersion } from '../planner/versions/version.js';
import { machinesIn, MOST_NODES, type StudioState } from './state.js';

/** A cluster that is ready to be planned. */
export interface Source {
  readonly title: string;
  readonly cluster: Cluster;
  readonly machines: readonly SourceMachine[];
  readonly parameters: Parameters;
  readonly environment: Readonly<Record<string, string>>;
  readonly simulated: Environment;
  readonly notes: readonly string[];
}

/** A machine of it: as it is given, and with the devices that are in use. */
export interface SourceMachine {
  readonly title: string;
  readonly whole: XmlElement;
  readonly root: XmlElement;
  readonly system: System;
}

/** A text that was opened. */
export interface NamedText {
  readonly name: string;
  readonly text: string;
}

/** Hosts of one machine, before devices are taken out. */
interface Hosts {
  readonly title: string;
  readonly root: XmlElement;
  readonly notes: readonly XmlNote[];
  readonly count: number;
  readonly overrides: Overrides;
}

function isXml(text: string): boolean {
  return /^\uFEFF?\s*</.test(text);
}

function isClusterFile({ name, text }: NamedText): boolean {
  return /\.ya?ml$/i.test(name) || /^\s*"?machines"?\s*:/m.test(text.slice(0, 4096));
}

/**
 * The cluster of a state: a machine of the catalogue, a topology, the machine that a log or a matrix of `nvidia-smi topo -m`
 * has, or a cluster file.
 *
 * @returns undefined for a log without a machine
 * @throws InputError or InvalidArgumentError: one line with the place and the remedy
 */
export function sourceOf(state: StudioState, file: NamedText | undefined): Source | undefined {
  const version = state.nccl === undefined ? defaultVersion : ncclVersion(state.nccl);
  for (const name of Object.keys(state.env)) {
    const problem = unknownVariable(name);
    if (problem !== undefined) throw new InvalidArgumentError('UNKNOWN_NAME', problem);
  }
  if (file === undefined) return assemble(state, [catalogueHosts(state.machine, state.nodes)], {}, version);
  if (isXml(file.text)) {
    const hosts = inFile(file.name, () => ({
      ...parseXml(file.text, { fileName: file.name }),
      title: file.name,
      count: state.nodes,
      overrides: {},
    }));
    return assemble(state, [hosts], {}, version, file.name);
  }
  const logged = topologyInLog(file.text);
  if (logged !== undefined) {
    const hosts = { title: `a machine in ${file.name}`, root: logged, notes: [], count: state.nodes, overrides: {} };
    return assemble(state, [hosts], {}, version, file.name);
  }
  if (isClusterFile(file)) return inFile(file.name, () => clusterFile(state, file, version));
  const evidence = inFile(file.name, () => evidenceIn({ text: file.text, fileName: file.name }));
  return evidence === undefined ? undefined : evidentSource(state, evidence, version, file.name);
}

/** The hosts that outputs of tools describe; where they describe one, as many as the state wants. */
function evidentSource(state: StudioState, evidence: readonly HostFacts[], version: string, fileName: string): Source {
  const isOne = evidence.length === 1 && evidence[0]?.count === 1;
  const made = evidence.map((host, index) => {
    const { root, notes } = inFile(fileName, () => machineOf(host, undefined));
    const title = host.name ?? `the machine${evidence.length > 1 ? ` ${index + 1}` : ''} in ${fileName}`;
    return { notes, hosts: { title, root, notes: [], count: isOne ? state.nodes : host.count, overrides: {} } };
  });
  const source = assemble(
    state,
    made.map(({ hosts }) => hosts),
    {},
    version,
    fileName,
  );
  return { ...source, notes: [...new Set([...made.flatMap(({ notes }) => notes), ...source.notes])] };
}

function catalogueHosts(name: string, count: number): Hosts {
  const machine = findMachine(name);
  if (machine !== undefined) return { title: machine.name, root: machine.build(), notes: [], count, overrides: {} };
  throw new InvalidArgumentError(
    'UNKNOWN_NAME',
    `the catalogue has no machine ${JSON.stringify(name)}${suggestMachine(name)} (${PCIE_BOX_FORM})`,
  );
}

function clusterFile(state: StudioState, { name, text }: NamedText, version: string): Source {
  const file = parseClusterFile(text);
  const hosts = file.machines.map((machine): Hosts => {
    if (findMachine(machine.machine) === undefined)
      throw machine.wrong(
        `${machine.machine} is no machine of the catalogue; the page cannot open files that a cluster file names: tccl plan ${name} does`,
      );
    const built = catalogueHosts(machine.machine, machine.count);
    const hardware = machine.hardware === undefined ? undefined : parseHardware(machine.hardware);
    return {
      ...built,
      title: machine.name ?? built.title,
      root: hardware === undefined ? built.root : completeSkeleton(built.root, hardware).root,
      overrides: machine.overrides,
    };
  });
  const source = assemble(state, hosts, file.environment, version, name);
  return {
    ...source,
    title: file.name ?? source.title,
    simulated: file.fabric === undefined ? defaultEnvironment : { ...defaultEnvironment, fabric: file.fabric.fabric },
  };
}

function assemble(
  state: StudioState,
  given: readonly Hosts[],
  fileEnvironment: Readonly<Record<string, string>>,
  version: string,
  fileName?: string,
): Source {
  const environment = { ...fileEnvironment, ...state.env };
  const { parameters, notes: variableNotes } = parametersFromEnvironment(environment, version);
  refuseContradictions(parameters);
  const { name: otherName, count: nOthers = 1 } = machinesIn(state.others);
  const hosts = otherName === '' ? given : [...given, catalogueHosts(otherName, nOthers)];
  const nHosts = hosts.reduce((sum, { count }) => sum + count, 0);
  if (nHosts > MOST_NODES)
    throw new InvalidArgumentError(
      'ARGUMENT_RANGE',
      `${nHosts} hosts are more than the ${MOST_NODES} that the page plans; tccl plan takes more`,
    );
  const notes = variableNotes.map(({ message }) => message);
  const machines = hosts.map((each, position): SourceMachine => {
    notes.push(...each.notes.map((note) => describeNote(note, fileName)));
    return inFile(fileName, () => {
      validateTopology(each.root);
      const complete = isSkeleton(each.root) ? completed(each.root, notes) : each.root;
      const whole = withDeviceEdits(applyOverrides(complete, each.overrides), position === 0 ? state.edits : []);
      const root = applyOverrides(whole, devicesLeft(whole, state));
      const system = buildSystem(withoutEmptyBranches(root), { parameters, onNote: ({ message }) => notes.push(message) });
      if (system.gpus.length === 0) throw new InputError('CONTENT', 'no GPU in <system>');
      return { title: each.title, whole, root, system };
    });
  });
  return {
    title: hosts.map(({ title, count }) => (count === 1 ? title : `${count} x ${title}`)).join(' + '),
    cluster: {
      hosts: machines.map(({ system, title }, index) => ({ machine: system, count: hosts[index]?.count ?? 1, name: title })),
    },
    machines,
    parameters,
    environment,
    simulated: defaultEnvironment,
    notes: [...new Set(notes)],
  };
}

function completed(root: XmlElement, notes: string[]): XmlElement {
  try {
    const complete = completeSkeleton(root);
    notes.push(...complete.notes);
    return complete.root;
  } catch (error) {
    if (!(error instanceof TcclError)) throw error;
    throw new InputError('CONTENT', `${error.message}; or describe the hardware with tccl plan --hardware`, { cause: error });
  }
}

/** Devices of a machine that are not taken out; all of them where none of those is in it. */
function devicesLeft(root: XmlElement, { gpusOff, nicsOff }: StudioState): Overrides {
  const elements = [...descendants(root)];
  const gpus = elements.filter(({ name }) => name === 'gpu').map(({ attributes }) => Number(attributes.get('dev')));
  const nics = elements.filter(({ name }) => name === 'net').flatMap(({ attributes }) => attributes.get('name') ?? []);
  const leftGpus = gpus.filter((dev) => !gpusOff.includes(dev));
  const leftNics = nics.filter((name) => !nicsOff.includes(name));
  return {
    ...(leftGpus.length === gpus.length ? {} : { gpus: leftGpus }),
    ...(leftNics.length === nics.length ? {} : { nics: leftNics }),
  };
}
