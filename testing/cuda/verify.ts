import { planGpus } from '../../src/cuda/gpu-plan.js';
import { deviceAttributes, pointerAttributes, functions, type Driver } from '../../src/runtime/device/cuda/functions.js';
import { countDevices } from '../../src/runtime/device/cuda/context.js';
import { versionText } from '../../src/runtime/device/cuda/load.js';
import { describeResult, results } from '../../src/runtime/device/cuda/results.js';
import { allKernels, kernelName, levelsOf, moduleText, type KernelDescription } from '../../src/runtime/device/ptx/kernels.js';
import { RECORD_BYTES, writeStep, type Step } from '../../src/runtime/device/ptx/step-record.js';
import type { Level } from '../../src/runtime/device/ptx/targets.js';
import { launchOfStep, launchOfSteps, loadKernel } from '../ptx/launch.js';
import { DeviceMemory } from '../ptx/memory.js';
import { runKernels } from '../ptx/run.js';
import type { Gpu } from './gpu.js';
import { differing, kernelCase, type KernelCase } from './kernel-cases.js';
import { architectureOf, withGpu, type Seen, type Setting } from './part.js';

/** The driver, the GPU, and its memory. */
export function* basics(setting: Setting): Generator<Seen> {
  const { driver, ordinal } = setting;
  const version = new Int32Array(1);
  driver.cuDriverGetVersion(version);
  const nFunctions = Object.keys(functions).length;
  yield {
    name: 'driver',
    text: `CUDA ${versionText(version[0] ?? 0)}, all ${nFunctions} functions, ${countDevices(driver)} GPUs`,
  };
  yield* withGpu(setting, function* (gpu) {
    const { context } = gpu;
    const uuid = Buffer.from(context.uuid).toString('hex');
    const gigabytes = (context.memoryBytes / 1e9).toFixed(1);
    yield {
      name: `GPU ${ordinal}`,
      text: `${context.name}, sm_${architectureOf(gpu)}, ${context.attribute(deviceAttributes.multiprocessors)} multiprocessors, ${gigabytes} GB, UUID ${uuid}`,
    };
    yield* checkMemory(gpu);
    yield pathsOf(driver);
  });
}

/** The plan of all GPUs, as ranks on all of them would have it. */
function pathsOf(driver: Driver): Seen {
  const gpus = Array.from({ length: countDevices(driver) }, (_, ordinal) => {
    const [device, text] = [new Int32Array(1), new Uint8Array(32)];
    driver.cuDeviceGet(device, ordinal);
    driver.cuDeviceGetPCIBusId(text, text.length, device[0] ?? 0);
    const busId = new TextDecoder().decode(text.subarray(0, text.indexOf(0))).toLowerCase();
    return { uuid: String(ordinal), busId, sm: 0, isExclusive: false, p2pLevel: undefined };
  });
  const { paths, how, refusal } = planGpus(gpus);
  const rows = paths?.map((row, i) => `${gpus[i]?.busId ?? ''} ${row.join(' ')}`) ?? gpus.map(({ busId }) => busId);
  return { name: 'paths between GPUs', text: `${rows.join('; ')}; ${refusal ?? how}` };
}

/** Every kernel that one GPU can execute alone, beside the interpreter. */
export function* kernels(setting: Setting): Generator<Seen> {
  yield* withGpu(setting, (gpu) => checkKernels(gpu, architectureOf(gpu), setting));
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
    verdict: isRight && after === undefined ? 'right' : 'wrong',
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

function* checkKernels(gpu: Gpu, level: number, { only, isFake }: Setting): Generator<Seen> {
  const alone = allKernels().filter(({ protocol }) => protocol !== 'multicast');
  const able = alone.flatMap((kernel): [KernelDescription, Level][] => {
    const best = levelsOf(kernel)
      .filter((each) => each <= level)
      .at(-1);
    return best === undefined || !kernelName(kernel).includes(only) ? [] : [[kernel, best]];
  });
  const wrong: string[] = [];
  const nSeeds = isFake ? 1 : 4;
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
    verdict: wrong.length > 0 ? 'wrong' : 'right',
  };
  for (const line of wrong.slice(0, 20)) yield { name: 'kernel', text: line, verdict: 'wrong' };
}

const THREADS = 64;

function runOnGpu(gpu: Gpu, module: bigint, kernel: KernelDescription, made: KernelCase): Uint8Array {
  const addresses = made.pieces.map(({ bytes }) => {
    const pointer = gpu.allocate(bytes.length);
    gpu.upload(pointer, bytes);
    return pointer;
  });
  const steps = made.steps(addresses);
  const entry = gpu.functionOf(module, kernelName(kernel));
  const [first] = steps;
  if (kernel.protocol === 'stream' && first !== undefined) {
    const record = new Uint8Array(RECORD_BYTES);
    writeStep(new DataView(record.buffer), 0, first);
    gpu.launcher(entry, 2, THREADS, record)();
  } else gpu.stepsLauncher(entry, THREADS, [steps])();
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
