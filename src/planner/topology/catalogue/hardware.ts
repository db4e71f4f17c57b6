import { parse as parseYaml } from 'yaml';
import { firstLineOf, InputError, InvalidArgumentError } from '../../../errors.js';
import { cpuModels, type CpuModel } from './cpus.js';
import { gpuModels, type GpuModel } from './gpus.js';
import { HARDWARE_FORM } from './hardware-form.js';
import { findModel, lookUpModel } from './lookup.js';
import { nicModels, nicOfSpeed, type NicModel } from './nics.js';

/** A user's description of a machine that completes a file with only the PCI tree. */
export interface Hardware {
  readonly gpus: readonly GpuGroup[];
  readonly nics: readonly NicGroup[];
  readonly cpu: CpuModel | undefined;
}

/** Some GPUs of one model. */
export interface GpuGroup {
  readonly model: GpuModel;
  /** 1 where `isAll`. */
  readonly count: number;
  /** True for a name without a number, as `h100`: all GPUs that there are. */
  readonly isAll?: boolean;
  /** Their bus ids; empty: every place for a GPU in the file. */
  readonly at: readonly string[];
  readonly nvlink: NvlinkWiring;
}

/** Wiring of their NVLinks: to NVSwitches, in pairs of neighbours, none, or links of GPU i to GPU j. */
type NvlinkWiring = 'switch' | 'pairs' | 'none' | readonly (readonly number[])[];

/** Some network cards of one model. */
export interface NicGroup {
  readonly model: NicModel;
  readonly speedMbps: number;
  readonly count: number;
  readonly at: readonly string[];
}

/**
 * Reads a description of hardware. Either one line,
 *
 *     8 x H100 SXM at 0001:00:00.0 0002:00:00.0 …, 8 x 400G NIC, Sapphire Rapids
 *     2 x A6000 with nvlink pairs, 1 x ConnectX-6
 *
 * or YAML (so JSON too):
 *
 *     gpus: { model: H100 SXM, count: 8, at: [0001:00:00.0, …], nvlink: switch }
 *     nics: [{ model: ConnectX-7, count: 8, speed: 400G }]
 *     cpu: Sapphire Rapids
 *
 * @throws InputError `SYNTAX` where it is neither, `CONTENT` for impossible values; InvalidArgumentError `UNKNOWN_NAME` for a
 *   model that the catalogue does not have.
 */
