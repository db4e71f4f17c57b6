import { counted } from '../../counted.js';
import { InputError } from '../../errors.js';
import { type CpuModel } from '../topology/catalogue/cpus.js';
import type { GpuModel } from '../topology/catalogue/gpus.js';
import type { Hardware } from '../topology/catalogue/hardware.js';
import { nicOfSpeed } from '../topology/catalogue/nics.js';
import { descendants, type XmlElement } from '../topology/xml/tree.js';
import { type AgreedGpus, agreedGpus } from './agree.js';
import { fileOf, type HostFacts } from './facts.js';
import { type KnownPci, knownPci } from './known-pci.js';
import { cpuOfReport, guessCpu, guessGpu, guessNic, hasNvSwitch } from './models.js';
import { machineByNames, namedMachine } from './named-machine.js';
import { type PathTable, pathTable, withoutNics } from './path-table.js';
import { placedMachine } from './placed-machine.js';
import { isAlone, type Models, treeOfTable } from './tree-of-table.js';

/** A machine of evidence, and notes of one line on everything that was assumed. */
export interface EvidentMachine {
  readonly root: XmlElement;
  readonly notes: readonly string[];
}

const REFUSALS: ReadonlySet<string> = new Set(['CNS', 'GNS', 'TNS', 'NS', 'DR']);
/** Prefix of notes on what is assumed. */
export const ASSUMED = 'assumed: ';
/** The command whose output leaves nothing to assume. */
export const CERTAIN_COMMAND = 'tccl topo detect -o machine.xml';
const CERTAIN = `to be certain, run on that machine: ${CERTAIN_COMMAND}`;

/**
 * Builds the machine of a host. Its form comes from a tree of PCI devices, else from the matrix of `nvidia-smi topo -m`, else
 * from the catalogue by the names; models come from `hardware`, then from the facts, else they are assumed.
 *
 * @throws InputError where facts contradict each other, do not determine a machine, or `hardware` has other numbers of devices
 */
export function machineOf(host: HostFacts, hardware: Hardware | undefined): EvidentMachine {
  const gpus = agreedGpus(host);
  const [matrix] = host.matrices;
  const table = matrix === undefined ? undefined : inPlace(host, matrix.place, () => withoutDown(pathTable(matrix.value), host));
  const pci = knownPci(host);
  const assumed: string[] = [];
  const root = rootOf(host, { gpus, table, pci }, hardware, assumed);
  if (allowsAll(host)) for (const { name, attributes } of descendants(root)) if (name === 'gpu') attributes.set('p2p', '1');
  return { root, notes: [...permissionNotes(host, table), ...assumed.map((each) => `${ASSUMED}${each}`), CERTAIN] };
}

interface Known {
  readonly gpus: AgreedGpus;
  readonly table: PathTable | undefined;
  readonly pci: KnownPci | undefined;
}

function rootOf(host: HostFacts, { gpus, table, pci }: Known, hardware: Hardware | undefined, assumed: string[]): XmlElement {
  if (pci !== undefined) {
    const placed = placedMachine({ host, pci, table, gpus, hardware, assumed });
    if (placed !== undefined) return placed;
  }
  if (table !== undefined) {
    const named = machineByNames(host);
    if (named !== undefined) namedMachine(host, gpus);
    return machineOfTable(host, table, gpus, hardware, assumed);
  }
  const named = namedMachine(host, withDescribed(gpus, hardware));
  assumed.push(...named.assumed);
  const root = named.machine.build();
  nameNets(root, host, assumed);
  return root;
}

/** The GPUs with the model that `--hardware` names, where outputs say only their number, or nothing. */
function withDescribed(gpus: AgreedGpus, hardware: Hardware | undefined): AgreedGpus {
  if (hardware === undefined) return gpus;
  const [group, another] = hardware.gpus;
  if (group === undefined || another !== undefined || hardware.nics.length > 0 || hardware.cpu !== undefined)
    throw new InputError(
      'CONTENT',
      'names alone say nothing about places of devices, so --hardware can only name the model of the GPUs: give the name of a machine, as tccl topo list has it',
    );
  const count = group.isAll === true ? gpus.count : group.count;
  if (gpus.count !== undefined && count !== gpus.count)
    throw new InputError('CONTENT', `the outputs name ${counted(gpus.count, 'GPU')}, and --hardware describes ${group.count}`);
  return { model: group.model, unknown: undefined, count };
}

