import { counted } from '../../counted.js';
import { InputError } from '../../errors.js';
import type { CpuModel } from '../topology/catalogue/cpus.js';
import { hybridCubeMesh } from '../topology/catalogue/build.js';
import type { GpuModel } from '../topology/catalogue/gpus.js';
import type { Hardware } from '../topology/catalogue/hardware.js';
import { type NicModel, nicModels } from '../topology/catalogue/nics.js';
import type { XmlElement } from '../topology/xml/tree.js';
import type { AgreedGpus } from './agree.js';
import { contradiction, type HostFacts } from './facts.js';
import type { KnownDevice, KnownPci } from './known-pci.js';
import { cpuOfReport, guessCpu, guessNic, hasNvSwitch, nicOfDevice } from './models.js';
import type { NvlinkEnd } from '../readers/lstopo-links.js';
import { levels, type PathTable } from './path-table.js';
import { gpuModelOf, isGpuDescription, isNvSwitch } from './pci-devices.js';
import { machineOfPci, type PlacedGpu, type PlacedNic } from './pci-machine.js';

/** Input of {@link placedMachine}. */
interface PlacedFacts {
  readonly host: HostFacts;
  readonly pci: KnownPci;
  readonly table: PathTable | undefined;
  readonly gpus: AgreedGpus;
  readonly hardware: Hardware | undefined;
  /** Assumptions are added. */
  readonly assumed: string[];
}

/**
 * The machine of a tree of PCI devices, with NVLinks of the matrix, else of the model. Undefined where the matrix has other
 * devices than the tree, or the tree has no GPU.
 *
 * @throws InputError where the two contradict each other, or nothing names the GPUs
 */
export function placedMachine(facts: PlacedFacts): XmlElement | undefined {
  const { host, pci, table, assumed } = facts;
  const devices = pci.devices.filter(isGpu);
  const named = devices.filter(({ names }) => names.some(({ kind }) => kind === 'gpu'));
  const gpus = [...(named.length > 0 ? named : devices)].sort((a, b) => (a.busId < b.busId ? -1 : 1));
  if (gpus.length === 0 || (table !== undefined && table.gpus.length !== gpus.length)) return undefined;
  const model = modelOf(facts, gpus);
  const notes: string[] = [];
  const nics = nicsOf(facts, model, notes);
  if (nics === undefined) return undefined;
  const areNamed = nics.every(({ device, name }) => device.names.some((each) => each.name === name));
  if (table !== undefined) checkTable(facts, table, gpus, areNamed ? nics : []);
  const { numaOf, isGuessed } = numaNodes(facts, gpus, nics);
  // NICs without names and guessed NUMA nodes may be others than those of the matrix, which then has the better places.
  if (table !== undefined && misfit(numbered(table, gpus, nics), table, numaOf) !== undefined) return undefined;
  assumed.push(...notes);
  if (isGuessed) assumed.push('NUMA nodes are those of the bus ids: from 80 on the second CPU, by domain on others');
  const cpu = cpuModel(facts, model, new Set(gpus.map(numaOf)).size);
  const nvlinks = nvlinksOf(facts, model, gpus);
  if (pci.devices.every(({ capable, gbps }) => capable === undefined && gbps === undefined))
    assumed.push('links of PCIe are those of the models, at full speed');
  return machineOfPci({
    gpus: gpus.map((device) => placedGpu(host, device, model)),
    nics,
    cpu,
    nvlinks,
    numaOf,
    coresOf: (numa) => coresOf(facts, numa),
  });
}

const NVIDIA = 0x10de;

function isGpu({ isBridge, names, classCode, vendor, description }: KnownDevice): boolean {
  if (isBridge) return false;
  if (names.some(({ kind }) => kind === 'gpu')) return true;
  if (classCode === '0302') return vendor === undefined || vendor === NVIDIA;
  return isGpuDescription(description, classCode) || (classCode?.startsWith('03') === true && vendor === NVIDIA);
}

