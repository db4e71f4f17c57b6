import { closeSync } from 'node:fs';
import { SwitchMemory } from '../../src/cuda/switch-memory.js';
import { roundsOf, SLOT_BYTES, switchBytes, switchSteps, type SwitchView } from '../../src/cuda/switch-steps.js';
import { deviceAttributes, FILE_DESCRIPTOR, multicastObject } from '../../src/runtime/device/cuda/functions.js';
import { describeResult, results } from '../../src/runtime/device/cuda/results.js';
import { countDevices } from '../../src/runtime/device/cuda/context.js';
import { kernelFor, kernelName, moduleText } from '../../src/runtime/device/ptx/kernels.js';
import { Gpu } from './gpu.js';
import { withGpu, type Seen, type Setting } from './part.js';

/** Blocks of each GPU, and threads of a block. */
const BLOCKS = 16;
const THREADS = 512;

/** Results of a multicast object for one GPU, which nobody needs: errors that NVLS has to expect; and NVLS of two GPUs. */
export function* multicast(setting: Setting): Generator<Seen> {
  yield* withGpu(setting, (gpu) => [{ name: 'multicast of one GPU', text: resultsOf(gpu).join('; ') }]);
  yield ofTwo(setting);
}

/** The GPU with the next one. */
function ofTwo({ driver, ordinal, isFake }: Setting): Seen {
  const name = 'multicast of two GPUs';
  const nDevices = countDevices(driver);
  if (nDevices < 2) return { name, text: `there is ${nDevices} GPU`, verdict: 'skipped' };
  const gpus = [new Gpu(driver, ordinal), new Gpu(driver, (ordinal + 1) % nDevices)] as const;
  const lacking = gpus.find(({ context }) => context.attribute(deviceAttributes.multicast) === 0);
  const [first] = gpus;
  const memories: SwitchMemory[] = [];
  try {
    if (lacking !== undefined)
      return { name, text: `GPU ${lacking.context.ordinal} has no multicast memory`, verdict: 'skipped' };
    const least = switchBytes(BLOCKS);
    const own = SwitchMemory.create(first.context, gpus.length, least);
    memories.push(own);
    const fd = own.export();
    memories.push(...gpus.slice(1).map(({ context }) => SwitchMemory.import(context, fd, own.bytes)));
    closeSync(fd);
    for (const memory of memories) memory.add();
    for (const [rank, memory] of memories.entries()) memory.bind(gpus[rank]?.stream ?? 0n);
    for (const gpu of gpus) gpu.synchronize();
    for (const memory of memories) memory.map();
    return { name, ...sumOf(gpus, memories, isFake ? 1 << 10 : 1 << 24) };
  } finally {
    for (const memory of memories.reverse()) memory.close();
    for (const gpu of gpus) gpu.close();
  }
}

/** An all-reduce of float32 on the switch, twice: each GPU is a rank of this process. */
function sumOf(gpus: readonly Gpu[], memories: readonly SwitchMemory[], count: number): Omit<Seen, 'name'> {
  const nRanks = gpus.length;
  const kernel = kernelFor('multicast', { type: 'float32', operator: 'sum' });
  const arrays = gpus.map((gpu, rank) => {
    const array = gpu.allocate(4 * count);
    gpu.upload(array, new Uint8Array(Float32Array.from({ length: count }, (_, i) => (i % 1000) + rank).buffer));
    return array;
  });
  const before = new Array<number>(BLOCKS).fill(0);
  let ms = 0;
  for (let time = 0; time < 2; time++) {
    let nRounds = 0;
    const launches = gpus.map((gpu, rank) => {
      const { own, all } = memories[rank] as SwitchMemory;
      const view: SwitchView = { own, all, rank, nRanks, nBlocks: BLOCKS, slotBytes: SLOT_BYTES };
      const array = arrays[rank];
      const call = { name: 'allReduce', root: 0, count, elementBytes: 4, input: array, output: array, divisor: 1 };
      const rounds = roundsOf(view, call, 1 << 10);
      ({ nRounds } = rounds);
      const entry = gpu.kernel(moduleText([kernel], 90), kernelName(kernel));
      return gpu.stepsLauncher(entry, THREADS, switchSteps(view, call, rounds, 0, nRounds, before));
    });
    before.forEach((rounds, block) => (before[block] = rounds + nRounds));
    const startMs = performance.now();
    for (const launch of launches) launch();
    for (const gpu of gpus) gpu.synchronize();
    ms = performance.now() - startMs;
  }
  const wrong = gpus.flatMap((gpu, rank) => {
    const seen = new Float32Array(count);
    gpu.download(arrays[rank] ?? 0n, new Uint8Array(seen.buffer));
    const at = seen.findIndex((value, i) => value !== nRanks * sumAt(i, nRanks));
    return at < 0 ? [] : [`element ${at} of GPU ${gpu.context.ordinal} is ${seen[at]}`];
  });
  const gigabytes = (4 * count) / 1e6 / ms;
  const text = `all-reduce of ${count} float32, ${gigabytes.toFixed(1)} GB/s: ${wrong.length === 0 ? 'right' : wrong.join(', ')}`;
  return { text, verdict: wrong.length === 0 ? 'right' : 'wrong', figures: { 'GB/s': gigabytes } };
}

/** Sum of the ranks' elements; the second all-reduce adds that of all ranks. */
function sumAt(i: number, nRanks: number): number {
  return nRanks * (i % 1000) + (nRanks * (nRanks - 1)) / 2;
}

function resultsOf(gpu: Gpu): string[] {
  const { context } = gpu;
  const isSupported = context.attribute(deviceAttributes.multicast);
  const object = new DataView(new ArrayBuffer(multicastObject.bytes));
  object.setUint32(multicastObject.nDevices, 1, true);
  object.setBigUint64(multicastObject.size, 2n ** 21n, true);
  object.setBigUint64(multicastObject.handleTypes, BigInt(FILE_DESCRIPTOR), true);
  return context.run((driver) => {
    const out = new BigUint64Array(1);
    const seen = [`the attribute says ${isSupported}`];
    const granularity = driver.cuMulticastGetGranularity(out, object, 0);
    seen.push(
      `cuMulticastGetGranularity: ${granularity === results.SUCCESS ? `${out[0]} bytes` : describeResult(driver, granularity)}`,
    );
    if (granularity === results.SUCCESS) object.setBigUint64(multicastObject.size, out[0] ?? 0n, true);
    const created = driver.cuMulticastCreate(out, object);
    seen.push(`cuMulticastCreate: ${describeResult(driver, created)}`);
    if (created === results.SUCCESS) {
      const device = new Int32Array(1);
      driver.cuDeviceGet(device, context.ordinal);
      seen.push(`cuMulticastAddDevice: ${describeResult(driver, driver.cuMulticastAddDevice(out[0] ?? 0n, device[0] ?? 0))}`);
    }
    return seen;
  });
}
