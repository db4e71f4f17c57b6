import { counted } from '../../counted.js';
import { type CpuModel, cpuModels } from '../topology/catalogue/cpus.js';
import { type GpuModel, gpuModels, modelOfDevice } from '../topology/catalogue/gpus.js';
import { findModel, lookUpModel } from '../topology/catalogue/lookup.js';
import { gpuOfProduct } from '../topology/catalogue/products.js';
import { type NicModel, nicModels } from '../topology/catalogue/nics.js';
import type { PathTable } from './path-table.js';

/** A model that nothing names, and the reason for it. */
interface Guess {
  readonly model: GpuModel;
  readonly reason: string;
}

/** PCI devices of models beside those of the catalogue, by their other memory or form. */
const otherDevices: Readonly<Record<number, string>> = {
  0x1db3: 'v100-sxm',
  0x1db5: 'v100-sxm',
  0x1db8: 'v100-sxm',
  0x1db6: 'v100-pcie',
  0x20b0: 'a100-sxm',
  0x20b3: 'a100-sxm',
  0x20f1: 'a100-pcie',
  0x2236: 'a10g',
  0x26b5: 'l40s',
  0x2336: 'h200-sxm',
  0x2345: 'gh200',
  0x2348: 'gh200',
};

/** The model of a PCI device of NVIDIA. */
export function gpuOfDevice(device: number): GpuModel | undefined {
  const other = otherDevices[device];
  return modelOfDevice(device) ?? (other === undefined ? undefined : findModel(other, gpuModels));
}

/** The model in a description of lspci: `NVIDIA Corporation GH100 [H100 SXM5 80GB] (rev a1)`, `Device 2330`. */
export function gpuOfDescription(description: string): GpuModel | undefined {
  const [, id] =
    /NVIDIA Corporation Device (?:\[10de:)?([0-9a-f]{4})\b/i.exec(description) ??
    /\[10de:([0-9a-f]{4})\]/i.exec(description) ??
    [];
  const byId = id === undefined ? undefined : gpuOfDevice(Number.parseInt(id, 16));
  if (byId !== undefined) return byId;
  const names = [...description.matchAll(/\[([^\]:]{2,60})\](?!:)/g)].flatMap(([, name = '']) => name.split('/'));
  return names.map(gpuOfProduct).find((model) => model !== undefined);
}

/** A card by its PCI ids or description; undefined for those that NCCL does not use with RDMA. */
export function nicOfDevice(vendor: number | undefined, device: number | undefined, description: string): NicModel | undefined {
  const [, text] = /\[(15b3|1d0f):[0-9a-f]{4}\]/i.exec(description) ?? [];
  const exact = nicModels.find(
    (model) => model.vendor === vendor && model.device === device && model.gdr && model.id !== 'gvnic',
  );
  if (exact !== undefined) return exact;
  const [, number] = /ConnectX-(\d)/.exec(description) ?? [];
  if (number !== undefined)
    return Number(number) < 5 ? findModel('connectx-5', nicModels) : findModel(`connectx-${number}`, nicModels);
  if (/BlueField-3/.test(description)) return findModel('bluefield-3', nicModels);
  if (/BlueField-2/.test(description)) return findModel('connectx-6', nicModels);
  const [, efa] = /\befa([0-3])\b|Elastic Fabric Adapter/i.exec(description) ?? [];
  if (efa !== undefined || /Elastic Fabric Adapter|\(EFA\)/.test(description))
    return findModel(efa === undefined || efa === '0' ? 'efa' : `efa-v${Number(efa) + 1}`, nicModels);
  if (/Cassini|Slingshot/.test(description)) return findModel('slingshot', nicModels);
  return vendor === 0x15b3 || text !== undefined ? mellanoxOf(device) : undefined;
}

/** Functions of virtual machines, and cards with other numbers than those of the catalogue. */
function mellanoxOf(device: number | undefined): NicModel | undefined {
  const ids: Readonly<Record<number, string>> = {
    0x1013: 'connectx-5',
    0x1015: 'connectx-5',
    0x1018: 'connectx-5',
    0x1019: 'connectx-5',
    0x101c: 'connectx-6',
    0x101d: 'connectx-6',
    0x101e: 'connectx-7',
    0x101f: 'connectx-6',
    0xa2d6: 'connectx-6',
  };
  const id = ids[device ?? 0];
  return id === undefined ? undefined : findModel(id, nicModels);
}

/** True where NVLinks go to NVSwitches: every pair has all links of a GPU, more than would go to each of the others. */
export function hasNvSwitch({ nvlinks, gpus }: PathTable): boolean {
  const counts = new Set(nvlinks.flatMap((row, a) => row.filter((_, b) => a !== b)));
  const [count = 0] = counts;
  if (counts.size !== 1 || count === 0) return false;
  return count * (gpus.length - 1) > MOST_NVLINKS || (gpus.length === 2 && SWITCHED.has(count)) || count === 8;
}

