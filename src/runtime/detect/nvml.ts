import { firstLineOf } from '../../errors.js';
import { ownRequire } from '../../own-module.js';
import type { ProbedGpu } from '../../planner/topology/detect/machine-files.js';
import { defined } from '../../defined.js';

/** Answers of NVML, or the reason why it is not available. */
type NvmlAnswer = { readonly gpus: readonly ProbedGpu[] } | { readonly reason: string };

/**
 * Asks NVIDIA's management library about the GPUs of this machine: bus ids, compute capability, PCI link, active NVLinks and
 * their other ends, C2C. It makes NCCL's queries in NCCL's order, with the versioned calls of NVML 12, which drivers have
 * since R450.
 *
 * @param library another library with the same interface, for tests
 */
export function askNvml(library = 'libnvidia-ml.so.1'): NvmlAnswer {
  let nvml: Nvml;
  try {
    nvml = bind(ownRequire()('koffi') as Koffi, library);
  } catch (error) {
    return { reason: `NVML cannot be loaded (${firstLineOf(error)})` };
  }
  const status = nvml.init();
  if (status !== SUCCESS) return { reason: `NVML does not start: ${errorName(status)}` };
  try {
    const count = new Uint32Array(1);
    const counted = nvml.deviceGetCount(count);
    if (counted !== SUCCESS) return { reason: `NVML does not count GPUs: ${errorName(counted)}` };
    const gpus = Array.from({ length: defined(count[0]) }, (_, index) => probe(nvml, index));
    return { gpus: gpus.filter((gpu) => gpu !== undefined) };
  } finally {
    nvml.shutdown();
  }
}

/** nvmlReturn_t. */
const SUCCESS = 0;
const errorNames = new Map([
  [1, 'not initialised'],
  [3, 'not supported'],
  [4, 'no permission'],
  [9, 'the driver is not loaded'],
  [15, 'a GPU has fallen off the bus'],
  [17, 'blocked by the operating system'],
  [18, 'driver and library have different versions'],
]);

function errorName(status: number): string {
  return errorNames.get(status) ?? `error ${status}`;
}

/** nvmlPciInfo_t of version 3: `busIdLegacy[16]`, domain, bus, device, PCI id, subsystem, `busId[32]`. */
const PCI_INFO_BYTES = 68;
const LEGACY_BUS_ID_BYTES = 16;
const PCI_ID_OFFSET = 28;
const SUBSYSTEM_OFFSET = 32;

/** nvmlFieldValue_t: fieldId, scopeId, timestamp, latency, type, result, value. */
const FIELD_VALUE_BYTES = 40;
const FIELD_RESULT_OFFSET = 28;
const FIELD_VALUE_OFFSET = 32;

/** NVML_FI_DEV_… */
const fields = { nvlinkState: 165, c2cCount: 170, c2cStatus: 171, c2cMaxBandwidth: 172 } as const;

/** NVML_NVLINK_CAP_P2P_SUPPORTED. */
const PEER_TO_PEER = 0;

function probe(nvml: Nvml, index: number): ProbedGpu | undefined {
  const handle = new BigUint64Array(1);
  if (nvml.deviceGetHandleByIndex(index, handle) !== SUCCESS) return undefined;
  const device = defined(handle[0]);
  const info = Buffer.alloc(PCI_INFO_BYTES);
  const major = new Int32Array(1);
  const minor = new Int32Array(1);
  if (nvml.deviceGetPciInfo(device, info) !== SUCCESS) return undefined;
  if (nvml.deviceGetCudaComputeCapability(device, major, minor) !== SUCCESS) return undefined;
  const sm = defined(major[0]) * 10 + defined(minor[0]);
  const number = (call: (device: bigint, out: Uint32Array) => number) => {
    const out = new Uint32Array(1);
    return call(device, out) === SUCCESS && defined(out[0]) > 0 ? out[0] : undefined;
  };
  return {
    busId: busIdOf(info),
    dev: index,
    sm,
    pciIds: {
      vendor: info.readUInt16LE(PCI_ID_OFFSET),
      device: info.readUInt16LE(PCI_ID_OFFSET + 2),
      subsystemVendor: info.readUInt16LE(SUBSYSTEM_OFFSET),
      subsystemDevice: info.readUInt16LE(SUBSYSTEM_OFFSET + 2),
    },
    pciGeneration: number(nvml.deviceGetCurrPcieLinkGeneration),
    pciLanes: number(nvml.deviceGetCurrPcieLinkWidth),
    nvlinks: nvlinksOf(nvml, device, sm),
    c2c: sm >= 90 ? c2cOf(nvml, device) : undefined,
  };
}

/** Number of NVLinks that NCCL queries, by compute capability. */
function mostNvlinks(sm: number): number {
  if (sm < 60) return 0;
  if (sm < 70) return 4;
  if (sm < 80) return 6;
  return sm < 90 ? 12 : 18;
}

function nvlinksOf(nvml: Nvml, device: bigint, sm: number): ProbedGpu['nvlinks'] {
  const counts = new Map<string, number>();
  for (let link = 0; link < mostNvlinks(sm); link++) {
    const can = new Uint32Array(1);
    // The query also wakes a link that sleeps.
    if (nvml.deviceGetNvLinkCapability(device, link, PEER_TO_PEER, can) !== SUCCESS || can[0] === 0) continue;
    if (!isActive(nvml, device, link, sm)) continue;
    const remote = Buffer.alloc(PCI_INFO_BYTES);
    if (nvml.deviceGetNvLinkRemotePciInfo(device, link, remote) !== SUCCESS) continue;
    const target = busIdOf(remote);
    counts.set(target, (counts.get(target) ?? 0) + 1);
  }
  return [...counts].map(([target, count]) => ({ target, count }));
}