/** Names and speeds of ports that tools list, where there are as many as the machine has. */
function nameNets(root: XmlElement, { ports }: HostFacts, assumed: string[]): void {
  const nets = [...descendants(root)].filter(({ name }) => name === 'net');
  const active = new Map(ports.filter(({ value }) => value.isActive !== false).map(({ value }) => [value.device, value.rate]));
  if (active.size === 0) return;
  if (active.size !== nets.length) {
    assumed.push(`its ${counted(nets.length, 'NIC')} are those of the catalogue, although ${active.size} ports are active`);
    return;
  }
  const names = [...active.keys()].sort((a, b) => a.localeCompare(b, 'en', { numeric: true }));
  nets
    .sort((a, b) => Number(a.attributes.get('dev')) - Number(b.attributes.get('dev')))
    .forEach((net, index) => {
      const name = names[index] ?? '';
      net.attributes.set('name', name);
      const rate = active.get(name);
      if (rate !== undefined) net.attributes.set('speed', String(rate * 1000));
    });
}

/** Runs `action`; its errors name the file where there are several. */
function inPlace<Result>(host: HostFacts, place: { readonly file: number; readonly line: number }, action: () => Result): Result {
  try {
    return action();
  } catch (error) {
    const { file } = fileOf(host.files, place);
    if (!(error instanceof InputError) || file === undefined || error.file !== undefined) throw error;
    throw new InputError(error.code, error.message, { file, line: error.line ?? place.line });
  }
}

/** NCCL leaves out ports that are down. */
function withoutDown(table: PathTable, { ports }: HostFacts): PathTable {
  const up = new Set(ports.filter(({ value }) => value.isActive !== false).map(({ value }) => value.device));
  const down = new Set(ports.map(({ value }) => value.device).filter((device) => !up.has(device)));
  return withoutNics(table, down);
}

/** True where `nvidia-smi topo -p2p` says OK for all pairs: also GeForce cards then, whose driver was changed. */
function allowsAll({ permissions }: HostFacts): boolean {
  const words = permissions.flatMap(({ value: { rows } }) => rows.flatMap(({ cells }) => cells.filter((word) => word !== 'X')));
  return words.length > 0 && words.every((word) => word === 'OK');
}