function modelOf({ hardware, gpus, host }: PlacedFacts, devices: readonly KnownDevice[]): GpuModel {
  const described = hardware?.gpus ?? [];
  const [given, other] = new Set(described.map(({ model }) => model));
  const count = described.reduce((sum, group) => sum + group.count, 0);
  if (other !== undefined) throw new InputError('CONTENT', 'GPUs of several models are not supported here: describe one model');
  if (given !== undefined && count !== devices.length && described[0]?.isAll !== true)
    throw new InputError('CONTENT', `the outputs show ${counted(devices.length, 'GPU')}, and --hardware describes ${count}`);
  const model = given ?? gpus.model ?? devices.map(gpuModelOf).find((found) => found !== undefined);
  if (model !== undefined) return model;
  const [first] = devices;
  const name = gpus.unknown ?? (first?.product === '' ? first.description : first?.product) ?? '';
  throw new InputError(
    'CONTENT',
    `${name === '' ? 'nothing names the model of the GPUs' : `the catalogue has no GPU ${name}`}: add the output of nvidia-smi -L, or describe them, as --hardware "${devices.length} x H100 SXM"`,
    { line: (first ?? host.trees[0])?.place.line ?? 1 },
  );
}

function placedGpu(host: HostFacts, device: KnownDevice, model: GpuModel): PlacedGpu {
  const listed = host.gpuLists.flatMap(({ value }) => value).filter(({ busId }) => busId === device.busId);
  const generation = listed.find(({ pciGeneration }) => pciGeneration !== undefined)?.pciGeneration;
  const lanes = listed.find(({ pciLanes }) => pciLanes !== undefined)?.pciLanes;
  return { device, model, generation, lanes };
}

/** The network cards that NCCL would use; undefined where those of the matrix are not those of the tree. */
function nicsOf(facts: PlacedFacts, gpu: GpuModel, notes: string[]): PlacedNic[] | undefined {
  const { host, pci, table, hardware } = facts;
  const cards = pci.devices
    .filter((device) => !device.isBridge && rdmaModel(device, gpu) !== undefined)
    .sort((a, b) => (a.busId < b.busId ? -1 : 1));
  const whole = cards.filter(({ description }) => !/Virtual Function/i.test(description));
  const devices = whole.length > 0 ? whole : cards;
  const ports = namedPorts(devices, host, table);
  if (ports === undefined) return undefined;
  const up = ports.flatMap(({ device, name }) => {
    const listed = host.ports.filter(({ value }) => value.device === name);
    const isDown = listed.length > 0 ? listed.every(({ value }) => value.isActive === false) : device.isActive === false;
    const isOther = table !== undefined && !table.nics.includes(name);
    return isDown || isOther ? [] : [{ device, name }];
  });
  if (up.length === 0) return socketsOf(pci, notes);
  const described = (hardware?.nics ?? []).flatMap(({ model, speedMbps, count }) =>
    Array.from({ length: count }, () => ({ model, speedMbps })),
  );
  if (described.length > 0 && described.length !== up.length)
    throw new InputError(
      'CONTENT',
      `the outputs show ${counted(up.length, 'NIC')}, and --hardware describes ${described.length}`,
    );
  if (host.ports.length === 0 && up.every(({ device }) => device.isActive === undefined) && table === undefined)
    notes.push(`all ${counted(up.length, 'RDMA card')} are connected (ibdev2netdev shows which)`);
  const guessed = new Set<string>();
  const nics = up.map(({ device, name }, index): PlacedNic => {
    const rate = host.ports.find(({ value }) => value.device === name && value.rate !== undefined)?.value.rate;
    const own = rdmaModel(device, gpu) ?? guessNic(name, gpu);
    const card = described[index] ?? { model: own, speedMbps: rate === undefined ? own.speedMbps : rate * 1000 };
    if (described.length === 0 && rate === undefined) guessed.add(`${card.model.name} with ${card.speedMbps / 1000}G`);
    return { device, name, isRdma: true, ...card };
  });
  if (guessed.size > 0) notes.push(`speeds of NICs are those of the cards: ${[...guessed].join(', ')} (ibstat shows them)`);
  return nics;
}

/** The model of a card with RDMA: by its ids or description, else by the name that the system gives it. */
function rdmaModel({ vendor, device, description, names }: KnownDevice, gpu: GpuModel): NicModel | undefined {
  const model = nicOfDevice(vendor, device, description);
  if (model !== undefined) return model;
  const rdma = names.find(({ kind, name }) => kind === 'rdma' && !/^(?:i40iw|irdma|bnxt|qedr|cxgb)/.test(name));
  return rdma === undefined ? undefined : guessNic(rdma.name, gpu);
}

