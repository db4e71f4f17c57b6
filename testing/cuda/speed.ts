import { deviceAttributes } from '../../src/runtime/device/cuda/functions.js';
import { results } from '../../src/runtime/device/cuda/results.js';
import { kernelFor, kernelName, moduleText, type KernelDescription } from '../../src/runtime/device/ptx/kernels.js';
import { RECORD_BYTES, writeStep, type Step } from '../../src/runtime/device/ptx/step-record.js';
import type { Gpu } from './gpu.js';
import { withGpu, type Seen, type Setting } from './part.js';

/** Shares of the card's own copy that our kernels have to reach, both in bytes that are read or written. */
const LEAST = { copy: 0.9, reduction: 0.85 } as const;
const REPEATS = 20;

/** Copies by the driver, and copies and reductions by our kernels beside them. */
export function* speed(setting: Setting): Generator<Seen> {
  const { isFake } = setting;
  yield* withGpu(setting, (gpu) => [measureHost(gpu, isFake ? 2 ** 20 : 2 ** 26)]);
  yield* withGpu(setting, (gpu) => measureKernels(gpu, isFake));
}

/** GB/s of bytes that work of a stream moves, each time. */
function rateOf(gpu: Gpu, bytes: number, work: () => void): number {
  work();
  gpu.synchronize();
  const startMs = performance.now();
  for (let i = 0; i < REPEATS; i++) work();
  gpu.synchronize();
  return (REPEATS * bytes) / (performance.now() - startMs) / 1e6;
}

/** Copies from and to page-locked memory. */
function measureHost(gpu: Gpu, bytes: number): Seen {
  const host = new Uint8Array(new SharedArrayBuffer(bytes));
  for (let i = 0; i < bytes; i += 4096) host[i] = i >> 12;
  const [one, other] = [gpu.allocate(bytes), gpu.allocate(bytes)];
  const register = gpu.context.run((driver) => driver.cuMemHostRegister_v2(host, bytes, 0));
  const upGBps = rateOf(gpu, bytes, () => gpu.queueUpload(one, host));
  gpu.queueCopy(other, one, bytes);
  gpu.synchronize();
  host.fill(0xff);
  const downGBps = rateOf(gpu, bytes, () => gpu.queueDownload(other, host));
  let wrong = 0;
  for (let i = 0; i < bytes; i += 4096) if (host[i] !== ((i >> 12) & 255)) wrong++;
  if (register === results.SUCCESS) gpu.context.run((driver) => driver.cuMemHostUnregister(host));
  return {
    name: 'copies',
    text: `${bytes / 2 ** 20} MiB: host to GPU ${upGBps.toFixed(1)} GB/s, GPU to host ${downGBps.toFixed(1)} GB/s; ${wrong === 0 ? 'the bytes are right' : `${wrong} pages are wrong`}`,
    verdict: wrong > 0 ? 'wrong' : 'right',
    figures: { upGBps, downGBps },
  };
}

/** Our copy and our sum of two arrays in memory of the GPU, with the best number of blocks and threads. */
function* measureKernels(gpu: Gpu, isFake: boolean): Generator<Seen> {
  const bytes = isFake ? 4096 : 2 ** 28;
  const [a, b, to] = [gpu.allocate(bytes), gpu.allocate(bytes), gpu.allocate(bytes)];
  const values = Float32Array.from({ length: bytes / 4 }, (_, i) => i % 4096);
  gpu.upload(a, new Uint8Array(values.buffer));
  gpu.upload(b, new Uint8Array(values.buffer));
  const ownGBps = rateOf(gpu, 2 * bytes, () => gpu.queueCopy(to, a, bytes));
  yield { name: 'copy of the card', text: `${ownGBps.toFixed(0)} GB/s read and written`, figures: { ownGBps } };
  const sizes = isFake
    ? [[2, 32] as const]
    : [1, 2, 4, 8].flatMap((blocks) => [256, 512, 1024].map((threads) => [blocks, threads] as const));
  const multiprocessors = isFake ? 1 : gpu.context.attribute(deviceAttributes.multiprocessors);
  const work: [keyof typeof LEAST, KernelDescription, Step, number][] = [
    ['copy', kernelFor('stream', { bytes: 4 }), { bytes, sources: [a], destinations: [to] }, 1],
    ['reduction', kernelFor('stream', { type: 'float32', operator: 'sum' }), { bytes, sources: [a, b], destinations: [to] }, 2],
  ];
  for (const [kind, kernel, step, nSources] of work) {
    const entry = gpu.kernel(moduleText([kernel], 75), kernelName(kernel));
    const record = new Uint8Array(RECORD_BYTES);
    writeStep(new DataView(record.buffer), 0, step);
    gpu.upload(to, new Uint8Array(bytes));
    const tried = sizes.map(([blocks, threads]) => ({
      blocks,
      threads,
      GBps: rateOf(gpu, (nSources + 1) * bytes, gpu.launcher(entry, blocks * multiprocessors, threads, record)),
    }));
    const best = tried.reduce((one, other) => (other.GBps > one.GBps ? other : one));
    const share = best.GBps / ownGBps;
    const seen = new Float32Array(values.length);
    gpu.download(to, new Uint8Array(seen.buffer));
    const wrong = seen.findIndex((value, i) => value !== nSources * (i % 4096));
    const { blocks, threads, GBps } = best;
    yield {
      name: kernelName(kernel),
      text:
        `${GBps.toFixed(0)} GB/s read and written, ${(100 * share).toFixed(0)} % of the card's copy, with ${blocks} blocks a ` +
        `multiprocessor of ${threads} threads; ${wrong < 0 ? 'the values are right' : `element ${wrong} is wrong`}`,
      verdict: wrong >= 0 ? 'wrong' : !isFake && share < LEAST[kind] ? 'slow' : 'right',
      figures: { GBps, share, blocks, threads },
    };
  }
}

/** Costs of a launch: of many on one stream, and of one until its end is seen. */
export function* launches(setting: Setting): Generator<Seen> {
  yield* withGpu(setting, (gpu) => [measureLaunches(gpu, setting.isFake ? 50 : 2000)]);
}

function measureLaunches(gpu: Gpu, count: number): Seen {
  const kernel = kernelFor('stream', { bytes: 4 });
  const [from, to] = [gpu.allocate(64), gpu.allocate(64)];
  gpu.upload(from, new Uint8Array(64).fill(9));
  const record = new Uint8Array(RECORD_BYTES);
  writeStep(new DataView(record.buffer), 0, { bytes: 64, sources: [from], destinations: [to] });
  const launch = gpu.launcher(gpu.kernel(moduleText([kernel], 75), kernelName(kernel)), 1, 32, record);
  const usOf = (run: () => void): number => {
    launch();
    gpu.synchronize();
    const startMs = performance.now();
    run();
    gpu.synchronize();
    return ((performance.now() - startMs) * 1000) / count;
  };
  const queuedUs = usOf(() => {
    for (let i = 0; i < count; i++) launch();
  });
  const awaitedUs = usOf(() => {
    for (let i = 0; i < count; i++) {
      launch();
      gpu.synchronize();
    }
  });
  const seen = new Uint8Array(64);
  gpu.download(to, seen);
  return {
    name: 'launches',
    text: `${queuedUs.toFixed(1)} µs each of ${count} on a stream, ${awaitedUs.toFixed(1)} µs with the wait for its end`,
    verdict: seen.every((byte) => byte === 9) ? 'right' : 'wrong',
    figures: { queuedUs, awaitedUs },
  };
}