export function parseHardware(text: string): Hardware {
  const trimmed = text.trim();
  if (trimmed === '') throw new InputError('SYNTAX', `the description of the hardware is empty; write ${HARDWARE_FORM}`);
  return /^(\{|gpus\s*:|nics\s*:|cpu\s*:|#)/.test(trimmed) ? fromYaml(trimmed) : fromLine(trimmed);
}

/** `8 x NAME at A B with nvlink pairs`; the count may miss for a CPU, and for GPUs of one model. */
const item = /^(?:(\d+)\s*[x*×]\s*)?(.+?)(?:\s+at\s+([0-9a-f:.\s]+?))?(?:\s+with\s+nvlink\s+(switch|pairs|none))?$/i;

function fromLine(text: string): Hardware {
  const gpus: GpuGroup[] = [];
  const nics: NicGroup[] = [];
  let cpu: CpuModel | undefined;
  for (const part of text
    .split(/[,;+\n]/)
    .map((piece) => piece.trim())
    .filter((piece) => piece !== '')) {
    const [, countText, name = '', atText, wiring] = item.exec(part) ?? [];
    const at = atText?.trim().split(/\s+/) ?? [];
    const count = countText === undefined ? Math.max(1, at.length) : Number(countText);
    const gpuModel = findModel(name, gpuModels) ?? findModel(name.replace(/\s+gpus?$/i, ''), gpuModels);
    const nic = gpuModel === undefined ? nicNamed(name) : undefined;
    const cpuModel = gpuModel === undefined && nic === undefined ? findModel(name, cpuModels) : undefined;
    if (gpuModel !== undefined) {
      const group = gpuGroup(gpuModel, count, at, wiring?.toLowerCase() as NvlinkWiring | undefined);
      gpus.push(countText === undefined && at.length === 0 ? { ...group, isAll: true } : group);
    } else if (nic !== undefined) nics.push(nicGroup(nic.model, nic.speedMbps, count, at));
    else if (cpuModel !== undefined) cpu = cpuModel;
    else {
      throw new InvalidArgumentError(
        'UNKNOWN_NAME',
        `${JSON.stringify(part)} names no GPU, network card or CPU of the catalogue; write ${
          HARDWARE_FORM
        }; GPUs are ${gpuModels.map(({ id }) => id).join(', ')}`,
      );
    }
  }
  return checked({ gpus, nics, cpu });
}

/** `400G NICs`, `ConnectX-7`, `200 Gb/s ConnectX-7 NIC`. */
function nicNamed(name: string): { model: NicModel; speedMbps: number } | undefined {
  const bare = name.replace(/\s*\b(nics?|cards?|ports?|hcas?)$/i, '').trim();
  const [, speed, rest = ''] = /^(\d+)\s*G(?:b(?:ps|\/s)?|bit)?\b\s*(.*)$/i.exec(bare) ?? [];
  if (speed === undefined) {
    const model = findModel(bare, nicModels);
    return model === undefined ? undefined : { model, speedMbps: model.speedMbps };
  }
  const speedMbps = Number(speed) * 1000;
  const model = rest === '' ? nicOfSpeed(speedMbps) : findModel(rest, nicModels);
  return model === undefined ? undefined : { model, speedMbps };
}

function fromYaml(text: string): Hardware {
  let value: unknown;
  try {
    value = parseYaml(text);
  } catch (error) {
    throw new InputError('SYNTAX', `the description of the hardware is no YAML: ${firstLineOf(error)}`, { cause: error });
  }
  const fields = asRecord(value, 'the description of the hardware', ['gpus', 'nics', 'cpu']);
  return checked({
    gpus: asList(fields.gpus).map((entry) => {
      const gpu = asRecord(entry, 'an entry of gpus', ['model', 'count', 'at', 'nvlink']);
      const at = asBusIds(gpu.at);
      return gpuGroup(
        lookUpModel(asText(gpu.model, 'model of a GPU'), gpuModels, 'GPU'),
        asCount(gpu.count, at),
        at,
        asWiring(gpu.nvlink),
      );
    }),
    nics: asList(fields.nics).map((entry) => {
      const nic = asRecord(entry, 'an entry of nics', ['model', 'count', 'at', 'speed']);
      const at = asBusIds(nic.at);
      const speedMbps = nic.speed === undefined ? undefined : asSpeed(nic.speed);
      const model =
        nic.model === undefined
          ? nicOfSpeed(speedMbps ?? 0)
          : lookUpModel(asText(nic.model, 'model of a NIC'), nicModels, 'network card');
      return nicGroup(model, speedMbps ?? model.speedMbps, asCount(nic.count, at), at);
    }),
    cpu: fields.cpu === undefined ? undefined : lookUpModel(asText(fields.cpu, 'cpu'), cpuModels, 'CPU'),
  });
}

function gpuGroup(model: GpuModel, count: number, at: readonly string[], wiring: NvlinkWiring | undefined): GpuGroup {
  // The model does not determine the links of a bridge or board.
  return { model, count, at, nvlink: wiring ?? (model.nvlink === 'switch' ? 'switch' : 'none') };
}

function nicGroup(model: NicModel, speedMbps: number, count: number, at: readonly string[]): NicGroup {
  return { model, speedMbps, count, at };
}

function checked(hardware: Hardware): Hardware {
  for (const group of [...hardware.gpus, ...hardware.nics]) {
    const what = `${group.count} x ${group.model.name}`;
    if (group.count < 1 || group.count > 640) throw new InputError('CONTENT', `${what}: a machine has 1 to 640 of them`);
    if (group.at.length > 0 && group.at.length !== group.count) {
      throw new InputError('CONTENT', `${what}, but ${group.at.length} bus ids; give one for each`);
    }
  }
  for (const { model, count, nvlink } of hardware.gpus) {
    if (nvlink !== 'none' && model.nvlinks === 0) throw new InputError('CONTENT', `${model.name} has no NVLink`);
    if (typeof nvlink !== 'string' && (nvlink.length !== count || nvlink.some((row) => row.length !== count))) {
      throw new InputError('CONTENT', `the NVLinks of ${count} x ${model.name} must be ${count} rows of ${count} numbers`);
    }
  }
  return hardware;
}

function asRecord(value: unknown, what: string, names: readonly string[]): Record<string, unknown> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new InputError('CONTENT', `${what} must have fields ${names.join(', ')}`);
  }
  for (const name of Object.keys(value)) {
    if (!names.includes(name)) throw new InputError('CONTENT', `${what} has no field ${name}; it can have ${names.join(', ')}`);
  }
  return value as Record<string, unknown>;
}

/** One entry counts as a list of one. */
function asList(value: unknown): unknown[] {
  if (value === undefined || value === null) return [];
  return Array.isArray(value) ? value : [value];
}

function asText(value: unknown, what: string): string {
  if (typeof value === 'string') return value;
  throw new InputError('CONTENT', `${what} must be a name`);
}

function asBusIds(value: unknown): string[] {
  return asList(value).map((entry) => asText(entry, 'a bus id (in quotes where YAML takes it for a number)'));
}

function asCount(value: unknown, at: readonly string[]): number {
  if (value === undefined) return Math.max(1, at.length);
  if (typeof value === 'number' && Number.isInteger(value)) return value;
  throw new InputError('CONTENT', `count: ${JSON.stringify(value)} is no whole number`);
}

function asSpeed(value: unknown): number {
  const [, digits] = /^(\d+)\s*G/i.exec(String(value)) ?? [];
  if (digits !== undefined) return Number(digits) * 1000;
  throw new InputError('CONTENT', `speed: ${JSON.stringify(value)} is no speed; write 400G`);
}

function asWiring(value: unknown): NvlinkWiring | undefined {
  if (value === undefined || value === 'switch' || value === 'pairs' || value === 'none') return value;
  const rows = asList(value).map((row) => asList(row));
  if (rows.every((row) => row.every((count) => typeof count === 'number' && Number.isInteger(count) && count >= 0)))
    return rows as number[][];
  throw new InputError('CONTENT', 'nvlink must be switch, pairs, none, or rows of numbers: links of GPU i to GPU j');
}