/** NVLinks of a GPU at most. */
const MOST_NVLINKS = 18;
/** Numbers of NVLinks of GPUs that are sold on boards with NVSwitches. */
const SWITCHED: ReadonlySet<number> = new Set([8, 12, 18]);

/** A GPU with the NVLinks that the table shows. */
export function guessGpu(table: PathTable): Guess {
  const { nvlinks } = table;
  const most = Math.max(0, ...nvlinks.flat());
  const sum = Math.max(0, ...nvlinks.map((row) => row.reduce((total, count) => total + count, 0)));
  const links = `${counted(most, 'NVLink')} between GPUs`;
  const guess = (id: string, reason: string): Guess => ({ model: lookUpModel(id, gpuModels, 'GPU'), reason });
  if (isGrace(table)) return guess(most === 18 ? 'gb200' : 'gh200', `${links}, CPUs of 72 cores`);
  if (hasNvSwitch(table)) {
    if (most === 18) return guess('h100-sxm', `${links}, as H200, H20, B200 and B300 have, too`);
    if (most === 12) return guess('a100-sxm', links);
    if (most === 8) return guess('h800-sxm', `${links}, as A800 have, too`);
    return guess('v100-sxm', links);
  }
  if (most === 0) return guess('l40s', 'no NVLink');
  if (sum > 12) return guess('h100-sxm', links);
  if (sum > 6)
    return nvlinks.length > 2 && sum > most ? guess('a100-sxm', links) : guess('a100-pcie', `${links}, as H100 PCIe have, too`);
  return sum > most || most > 4 ? guess('v100-sxm', links) : guess('a6000', links);
}

/** Grace has 72 cores, and its GPUs' memory is a NUMA node. */
function isGrace({ places }: PathTable): boolean {
  return places.some(({ cores, hasMemoryNode }) => hasMemoryNode || (cores !== undefined && isBlockOf72(cores)));
}

function isBlockOf72(cores: string): boolean {
  const [, first, last] = /^(\d+)-(\d+)$/.exec(cores) ?? [];
  return first !== undefined && Number(first) % 72 === 0 && Number(last) - Number(first) === 71;
}

/** Network cards that are sold with such GPUs, by compute capability. */
const cardsOfGpus: readonly (readonly [sm: number, connectX: string, efa: string])[] = [
  [70, 'connectx-5', 'efa'],
  [80, 'connectx-6', 'efa'],
  [90, 'connectx-7', 'efa-v3'],
  [100, 'connectx-7', 'efa-v4'],
  [103, 'connectx-8', 'efa-v4'],
  [120, 'connectx-7', 'efa-v3'],
];

/** A card by the beginning of its device's name, else the one that is sold with such GPUs. */
export function guessNic(name: string, gpu: GpuModel): NicModel {
  const [, connectX = '', efa = ''] = cardsOfGpus.findLast(([sm]) => gpu.sm >= sm) ?? cardsOfGpus[0] ?? [];
  const id = /^(?:efa|rdmap)/.test(name) ? efa : /^cxi/.test(name) ? 'slingshot' : connectX;
  return lookUpModel(id, nicModels, 'network card');
}

/** The CPU that `lscpu` describes: the model, else the nearest of its family. */
export function cpuOfReport(values: ReadonlyMap<string, string>): CpuModel | undefined {
  if (/power9/i.test(values.get('Model name') ?? '')) return findModel('power9', cpuModels);
  if (values.get('Architecture') === 'aarch64') return findModel('grace', cpuModels);
  const [vendor, family, model] = [values.get('Vendor ID'), Number(values.get('CPU family')), Number(values.get('Model'))];
  // NCCL shifts the extended part of the family.
  const shifted = family > 15 ? 15 + ((family - 15) << 4) : family;
  const same = cpuModels.filter(({ cpuid }) => cpuid?.vendor === vendor && cpuid?.family === shifted);
  return same.findLast(({ cpuid }) => cpuid?.model === model) ?? same.findLast(({ cpuid }) => (cpuid?.model ?? 0) <= model);
}

/** The CPU of machines with such GPUs. */
export function guessCpu(gpu: GpuModel, nodes: number): CpuModel {
  const id =
    gpu.c2c !== undefined
      ? 'grace'
      : gpu.sm < 80
        ? 'xeon-skylake'
        : gpu.sm === 80 && gpu.nvlink !== 'pair'
          ? nodes > 2
            ? 'epyc-rome'
            : 'xeon-icelake'
          : gpu.sm < 90
            ? 'epyc-milan'
            : ({ 90: 'xeon-sapphire', 100: 'xeon-emerald', 103: 'xeon-granite' }[gpu.sm] ?? 'epyc-genoa');
  return lookUpModel(id, cpuModels, 'CPU');
}