/** RDMA devices of cards; undefined where the matrix has others than the cards. */
function namedPorts(
  devices: readonly KnownDevice[],
  host: HostFacts,
  table: PathTable | undefined,
): { readonly device: KnownDevice; readonly name: string }[] | undefined {
  const own = devices.map((device) => ({
    device,
    names: device.names.filter(({ kind }) => kind === 'rdma').map(({ name }) => name),
  }));
  const listed = [...new Set(host.ports.map(({ value }) => value.device))].sort((a, b) =>
    a.localeCompare(b, 'en', { numeric: true }),
  );
  const inTable = table !== undefined && table.nics.length > 0 ? table.nics : undefined;
  if (own.every(({ names }) => names.length > 0)) {
    const ports = own.flatMap(({ device, names }) => names.map((name) => ({ device, name })));
    if (inTable === undefined || inTable.every((name) => ports.some((port) => port.name === name))) return ports;
    return inTable.length === devices.length
      ? devices.map((device, index) => ({ device, name: inTable[index] ?? '' }))
      : undefined;
  }
  const known = inTable ?? listed;
  const each = known.length / devices.length;
  // Names are in the order of bus ids, so many for each card.
  if (Number.isInteger(each) && each > 0)
    return devices.flatMap((device, card) => known.slice(card * each, (card + 1) * each).map((name) => ({ device, name })));
  if (inTable !== undefined) return undefined;
  return own.map(({ device, names }, index) => ({ device, name: names[0] ?? `mlx5_${index}` }));
}

function socketsOf(pci: KnownPci, notes: string[]): PlacedNic[] {
  const device = pci.devices.find(
    ({ isBridge, classCode, description, names }) =>
      !isBridge && (names.some(({ kind }) => kind === 'net') || classCode === '0200' || /Ethernet/i.test(description)),
  );
  const model = nicModels.find(({ id }) => id === 'ethernet');
  if (device === undefined || model === undefined) {
    notes.push('there is no network card, because none is in the outputs');
    return [];
  }
  const name = device.names.find(({ kind }) => kind === 'net')?.name ?? 'eth0';
  notes.push(`there is no card with RDMA: NCCL uses sockets on ${name}, with ${model.speedMbps / 1000}G`);
  return [{ device, name, model, speedMbps: model.speedMbps, isRdma: false }];
}

interface NumaNodes {
  readonly numaOf: (device: KnownDevice) => number;
  readonly isGuessed: boolean;
}

/** NUMA nodes: those of the outputs, then those of the matrix for devices of one root, then by bus id. */
function numaNodes({ table, pci }: PlacedFacts, gpus: readonly KnownDevice[], nics: readonly PlacedNic[]): NumaNodes {
  const used = [...gpus, ...nics.map(({ device }) => device)];
  const byRoot = new Map<number, number>();
  for (const device of pci.devices)
    if (device.numa !== undefined && !byRoot.has(device.root.number)) byRoot.set(device.root.number, device.numa);
  gpus.forEach((gpu, index) => {
    const numa = table?.places[index]?.numa;
    if (numa !== undefined && !byRoot.has(gpu.root.number)) byRoot.set(gpu.root.number, numa);
  });
  for (const { device, name } of nics) {
    const nic = table === undefined ? -1 : table.nics.indexOf(name);
    if (table === undefined || nic < 0 || byRoot.has(device.root.number)) continue;
    const near = table.gpus.findIndex((_, gpu) => (table.levelOf(gpu, table.gpus.length + nic) ?? Infinity) < levels.SYS);
    const numa = table.places[near]?.numa;
    if (numa !== undefined) byRoot.set(device.root.number, numa);
  }
  const isOneNode =
    (table?.places.length ?? 0) > 0 && new Set(table?.places.map(({ numa }) => numa)).size === 1 && byRoot.size > 0;
  const [only] = byRoot.values();
  const unknown = used.filter(({ numa, root }) => numa === undefined && !byRoot.has(root.number));
  const isSpread = new Set(unknown.map(guessedNode)).size > 1 || unknown.some((device) => guessedNode(device) > 0);
  return {
    numaOf: (device) => device.numa ?? byRoot.get(device.root.number) ?? (isOneNode ? (only ?? 0) : guessedNode(device)),
    isGuessed: !isOneNode && isSpread,
  };
}

