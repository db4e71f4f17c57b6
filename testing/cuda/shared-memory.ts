import { existsSync } from 'node:fs';
import {
  deviceAttributes,
  EVENT_OF_PROCESSES,
  EVENT_WITHOUT_TIMING,
  FILE_DESCRIPTOR,
  IPC_BYTES,
  IPC_PEER_ACCESS,
  memoryAccess,
  memoryProperties,
  ON_DEVICE,
} from '../../src/runtime/device/cuda/functions.js';
import type { Gpu } from './gpu.js';

export const SHARED_BYTES = 1 << 16;

/** Memory of this process that another one opens. */
export interface Shared {
  readonly pointer: bigint;
  /** Text for the other process. */
  readonly words: string;
  /** File descriptor that it inherits. */
  readonly fd?: number;
}

/** A way to share memory: both sides of it. */
export interface Way {
  readonly share: (gpu: Gpu) => Shared;
  /** @returns the address in this process, and what a stream has to wait for */
  readonly open: (gpu: Gpu, words: string, fd: number) => { pointer: bigint; event?: bigint };
}

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');

/** The driver's handles of memory and of an event after what the stream has done. */
const ipc: Way = {
  share: (gpu) => {
    const pointer = gpu.allocate(SHARED_BYTES);
    fill(gpu, pointer, 1);
    const [memory, order] = [new Uint8Array(IPC_BYTES), new Uint8Array(IPC_BYTES)];
    gpu.call('cuIpcGetMemHandle', (driver) => driver.cuIpcGetMemHandle(memory, pointer));
    const event = gpu.result('cuEventCreate', (driver, out) =>
      driver.cuEventCreate(out, EVENT_OF_PROCESSES | EVENT_WITHOUT_TIMING),
    );
    gpu.call('cuEventRecord', (driver) => driver.cuEventRecord(event, gpu.stream));
    gpu.call('cuIpcGetEventHandle', (driver) => driver.cuIpcGetEventHandle(order, event));
    return { pointer, words: `${hex(memory)},${hex(order)}` };
  },
  open: (gpu, words) => {
    const [memory, order] = words.split(',').map((text) => ({ reserved: new Uint8Array(Buffer.from(text, 'hex')) }));
    if (memory === undefined || order === undefined) throw new Error(`no handles: ${words}`);
    return {
      pointer: gpu.result('cuIpcOpenMemHandle', (driver, out) => driver.cuIpcOpenMemHandle_v2(out, memory, IPC_PEER_ACCESS)),
      event: gpu.result('cuIpcOpenEventHandle', (driver, out) => driver.cuIpcOpenEventHandle(out, order)),
    };
  },
};

/** Memory that is created apart from its address, and passed as a file descriptor. */
const fds: Way = {
  share: (gpu) => {
    const facts = [deviceAttributes.virtualMemory, deviceAttributes.fileDescriptors].map((one) => gpu.context.attribute(one));
    if (facts.includes(0)) throw new Error(`the GPU has none: attributes 102 and 103 are ${facts.join(' and ')}`);
    const properties = propertiesOf(gpu);
    const bytes = bytesOf(gpu);
    const memory = gpu.result('cuMemCreate', (driver, out) => driver.cuMemCreate(out, bytes, properties, 0n));
    const fd = new Int32Array(1);
    gpu.call('cuMemExportToShareableHandle', (driver) => driver.cuMemExportToShareableHandle(fd, memory, FILE_DESCRIPTOR, 0n));
    const pointer = mapped(gpu, memory);
    fill(gpu, pointer, 1);
    return { pointer, words: '', fd: fd[0] ?? -1 };
  },
  open: (gpu, _, fd) => ({
    pointer: mapped(
      gpu,
      gpu.result('cuMemImportFromShareableHandle', (driver, out) =>
        driver.cuMemImportFromShareableHandle(out, BigInt(fd), FILE_DESCRIPTOR),
      ),
    ),
  }),
};

export const ways = { ipc, fds } as const satisfies Readonly<Record<string, Way>>;
export type WayName = keyof typeof ways;

/** Text of errors and lines. */
export const titles: Readonly<Record<WayName, string>> = { ipc: 'memory by IPC handles', fds: 'memory by file descriptors' };

function propertiesOf(gpu: Gpu): DataView {
  const view = new DataView(new ArrayBuffer(memoryProperties.bytes));
  view.setUint32(memoryProperties.type, ON_DEVICE, true);
  view.setUint32(memoryProperties.handleTypes, FILE_DESCRIPTOR, true);
  view.setUint32(memoryProperties.locationType, ON_DEVICE, true);
  view.setUint32(memoryProperties.locationId, gpu.context.ordinal, true);
  return view;
}

/** Bytes of memory whose granularity the driver decides. */
function bytesOf(gpu: Gpu): number {
  const properties = propertiesOf(gpu);
  const granularity = gpu.result('cuMemGetAllocationGranularity', (driver, out) =>
    driver.cuMemGetAllocationGranularity(out, properties, 0),
  );
  return Math.ceil(SHARED_BYTES / Number(granularity)) * Number(granularity);
}

function mapped(gpu: Gpu, memory: bigint): bigint {
  const bytes = bytesOf(gpu);
  const pointer = gpu.result('cuMemAddressReserve', (driver, out) => driver.cuMemAddressReserve(out, bytes, 0, 0n, 0n));
  gpu.call('cuMemMap', (driver) => driver.cuMemMap(pointer, bytes, 0, memory, 0n));
  const access = new DataView(new ArrayBuffer(memoryAccess.bytes));
  access.setUint32(memoryAccess.locationType, ON_DEVICE, true);
  access.setUint32(memoryAccess.locationId, gpu.context.ordinal, true);
  access.setUint32(memoryAccess.flags, memoryAccess.readAndWrite, true);
  gpu.call('cuMemSetAccess', (driver) => driver.cuMemSetAccess(pointer, bytes, access, 1));
  return pointer;
}

function fill(gpu: Gpu, pointer: bigint, seed: number): void {
  gpu.upload(pointer, pattern(seed));
}

const pattern = (seed: number): Uint8Array => Uint8Array.from({ length: SHARED_BYTES }, (_, i) => seed * (i % 251) + (i >> 8));

/** Throws unless memory has the pattern of a process. */
export function check(gpu: Gpu, pointer: bigint, seed: number): void {
  const seen = new Uint8Array(SHARED_BYTES);
  gpu.download(pointer, seen);
  const expected = pattern(seed);
  const at = seen.findIndex((byte, i) => byte !== expected[i]);
  if (at >= 0) throw new Error(`byte ${at} of what the other process wrote is ${seen[at]}, not ${expected[at]}`);
}

/** Work of the other process: it reads the first one's pattern, and leaves its own. */
export function useShared(gpu: Gpu, way: WayName, words: string, fd: number): void {
  const { pointer, event } = ways[way].open(gpu, words, fd);
  if (event !== undefined) gpu.call('cuStreamWaitEvent', (driver) => driver.cuStreamWaitEvent(gpu.stream, event, 0));
  check(gpu, pointer, 1);
  fill(gpu, pointer, 3);
}

/** Multi-Process Service changes how processes share a GPU. */
export function hasService(environment: NodeJS.ProcessEnv = process.env): boolean {
  return existsSync(`${environment['CUDA_MPS_PIPE_DIRECTORY'] ?? '/tmp/nvidia-mps'}/control`);
}
