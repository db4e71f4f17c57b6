import { counted } from '../counted.js';
import { inFile, InputError, InvalidArgumentError, TcclError } from '../errors.js';
import { evidenceIn } from '../planner/evidence/facts.js';
import { machineOf } from '../planner/evidence/machine-of-tools.js';
import { topologyInLog } from '../planner/log/machine/topology-in-log.js';
import { type Parameters, parametersFromEnvironment } from '../planner/parameters.js';
import { refuseContradictions } from '../planner/graph/merge/contradictions.js';
import type { Cluster, PrepareOptions } from '../planner/plan/cluster.js';
import { parseClusterFile } from '../planner/plan/cluster-file.js';
import { unknownVariable } from '../planner/plan/cluster-text.js';
import { withDeviceEdits } from '../planner/plan/device-edits.js';
import { applyOverrides, type Overrides } from '../planner/plan/overrides.js';
import { isHwloc, isXml } from '../planner/readers/classify.js';
import { defaultEnvironment, type Environment } from '../planner/simulate/environment.js';
import { buildSystem } from '../planner/topology/build/build-system.js';
import { completeSkeleton, isSkeleton } from '../planner/topology/catalogue/complete.js';
import { type Hardware, parseHardware } from '../planner/topology/catalogue/hardware.js';
import { findMachine, PCIE_BOX_FORM, suggestMachine } from '../planner/topology/catalogue/machines.js';
import { asStarted } from '../planner/topology/combine/merge-nics.js';
import { withoutEmptyBranches } from '../planner/topology/combine/prune.js';
import type { System } from '../planner/topology/system.js';
import { describeNote } from '../planner/topology/xml/notes.js';
import { parseXml } from '../planner/topology/xml/parse.js';
import { descendants, type XmlElement } from '../planner/topology/xml/tree.js';
import { validateTopology } from '../planner/topology/xml/validate.js';
import { defaultVersion, ncclVersion } from '../planner/versions/version.js';
import { hostsIn, MOST_NODES, type StudioState } from './state.js';