function guessedNode({ busId }: KnownDevice): number {
  const [domain = 0, bus = 0] = busId.split(':').map((part) => Number.parseInt(part, 16));
  return domain > 0 ? domain >> 4 : bus >= 0x80 ? 1 : 0;
}

function coresOf({ table, pci }: PlacedFacts, numa: number): string {
  const place = table?.places.find((each) => each.numa === numa && each.cores !== undefined);
  if (place?.cores !== undefined) return place.cores;
  const root = pci.devices.find((device) => device.root.numa === numa && device.root.cores.length > 0)?.root;
  return root === undefined ? `${numa * 32}-${numa * 32 + 31}` : root.cores.join(',');
}

function cpuModel({ host, hardware, assumed }: PlacedFacts, gpu: GpuModel, nodes: number): CpuModel {
  const known = hardware?.cpu ?? host.cpus.map(({ value }) => cpuOfReport(value)).find((model) => model !== undefined);
  if (known !== undefined) return known;
  const guess = guessCpu(gpu, nodes);
  assumed.push(`CPUs are ${guess.name}`);
  return guess;
}

/** NVLinks: of the matrix; of hwloc's bandwidths; none where all are down; else those of boards with such GPUs. */
function nvlinksOf(
  { host, table, pci, assumed }: PlacedFacts,
  model: GpuModel,
  gpus: readonly KnownDevice[],
): readonly (readonly number[])[] | 'switch' {
  const count = gpus.length;
  const none = Array.from({ length: count }, () => Array.from({ length: count }, () => 0));
  if (table !== undefined) {
    if (!hasNvSwitch(table) || model.nvlink === 'pair') return table.nvlinks;
    assumed.push('NVLinks go to NVSwitches');
    return 'switch';
  }
  const measured = linksOfSpeeds(host, model, gpus, assumed);
  if (measured !== undefined) return measured;
  const isDown = host.nvlinks.some(({ value }) => value.every((active) => active === 0));
  if (count < 2 || model.nvlink === 'none' || isDown) return none;
  const every = (links: number) => none.map((row, a) => row.map((_, b) => (a === b ? 0 : links)));
  const seesSwitches = pci.devices.some((device) => isNvSwitch({ ...device, branches: [] }));
  const say = (what: string) => assumed.push(`${what} (nvidia-smi topo -m shows it)`);
  if (model.nvlink === 'pair') {
    say(`no bridge joins ${model.name}`);
    return none;
  }
  if (model.id.startsWith('v100') && count < 16 && !seesSwitches) {
    say(`NVLinks of ${count} x ${model.name} are wired as ${count === 8 ? 'in DGX-1' : '2 for each pair'}`);
    return count === 8 ? hybridCubeMesh : every(2);
  }
  const isBoardOfFour = count === 4 && !seesSwitches && model.c2c === undefined && model.sm <= 90;
  if (isBoardOfFour || model.id === 'gh200') {
    const links = Math.floor(model.nvlinks / 3);
    say(`${links} NVLinks join every pair of GPUs`);
    return every(links);
  }
  say('NVLinks go to NVSwitches');
  return 'switch';
}

/** MB/s of an NVLink in one direction, by generation, as hwloc counts it. */
function linkMbps({ sm }: GpuModel): number {
  return sm >= 100 ? 50_000 : sm >= 70 ? 25_000 : 20_000;
}

