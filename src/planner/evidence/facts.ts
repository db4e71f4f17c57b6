import { counted } from '../../counted.js';
import { InputError } from '../../errors.js';
import type { AnyMachineOutput } from '../readers/formats.js';
import { hostParts } from '../readers/hosts.js';
import type { DeviceMatrix } from '../readers/matrix.js';
import type { NodeClaim } from '../readers/nodes.js';
import type { PciDevice } from '../readers/lspci.js';
import { fullBusId, type PciTree } from '../readers/pci-tree.js';
import type { RdmaPort } from '../readers/rdma.js';
import type { TextPlace, ToolLine } from '../readers/section.js';
import { machineOutputs } from '../readers/sections.js';
import { gpusOf, isGpuDescription } from './pci-devices.js';

/** A text, with the name of its file for messages. */
export interface EvidenceText {
  readonly text: string;
  readonly fileName: string;
}

/** A fact and the output that it is from. */
export interface Sourced<Value> {
  readonly value: Value;
  /** `nvidia-smi -L (line 12)`, `lspci -tv (gpu1.txt:40)`. */
  readonly source: string;
  readonly place: TextPlace;
}

/** A GPU of a list. */
export interface ListedGpu {
  readonly product: string;
  /** `0000:1b:00.0`; undefined where the list has none. */
  readonly busId: string | undefined;
  readonly pciGeneration: number | undefined;
  readonly pciLanes: number | undefined;
}

/** Facts about one host, each with its source. Readers find them; {@link machineOf} decides. */
export interface HostFacts {
  /** Undefined where nothing names it. */
  readonly name: string | undefined;
  /** Hosts of which the same is known. */
  readonly count: number;
  /** Names of the files, by the numbers of places. */
  readonly files: readonly string[];
  readonly matrices: readonly Sourced<DeviceMatrix>[];
  /** Matrices of `topo -p2p`. */
  readonly permissions: readonly Sourced<DeviceMatrix>[];
  readonly trees: readonly Sourced<PciTree>[];
  /** Devices of `lspci` and `lspci -vvv`. */
  readonly pciLists: readonly Sourced<readonly PciDevice[]>[];
  readonly gpuLists: readonly Sourced<readonly ListedGpu[]>[];
  /** NVLinks of each GPU that are up, by `nvidia-smi nvlink -s`. */
  readonly nvlinks: readonly Sourced<readonly number[]>[];
  readonly ports: readonly Sourced<RdmaPort>[];
  readonly cpus: readonly Sourced<ReadonlyMap<string, string>>[];
  /** Statements of schedulers, clouds and firmware. */
  readonly claims: readonly Sourced<NodeClaim>[];
}

type GrowingFacts = {
  -readonly [Key in keyof HostFacts]: HostFacts[Key] extends readonly (infer Item)[] ? Item[] : HostFacts[Key];
};

/** Kinds of facts of which a host has one: a second, different one is that of another host. */
const singular = ['matrices', 'trees', 'pciLists', 'gpuLists'] as const;
const lists = [...singular, 'permissions', 'nvlinks', 'ports', 'cpus', 'claims'] as const;

/**
 * The hosts that outputs of tools describe: one, or several that prompts, headings, prefixes or file names tell apart. Undefined
 * where no output is about a machine.
 *
 * @throws InputError for outputs of another maker's tools, and for outputs from which no machine can be made
 */
export function evidenceIn(...texts: readonly EvidenceText[]): readonly HostFacts[] | undefined {
  const files = texts.map(({ fileName }) => fileName);
  texts.forEach(refuseOthers);
  const gatherer = new Gatherer(files);
  texts.forEach(({ text }, file) => {
    const lines = text.split(/\r?\n/).map((line, index): ToolLine => ({ text: line, place: { file, line: index + 1 } }));
    for (const part of hostParts(lines)) {
      gatherer.enter(part.host);
      for (const output of machineOutputs(part.lines)) gatherer.add(output);
    }
    gatherer.leaveFile();
  });
  if (!gatherer.isAny) return undefined;
  const hosts = gatherer.hosts();
  if (hosts.length > 0) return mergeEqual(hosts);
  throw gatherer.without();
}

