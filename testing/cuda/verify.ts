import { deviceAttributes, pointerAttributes, functions, type Driver } from '../../src/runtime/device/cuda/functions.js';
import { countDevices } from '../../src/runtime/device/cuda/context.js';
import { versionText } from '../../src/runtime/device/cuda/load.js';
import { describeResult, results } from '../../src/runtime/device/cuda/results.js';
import {
  allKernels,
  kernelFor,
  kernelName,
  levelsOf,
  moduleText,
  type KernelDescription,
} from '../../src/runtime/device/ptx/kernels.js';
import { RECORD_BYTES, writeStep, type Step } from '../../src/runtime/device/ptx/step-record.js';
import type { Level } from '../../src/runtime/device/ptx/targets.js';
import { launchOfStep, launchOfSteps, loadKernel } from '../ptx/launch.js';
import { DeviceMemory } from '../ptx/memory.js';
import { runKernels } from '../ptx/run.js';
import { Gpu } from './gpu.js';
import { differing, kernelCase, type KernelCase } from './kernel-cases.js';

/** Something that was checked: what was seen, or what is wrong. */
export interface Seen {
  readonly name: string;
  readonly text: string;
  readonly isWrong?: boolean;
}

export interface VerifyOptions {
  /** Kernels whose names contain it. */
  readonly only: string;
  /** Sizes for a driver that is a program. */
  readonly isSmall: boolean;
}

/** Checks a driver and one of its GPUs, and yields a line for each part. */
export function* verify(driver: Driver, ordinal: number, options: VerifyOptions): Generator<Seen> {
  const version = new Int32Array(1);
  driver.cuDriverGetVersion(version);
  const nFunctions = Object.keys(functions).length;
  yield {
    name: 'driver',
    text: `CUDA ${versionText(version[0] ?? 0)}, all ${nFunctions} functions, ${countDevices(driver)} GPUs`,
  };
  const gpu = new Gpu(driver, ordinal);
  const { context } = gpu;
  const level = 10 * context.attribute(deviceAttributes.capabilityMajor) + context.attribute(deviceAttributes.capabilityMinor);
  const uuid = Buffer.from(context.uuid).toString('hex');
  const gigabytes = (context.memoryBytes / 1e9).toFixed(1);
  yield {
    name: `GPU ${ordinal}`,
    text: `${context.name}, sm_${level}, ${context.attribute(deviceAttributes.multiprocessors)} multiprocessors, ${gigabytes} GB, UUID ${uuid}`,
  };
  yield* checkMemory(gpu);
  yield* checkKernels(gpu, level, options);
  yield* measureCopies(gpu, options.isSmall ? 2 ** 20 : 2 ** 26);
  yield measureLaunches(gpu, options.isSmall ? 50 : 2000);
  gpu.close();
}

/** Facts of addresses, which say that numbers of attributes and places of results are right; page-locking of shared memory. */
function* checkMemory(gpu: Gpu): Generator<Seen> {
  const { context } = gpu;
  const bytes = 2 ** 20 + 3;
  const pointer = gpu.allocate(bytes);
  const facts = context.factsOf(pointer + 5n);
  const wanted = { memoryType: 2, device: context.ordinal, rangeStart: pointer };
  const isRight =
    facts?.memoryType === wanted.memoryType &&
    facts.device === wanted.device &&
    facts.rangeStart === wanted.rangeStart &&
    facts.rangeBytes >= bytes;
  gpu.free(pointer);
  const after = context.factsOf(pointer);
  yield {
    name: 'addresses',
    text: isRight
      ? `known with their GPU and range (${facts.rangeBytes} bytes for ${bytes}); ${after === undefined ? 'unknown when freed' : 'still known when freed'}`
      : `attributes ${JSON.stringify(Object.values(pointerAttributes))} give ${describe(facts)}, not ${describe(wanted)}`,
    isWrong: !isRight || after !== undefined,
  };
  const shared = new Uint8Array(new SharedArrayBuffer(2 ** 18), 2 ** 16, 2 ** 17);
  const locked = context.run((driver) => driver.cuMemHostRegister_v2(shared, shared.length, 0));
  const unlocked = context.run((driver) => driver.cuMemHostUnregister(shared));
  yield {
    name: 'page-locking',
    text:
      locked === results.SUCCESS && unlocked === results.SUCCESS
        ? 'of shared memory of JavaScript works'
        : `is refused: ${describeResult(context.driver, locked)}; copies go through the driver's own memory`,
  };
}