/** Pairs that the driver refuses, by `nvidia-smi topo -p2p`: where NVLinks join them, NCCL ends with an error. */
function permissionNotes({ permissions }: HostFacts, table: PathTable | undefined): string[] {
  return permissions.flatMap(({ value: { columns, rows }, source }) => {
    const all = rows.flatMap(({ device, cells }) =>
      columns.flatMap((other, at) =>
        device < other && cells[at] !== undefined ? [{ pair: [device, other], word: cells[at] }] : [],
      ),
    );
    const refused = all.filter(({ word }) => REFUSALS.has(word));
    if (refused.length === 0) return [];
    const linksOf = ({ pair: [a = '', b = ''] }: (typeof all)[number]) =>
      table?.nvlinks[table.gpus.indexOf(a)]?.[table.gpus.indexOf(b)] ?? 0;
    const joined = refused.filter((each) => linksOf(each) > 0);
    const far = refused.length - joined.length;
    const name = source.replace(/ \(.*$/, '');
    const [first] = joined;
    return [
      ...(first === undefined
        ? []
        : [
            `${name} says ${first.word} for ${pairsText(joined)}, although ${counted(linksOf(first), 'NVLink')} ${linksOf(first) === 1 ? 'joins' : 'join'} them: NCCL then ends with «P2P is disabled between NVLINK connected GPUs», which hints at broken hardware or MIG; with NCCL_IGNORE_DISABLED_P2P=1 it goes through memory of the host, as with --env NCCL_P2P_DISABLE=1`,
          ]),
      ...(far === 0
        ? []
        : [
            `${name} says that the driver refuses peer-to-peer for ${far === all.length ? 'all pairs of GPUs' : pairsText(refused.filter((each) => linksOf(each) === 0))} (of -p2p n it says only that no NVLinks join them): plan with --env NCCL_P2P_DISABLE=1${far === all.length ? '' : ', which refuses it for all'}`,
          ]),
    ];
  });
}

function pairsText(pairs: readonly { readonly pair: readonly string[] }[]): string {
  const texts = pairs.slice(0, 3).map(({ pair }) => pair.join(' and '));
  return pairs.length > 3 ? `${texts.join(', ')} and ${counted(pairs.length - 3, 'other pair')}` : texts.join(', ');
}

function machineOfTable(
  host: HostFacts,
  table: PathTable,
  gpus: AgreedGpus,
  hardware: Hardware | undefined,
  assumed: string[],
): XmlElement {
  const gpu = gpuModel(table, gpus, hardware, assumed);
  const nics = nicModels(table, host, hardware, gpu, assumed);
  const reported = cpuOf(host);
  const cpu = hardware?.cpu ?? reported ?? guessCpu(gpu, new Set(table.places.map(({ numa }) => numa)).size);
  if (hardware?.cpu === undefined && reported === undefined) assumed.push(`CPUs are ${cpu.name}`);
  const isSwitched = hasNvSwitch(table) && gpu.nvlink !== 'pair';
  if (isSwitched) assumed.push('NVLinks go to NVSwitches');
  if (table.gpus.some((_, index) => isAlone(table, index) && table.places[index]?.cores === undefined))
    assumed.push('GPUs are shared out over the CPUs, because the matrix shows only their NVLinks');
  if (hasSwitch(table)) assumed.push('PCIe switches are those that PIX and PXB need, at full speed');
  const models: Models = { gpu, nics, cpu, hasNvSwitch: isSwitched };
  return treeOfTable(table, models);
}

/** The CPU that a tool reports. */
export function cpuOf({ cpus }: HostFacts): CpuModel | undefined {
  return cpus.map(({ value }) => cpuOfReport(value)).find((model) => model !== undefined);
}

function gpuModel(table: PathTable, gpus: AgreedGpus, hardware: Hardware | undefined, assumed: string[]): GpuModel {
  const described = new Set(hardware?.gpus.map(({ model }) => model) ?? []);
  const count = (hardware?.gpus ?? []).reduce((sum, group) => sum + group.count, 0);
  if (described.size > 1)
    throw new InputError('CONTENT', 'a matrix with GPUs of several models is not supported: describe one model');
  const [given] = described;
  if (given !== undefined) {
    if (count === table.gpus.length || hardware?.gpus[0]?.isAll === true) return given;
    throw new InputError('CONTENT', `the matrix has ${counted(table.gpus.length, 'GPU')}, and --hardware describes ${count}`);
  }
  if (gpus.model !== undefined) return gpus.model;
  const { model, reason } = guessGpu(table);
  const unknown = gpus.unknown === undefined ? '' : `; the catalogue has no ${gpus.unknown}`;
  assumed.push(
    `GPUs are ${model.name} (${reason}${unknown}): say otherwise with --hardware "${table.gpus.length} x ${model.name}"`,
  );
  return model;
}

function nicModels(
  table: PathTable,
  { ports }: HostFacts,
  hardware: Hardware | undefined,
  gpu: GpuModel,
  assumed: string[],
): Models['nics'] {
  const described = (hardware?.nics ?? []).flatMap(({ model, speedMbps, count }) =>
    Array.from({ length: count }, () => ({ model, speedMbps })),
  );
  if (described.length > 0) {
    if (described.length === table.nics.length) return described;
    throw new InputError(
      'CONTENT',
      `the matrix has ${counted(table.nics.length, 'NIC')}, and --hardware describes ${described.length}`,
    );
  }
  const rates = new Map(ports.flatMap(({ value: { device, rate } }) => (rate === undefined ? [] : [[device, rate] as const])));
  const speeds = new Set(rates.values());
  const guessed = new Set<string>();
  const nics = table.nics.map((name) => {
    // A matrix without a legend numbers NICs; equal ports need no names.
    const gigabits = rates.get(name) ?? (speeds.size === 1 ? [...speeds][0] : undefined);
    if (gigabits !== undefined) return { model: nicOfSpeed(gigabits * 1000), speedMbps: gigabits * 1000 };
    const model = guessNic(name, gpu);
    guessed.add(`${model.name} with ${model.speedMbps / 1000}G`);
    return { model, speedMbps: model.speedMbps };
  });
  if (guessed.size > 0)
    assumed.push(
      `NICs are cards of one port, ${[...guessed].join(', ')}: say otherwise with --hardware "${table.gpus.length} x ${gpu.name}, ${table.nics.length} x 200G NIC"`,
    );
  return nics;
}

function hasSwitch({ gpus, nics, levelOf }: PathTable): boolean {
  const devices = [...gpus, ...nics].map((_, index) => index);
  return devices.some((a) => devices.some((b) => (levelOf(a, b) ?? Infinity) <= 2));
}