function isActive(nvml: Nvml, device: bigint, link: number, sm: number): boolean {
  if (sm >= 90) return fieldValue(nvml, device, fields.nvlinkState, link) === 1;
  const state = new Uint32Array(1);
  return nvml.deviceGetNvLinkState(device, link, state) === SUCCESS && state[0] === 1;
}

function c2cOf(nvml: Nvml, device: bigint): ProbedGpu['c2c'] {
  const links = fieldValue(nvml, device, fields.c2cCount, 0) ?? 0;
  let count = 0;
  let bandwidthMBps = 0;
  for (let link = 0; link < links; link++) {
    if (fieldValue(nvml, device, fields.c2cStatus, link) !== 1) continue;
    const bandwidth = fieldValue(nvml, device, fields.c2cMaxBandwidth, link);
    if (bandwidth === undefined) continue;
    bandwidthMBps = bandwidth;
    count++;
  }
  return count > 0 ? { bandwidthMBps, count } : undefined;
}

/** One field of a device; undefined if it is not supported. */
function fieldValue(nvml: Nvml, device: bigint, field: number, scope: number): number | undefined {
  const value = Buffer.alloc(FIELD_VALUE_BYTES);
  value.writeUInt32LE(field, 0);
  value.writeUInt32LE(scope, 4);
  if (nvml.deviceGetFieldValues(device, 1, value) !== SUCCESS) return undefined;
  return value.readInt32LE(FIELD_RESULT_OFFSET) === SUCCESS ? value.readUInt32LE(FIELD_VALUE_OFFSET) : undefined;
}

/** The bus id with a domain of four digits, in lower case; an invisible device becomes NCCL's word for a hidden switch. */
function busIdOf(info: Buffer): string {
  const text = info.subarray(0, LEGACY_BUS_ID_BYTES).toString('latin1').replace(/\0.*$/s, '');
  return text === '' || /[^\x20-\x7e]/.test(text) ? 'fffffff:ffff:ff' : text.toLowerCase();
}

interface Koffi {
  load(path: string): { func(prototype: string): (...args: unknown[]) => unknown };
}

/** The functions, with arrays for their results. A device is the address that NVML calls its handle. */
interface Nvml {
  readonly init: () => number;
  readonly shutdown: () => number;
  readonly deviceGetCount: (out: Uint32Array) => number;
  readonly deviceGetHandleByIndex: (index: number, out: BigUint64Array) => number;
  readonly deviceGetPciInfo: (device: bigint, out: Buffer) => number;
  readonly deviceGetCudaComputeCapability: (device: bigint, major: Int32Array, minor: Int32Array) => number;
  readonly deviceGetCurrPcieLinkGeneration: (device: bigint, out: Uint32Array) => number;
  readonly deviceGetCurrPcieLinkWidth: (device: bigint, out: Uint32Array) => number;
  readonly deviceGetNvLinkState: (device: bigint, link: number, out: Uint32Array) => number;
  readonly deviceGetNvLinkCapability: (device: bigint, link: number, capability: number, out: Uint32Array) => number;
  readonly deviceGetNvLinkRemotePciInfo: (device: bigint, link: number, out: Buffer) => number;
  readonly deviceGetFieldValues: (device: bigint, count: number, values: Buffer) => number;
}

function bind(koffi: Koffi, library: string): Nvml {
  const c = koffi.load(library);
  // The declarations below give the types; koffi only knows the prototype.
  const func = (prototype: string) => c.func(prototype) as (...args: unknown[]) => number;
  return {
    init: func('int nvmlInit_v2()'),
    shutdown: func('int nvmlShutdown()'),
    deviceGetCount: func('int nvmlDeviceGetCount_v2(void *count)'),
    deviceGetHandleByIndex: func('int nvmlDeviceGetHandleByIndex_v2(uint32_t index, void *device)'),
    deviceGetPciInfo: func('int nvmlDeviceGetPciInfo_v3(uintptr_t device, void *pci)'),
    deviceGetCudaComputeCapability: func('int nvmlDeviceGetCudaComputeCapability(uintptr_t device, void *major, void *minor)'),
    deviceGetCurrPcieLinkGeneration: func('int nvmlDeviceGetCurrPcieLinkGeneration(uintptr_t device, void *generation)'),
    deviceGetCurrPcieLinkWidth: func('int nvmlDeviceGetCurrPcieLinkWidth(uintptr_t device, void *width)'),
    deviceGetNvLinkState: func('int nvmlDeviceGetNvLinkState(uintptr_t device, uint32_t link, void *active)'),
    deviceGetNvLinkCapability: func(
      'int nvmlDeviceGetNvLinkCapability(uintptr_t device, uint32_t link, int capability, void *result)',
    ),
    deviceGetNvLinkRemotePciInfo: func('int nvmlDeviceGetNvLinkRemotePciInfo_v2(uintptr_t device, uint32_t link, void *pci)'),
    deviceGetFieldValues: func('int nvmlDeviceGetFieldValues(uintptr_t device, int count, void *values)'),
  };
}