function describe(value: object | undefined): string {
  return JSON.stringify(value ?? null, (_, each: unknown) => (typeof each === 'bigint' ? `0x${each.toString(16)}` : each));
}

/** Every kernel that one GPU can execute alone, beside the interpreter. */
function* checkKernels(gpu: Gpu, level: number, { only, isSmall }: VerifyOptions): Generator<Seen> {
  const kernels = allKernels().filter(({ protocol }) => protocol !== 'multicast');
  const able = kernels.flatMap((kernel): [KernelDescription, Level][] => {
    const best = levelsOf(kernel)
      .filter((each) => each <= level)
      .at(-1);
    return best === undefined || !kernelName(kernel).includes(only) ? [] : [[kernel, best]];
  });
  const wrong: string[] = [];
  const nSeeds = isSmall ? 1 : 4;
  const startMs = performance.now();
  for (const [kernel, best] of able) {
    const name = kernelName(kernel);
    try {
      const module = gpu.load(moduleText([kernel], best));
      for (let seed = 1; seed <= nSeeds; seed++) {
        const made = kernelCase(kernel, seed);
        const difference = differing(made, runOnGpu(gpu, module, kernel, made), interpret(kernel, best, made));
        if (difference !== undefined) wrong.push(`${name} for sm_${best}, seed ${seed}: ${difference}`);
      }
      gpu.unload(module);
    } catch (error) {
      wrong.push(`${name} for sm_${best}: ${(error as Error).message}`);
      // Nothing else can run after a fault.
      if (/CUDA_ERROR_(ILLEGAL|MISALIGNED|LAUNCH_FAILED)/.test((error as Error).message)) break;
    }
  }
  const seconds = ((performance.now() - startMs) / 1000).toFixed(1);
  yield {
    name: 'kernels',
    text: `${able.length - new Set(wrong.map((line) => line.split(' ')[0])).size} of ${able.length} give the interpreter's bits in ${nSeeds} cases each, ${seconds} s; those of multicast memory were not run`,
    isWrong: wrong.length > 0,
  };
  for (const line of wrong.slice(0, 20)) yield { name: 'kernel', text: line, isWrong: true };
}

const THREADS = 64;

function runOnGpu(gpu: Gpu, module: bigint, kernel: KernelDescription, made: KernelCase): Uint8Array {
  const addresses = made.pieces.map(({ bytes }) => {
    const pointer = gpu.allocate(bytes.length);
    gpu.upload(pointer, bytes);
    return pointer;
  });
  const steps = made.steps(addresses);
  const records = new Uint8Array(steps.length * RECORD_BYTES);
  steps.forEach((step, i) => writeStep(new DataView(records.buffer), i * RECORD_BYTES, step));
  const entry = gpu.functionOf(module, kernelName(kernel));
  if (kernel.protocol === 'stream') gpu.launcher(entry, 2, THREADS, records)();
  else {
    const list = gpu.allocate(records.length);
    const abort = gpu.allocate(8);
    gpu.upload(list, records);
    gpu.upload(abort, new Uint8Array(8));
    const parameters = new DataView(new ArrayBuffer(24));
    parameters.setBigUint64(0, list, true);
    parameters.setUint32(8, steps.length, true);
    parameters.setBigUint64(16, abort, true);
    gpu.launcher(entry, 1, THREADS, new Uint8Array(parameters.buffer))();
    gpu.synchronize();
    for (const pointer of [list, abort]) gpu.free(pointer);
  }
  const result = new Uint8Array(made.pieces[made.result]?.bytes.length ?? 0);
  gpu.download(addresses[made.result] ?? 0n, result);
  for (const pointer of addresses) gpu.free(pointer);
  return result;
}