/** A cluster that is ready to be planned. */
export interface Source {
  readonly title: string;
  readonly cluster: Cluster;
  readonly machines: readonly SourceMachine[];
  readonly parameters: Parameters;
  readonly environment: Readonly<Record<string, string>>;
  /** The opened file that `NCCL_GRAPH_FILE` names. */
  readonly given: Pick<PrepareOptions, 'graphFile'>;
  readonly simulated: Environment;
  readonly notes: readonly string[];
  /** Hosts of the file that is shown, where it says how many: a state cannot ask for another number. */
  readonly ownCount: number | undefined;
  /** True if the first host is by itself because it alone is changed. */
  readonly isApart: boolean;
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

/** Contents of opened files, by name. */
export type Texts = ReadonlyMap<string, string>;

/** Hosts of one machine, before devices are taken out. */
interface Hosts {
  readonly title: string;
  /** Name for messages; undefined for a machine of the catalogue. */
  readonly fileName: string | undefined;
  readonly root: XmlElement;
  readonly notes: readonly string[];
  readonly count: number;
  /** True if the file says how many. */
  readonly isCounted: boolean;
  readonly overrides: Overrides;
  /** True if NCCL has not read it yet, so that the ports of its cards are apart. */
  readonly isOfCatalogue?: boolean;
}

function isClusterFile({ name, text }: NamedText): boolean {
  return /\.ya?ml$/i.test(name) || /^\s*"?machines"?\s*:/m.test(text.slice(0, 4096));
}

/**
 * The cluster of a state: a machine of the catalogue, a topology, the machine that a log or an output of a tool has, or a
 * cluster file; and other hosts beside it.
 *
 * @param texts the other opened files that the state names
 * @returns undefined for a log without a machine
 * @throws InputError or InvalidArgumentError: one line with the place and the remedy
 */
export function sourceOf(state: StudioState, file: NamedText | undefined, texts: Texts = new Map()): Source | undefined {
  const version = state.nccl === undefined ? defaultVersion : ncclVersion(state.nccl);
  for (const name of Object.keys(state.env)) {
    const problem = unknownVariable(name);
    if (problem !== undefined) throw new InvalidArgumentError('UNKNOWN_NAME', problem);
  }
  if (file !== undefined && !isXml(file.text) && topologyInLog(file.text) === undefined && isClusterFile(file))
    return inFile(file.name, () => clusterFile(state, file, version, texts));
  const set = state.fileSet.flatMap((name): NamedText[] => {
    const text = texts.get(name);
    return name === file?.name || text === undefined ? [] : [{ name, text }];
  });
  if (file === undefined && state.hardware !== '')
    throw new InvalidArgumentError(
      'ARGUMENT_RANGE',
      `the hardware ${JSON.stringify(state.hardware)} is that of an opened file, and none is shown`,
    );
  const hardware = state.hardware === '' ? undefined : parseHardware(state.hardware);
  const hosts =
    file === undefined ? [catalogueHosts(state.machine, state.nodes)] : hostsOfText(file, state.nodes, { set, hardware });
  return hosts === undefined ? undefined : assemble(state, hosts, {}, version, texts);
}

/**
 * Refuses a number of hosts that is not the one that a file has.
 *
 * @param asked the number; 1 is that of a state which asks for none
 */
export function refuseOtherCount(name: string, own: number | undefined, asked: number): void {
  if (own === undefined || asked === 1 || asked === own) return;
  throw new InvalidArgumentError(
    'ARGUMENT_RANGE',
    `${name} has ${counted(own, 'host')} by itself, and cannot be taken ${asked} times`,
  );
}

/** Facts about hosts beside a text. */
interface Beside {
  /** Other outputs of tools about the same hosts. */
  readonly set?: readonly NamedText[];
  /** Hardware that outputs and PCI trees do not name. */
  readonly hardware?: Hardware | undefined;
}

/**
 * The hosts that a text describes: one as many times as `count` says, or several; undefined where it describes none.
 */
function hostsOfText({ name, text }: NamedText, count: number, { set = [], hardware }: Beside = {}): Hosts[] | undefined {
  const common = { fileName: name, overrides: {}, isCounted: false };
  if (isXml(text) && !isHwloc(text)) {
    const { root, notes } = inFile(name, () => parseXml(text, { fileName: name }));
    const described = notes.map((note) => describeNote(note, name));
    if (hardware === undefined) return [{ ...common, title: name, root, notes: described, count }];
    const complete = inFile(name, () => completeSkeleton(root, hardware));
    return [{ ...common, title: name, root: complete.root, notes: [...described, ...complete.notes], count }];
  }
  const logged = topologyInLog(text);
  if (logged !== undefined) return [{ ...common, title: `a machine in ${name}`, root: logged, notes: [], count }];
  const texts = [{ name, text }, ...set].sort((a, b) => a.name.localeCompare(b.name, 'en', { numeric: true }));
  const evidence = inFile(name, () => evidenceIn(...texts.map((each) => ({ text: each.text, fileName: each.name }))));
  const place = set.length === 0 ? name : `${name} and ${counted(set.length, 'other file')}`;
  const isOne = evidence?.length === 1 && evidence[0]?.count === 1;
  return evidence?.map((host, index) => {
    const { root, notes } = inFile(name, () => machineOf(host, hardware));
    const title = host.name ?? `the machine${evidence.length > 1 ? ` ${index + 1}` : ''} in ${place}`;
    return { ...common, title, root, notes, count: isOne ? count : host.count, isCounted: !isOne };
  });
}

/** Hosts of an opened file or a machine of the catalogue. */
function namedHosts(name: string, count: number, texts: Texts): Hosts[] {
  const text = texts.get(name);
  if (text === undefined) return [catalogueHosts(name, count)];
  const hosts = hostsOfText({ name, text }, count);
  if (hosts !== undefined) {
    refuseOtherCount(name, ownCountOf(hosts), count);
    return hosts;
  }
  throw new InputError('CONTENT', 'has no machine that could be a host', { file: name });
}

function catalogueHosts(name: string, count: number): Hosts {
  const machine = findMachine(name);
  if (machine !== undefined)
    return {
      title: machine.name,
      fileName: undefined,
      root: machine.build(),
      notes: [],
      count,
      isCounted: false,
      overrides: {},
      isOfCatalogue: true,
    };
  throw new InvalidArgumentError(
    'UNKNOWN_NAME',
    `the catalogue has no machine ${JSON.stringify(name)}${suggestMachine(name)} (${PCIE_BOX_FORM})`,
  );
}

function clusterFile(state: StudioState, { name, text }: NamedText, version: string, texts: Texts): Source {
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
      fileName: name,
      isCounted: true,
      title: machine.name ?? built.title,
      root: hardware === undefined ? built.root : completeSkeleton(built.root, hardware).root,
      overrides: machine.overrides,
    };
  });
  const windows = state.windows === 'none' ? (file.windows ?? 'none') : state.windows;
  const source = assemble({ ...state, windows }, hosts, file.environment, version, texts);
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
  texts: Texts,
): Source {
  const environment = { ...fileEnvironment, ...state.env };
  const { parameters, notes: variableNotes } = parametersFromEnvironment(environment, {
    ncclVersion: version,
    windows: state.windows,
  });
  refuseContradictions(parameters);
  const others = hostsIn(state.others).flatMap(({ name, count = 1 }) => namedHosts(name, count, texts));
  const divided = apart(given, state);
  const hosts = [...divided, ...others];
  const nHosts = hosts.reduce((sum, { count }) => sum + count, 0);
  if (nHosts > MOST_NODES)
    throw new InvalidArgumentError(
      'ARGUMENT_RANGE',
      `${nHosts} hosts are more than the ${MOST_NODES} that the page plans; tccl plan takes more`,
    );
  const notes = variableNotes.map(({ message }) => message);
  const machines = hosts.map((each, position): SourceMachine => {
    notes.push(...each.notes);
    return inFile(each.fileName, () => {
      validateTopology(each.root);
      const complete = isSkeleton(each.root) ? completed(each.root, notes) : each.root;
      const whole = withDeviceEdits(applyOverrides(complete, each.overrides), position === 0 ? state.edits : []);
      const isEdited = position === 0 || state.edited === 'all';
      const left = isEdited ? applyOverrides(whole, devicesLeft(whole, state)) : whole;
      const root = each.isOfCatalogue === true ? asStarted(left, parameters) : left;
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
    given: givenGraphs(environment['NCCL_GRAPH_FILE'], texts),
    simulated: defaultEnvironment,
    notes: [...new Set(notes)],
    ownCount: ownCountOf(given),
    isApart: divided.length > given.length,
  };
}

/** Equal hosts of the first kind; those of which the first is changed count as one kind. */
export function firstCount({ cluster: { hosts }, isApart }: Source): number {
  return hosts.slice(0, isApart ? 2 : 1).reduce((sum, { count }) => sum + count, 0);
}

function ownCountOf(hosts: readonly Hosts[]): number | undefined {
  return hosts.some(({ isCounted }) => isCounted) ? hosts.reduce((sum, { count }) => sum + count, 0) : undefined;
}

/** The hosts with the first of equal ones by itself, where it alone is changed. */
function apart(given: readonly Hosts[], { edited, gpusOff, nicsOff, edits }: StudioState): readonly Hosts[] {
  const [first, ...rest] = given;
  const isChanged = gpusOff.length + nicsOff.length + edits.length > 0;
  if (edited === 'all' || !isChanged || first === undefined || first.count === 1) return given;
  return [{ ...first, title: `${first.title} (changed)`, count: 1 }, { ...first, count: first.count - 1 }, ...rest];
}

function givenGraphs(name: string | undefined, texts: Texts): Source['given'] {
  if (name === undefined || name === '') return {};
  const text = texts.get(name);
  if (text === undefined)
    throw new InvalidArgumentError('FILE', `NCCL_GRAPH_FILE=${name}: open that file in the page, too, or remove the variable`);
  return { graphFile: { root: parseXml(text, { fileName: name }).root, fileName: name } };
}

function completed(root: XmlElement, notes: string[]): XmlElement {
  try {
    const complete = completeSkeleton(root);
    notes.push(...complete.notes);
    return complete.root;
  } catch (error) {
    if (!(error instanceof TcclError)) throw error;
    throw new InputError('CONTENT', `${error.message}; or describe the hardware with --hardware`, { cause: error });
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
