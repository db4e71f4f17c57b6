import { counted } from '../../counted.js';
import { InputError } from '../../errors.js';
import type { AnyToolOutput } from '../readers/formats.js';
import { toolOutputs } from '../readers/sections.js';
import { type CpuModel } from '../topology/catalogue/cpus.js';
import type { GpuModel } from '../topology/catalogue/gpus.js';
import type { Hardware } from '../topology/catalogue/hardware.js';
import { nicOfSpeed } from '../topology/catalogue/nics.js';
import type { XmlElement } from '../topology/xml/tree.js';
import { cpuOfReport, gpuOfProduct, guessCpu, guessGpu, guessNic, hasNvSwitch } from './models.js';
import { type PathTable, pathTable } from './path-table.js';
import { isAlone, type Models, treeOfTable } from './tree-of-table.js';

/** Facts about one host from outputs of tools. */
export interface MachineEvidence {
  readonly table: PathTable;
  /** Names of the GPU's product, as nvidia-smi prints them. */
  readonly products: readonly string[];
  /** Gb/s of NICs, by their names. */
  readonly rates: ReadonlyMap<string, number>;
  readonly cpu: CpuModel | undefined;
  /** Notes of one line on things that were left out. */
  readonly notes: readonly string[];
}

/** A machine of evidence, and notes of one line on everything that was assumed. */
export interface EvidentMachine {
  readonly root: XmlElement;
  readonly notes: readonly string[];
}

/**
 * The host that outputs of tools in a text describe: `nvidia-smi topo -m`, and beside it `nvidia-smi`, `nvidia-smi -L` or `-q`,
 * `ibstat`, `lscpu`. Undefined where the text has no matrix.
 *
 * @throws InputError for a matrix that contradicts itself, is cut off or belongs to another tool, and for `topo -p2p` alone
 */
export function evidenceIn(text: string): MachineEvidence | undefined {
  const [rocm] = /ROCm System Management|Weight between two GPUs|Link Type between (?:two )?GPUs|\bXGMI\b/.exec(text) ?? [];
  if (rocm !== undefined)
    throw new InputError('CONTENT', 'this is a table of rocm-smi (AMD GPUs, RCCL): tccl plans for NVIDIA GPUs', {
      line: text.slice(0, text.indexOf(rocm)).split('\n').length,
    });
  const outputs = toolOutputs(text);
  const matrices = outputs.flatMap((output) => (output.tool === 'topo' ? [output] : []));
  const [first, ...more] = matrices.filter(({ facts }) => facts.kind === 'paths');
  if (first === undefined) {
    const [other] = matrices;
    if (other === undefined) return undefined;
    throw new InputError(
      'CONTENT',
      'this is nvidia-smi topo -p2p, which says what is allowed, and not where devices are: add the output of nvidia-smi topo -m',
      { line: other.place.line },
    );
  }
  const others = more.filter(({ facts }) => JSON.stringify(facts.columns) !== JSON.stringify(first.facts.columns));
  return {
    table: pathTable(first.facts),
    products: outputs.flatMap(productsOf).filter((product) => product !== ''),
    rates: new Map(outputs.flatMap(ratesOf)),
    cpu: outputs.flatMap((output) => (output.tool === 'lscpu' ? [cpuOfReport(output.facts.values)] : []))[0],
    notes: [
      ...(others.length === 0
        ? []
        : [`${counted(others.length, 'other matrix', 'other matrices')} in it left out: give each host a file`]),
      ...matrices.flatMap(({ facts: { kind, rows } }) =>
        kind === 'p2p' && rows.some(({ cells }) => cells.some((cell) => REFUSALS.has(cell)))
          ? ['nvidia-smi topo -p2p says that the driver refuses peer-to-peer for some GPUs: plan with --env NCCL_P2P_DISABLE=1']
          : [],
      ),
    ],
  };
}

const REFUSALS: ReadonlySet<string> = new Set(['CNS', 'GNS', 'TNS', 'NS', 'DR']);

function productsOf(output: AnyToolOutput): readonly string[] {
  switch (output.tool) {
    case 'nvidia-smi':
      return output.facts.gpus.map(({ name }) => name);
    case 'nvlink':
      return output.facts.gpus.map(({ product }) => product);
    case 'nvidia-smi -q':
      return output.facts.gpus.map(({ values }) => values.get('Product Name')?.value ?? '');
    default:
      return [];
  }
}

function ratesOf(output: AnyToolOutput): readonly (readonly [string, number])[] {
  if (output.tool !== 'ports') return [];
  return output.facts.ports.flatMap(({ device, rate }) => (rate === undefined ? [] : [[device, rate] as const]));
}

/**
 * Builds the machine. Models come from `hardware`, then from the evidence, else they are assumed.
 *
 * @throws InputError where `hardware` has other numbers of devices than the matrix
 */
export function machineOf(evidence: MachineEvidence, hardware: Hardware | undefined): EvidentMachine {
  const { table } = evidence;
  const assumed: string[] = [];
  const gpu = gpuModel(evidence, hardware, assumed);
  const nics = nicModels(evidence, hardware, gpu, assumed);
  const cpu = hardware?.cpu ?? evidence.cpu ?? guessCpu(gpu, new Set(table.places.map(({ numa }) => numa)).size);
  if (hardware?.cpu === undefined && evidence.cpu === undefined) assumed.push(`CPUs are ${cpu.name}`);
  const isSwitched = hasNvSwitch(table) && gpu.nvlink !== 'pair';
  if (isSwitched) assumed.push('NVLinks go to NVSwitches');
  if (table.gpus.some((_, index) => isAlone(table, index) && table.places[index]?.cores === undefined))
    assumed.push('GPUs are shared out over the CPUs, because the matrix shows only their NVLinks');
  if (hasSwitch(table)) assumed.push('PCIe switches are those that PIX and PXB need, at full speed');
  const models: Models = { gpu, nics, cpu, hasNvSwitch: isSwitched };
  const notes = [
    ...evidence.notes,
    ...assumed.map((each) => `assumed: ${each}`),
    'to be certain, run on that machine: tccl topo detect -o machine.xml',
  ];
  return { root: treeOfTable(table, models), notes };
}

function gpuModel({ table, products }: MachineEvidence, hardware: Hardware | undefined, assumed: string[]): GpuModel {
  const described = new Set(hardware?.gpus.map(({ model }) => model) ?? []);
  const count = (hardware?.gpus ?? []).reduce((sum, group) => sum + group.count, 0);
  if (described.size > 1)
    throw new InputError('CONTENT', 'a matrix with GPUs of several models is not supported: describe one model');
  const [given] = described;
  if (given !== undefined) {
    if (count === table.gpus.length) return given;
    throw new InputError('CONTENT', `the matrix has ${counted(table.gpus.length, 'GPU')}, and --hardware describes ${count}`);
  }
  const named = products.map(gpuOfProduct).find((model) => model !== undefined);
  if (named !== undefined) return named;
  const { model, reason } = guessGpu(table);
  const unknown = products[0] === undefined ? '' : `; the catalogue has no ${products[0]}`;
  assumed.push(
    `GPUs are ${model.name} (${reason}${unknown}): say otherwise with --hardware "${table.gpus.length} x ${model.name}"`,
  );
  return model;
}

function nicModels(
  { table, rates }: MachineEvidence,
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