function interpret(kernel: KernelDescription, level: Level, made: KernelCase): Uint8Array {
  const memory = new DeviceMemory();
  const addresses = made.pieces.map(({ bytes }, i) => {
    const pointer = memory.allocate(`piece ${i}`, bytes.length);
    memory.bytesAt(pointer).set(bytes);
    return pointer;
  });
  const steps: readonly Step[] = made.steps(addresses);
  const loaded = loadKernel(kernel, level);
  const [first] = steps;
  if (first === undefined) throw new Error('a case without steps');
  runKernels(memory, [
    kernel.protocol === 'stream'
      ? launchOfStep(loaded, first, { threads: 8 })
      : launchOfSteps(memory, loaded, [steps], { threads: 8 }),
  ]);
  return memory.bytesAt(addresses[made.result] ?? 0n);
}

/** Bandwidths of copies from and to page-locked memory, and within the GPU, of 20 copies each. */
function* measureCopies(gpu: Gpu, bytes: number): Generator<Seen> {
  const host = new Uint8Array(new SharedArrayBuffer(bytes));
  for (let i = 0; i < bytes; i += 4096) host[i] = i >> 12;
  const [one, other] = [gpu.allocate(bytes), gpu.allocate(bytes)];
  const register = gpu.context.run((driver) => driver.cuMemHostRegister_v2(host, bytes, 0));
  const rate = (copy: () => void): string => {
    copy();
    gpu.synchronize();
    const startMs = performance.now();
    for (let i = 0; i < 20; i++) copy();
    gpu.synchronize();
    return ((20 * bytes) / (performance.now() - startMs) / 1e6).toFixed(1);
  };
  const up = rate(() => gpu.queueUpload(one, host));
  const within = rate(() => gpu.queueCopy(other, one, bytes));
  host.fill(0xff);
  const down = rate(() => gpu.queueDownload(other, host));
  let wrong = 0;
  for (let i = 0; i < bytes; i += 4096) if (host[i] !== ((i >> 12) & 255)) wrong++;
  if (register === results.SUCCESS) gpu.context.run((driver) => driver.cuMemHostUnregister(host));
  for (const pointer of [one, other]) gpu.free(pointer);
  yield {
    name: 'copies',
    text: `${bytes / 2 ** 20} MiB: host to GPU ${up} GB/s, GPU to host ${down} GB/s, within the GPU ${within} GB/s; ${wrong === 0 ? 'the bytes are right' : `${wrong} pages are wrong`}`,
    isWrong: wrong > 0,
  };
}

/** Costs of a launch: of many on one stream, and of one until its end is seen. */
function measureLaunches(gpu: Gpu, count: number): Seen {
  const kernel = kernelFor('stream', { bytes: 4 });
  const module = gpu.load(moduleText([kernel], 75));
  const [from, to] = [gpu.allocate(64), gpu.allocate(64)];
  gpu.upload(from, new Uint8Array(64).fill(9));
  const record = new Uint8Array(RECORD_BYTES);
  writeStep(new DataView(record.buffer), 0, { bytes: 64, sources: [from], destinations: [to] });
  const launch = gpu.launcher(gpu.functionOf(module, kernelName(kernel)), 1, 32, record);
  const perCall = (run: () => void): string => {
    launch();
    gpu.synchronize();
    const startMs = performance.now();
    run();
    gpu.synchronize();
    return (((performance.now() - startMs) * 1000) / count).toFixed(1);
  };
  const queued = perCall(() => {
    for (let i = 0; i < count; i++) launch();
  });
  const awaited = perCall(() => {
    for (let i = 0; i < count; i++) {
      launch();
      gpu.synchronize();
    }
  });
  const seen = new Uint8Array(64);
  gpu.download(to, seen);
  gpu.unload(module);
  for (const pointer of [from, to]) gpu.free(pointer);
  return {
    name: 'launches',
    text: `${queued} µs each of ${count} on a stream, ${awaited} µs with the wait for its end`,
    isWrong: !seen.every((byte) => byte === 9),
  };
}