/** @throws InputError for a table of AMD's tools */
function refuseOthers({ text, fileName }: EvidenceText): void {
  const [rocm] =
    /ROCm System Management|Weight between two GPUs|Link Type between (?:two )?GPUs|\bXGMI\b|\bAMD Instinct MI\d/.exec(text) ??
    [];
  if (rocm === undefined) return;
  throw new InputError('CONTENT', 'this is a table of rocm-smi (AMD GPUs, RCCL): tccl plans for NVIDIA GPUs', {
    file: fileName,
    line: text.slice(0, text.indexOf(rocm)).split('\n').length,
  });
}

class Gatherer {
  readonly #files: readonly string[];
  readonly #all: GrowingFacts[] = [];
  #name: string | undefined;
  #current: GrowingFacts | undefined;

  constructor(files: readonly string[]) {
    this.#files = files;
  }

  get isAny(): boolean {
    return this.#all.length > 0;
  }

  enter(name: string | undefined): void {
    this.#name = name;
    if (name !== undefined) this.#current = this.#all.find((host) => host.name === name);
  }

  /** Outputs without a name go on in the next file, until one repeats. */
  leaveFile(): void {
    this.#name = undefined;
    if (this.#current?.name !== undefined) this.#current = undefined;
  }

  add(output: AnyMachineOutput): void {
    if (output.host !== '') this.enter(output.host);
    const found = factsOf(output, (place) => this.#sourceOf(output, place));
    for (const [kind, facts] of Object.entries(found) as [keyof Found, Sourced<unknown>[]][])
      if (facts.length > 0) this.#put(kind, facts);
  }

  hosts(): HostFacts[] {
    const hosts = joinUnnamed(this.#all).filter(hasGpus);
    if (hosts.length < 2 || this.#files.length < 2) return hosts;
    return hosts.map((host) => ({ ...host, name: host.name ?? this.#files[firstPlace(host)?.file ?? 0] }));
  }

  /** The error about outputs without GPUs. */
  without(): InputError {
    const [first] = this.#all.flatMap((host) => [
      ...host.ports,
      ...host.cpus,
      ...host.trees,
      ...host.pciLists,
      ...host.claims,
      ...host.permissions,
    ]);
    const [p2p] = this.#all.flatMap((host) => host.permissions);
    const what = p2p === undefined ? 'has no GPUs' : 'says what is allowed, and not which GPUs there are and where';
    const { source, place } = p2p ?? first ?? { source: 'this', place: { file: 0, line: 1 } };
    return new InputError(
      'CONTENT',
      `${source.replace(/ \(.*$/, '')} ${what}: add the output of nvidia-smi topo -m of that host, or give the file that tccl topo detect -o machine.xml writes there`,
      { ...fileOf(this.#files, place), line: place.line },
    );
  }

  #put(kind: keyof Found, facts: Sourced<unknown>[]): void {
    if (kind === 'claims') {
      for (const claim of facts as Sourced<NodeClaim>[]) this.#putClaim(claim);
      return;
    }
    let host = this.#host();
    const isSingular = (singular as readonly string[]).includes(kind);
    if (isSingular && host[kind].length > 0) {
      if (facts.every((fact) => (host[kind] as Sourced<unknown>[]).some((known) => isSame(known.value, fact.value)))) return;
      if (!complements(kind, host[kind], facts)) host = this.#newHost(this.#nextName());
    }
    (host[kind] as Sourced<unknown>[]).push(...facts);
  }

  #putClaim(claim: Sourced<NodeClaim>): void {
    const { names } = claim.value;
    if (names.length === 0) {
      const host = this.#host();
      // `8 x DGX H100`
      const [, count] = /^(\d{1,4}) ?[x×] /.exec(`${claim.value.products[0] ?? ''} `) ?? [];
      const said = Number(count ?? claim.value.nodes ?? 0);
      if (said > 0) host.count = said;
      host.claims.push(claim);
      return;
    }
    const known = names.length === 1 ? this.#all.find(({ name }) => name === names[0]) : undefined;
    const host = known ?? this.#newHost(names.length === 1 ? names[0] : undefined);
    host.count = Math.max(names.length, claim.value.nodes ?? 1);
    if (names.length > 1) host.name = `${names[0] ?? ''} …`;
    host.claims.push(claim);
  }

  #host(): GrowingFacts {
    return this.#current ?? this.#newHost(this.#name);
  }

  #nextName(): string | undefined {
    return this.#name === undefined ? undefined : `${this.#name} (${this.#all.length + 1})`;
  }

  #newHost(name: string | undefined): GrowingFacts {
    const host: GrowingFacts = {
      name,
      count: 1,
      files: [...this.#files],
      matrices: [],
      permissions: [],
      trees: [],
      pciLists: [],
      gpuLists: [],
      nvlinks: [],
      ports: [],
      cpus: [],
      claims: [],
    };
    this.#all.push(host);
    this.#current = host;
    return host;
  }

  #sourceOf(output: AnyMachineOutput, place: TextPlace): string {
    const where = this.#files.length > 1 ? `${this.#files[place.file] ?? ''}:${place.line}` : `line ${place.line}`;
    return `${commandOf(output)} (${where})`;
  }
}

function firstPlace(host: HostFacts): TextPlace | undefined {
  return [...host.matrices, ...host.trees, ...host.gpuLists, ...host.pciLists, ...host.claims][0]?.place;
}

/** Outputs above the first prompt are of the one host that prompts name, unless both have the same. */
function joinUnnamed(all: readonly GrowingFacts[]): readonly HostFacts[] {
  const [unnamed, second] = all.filter(({ name }) => name === undefined);
  const [named, other] = all.filter(({ name }) => name !== undefined);
  if (unnamed === undefined || second !== undefined || named === undefined || other !== undefined) return all;
  if (singular.some((kind) => unnamed[kind].length > 0 && named[kind].length > 0)) return all;
  const joined = { ...named };
  for (const kind of lists) (joined as Record<string, unknown>)[kind] = [...unnamed[kind], ...named[kind]];
  return [joined];
}

/** A tree beside a tree of another command, and a list beside another command's. */
function complements(kind: string, known: readonly Sourced<unknown>[], facts: readonly Sourced<unknown>[]): boolean {
  const command = (source: string) => source.replace(/ \(.*$/, '');
  return kind !== 'matrices' && !known.some((one) => facts.some((other) => command(one.source) === command(other.source)));
}

function isSame(a: unknown, b: unknown): boolean {
  return keyOf(a) === keyOf(b);
}

/** File of an error, where there are several. */
export function fileOf(files: readonly string[], { file }: TextPlace): { readonly file?: string } {
  const name = files[file];
  return files.length > 1 && name !== undefined ? { file: name } : {};
}

/** Hosts whose GPUs something names. */
function hasGpus({ matrices, trees, pciLists, gpuLists, nvlinks, claims }: HostFacts): boolean {
  return (
    matrices.length + gpuLists.length + nvlinks.length > 0 ||
    claims.some(({ value: { gpu, count, products } }) => gpu !== undefined || count !== undefined || products.length > 0) ||
    trees.some(({ value }) => value.product !== undefined || gpusOf(value).length > 0) ||
    pciLists.some(({ value }) => value.some(({ description }) => isGpuDescription(description)))
  );
}

/** Hosts of which the same is known are one kind. */
function mergeEqual(hosts: readonly HostFacts[]): HostFacts[] {
  const merged: { facts: HostFacts; key: string; count: number }[] = [];
  for (const facts of hosts) {
    const key = keyOf({ ...facts, name: undefined, count: 0 });
    const known = merged.find((other) => other.key === key && facts.name !== undefined && other.facts.name !== undefined);
    if (known === undefined) merged.push({ facts, key, count: facts.count });
    else known.count += facts.count;
  }
  return merged.map(({ facts, count }) => ({ ...facts, count }));
}

/** Facts without their places, and without what is different on every host. */
function keyOf(value: unknown): string {
  const own = new Set(['names', 'host', 'place', 'source', 'gids']);
  return JSON.stringify(value, (name, inner: unknown) =>
    own.has(name) && !isNamesOfDevice(inner) ? undefined : inner instanceof Map ? [...inner] : inner,
  );
}

function isNamesOfDevice(value: unknown): boolean {
  return Array.isArray(value) && value.some((each) => typeof each === 'object');
}

type Found = { readonly [Kind in Exclude<keyof HostFacts, 'name' | 'count' | 'files'>]: HostFacts[Kind] };

function commandOf(output: AnyMachineOutput): string {
  switch (output.tool) {
    case 'topo':
      return output.facts.kind === 'p2p' ? 'nvidia-smi topo -p2p' : 'nvidia-smi topo -m';
    case 'nvlink':
      return output.facts.gpus.some(({ active, inactive }) => active + inactive > 0) ? 'nvidia-smi nvlink -s' : 'nvidia-smi -L';
    case 'lspci tree':
      return 'lspci -tv';
    case 'ports':
      return 'ibstat';
    case 'product':
      return 'the product name';
    case 'slurm':
      return 'Slurm';
    case 'kubernetes':
      return 'the labels of Kubernetes';
    default:
      return output.tool;
  }
}

function factsOf(output: AnyMachineOutput, source: (place: TextPlace) => string): Partial<Found> {
  const { place } = output;
  const one = <Value>(value: Value): Sourced<Value> => ({ value, source: source(place), place });
  switch (output.tool) {
    case 'topo':
      return output.facts.kind === 'p2p' ? { permissions: [one(output.facts)] } : { matrices: [one(output.facts)] };
    case 'lstopo':
    case 'lspci tree':
      return {
        trees: [one(output.facts)],
        ...(output.facts.cpu.size === 0 ? {} : { cpus: [one(output.facts.cpu)] }),
        ...(output.facts.product === undefined ? {} : { claims: [one(claimOf(output.facts.product, place))] }),
      };
    case 'lspci':
      return { pciLists: [one(output.facts.devices)] };
    case 'nvidia-smi':
      return { gpuLists: [one(output.facts.gpus.map(({ name, busId }) => listed(name, busId)))] };
    case 'nvidia-smi -q':
      return { gpuLists: [one(output.facts.gpus.map(listedOfReport))] };
    case 'nvlink': {
      const counts = output.facts.gpus.map(({ active }) => active);
      const products = output.facts.gpus.filter(({ product }) => product !== '');
      return {
        ...(products.length === 0 ? {} : { gpuLists: [one(products.map(({ product }) => listed(product)))] }),
        ...(output.facts.gpus.some(({ active, inactive }) => active + inactive > 0) ? { nvlinks: [one(counts)] } : {}),
      };
    }
    case 'ports':
      return { ports: output.facts.ports.map((port) => ({ value: port, source: source(port.place), place: port.place })) };
    case 'lscpu':
      return { cpus: [one(output.facts.values)] };
    case 'slurm':
    case 'kubernetes':
    case 'product':
      return { claims: output.facts.nodes.map((node) => ({ value: node, source: source(node.place), place: node.place })) };
    default:
      return {};
  }
}

function claimOf(product: string, place: TextPlace): NodeClaim {
  return { names: [], gpu: undefined, count: undefined, products: [product], place };
}

function listed(product: string, busId?: string): ListedGpu {
  return { product, busId: busId === undefined ? undefined : fullBusId(busId), pciGeneration: undefined, pciLanes: undefined };
}

function listedOfReport({
  busId,
  values,
}: {
  readonly busId: string;
  readonly values: ReadonlyMap<string, { readonly value: string }>;
}): ListedGpu {
  const text = (name: string) => values.get(name)?.value ?? '';
  const number = (...names: string[]) => {
    const found = names.map((name) => Number.parseInt(text(name), 10)).find((value) => value > 0);
    return found;
  };
  return {
    product: text('Product Name'),
    busId: fullBusId(busId),
    pciGeneration: number('PCI/GPU Link Info/PCIe Generation/Device Max', 'PCI/GPU Link Info/PCIe Generation/Max'),
    pciLanes: number('PCI/GPU Link Info/Link Width/Max'),
  };
}

/** @throws InputError that names both places */
export function contradiction(
  files: readonly string[],
  [first, firstSays]: readonly [Sourced<unknown>, string],
  [second, secondSays]: readonly [Sourced<unknown>, string],
): InputError {
  return new InputError(
    'CONTENT',
    `two outputs contradict each other: ${first.source} ${firstSays}, but ${second.source} ${secondSays}: leave one out, or write the name of the host above each`,
    { ...fileOf(files, second.place), line: second.place.line },
  );
}

/** `3 hosts (gpu1, gpu2, gpu3)`, for notes. */
export function describeHosts(hosts: readonly HostFacts[]): string {
  const names = hosts.map(({ name, count }, index) => `${name ?? `host ${index + 1}`}${count > 1 ? ` (${count} alike)` : ''}`);
  return `${counted(hosts.length, 'kind')} of hosts: ${names.join(', ')}`;
}