/** NVLinks by the bandwidths of hwloc; undefined where it prints none, or not of all GPUs. */
function linksOfSpeeds(
  host: HostFacts,
  model: GpuModel,
  gpus: readonly KnownDevice[],
  assumed: string[],
): readonly (readonly number[])[] | 'switch' | undefined {
  const speeds = host.trees.map(({ value }) => value.nvlinks).find((found) => found !== undefined);
  if (speeds === undefined) return undefined;
  const { ends, mbps } = speeds;
  const rows = gpus.map(({ names }) =>
    ends.findIndex(({ kind, name }) => kind === 'gpu' && names.some((each) => each.name === name)),
  );
  if (rows.includes(-1)) return undefined;
  const links = (from: number, to: number) => (from === to ? 0 : Math.round((mbps[from]?.[to] ?? 0) / linkMbps(model)));
  const reaches = (kind: NvlinkEnd['kind']) =>
    rows.some((row) => ends.some((end, to) => end.kind === kind && links(row, to) > 0));
  if (reaches('cpu')) assumed.push('NVLinks to CPUs carry nothing between GPUs');
  const counts = rows.map((from) => rows.map((to) => links(from, to)));
  // hwloc can show GPUs of one switch as if all links of each went to every other.
  const isThroughSwitch = counts.some((row) => row.reduce((sum, count) => sum + count, 0) > model.nvlinks);
  return reaches('switch') || isThroughSwitch ? 'switch' : counts;
}

/** @throws InputError where a pair of devices is near in one output and far in the other */
function checkTable(
  { host, pci }: PlacedFacts,
  table: PathTable,
  gpus: readonly KnownDevice[],
  nics: readonly PlacedNic[],
): void {
  const [matrix] = host.matrices;
  const found = misfit(numbered(table, gpus, nics), table, ({ numa }) => numa);
  if (matrix === undefined || found === undefined) return;
  const name = Object.entries(levels).find(([, value]) => value === found.level)?.[0] ?? '';
  const says = `says that ${found.a.name} and ${found.b.name} are ${name} apart`;
  throw contradiction(host.files, [matrix, says], [pci.source, `shows them ${found.words}`]);
}

/** A device with its number in the matrix. */
interface Numbered {
  readonly device: KnownDevice;
  readonly name: string;
  readonly index: number;
}

function numbered(table: PathTable, gpus: readonly KnownDevice[], nics: readonly PlacedNic[]): Numbered[] {
  return [
    ...gpus.map((device, index) => ({ device, name: table.gpus[index] ?? '', index })),
    ...nics.flatMap(({ device, name }) => {
      const nic = table.nics.indexOf(name);
      return nic < 0 ? [] : [{ device, name, index: table.gpus.length + nic }];
    }),
  ];
}

interface Misfit {
  readonly a: Numbered;
  readonly b: Numbered;
  readonly level: number;
  readonly words: string;
}

/** A pair whose path in the tree is of another kind than in the matrix. */
function misfit(
  devices: readonly Numbered[],
  table: PathTable,
  numaOf: (device: KnownDevice) => number | undefined,
): Misfit | undefined {
  for (const a of devices)
    for (const b of devices) {
      const level = table.levelOf(a.index, b.index);
      if (a.index >= b.index || level === undefined) continue;
      const [path, words] = pathIn(a.device, b.device, numaOf);
      if (path !== undefined && kindOf(level) !== path) return { a, b, level, words };
    }
  return undefined;
}

type PathKind = 'switch' | 'cpu' | 'far';

function kindOf(level: number): PathKind {
  return level <= levels.PXB ? 'switch' : level < levels.SYS ? 'cpu' : 'far';
}

/** The kind of path in the tree; undefined where it does not say. */
function pathIn(
  a: KnownDevice,
  b: KnownDevice,
  numaOf: (device: KnownDevice) => number | undefined,
): readonly [kind: PathKind | undefined, words: string] {
  // Functions of one card.
  if (a.busId.slice(0, -2) === b.busId.slice(0, -2)) return [undefined, ''];
  const above = new Set<KnownDevice>();
  for (let at = a.above; at !== undefined; at = at.above) above.add(at);
  for (let at = b.above; at !== undefined; at = at.above) if (above.has(at)) return ['switch', `below one bridge (${at.busId})`];
  const [first, second] = [numaOf(a), numaOf(b)];
  if (first === undefined || second === undefined) return a.root === b.root ? ['cpu', 'at one host bridge'] : [undefined, ''];
  return first === second
    ? ['cpu', `at NUMA node ${first}, below no common bridge`]
    : ['far', `at NUMA nodes ${first} and ${second}`];
}
